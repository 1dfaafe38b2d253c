//! Requests as they come in: repeats and ACKs to their transactions, CANCEL to its INVITE, the
//! rest to a dialog or to the user (RFC 3261 sections 8.2, 9.2, 12.2.2 and 17.2.3).

use std::time::Instant;

use super::api::{Event, Flow, HeaderField};
use super::keys::Key;
use super::server::{Says, retry_after};
use super::usage::{Dialog, Phase, Usage};
use super::{Endpoint, Hop};
use crate::arena::{ServerTxnId, UsageId};
use crate::{Incoming, Method, Name};

impl Endpoint {
    pub(crate) fn on_request(&mut self, now: Instant, flow: Flow, message: Box<Incoming>) {
        let Some(method) = message.method() else {
            return;
        };
        let Some(key) = self.keys.server(&message, method) else {
            return;
        };
        let known = self.server_keys.get(&key).copied();
        match (method, known) {
            (Method::Ack, Some(id)) if self.ack_server(now, id) => {}
            (Method::Ack, _) => self.on_ack(now, message),
            (_, Some(id)) => self.repeat_server(id),
            (_, None) if self.is_too_much(&message, method) => {
                let fields = vec![retry_after(RETRY_AFTER_SECONDS)];
                self.refuse_without_state(&flow, key, &message, 503, fields);
            }
            (Method::Cancel, None) => self.on_cancel(now, flow, key, message),
            (_, None) => self.on_new_request(now, flow, key, message),
        }
    }

    /// Whether a limit keeps a new request out. What ends a call is always let in.
    fn is_too_much(&self, message: &Incoming, method: Method<'_>) -> bool {
        let is_outside = message.to().is_ok_and(|to| to.tag().is_none());
        if method == Method::Invite && is_outside && self.usages.len() >= self.config.max_usages {
            return true;
        }
        self.servers.len() >= self.config.max_transactions
            && match method {
                Method::Bye => !self.ends_a_call(message),
                Method::Cancel => self.cancelled_by(message).is_none(),
                _ => true,
            }
    }

    /// Whether a BYE would be taken.
    fn ends_a_call(&self, bye: &Incoming) -> bool {
        let usage = self.usage_of(bye).and_then(|id| self.usages.get(id));
        usage.is_some_and(|usage| {
            let cseq = bye.cseq().ok().map(|cseq| cseq.number);
            !matches!(usage.phase, Phase::Calling(_)) && cseq >= usage.dialog.remote_cseq
        })
    }

    fn on_new_request(&mut self, now: Instant, flow: Flow, key: Key, message: Box<Incoming>) {
        let outside = message.to().is_ok_and(|to| to.tag().is_none());
        let merge_key = self.keys.merge(&message).filter(|_| outside);
        let merged = merge_key
            .as_ref()
            .is_some_and(|key| self.merge_keys.contains_key(key));
        let id = self.open_server(flow, &message, key, merge_key.filter(|_| !merged));
        if merged {
            // The same request by another path (section 8.2.2.2).
            self.refuse(now, id, 482, Vec::new());
            return;
        }
        let unsupported: Vec<&str> = message
            .values(Name::Require)
            .filter(|tag| !tag.is_empty() && !self.supports(tag))
            .collect();
        if !unsupported.is_empty() {
            let fields = vec![HeaderField::Known(
                Name::Unsupported,
                unsupported.join(", "),
            )];
            self.refuse(now, id, 420, fields);
            return;
        }
        if outside {
            match message.method() {
                // What goes no further ends here all the same (section 11; RFC 7332 section 3).
                Some(method)
                    if !matches!(method, Method::Options | Method::Register | Method::Bye)
                        && message.max_forwards() == Ok(Some(0)) =>
                {
                    self.refuse(now, id, 483, Vec::new());
                }
                Some(Method::Invite) => self.on_invite(now, flow, id, message),
                Some(Method::Bye) => self.refuse(now, id, 481, Vec::new()),
                _ => self.pass_request(id, None, message, flow),
            }
            return;
        }
        match self.usage_of(&message) {
            Some(usage) => self.in_dialog(now, usage, id, message, flow),
            None => self.refuse(now, id, 481, Vec::new()),
        }
    }

    /// The leg that a request with a To tag belongs to: ours by that tag, checked by Call-ID and
    /// the peer's tag.
    pub(crate) fn usage_of(&self, message: &Incoming) -> Option<UsageId> {
        let to = message.to().ok()?;
        let from = message.from().ok()?;
        let id = *self.tags.get(to.tag()?)?;
        let usage = self.usages.get(id)?;
        let is_same = message.call_id().ok()? == usage.dialog.call_id && usage.knows(from.tag());
        is_same.then_some(id)
    }

    pub(crate) fn pass_request(
        &mut self,
        txn: ServerTxnId,
        usage: Option<UsageId>,
        message: Box<Incoming>,
        flow: Flow,
    ) {
        if let Some(server) = self.servers.get_mut(txn) {
            server.usage = usage;
        }
        if let Some(usage) = usage.and_then(|usage| self.usages.get_mut(usage)) {
            usage.pending.push(txn);
        }
        self.events.push_back(Event::Request {
            txn,
            usage,
            message,
            flow,
        });
    }

    fn supports(&self, tag: &str) -> bool {
        self.config
            .supported
            .iter()
            .any(|own| own.eq_ignore_ascii_case(tag))
    }

    fn on_invite(&mut self, now: Instant, flow: Flow, txn: ServerTxnId, message: Box<Incoming>) {
        let contact = message
            .contacts()
            .next()
            .and_then(Result::ok)
            .map(|c| c.uri.to_owned());
        // Without a Contact there is nowhere to send a BYE (section 8.1.1.8).
        let Some(remote_target) = contact else {
            self.refuse(now, txn, 400, Vec::new());
            return;
        };
        let Some(server) = self.servers.get(txn) else {
            return;
        };
        let local_tag = server.local_tag.clone();
        let (to, from) = (message.header(Name::To), message.header(Name::From));
        let dialog = Dialog {
            call_id: message.call_id().unwrap_or_default().to_owned(),
            local: format!("{};tag={local_tag}", to.unwrap_or_default()),
            remote: from.unwrap_or_default().to_owned(),
            remote_tag: message
                .from()
                .ok()
                .and_then(|from| from.tag().map(Into::into)),
            remote_target,
            route_set: message
                .values(Name::RecordRoute)
                .map(str::to_owned)
                .collect(),
            local_cseq: 0,
            remote_cseq: message.cseq().ok().map(|cseq| cseq.number),
            via: Some(Hop {
                transport: flow.transport,
                local: Some(flow.local),
                remote: flow.remote,
                connection: (flow.connection != 0).then_some(flow.connection),
            }),
            local_tag: local_tag.clone(),
        };
        let contact = message
            .request_uri()
            .and_then(|uri| crate::Uri::parse(uri).ok()?.user().map(str::to_owned))
            .unwrap_or_default();
        let mut usage = Usage::new(Phase::Incoming, dialog, contact);
        usage.open_in = Some(txn);
        let usage = self.usages.insert(usage);
        self.tags.insert(local_tag, usage);
        if let Some(server) = self.servers.get_mut(txn) {
            server.usage = Some(usage);
        }
        let _ = self.send_response(now, txn, 100, &Says::default());
        self.events.push_back(Event::Invite {
            usage,
            message,
            flow,
        });
    }

    /// CANCEL is answered at once; it ends an INVITE that has no final response (section 9.2).
    fn on_cancel(&mut self, now: Instant, flow: Flow, key: Key, message: Box<Incoming>) {
        let invite = self.cancelled_by(&message);
        let id = self.open_server(flow, &message, key, None);
        let Some(invite) = invite else {
            self.refuse(now, id, 481, Vec::new());
            return;
        };
        // The To tag of both responses is to be the same.
        let tag = self
            .servers
            .get(invite)
            .map(|invite| invite.local_tag.clone());
        if let (Some(tag), Some(cancel)) = (tag, self.servers.get_mut(id)) {
            cancel.local_tag = tag;
        }
        let _ = self.send_response(now, id, 200, &Says::default());
        if !self.is_open_invite(invite) {
            return;
        }
        let usage = self.servers.get(invite).and_then(|server| server.usage);
        self.refuse(now, invite, 487, Vec::new());
        let Some(usage) = usage else { return };
        match self.usages.get_mut(usage) {
            Some(leg) if matches!(leg.phase, Phase::Incoming) => {
                leg.open_in = None;
                self.remove_usage(now, usage);
                self.events.push_back(Event::Cancelled { usage, message });
            }
            // A re-INVITE was cancelled: the session stays as it is.
            Some(leg) => {
                leg.open_in = None;
                self.events.push_back(Event::ReinviteCancelled { usage });
            }
            None => {}
        }
    }

    /// The INVITE transaction that a CANCEL means (section 9.2).
    fn cancelled_by(&self, cancel: &Incoming) -> Option<ServerTxnId> {
        let key = self.keys.server(cancel, Method::Invite)?;
        self.server_keys.get(&key).copied()
    }
}

/// What a peer is told to wait when there is no room for its request.
const RETRY_AFTER_SECONDS: u64 = 5;
