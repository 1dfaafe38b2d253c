//! The caller's side of an INVITE usage: INVITE, its responses and CANCEL (RFC 3261 sections 9.1
//! and 13.2).

use std::time::Instant;

use super::api::{Event, Failure, Fields, Invite, UsageError};
use super::client::Purpose;
use super::outgoing::{Outgoing, along};
use super::usage::{Cancel, Dialog, Phase, Usage};
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
        let local_tag: Box<str> = self.rng.token(TAG_LEN).into();
        let call_id = invite
            .call_id
            .unwrap_or_else(|| self.rng.token(CALL_ID_LEN));
        let contact = invite.contact_user.unwrap_or_default();
        let local = format!("{};tag={local_tag}", invite.from);
        let (request_uri, routes, is_strict) = along(&invite.request_uri, &invite.route);
        let out = Outgoing {
            method: "INVITE".to_owned(),
            request_uri,
            routes,
            is_strict,
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
        let credentials = invite.credentials;
        let mut usage = Usage::new(Phase::Calling(Cancel::No), dialog, contact);
        usage.is_uac = true;
        usage.credentials.clone_from(&credentials);
        let id = self.usages.insert(usage);
        let next_hop = invite.next_hop;
        match self.send(now, out, Purpose::Invite, Some(id), next_hop, credentials) {
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
    /// [`Failure::Cancelled`] where its 2xx crossed our CANCEL, or nothing came at all, or the
    /// INVITE had not even left.
    pub fn cancel(&mut self, now: Instant, id: UsageId, fields: Fields) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        match &mut usage.phase {
            Phase::Calling(Cancel::Possible) => self.send_cancel(now, id, fields),
            Phase::Calling(cancel @ Cancel::No) => {
                *cancel = Cancel::Wished(fields);
                let invite = usage.open_out.and_then(|txn| self.clients.get(txn));
                if invite.is_some_and(|invite| invite.hop.is_none()) {
                    self.abandon(now, id);
                }
            }
            _ => {}
        }
    }

    /// A response to an INVITE of ours that opens a call. The usage may be gone by now.
    pub(crate) fn invite_response(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        usage: Option<UsageId>,
        code: u16,
        message: Box<Incoming>,
    ) {
        let id = usage.filter(|id| self.usages.get(*id).is_some());
        match (code, id) {
            (100..=199, Some(id)) => self.provisional_response(now, id, code, message),
            (200..=299, _) => self.success(now, txn, id, code, message),
            (300.., Some(id)) => {
                self.invite_failed(now, id, Failure::Response(code), Some(message));
            }
            _ => {}
        }
    }

    fn provisional_response(
        &mut self,
        now: Instant,
        id: UsageId,
        code: u16,
        message: Box<Incoming>,
    ) {
        let Some(usage) = self.usages.get_mut(id) else {
            return;
        };
        let Phase::Calling(cancel) = &mut usage.phase else {
            return;
        };
        match std::mem::replace(cancel, Cancel::Possible) {
            Cancel::Wished(fields) => self.send_cancel(now, id, fields),
            Cancel::Sent { give_up } => *cancel = Cancel::Sent { give_up },
            Cancel::No | Cancel::Possible if code > 100 => {
                usage.note_early(&message);
                self.events.push_back(Event::Provisional {
                    usage: id,
                    code,
                    message,
                });
            }
            Cancel::No | Cancel::Possible => {}
        }
    }

    /// A 2xx that was not acknowledged before: the first makes the dialog; one of another fork, or
    /// of a call that we cancelled, gets ACK and BYE (section 13.2.2.4).
    fn success(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        id: Option<UsageId>,
        code: u16,
        message: Box<Incoming>,
    ) {
        let Some(client) = self.clients.get(txn) else {
            return;
        };
        let Some(dialog) = Dialog::of_response(&client.out, client.hop, &message) else {
            return;
        };
        let cseq = client.out.cseq;
        match id.and_then(|id| Some((id, self.usages.get_mut(id)?))) {
            Some((id, usage)) => match &usage.phase {
                Phase::Calling(Cancel::No | Cancel::Possible) => {
                    usage.confirm(dialog);
                    usage.ack_owed = Some((txn, cseq));
                    self.events.push_back(Event::Answered {
                        usage: id,
                        code,
                        message,
                    });
                    self.settle_usage(id);
                }
                Phase::Calling(_) => {
                    self.end_calling(now, id, Failure::Cancelled, None);
                    self.refuse_fork(now, txn, &dialog, cseq);
                }
                // A repeat before the user's ACK: that will do for both.
                _ if usage.is_remote_tag(dialog.remote_tag.as_deref()) => {}
                _ => self.refuse_fork(now, txn, &dialog, cseq),
            },
            None => self.refuse_fork(now, txn, &dialog, cseq),
        }
    }

    /// ACK and BYE for a dialog that nobody wants.
    fn refuse_fork(&mut self, now: Instant, txn: ClientTxnId, dialog: &Dialog, cseq: u32) {
        /// Forks acknowledged for one INVITE; a peer that makes up more is not served.
        const MAX_FORKS: usize = 16;
        let full = self
            .clients
            .get(txn)
            .is_none_or(|client| client.acks.len() >= MAX_FORKS);
        if full {
            return;
        }
        self.send_ack(now, txn, dialog, cseq, None);
        let bye = dialog.request("BYE", cseq + 1, self.branch());
        // Where there is no room or no way for the BYE, the peer's own timers end the dialog.
        let _ = self.send(now, bye, Purpose::Silent, None, None, None);
    }

    /// Our INVITE came to nothing.
    pub(crate) fn invite_failed(
        &mut self,
        now: Instant,
        id: UsageId,
        failure: Failure,
        message: Option<Box<Incoming>>,
    ) {
        let calling = self
            .usages
            .get(id)
            .is_some_and(|usage| matches!(usage.phase, Phase::Calling(_)));
        if calling {
            self.end_calling(now, id, failure, message);
        }
    }

    fn end_calling(
        &mut self,
        now: Instant,
        id: UsageId,
        failure: Failure,
        message: Option<Box<Incoming>>,
    ) {
        self.remove_usage(now, id);
        self.events.push_back(Event::Refused {
            usage: id,
            failure,
            message,
        });
    }

    /// Forgets an INVITE of ours that has not left, or that brought nothing in 64 x T1 after its
    /// CANCEL (section 9.1).
    pub(crate) fn abandon(&mut self, now: Instant, id: UsageId) {
        let txn = self.usages.get(id).and_then(|usage| usage.open_out);
        self.end_calling(now, id, Failure::Cancelled, None);
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
        let cancel = invite.and_then(|txn| Some((txn.out.cancel(fields), txn.hop?)));
        if let Some((cancel, hop)) = cancel {
            let next_hop = Some((hop.transport, hop.remote));
            // Where there is no room for it, the usage's own deadline ends the call.
            let _ = self.send(now, cancel, Purpose::Silent, None, next_hop, None);
        }
        self.settle_usage(id);
    }

    /// Forgets a usage: no more timers, no more matching. Its transactions live on by themselves;
    /// requests that the user has not answered get 487 (section 15.1.2).
    pub(crate) fn remove_usage(&mut self, now: Instant, id: UsageId) {
        let Some(mut usage) = self.usages.remove(id) else {
            return;
        };
        self.deadlines.set(Owner::Usage(id), &mut usage.armed, None);
        self.tags.remove(&usage.dialog.local_tag);
        for txn in usage.open_in.into_iter().chain(usage.pending) {
            self.refuse(now, txn, 487, Vec::new());
        }
    }

    /// A usage whose BYE is over.
    pub(crate) fn end_usage(&mut self, now: Instant, id: UsageId) {
        if self.usages.get(id).is_some() {
            self.remove_usage(now, id);
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

/// Characters of a tag: 59 bits, where section 19.3 asks for 32.
pub(crate) const TAG_LEN: usize = 10;

/// Characters of a Call-ID: 129 bits.
pub(crate) const CALL_ID_LEN: usize = 22;
