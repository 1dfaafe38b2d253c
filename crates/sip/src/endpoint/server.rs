//! Server transactions as the endpoint holds them, and the responses that go through them
//! (RFC 3261 sections 8.2.6, 17.2 and 18.2.2).

use core::hash::BuildHasher as _;
use core::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::api::{Body, Fields, Flow, HeaderField, Transport, UsageError};
use super::keys::Key;
use super::outgoing::{Hop, finish};
use super::uac::TAG_LEN;
use super::{Endpoint, Owner};
use crate::arena::{ServerTxnId, UsageId};
use crate::transaction::{Effect, Send, ServerInvite, ServerOther};
use crate::{Incoming, Method, Name, Writer};

/// One server transaction.
#[derive(Debug)]
pub(crate) struct ServerTxn {
    pub(crate) machine: Machine,
    /// Dropped once the final response is out.
    pub(crate) request: Option<Box<Incoming>>,
    pub(crate) usage: Option<UsageId>,
    pub(crate) flow: Flow,
    /// Where responses go.
    pub(crate) hop: Hop,
    /// To's tag in our responses, where the request has none.
    pub(crate) local_tag: Box<str>,
    last: Option<Arc<[u8]>>,
    key: Key,
    merge_key: Option<Key>,
    armed: Option<Instant>,
}

/// The machine of a transaction.
#[derive(Debug)]
pub(crate) enum Machine {
    Invite(ServerInvite),
    Other(ServerOther),
}

/// What a response says besides its status.
#[derive(Debug, Default)]
pub(crate) struct Says<'a> {
    pub(crate) reason: Option<&'a str>,
    pub(crate) fields: Fields,
    pub(crate) body: Option<Body>,
    /// User part of our Contact, in responses that make or refresh a dialog.
    pub(crate) contact: Option<&'a str>,
}

impl Endpoint {
    /// Responds to [`super::Event::Request`].
    ///
    /// # Errors
    /// [`UsageError::Gone`] where the transaction has ended, [`UsageError::State`] where it has its
    /// final response.
    pub fn respond(
        &mut self,
        now: Instant,
        txn: ServerTxnId,
        code: u16,
        reason: Option<&str>,
        fields: Fields,
        body: Option<Body>,
    ) -> Result<(), UsageError> {
        let server = self.servers.get(txn).ok_or(UsageError::Gone)?;
        let request = server.request.as_ref().ok_or(UsageError::State)?;
        let is_update = request.method() == Some(Method::Update);
        let mut contact = None;
        if let Some(id) = server.usage {
            if is_update && (200..300).contains(&code) {
                self.refresh_target(id, txn);
                contact = self.usages.get(id).map(|usage| usage.contact.clone());
            }
            if let Some(usage) = self.usages.get_mut(id).filter(|_| code >= 200) {
                usage.pending.retain(|own| *own != txn);
            }
        }
        let says = Says {
            reason,
            fields,
            body,
            contact: contact.as_deref(),
        };
        self.send_response(now, txn, code, &says).map(drop)
    }

    /// Makes the transaction of a request. `merge_key` is for requests outside dialogs.
    pub(crate) fn open_server(
        &mut self,
        flow: Flow,
        message: &Incoming,
        key: Key,
        merge_key: Option<Key>,
    ) -> ServerTxnId {
        let timing = self.timing(flow.transport);
        let machine = if message.method() == Some(Method::Invite) {
            Machine::Invite(ServerInvite::start(timing))
        } else {
            Machine::Other(ServerOther::start(timing))
        };
        let local_tag = self.rng.token(TAG_LEN).into();
        let id = self.servers.insert(ServerTxn {
            machine,
            request: Some(Box::new(message.clone())),
            usage: None,
            flow,
            hop: reply_hop(&flow, Some(message)),
            local_tag,
            last: None,
            key,
            merge_key,
            armed: None,
        });
        self.server_keys.insert(key, id);
        if let Some(merge_key) = merge_key {
            self.merge_keys.insert(merge_key, id);
        }
        id
    }

    /// Prints and sends a response; returns its octets and hop.
    pub(crate) fn send_response(
        &mut self,
        now: Instant,
        id: ServerTxnId,
        code: u16,
        says: &Says<'_>,
    ) -> Result<(Hop, Arc<[u8]>), UsageError> {
        let server = self.servers.get(id).ok_or(UsageError::Gone)?;
        let request = server.request.as_ref().ok_or(UsageError::State)?;
        let bytes = self.print_response(&server.flow, &server.local_tag, request, code, says);
        let server = self.servers.get_mut(id).ok_or(UsageError::Gone)?;
        let taken = match &mut server.machine {
            Machine::Invite(machine) => machine.respond(now, code),
            Machine::Other(machine) => machine.respond(now, code),
        };
        if !taken {
            return Err(UsageError::State);
        }
        let hop = server.hop;
        server.last = Some(bytes.clone());
        if code >= 200 {
            server.request = None;
        }
        if let (Machine::Invite(_), 200..=299) = (&server.machine, code) {
            // Repeating a 2xx is the usage's (section 13.3.1.4).
            server.last = None;
        }
        self.transmits.push_back(hop.transmit(bytes.clone()));
        self.settle_server(id);
        Ok((hop, bytes))
    }

    /// A refusal that the endpoint makes by itself.
    pub(crate) fn refuse(&mut self, now: Instant, id: ServerTxnId, code: u16, fields: Fields) {
        let says = Says {
            fields,
            ..Says::default()
        };
        // The transaction was made a moment ago and has no response yet.
        let _ = self.send_response(now, id, code, &says);
    }

    /// The request of a transaction came once more.
    pub(crate) fn repeat_server(&mut self, id: ServerTxnId) {
        let Some(server) = self.servers.get(id) else {
            return;
        };
        let effect = match &server.machine {
            Machine::Invite(machine) => machine.handle_repeat(),
            Machine::Other(machine) => machine.handle_repeat(),
        };
        if let (Some(Send::Again), Some(last)) = (effect.send, &server.last) {
            self.transmits.push_back(server.hop.transmit(last.clone()));
        }
    }

    /// The ACK of a refusal; false where the transaction is not of that kind.
    pub(crate) fn ack_server(&mut self, now: Instant, id: ServerTxnId) -> bool {
        let Some(server) = self.servers.get_mut(id) else {
            return false;
        };
        let Machine::Invite(machine) = &mut server.machine else {
            return false;
        };
        if !machine.is_refused() {
            return false;
        }
        machine.handle_ack(now);
        self.settle_server(id);
        true
    }

    pub(crate) fn server_timeout(&mut self, now: Instant, id: ServerTxnId) {
        let Some(server) = self.servers.get_mut(id) else {
            return;
        };
        server.armed = None;
        let effect = match &mut server.machine {
            Machine::Invite(machine) => machine.handle_timeout(now),
            Machine::Other(machine) => {
                machine.handle_timeout(now);
                Effect::NOTHING
            }
        };
        if let (Some(Send::Again), Some(last)) = (effect.send, &server.last) {
            self.transmits.push_back(server.hop.transmit(last.clone()));
        }
        self.settle_server(id);
    }

    /// Whether the INVITE of a transaction still waits for its final response.
    pub(crate) fn is_open_invite(&self, id: ServerTxnId) -> bool {
        self.servers
            .get(id)
            .is_some_and(|server| match &server.machine {
                Machine::Invite(machine) => machine.is_open(),
                Machine::Other(_) => false,
            })
    }

    fn settle_server(&mut self, id: ServerTxnId) {
        let Some(server) = self.servers.get_mut(id) else {
            return;
        };
        let (over, next) = match &server.machine {
            Machine::Invite(machine) => (machine.is_terminated(), machine.poll_timeout()),
            Machine::Other(machine) => (machine.is_terminated(), machine.poll_timeout()),
        };
        if !over {
            self.deadlines
                .set(Owner::Server(id), &mut server.armed, next);
            return;
        }
        self.deadlines
            .set(Owner::Server(id), &mut server.armed, None);
        if let Some(server) = self.servers.remove(id) {
            self.server_keys.remove(&server.key);
            if let Some(merge_key) = server.merge_key {
                self.merge_keys.remove(&merge_key);
            }
        }
    }

    /// Responds to a request without keeping anything (section 8.2.7). A repeat gets the same To tag.
    pub(crate) fn refuse_without_state(
        &mut self,
        flow: &Flow,
        key: Key,
        request: &Incoming,
        code: u16,
        fields: Fields,
    ) {
        let tag = format!("{:016x}", self.stateless.hash_one(key));
        let says = Says {
            fields,
            ..Says::default()
        };
        let bytes = self.print_response(flow, &tag, request, code, &says);
        let hop = reply_hop(flow, Some(request));
        self.transmits.push_back(hop.transmit(bytes));
    }

    fn print_response(
        &self,
        flow: &Flow,
        local_tag: &str,
        request: &Incoming,
        code: u16,
        says: &Says<'_>,
    ) -> Arc<[u8]> {
        let mut writer = Writer::response(code, says.reason);
        let mut vias = request.values(Name::Via);
        let top = vias.next();
        if let Ok(via) = request.top_via() {
            writer.push(Name::Via, via.stamped(flow.remote));
        } else if let Some(top) = top {
            writer.push(Name::Via, top);
        }
        vias.for_each(|via| writer.push(Name::Via, via));
        if let Some(user) = says.contact {
            // Only what makes or refreshes a dialog carries its route and our address.
            writer = writer.copy(request, Name::RecordRoute);
            let name = self.listener(flow.transport, flow.local, Some(flow.local));
            if let Some(name) = name {
                writer.push(Name::Contact, name.contact(user));
            }
        }
        writer = writer.copy(request, Name::From);
        let to = request.header(Name::To).unwrap_or_default();
        let tagged = code == 100 || request.to().is_ok_and(|to| to.tag().is_some());
        if tagged {
            writer.push(Name::To, to);
        } else {
            writer.push(Name::To, format_args!("{to};tag={local_tag}"));
        }
        writer = writer.copy(request, Name::CallId).copy(request, Name::CSeq);
        if code == 100 {
            // Section 8.2.6.1.
            writer = writer.copy(request, Name::Timestamp);
        } else {
            writer.push(Name::Server, &self.config.user_agent);
        }
        finish(writer, &says.fields, says.body.as_ref())
    }
}

/// Where responses to a request go (section 18.2.2 and RFC 3581 section 4): back by the connection,
/// and where there is none any more, or over UDP, to the source address and the port of sent-by; over
/// UDP to the source port where `rport` asks for it, or where no Via can be read.
/// `maddr` is not followed: it would let a request aim our responses at somebody else.
pub(crate) fn reply_hop(flow: &Flow, message: Option<&Incoming>) -> Hop {
    let via = message.and_then(|message| message.top_via().ok());
    let port = match &via {
        Some(via) if flow.transport != Transport::Udp || via.rport().is_none() => {
            via.port_or_default()
        }
        _ => flow.remote.port(),
    };
    Hop {
        transport: flow.transport,
        local: Some(flow.local),
        remote: SocketAddr::new(flow.remote.ip(), port),
        connection: (flow.connection != 0).then_some(flow.connection),
    }
}

/// `Retry-After` in seconds.
pub(crate) fn retry_after(seconds: u64) -> HeaderField {
    HeaderField::Known(Name::RetryAfter, seconds.to_string())
}
