//! The caller's side of an INVITE usage: INVITE, its responses, CANCEL, ACK (RFC 3261 sections 9,
//! 13.2 and 14.1).

use std::time::{Duration, Instant};

use super::api::{Body, Event, Failure, Fields, Invite, UsageError};
use super::client::Purpose;
use super::outgoing::{Hop, Outgoing, SentBy, Target};
use super::usage::{Cancel, Dialog, Phase, REINVITE_TRIES, Retry, Usage};
use super::{Endpoint, Owner};
use crate::Incoming;
use crate::arena::{ClientTxnId, UsageId};

impl Endpoint {
    /// Sends an INVITE that opens a call.
    ///
    /// # Errors
    /// [`UsageError::Unroutable`], [`UsageError::Full`].
    pub fn invite(&mut self, now: Instant, invite: Invite) -> Result<UsageId, UsageError> {
        if self.usages.len() >= self.config.max_usages {
            return Err(UsageError::Full);
        }
        let local_tag: Box<str> = self.rng.token(10).into();
        let call_id = invite.call_id.unwrap_or_else(|| self.rng.token(22));
        let contact = invite.contact_user.unwrap_or_default();
        let local = format!("{};tag={local_tag}", invite.from);
        let out = Outgoing {
            method: "INVITE".to_owned(),
            request_uri: invite.request_uri.clone(),
            routes: invite.route,
            from: local.clone(),
            to: invite.to.clone(),
            call_id: call_id.clone(),
            cseq: 1,
            branch: self.branch(),
            contact: Some(contact.clone()),
            fields: invite.fields,
            body: invite.body,
        };
        let dialog = Dialog {
            call_id,
            local_tag: local_tag.clone(),
            local,
            remote: invite.to,
            remote_tag: None,
            remote_target: invite.request_uri,
            route_set: Vec::new(),
            local_cseq: 1,
            remote_cseq: None,
            via: None,
        };
        let credentials = invite.credentials.clone();
        let id = self.usages.insert(Usage {
            phase: Phase::Calling(Cancel::No),
            dialog,
            is_uac: true,
            contact,
            credentials: invite.credentials,
            open_in: None,
            open_out: None,
            unacked: None,
            bye_after_ack: None,
            ack_owed: None,
            last_ack: None,
            retry: None,
            armed: None,
        });
        match self.send(
            now,
            out,
            Purpose::Invite,
            Some(id),
            invite.next_hop,
            credentials,
        ) {
            Ok(txn) => {
                if let Some(usage) = self.usages.get_mut(id) {
                    usage.open_out = Some(txn);
                }
                self.tags.insert(local_tag, id);
                Ok(id)
            }
            Err(error) => {
                self.usages.remove(id);
                Err(error)
            }
        }
    }

    /// Gives our INVITE up. [`Event::Refused`] tells how it ended: with the peer's response, or
    /// [`Failure::Cancelled`] where its 2xx crossed our CANCEL or nothing came at all.
    pub fn cancel(&mut self, now: Instant, id: UsageId, fields: Fields) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        match &mut usage.phase {
            Phase::Calling(cancel @ Cancel::No) => *cancel = Cancel::Wished(fields),
            Phase::Calling(Cancel::Possible) => self.send_cancel(now, id, fields),
            _ => {}
        }
    }

    /// Acknowledges the 2xx of [`Event::Answered`] or [`Event::ReinviteAnswered`], with the answer
    /// where that 2xx made an offer. Repeats of the 2xx are acknowledged by the endpoint from then
    /// on (section 13.2.2.4).
    pub fn ack(&mut self, now: Instant, id: UsageId, body: Option<Body>) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let Some(cseq) = usage.ack_owed.take() else {
            return;
        };
        let dialog = usage.dialog.clone();
        self.send_ack(now, Some(id), &dialog, cseq, body);
    }

    /// A response to an INVITE of ours that opens a call. `usage` may be gone by now.
    pub(crate) fn invite_response(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        usage: Option<UsageId>,
        code: u16,
        message: &Incoming,
    ) {
        let id = usage.filter(|id| self.usages.get(*id).is_some());
        match (code, id) {
            (100..=199, Some(id)) => self.provisional_response(now, id, code, message),
            (200..=299, _) => self.success(now, txn, id, code, message),
            (300.., Some(id)) => {
                self.invite_failed(id, Failure::Response(code), Some(message));
            }
            _ => {}
        }
    }

    fn provisional_response(&mut self, now: Instant, id: UsageId, code: u16, message: &Incoming) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let Phase::Calling(cancel) = &mut usage.phase else {
            return;
        };
        match std::mem::replace(cancel, Cancel::Possible) {
            Cancel::Wished(fields) => {
                self.send_cancel(now, id, fields);
                return;
            }
            Cancel::Sent { give_up } => {
                *cancel = Cancel::Sent { give_up };
                return;
            }
            Cancel::No | Cancel::Possible => {}
        }
        if code > 100 {
            let message = Box::new(message.clone());
            self.events.push_back(Event::Provisional {
                usage: id,
                code,
                message,
            });
        }
    }

    /// A 2xx: the first makes the dialog, its repeats get our ACK again, and one of another fork,
    /// or of a call that we cancelled, gets ACK and BYE (section 13.2.2.4).
    fn success(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        id: Option<UsageId>,
        code: u16,
        message: &Incoming,
    ) {
        let Some(client) = self.clients.get(txn) else {
            return;
        };
        let tag = message
            .to()
            .ok()
            .and_then(|to| to.tag().map(str::to_owned))
            .unwrap_or_default();
        if let Some((_, bytes, hop)) = client.acks.iter().find(|(own, ..)| **own == *tag) {
            self.transmits.push_back(hop.transmit(bytes.clone()));
            return;
        }
        let Some(dialog) = Dialog::of_response(&client.out, client.hop, message) else {
            return;
        };
        let cseq = client.out.cseq;
        if let Some(id) = id {
            let Some(usage) = self.usages.get_mut(id) else {
                return;
            };
            match &usage.phase {
                Phase::Calling(Cancel::No | Cancel::Possible) => {
                    let local_tag = usage.dialog.local_tag.clone();
                    usage.dialog = Dialog {
                        local_tag,
                        ..dialog
                    };
                    usage.phase = Phase::Confirmed;
                    usage.open_out = None;
                    usage.ack_owed = Some(cseq);
                    let message = Box::new(message.clone());
                    self.events.push_back(Event::Answered {
                        usage: id,
                        code,
                        message,
                    });
                    self.settle_usage(id);
                    return;
                }
                Phase::Calling(_) => self.end_calling(id, Failure::Cancelled, None),
                _ if usage.is_remote_tag(Some(&tag)) => {
                    if let Some((own, hop, bytes)) = &usage.last_ack
                        && *own == cseq
                    {
                        self.transmits.push_back(hop.transmit(bytes.clone()));
                    }
                    return;
                }
                _ => {}
            }
        }
        self.refuse_fork(now, txn, &tag, &dialog, cseq);
    }

    /// ACK and BYE for a dialog that nobody wants.
    fn refuse_fork(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        tag: &str,
        dialog: &Dialog,
        cseq: u32,
    ) {
        /// Forks acknowledged for one INVITE; a peer that makes up more is not served.
        const MAX_FORKS: usize = 16;
        let full = self
            .clients
            .get(txn)
            .is_none_or(|client| client.acks.len() >= MAX_FORKS);
        if full {
            return;
        }
        if let Some((hop, bytes)) = self.send_ack(now, None, dialog, cseq, None)
            && let Some(client) = self.clients.get_mut(txn)
        {
            client.acks.push((tag.into(), bytes, hop));
        }
        let bye = dialog.request("BYE", cseq + 1, self.branch());
        let _ = self.send(now, bye, Purpose::Silent, None, None, None);
    }

    /// Our INVITE came to nothing.
    pub(crate) fn invite_failed(
        &mut self,
        id: UsageId,
        failure: Failure,
        message: Option<&Incoming>,
    ) {
        let calling = self
            .usages
            .get(id)
            .is_some_and(|u| matches!(u.phase, Phase::Calling(_)));
        if calling {
            self.end_calling(id, failure, message);
        }
    }

    fn end_calling(&mut self, id: UsageId, failure: Failure, message: Option<&Incoming>) {
        self.remove_usage(id);
        let message = message.map(|message| Box::new(message.clone()));
        self.events.push_back(Event::Refused {
            usage: id,
            failure,
            message,
        });
    }

    /// Nothing came in 64 x T1 after our CANCEL (section 9.1).
    pub(crate) fn cancel_unanswered(&mut self, id: UsageId) {
        let txn = self.usages.get(id).and_then(|usage| usage.open_out);
        self.end_calling(id, Failure::Cancelled, None);
        if let Some(txn) = txn {
            self.drop_client(txn);
        }
    }

    fn send_cancel(&mut self, now: Instant, id: UsageId, fields: Fields) {
        let give_up = now + self.config.t1 * 64;
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        usage.phase = Phase::Calling(Cancel::Sent { give_up });
        let invite = usage.open_out.and_then(|txn| self.clients.get(txn));
        let Some((cancel, hop)) = invite.and_then(|t| Some((t.out.cancel(fields), t.hop?))) else {
            return;
        };
        let next_hop = Some((hop.transport, hop.remote));
        let _ = self.send(now, cancel, Purpose::Silent, None, next_hop, None);
        self.settle_usage(id);
    }

    /// Sends the ACK of a 2xx, which is a request of its own (section 13.2.2.4), and keeps it in
    /// the usage. Returned where it went out at once.
    pub(crate) fn send_ack(
        &mut self,
        now: Instant,
        id: Option<UsageId>,
        dialog: &Dialog,
        cseq: u32,
        body: Option<Body>,
    ) -> Option<(Hop, std::sync::Arc<[u8]>)> {
        let mut ack = dialog.request("ACK", cseq, self.branch());
        ack.body = body;
        match ack.target()? {
            Target::Address(transport, remote) => {
                let used = dialog.via.and_then(|via| via.local);
                let listener = self.listener(transport, remote, used)?;
                let (local, via) = (listener.local, SentBy::of(listener));
                let connection = dialog
                    .via
                    .filter(|via| via.transport == transport && via.remote == remote)
                    .and_then(|via| via.connection);
                let hop = Hop {
                    transport,
                    local: Some(local),
                    remote,
                    connection,
                };
                let bytes = ack.print(&via, &self.config.user_agent);
                self.transmits.push_back(hop.transmit(bytes.clone()));
                if let Some(usage) = id.and_then(|id| self.usages.get_mut(id)) {
                    usage.last_ack = Some((cseq, hop, bytes.clone()));
                }
                Some((hop, bytes))
            }
            Target::Name { .. } => {
                let _ = self.send(now, ack, Purpose::Ack, id, None, None);
                None
            }
        }
    }

    /// A response to our re-INVITE.
    pub(crate) fn reinvite_response(
        &mut self,
        now: Instant,
        id: UsageId,
        txn: ClientTxnId,
        tries: u8,
        code: u16,
        message: &Incoming,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        match code {
            100..=199 => {}
            200..=299 if usage.open_out == Some(txn) => {
                usage.open_out = None;
                usage.dialog.refresh(message);
                usage.ack_owed = self.clients.get(txn).map(|client| client.out.cseq);
                let message = Box::new(message.clone());
                self.events
                    .push_back(Event::ReinviteAnswered { usage: id, message });
            }
            200..=299 => {
                let cseq = self.clients.get(txn).map(|client| client.out.cseq);
                if let Some((own, hop, bytes)) = &usage.last_ack
                    && Some(*own) == cseq
                {
                    self.transmits.push_back(hop.transmit(bytes.clone()));
                }
            }
            491 if tries < REINVITE_TRIES && usage.open_out == Some(txn) => {
                let (is_uac, out) = (usage.is_uac, self.clients.get(txn).map(|c| c.out.clone()));
                let Some(out) = out else { return };
                let wait = glare_wait(is_uac, self.rng.below(190), self.rng.below(200));
                if let Some(usage) = self.usages.get_mut(id) {
                    usage.open_out = None;
                    usage.retry = Some(Retry {
                        at: now + wait,
                        fields: out.fields,
                        body: out.body,
                        tries,
                    });
                }
                self.settle_usage(id);
            }
            _ => self.reinvite_failed(id, Failure::Response(code), Some(message)),
        }
    }

    pub(crate) fn reinvite_failed(
        &mut self,
        id: UsageId,
        failure: Failure,
        message: Option<&Incoming>,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        if usage.open_out.take().is_none() {
            return;
        }
        let message = message.map(|message| Box::new(message.clone()));
        self.events.push_back(Event::ReinviteRefused {
            usage: id,
            failure,
            message,
        });
    }

    /// Forgets a usage: no more timers, no more matching. Its transactions live on by themselves.
    pub(crate) fn remove_usage(&mut self, id: UsageId) {
        if let Some(mut usage) = self.usages.remove(id) {
            self.deadlines.set(Owner::Usage(id), &mut usage.armed, None);
            self.tags.remove(&usage.dialog.local_tag);
        }
    }

    /// A usage whose BYE is over.
    pub(crate) fn end_usage(&mut self, id: UsageId) {
        if self.usages.get(id).is_some() {
            self.remove_usage(id);
            self.events.push_back(Event::Ended { usage: id });
        }
    }

    /// Arms the usage's next deadline.
    pub(crate) fn settle_usage(&mut self, id: UsageId) {
        if let Some(usage) = self.usages.get_mut(id) {
            let next = usage.poll_timeout();
            self.deadlines.set(Owner::Usage(id), &mut usage.armed, next);
        }
    }
}

/// How long to wait after 491, in steps of 10 ms: 2.1 to 4 s for the side that made the Call-ID,
/// 0 to 2 s for the other (section 14.1).
fn glare_wait(is_uac: bool, long: u64, short: u64) -> Duration {
    let steps = if is_uac { 210 + long } else { short };
    Duration::from_millis(steps * 10)
}
