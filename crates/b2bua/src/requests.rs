//! Requests beside the call itself: REGISTER, OPTIONS, INFO and their like.

use std::time::Instant;

use dialplan::Target;
use media::command::Side;
use sip::{
    ClientTxnId, Failure, Fields, Flow, HeaderField, Incoming, Method, Name, ServerTxnId, UsageId,
};

use crate::call::Kind;
use crate::headers::{self, Destination};
use crate::machine::B2bua;
use crate::negotiate;
use crate::registrar::{Binding, RegisterError, Registration};

/// What this server does, for Allow (RFC 3261 section 20.5).
const ALLOW: &str = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, UPDATE, REGISTER";

impl B2bua {
    pub(crate) fn on_request(
        &mut self,
        now: Instant,
        txn: ServerTxnId,
        usage: Option<UsageId>,
        message: &Incoming,
        flow: Flow,
    ) {
        match (message.method(), usage) {
            (Some(Method::Register), None) => self.on_register(now, txn, message, flow),
            (Some(Method::Options), _) => self.on_options(now, txn),
            (Some(Method::Update), Some(usage)) => self.on_update(now, txn, usage, message),
            (Some(Method::Info), Some(usage)) => self.on_info(now, txn, usage, message),
            // RFC 3261 section 8.2.1: a method known to us but not allowed here, or unknown.
            _ => self.respond(now, txn, 405, vec![allow()]),
        }
    }

    /// An answer to a request that was passed from one leg to the other.
    pub(crate) fn on_response(
        &mut self,
        now: Instant,
        txn: ClientTxnId,
        usage: Option<UsageId>,
        outcome: &Result<Box<Incoming>, Failure>,
    ) {
        let status = match outcome {
            Ok(message) => message.status().unwrap_or(500),
            Err(Failure::Response(code)) => *code,
            Err(Failure::Timeout) => 408,
            Err(_) => 500,
        };
        if status < 200 {
            return;
        }
        if let Some(waiting) = self.relayed.remove(&txn) {
            let body = outcome
                .as_ref()
                .ok()
                .and_then(|message| headers::body(message));
            let _ = self
                .endpoint
                .respond(now, waiting, status, None, Vec::new(), body);
        }
        let leg = usage.and_then(|usage| Some((usage, *self.usages.get(&usage)?)));
        if let (408 | 481, Some((usage, id))) = (status, leg) {
            let side = self.call(id).map(|call| call.side(usage));
            if let Some(side) = side {
                self.leg_gone(now, id, side);
            }
        }
    }

    /// Where the targets of a rule are to be found now.
    pub(crate) fn targets(&self, now: Instant, targets: &[Target]) -> Vec<Destination> {
        let mut found = Vec::new();
        for target in targets {
            match target {
                Target::Uri(uri) => found.push(Destination::to(uri.clone())),
                Target::Registered(user) => {
                    found.extend(self.registrar.contacts(now, user).map(Destination::bound));
                }
            }
        }
        found
    }

    fn on_register(&mut self, now: Instant, txn: ServerTxnId, message: &Incoming, flow: Flow) {
        if !(self.config.registrar_trusts)(flow.remote.ip()) {
            self.respond(now, txn, 403, Vec::new());
            return;
        }
        let Some(user) = headers::aor_user(message) else {
            self.respond(now, txn, 400, Vec::new());
            return;
        };
        let Some(contacts) = headers::registered_contacts(message) else {
            self.respond(now, txn, 400, Vec::new());
            return;
        };
        let request = Registration {
            user: &user,
            call_id: message.call_id().unwrap_or_default(),
            cseq: message.cseq().map_or(0, |cseq| cseq.number),
            expires: message.expires().ok().flatten(),
            contacts,
            flow,
        };
        let (status, fields): (u16, Fields) = match self.registrar.register(now, &request) {
            Ok(bindings) => {
                let contact = |binding: &Binding| {
                    let left = binding.expires.saturating_duration_since(now).as_secs();
                    HeaderField::Known(Name::Contact, format!("<{}>;expires={left}", binding.uri))
                };
                (200, bindings.iter().map(contact).collect())
            }
            Err(error) => {
                let fields = match error {
                    RegisterError::TooBrief { min_expires_s } => {
                        vec![HeaderField::Known(
                            Name::MinExpires,
                            min_expires_s.to_string(),
                        )]
                    }
                    _ => Vec::new(),
                };
                (error.status(), fields)
            }
        };
        tracing::info!(%user, source = %flow.remote, status, "register");
        self.respond(now, txn, status, fields);
    }

    fn on_options(&mut self, now: Instant, txn: ServerTxnId) {
        let accept = HeaderField::Known(Name::Accept, "application/sdp".to_owned());
        let code = if self.draining { 503 } else { 200 };
        self.respond(now, txn, code, vec![allow(), accept]);
    }

    /// UPDATE (RFC 3311): without a body a refresh; with an offer it is answered here, since what
    /// media passes through is ours. On a direct bridge it is for the other side.
    fn on_update(&mut self, now: Instant, txn: ServerTxnId, usage: UsageId, message: &Incoming) {
        let Some(&id) = self.usages.get(&usage) else {
            self.respond(now, txn, 481, Vec::new());
            return;
        };
        let description = match headers::description(message) {
            Ok(None) => {
                self.respond(now, txn, 200, vec![allow()]);
                return;
            }
            Ok(Some(description)) => description,
            Err(status) => {
                self.respond(now, txn, status, Vec::new());
                return;
            }
        };
        let ours = self.config.codecs.clone();
        let Some(call) = self.call_mut(id) else {
            return;
        };
        if call.kind.is_direct() {
            self.relay(now, txn, usage, message);
            return;
        }
        let side = call.side(usage).index();
        if call.renegotiation.is_some() || call.media[side].agreed.is_none() {
            self.respond(now, txn, 491, Vec::new());
            return;
        }
        let formats = match &call.media[1 - side].agreed {
            Some(agreed) => negotiate::formats_for_caller(&agreed.send_format, &ours),
            None => negotiate::own_formats(&ours),
        };
        match call.media[side].answer(&description, formats, sdp::Direction::SendRecv) {
            Ok(body) => {
                self.sync_media(id);
                let body = Some(headers::sdp(body));
                let _ = self.endpoint.respond(now, txn, 200, None, Vec::new(), body);
            }
            Err(_) => self.respond(now, txn, 488, Vec::new()),
        }
    }

    /// INFO (RFC 6086) goes to the other leg; a call answered here takes it and says 200.
    fn on_info(&mut self, now: Instant, txn: ServerTxnId, usage: UsageId, message: &Incoming) {
        let bridged = self
            .usages
            .get(&usage)
            .and_then(|id| self.call(*id))
            .is_some_and(|call| matches!(call.kind, Kind::Bridge(_)));
        if bridged {
            self.relay(now, txn, usage, message);
        } else {
            self.respond(now, txn, 200, Vec::new());
        }
    }

    /// Passes a request within one dialog to the other leg and its answer back.
    fn relay(&mut self, now: Instant, txn: ServerTxnId, usage: UsageId, message: &Incoming) {
        let other = self
            .usages
            .get(&usage)
            .and_then(|id| self.call(*id))
            .and_then(|call| {
                let other: Side = call.side(usage).other();
                call.usage(other).filter(|_| call.is_up())
            });
        let method = message.method().map(|method| method.as_str().to_owned());
        let (Some(other), Some(method)) = (other, method) else {
            self.respond(now, txn, 481, Vec::new());
            return;
        };
        let body = headers::body(message);
        match self
            .endpoint
            .request_in(now, other, &method, headers::passed_within(message), body)
        {
            Ok(ours) => {
                self.relayed.insert(ours, txn);
            }
            Err(_) => self.respond(now, txn, 481, Vec::new()),
        }
    }

    fn respond(&mut self, now: Instant, txn: ServerTxnId, code: u16, fields: Fields) {
        // The only error is a transaction that has ended meanwhile: then nobody waits.
        let _ = self.endpoint.respond(now, txn, code, None, fields, None);
    }
}

fn allow() -> HeaderField {
    HeaderField::Known(Name::Allow, ALLOW.to_owned())
}
