//! Client transactions as the endpoint holds them: octets, hop, timers, and who hears of them.

use core::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use super::ack::Ack;
use super::api::{
    Credentials, Event, Failure, HeaderField, Request, Resolve, ResolveId, Transport, UsageError,
};
use super::keys::Key;
use super::outgoing::{Hop, Outgoing, SentBy, Target, along};
use super::uac::{CALL_ID_LEN, TAG_LEN};
use super::{Endpoint, Owner};
use crate::arena::{ClientTxnId, UsageId};
use crate::transaction::{ClientInvite, ClientOther, Effect, Send, Tell};
use crate::{Incoming, Name, digest};

/// One client transaction.
#[derive(Debug)]
pub(crate) struct ClientTxn {
    pub(crate) machine: Machine,
    pub(crate) out: Box<Outgoing>,
    pub(crate) purpose: Purpose,
    pub(crate) usage: Option<UsageId>,
    pub(crate) hop: Option<Hop>,
    /// What is sent again: the request, then the ACK of its refusal.
    bytes: Option<Arc<[u8]>>,
    key: Option<Key>,
    via: Option<SentBy>,
    credentials: Option<Credentials>,
    /// Challenges answered so far; each answer is a transaction of its own.
    challenges: u8,
    /// The id under which the user knows it, where it is not its own.
    known_as: Option<ClientTxnId>,
    /// ACKs of the 2xx of an INVITE, one for each fork.
    pub(crate) acks: Vec<Ack>,
    armed: Option<Instant>,
}

/// The machine of a transaction.
#[derive(Debug)]
pub(crate) enum Machine {
    /// The address of its host is being looked up; a resolver that stays silent is given up then.
    Resolving {
        give_up: Instant,
    },
    Invite(ClientInvite),
    Other(ClientOther),
}

/// What a request is for, and so who hears of its outcome.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Purpose {
    Invite,
    /// How many times it has been tried.
    Reinvite {
        tries: u8,
    },
    Bye,
    /// The ACK of a 2xx. It is no transaction: once sent it is kept with its INVITE.
    Ack {
        /// The INVITE.
        invite: ClientTxnId,
        /// Its place there.
        entry: usize,
        /// The hop of the dialog.
        used: Option<Hop>,
    },
    /// Nobody: CANCEL, and BYE of a forked leg.
    Silent,
    /// The endpoint's user.
    User,
}

impl Endpoint {
    /// Sends a request outside any dialog.
    ///
    /// # Errors
    /// [`UsageError::Unroutable`], [`UsageError::Full`].
    pub fn request(&mut self, now: Instant, request: Request) -> Result<ClientTxnId, UsageError> {
        let tag = self.rng.token(TAG_LEN);
        let call_id = request
            .call_id
            .unwrap_or_else(|| self.rng.token(CALL_ID_LEN));
        let (request_uri, routes, is_strict) = along(&request.request_uri, &request.route);
        let out = Outgoing {
            method: request.method,
            request_uri,
            routes,
            is_strict,
            from: format!("{};tag={tag}", request.from),
            to: request.to,
            call_id,
            cseq: request.cseq.unwrap_or(1),
            branch: self.branch(),
            contact: None,
            fields: request.fields,
            body: request.body,
        };
        self.send(
            now,
            out,
            Purpose::User,
            None,
            request.next_hop,
            request.credentials,
        )
    }

    /// Starts a client transaction: at once where an address is known, after a look-up where not.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        out: Outgoing,
        purpose: Purpose,
        usage: Option<UsageId>,
        next_hop: Option<(Transport, SocketAddr)>,
        credentials: Option<Credentials>,
    ) -> Result<ClientTxnId, UsageError> {
        // What ends or acknowledges a call goes out even so; each INVITE has few of those.
        let is_bound = matches!(
            purpose,
            Purpose::Invite | Purpose::Reinvite { .. } | Purpose::User
        );
        if is_bound && self.clients.len() >= self.config.max_transactions {
            return Err(UsageError::Full);
        }
        let target = match next_hop {
            Some((transport, remote)) => Target::Address(transport, remote),
            None => out.target().ok_or(UsageError::Unroutable)?,
        };
        if let Target::Address(transport, remote) = &target {
            self.listener(*transport, *remote, None)
                .ok_or(UsageError::Unroutable)?;
        }
        let id = self.clients.insert(ClientTxn {
            machine: Machine::Resolving {
                give_up: now + self.config.t1 * 64,
            },
            out: Box::new(out),
            purpose,
            usage,
            hop: None,
            bytes: None,
            key: None,
            via: None,
            credentials,
            challenges: 0,
            known_as: None,
            acks: Vec::new(),
            armed: None,
        });
        match target {
            Target::Address(transport, remote) => self.launch(now, id, transport, remote),
            Target::Name {
                host,
                port,
                transport,
            } => {
                self.resolves.push_back(Resolve {
                    id: ResolveId(id),
                    host,
                    port,
                    transport,
                });
                self.settle_client(id);
            }
        }
        Ok(id)
    }

    pub(crate) fn client_resolved(
        &mut self,
        now: Instant,
        id: ClientTxnId,
        found: Vec<(Transport, SocketAddr)>,
    ) {
        if !self
            .clients
            .get(id)
            .is_some_and(|txn| matches!(txn.machine, Machine::Resolving { .. }))
        {
            return;
        }
        let mut found = found.into_iter();
        match found.find(|(transport, at)| self.listener(*transport, *at, None).is_some()) {
            Some((transport, remote)) => self.launch(now, id, transport, remote),
            None => self.client_failed(now, id, Failure::Unresolved),
        }
    }

    /// Prints a request for its hop and puts it on the wire.
    fn launch(&mut self, now: Instant, id: ClientTxnId, transport: Transport, remote: SocketAddr) {
        let Some(txn) = self.clients.get(id) else {
            return;
        };
        let dialog_via = match txn.purpose {
            Purpose::Ack { used, .. } => used,
            _ => txn.usage.and_then(|id| self.usages.get(id)?.dialog.via),
        };
        let used = dialog_via.and_then(|via| via.local);
        let Some(listener) = self.listener(transport, remote, used) else {
            return;
        };
        let (local, via) = (listener.local, listener.clone());
        let connection = dialog_via
            .filter(|via| via.transport == transport && via.remote.ip() == remote.ip())
            .and_then(|via| via.connection);
        let timing = self.timing(transport);
        let Some(txn) = self.clients.get_mut(id) else {
            return;
        };
        let hop = Hop {
            transport,
            local: Some(local),
            remote,
            connection,
        };
        let bytes = txn.out.print(&via, &self.config.user_agent);
        self.transmits.push_back(hop.transmit(bytes.clone()));
        if let Purpose::Ack { invite, entry, .. } = txn.purpose {
            self.drop_client(id);
            self.keep_ack(invite, entry, hop, bytes);
            return;
        }
        (txn.bytes, txn.hop, txn.via) = (Some(bytes), Some(hop), Some(via));
        txn.machine = match txn.out.method.as_str() {
            "INVITE" => Machine::Invite(ClientInvite::start(now, timing)),
            _ => Machine::Other(ClientOther::start(now, timing)),
        };
        let key = self.keys.client(&txn.out.branch, &txn.out.method);
        txn.key = Some(key);
        self.client_keys.insert(key, id);
        if let Some(usage) = txn.usage.and_then(|usage| self.usages.get_mut(usage)) {
            usage.dialog.via.get_or_insert(hop);
        }
        self.settle_client(id);
    }

    /// A response: finds its transaction, or is dropped (RFC 6026 section 8.9).
    pub(crate) fn on_response(&mut self, now: Instant, message: Box<Incoming>) {
        let (Ok(via), Ok(cseq)) = (message.top_via(), message.cseq()) else {
            return;
        };
        let (Some(branch), Some(code)) = (via.branch(), message.status()) else {
            return;
        };
        let key = self.keys.client(branch, cseq.method.as_str());
        let Some(&id) = self.client_keys.get(&key) else {
            return;
        };
        let Some(txn) = self.clients.get_mut(id) else {
            return;
        };
        let effect = match &mut txn.machine {
            Machine::Invite(machine) => machine.handle_response(now, code),
            Machine::Other(machine) => machine.handle_response(now, code),
            Machine::Resolving { .. } => return,
        };
        let is_told = effect.tell == Some(Tell::Response);
        if effect.send == Some(Send::Ack) {
            // Its first final response; what it refuses needs no repeating any more.
            if let (true, Some(via)) = (is_told, &txn.via) {
                let to = message.header(Name::To).unwrap_or_default();
                txn.bytes = Some(txn.out.print_ack(via, to));
            }
            if let (Some(hop), Some(bytes)) = (txn.hop, &txn.bytes) {
                self.transmits.push_back(hop.transmit(bytes.clone()));
            }
        }
        if is_told && !self.met_challenge(now, id, code, &message) {
            self.tell_response(now, id, code, message);
        }
        if code >= 200 {
            self.slim_client(id);
        }
        self.settle_client(id);
    }

    pub(crate) fn client_timeout(&mut self, now: Instant, id: ClientTxnId) {
        let Some(txn) = self.clients.get_mut(id) else {
            return;
        };
        txn.armed = None;
        let effect = match &mut txn.machine {
            Machine::Invite(machine) => machine.handle_timeout(now),
            Machine::Other(machine) => machine.handle_timeout(now),
            Machine::Resolving { give_up } if *give_up <= now => {
                self.client_failed(now, id, Failure::Unresolved);
                return;
            }
            Machine::Resolving { .. } => Effect::NOTHING,
        };
        if let (Some(Send::Again), Some(hop), Some(bytes)) = (effect.send, txn.hop, &txn.bytes) {
            self.transmits.push_back(hop.transmit(bytes.clone()));
        }
        if effect.tell == Some(Tell::Timeout) {
            self.client_failed(now, id, Failure::Timeout);
        }
        self.settle_client(id);
    }

    pub(crate) fn client_transport_error(&mut self, now: Instant, id: ClientTxnId) {
        let Some(txn) = self.clients.get_mut(id) else {
            return;
        };
        let effect = match &mut txn.machine {
            Machine::Invite(machine) => machine.handle_transport_error(),
            Machine::Other(machine) => machine.handle_transport_error(),
            Machine::Resolving { .. } => return,
        };
        if effect.tell == Some(Tell::Transport) {
            self.client_failed(now, id, Failure::Transport);
        }
        self.settle_client(id);
    }

    /// A transaction that has its final response waits, for 32 s perhaps, with no more than it needs.
    fn slim_client(&mut self, id: ClientTxnId) {
        let Some(txn) = self.clients.get_mut(id) else {
            return;
        };
        match &txn.machine {
            Machine::Invite(machine) if machine.is_refused() => {}
            _ => txn.bytes = None,
        }
        // The ACK of a 2xx is yet to show the credentials.
        txn.out.fields = txn.out.credentials();
        txn.out.body = None;
    }

    /// Nobody waits for the outcome of a request any more. One that has not left stays here.
    pub(crate) fn abandon_client(&mut self, now: Instant, id: ClientTxnId) {
        match self.clients.get_mut(id).map(|txn| &mut txn.machine) {
            Some(Machine::Resolving { .. }) => self.drop_client(id),
            Some(Machine::Invite(machine)) => machine.abandon(now),
            _ => {}
        }
        self.settle_client(id);
    }

    /// Ends a transaction from our side, telling nobody.
    pub(crate) fn drop_client(&mut self, id: ClientTxnId) {
        if let Some(mut txn) = self.clients.remove(id) {
            self.deadlines.set(Owner::Client(id), &mut txn.armed, None);
            if let Some(key) = txn.key {
                self.client_keys.remove(&key);
            }
        }
    }

    /// No response will come: tells whom it concerns.
    fn client_failed(&mut self, now: Instant, id: ClientTxnId, failure: Failure) {
        let Some(txn) = self.clients.get(id) else {
            return;
        };
        let (purpose, usage) = (txn.purpose, txn.usage);
        match (purpose, usage) {
            (Purpose::Invite, Some(usage)) => self.invite_failed(now, usage, failure, None),
            (Purpose::Reinvite { .. }, Some(usage)) => {
                self.reinvite_failed(usage, id, failure, None);
            }
            (Purpose::Bye, Some(usage)) => self.end_usage(now, usage),
            (Purpose::User, usage) => {
                self.events.push_back(Event::Response {
                    txn: txn.known_as.unwrap_or(id),
                    usage,
                    outcome: Err(failure),
                });
            }
            _ => {}
        }
        self.drop_client(id);
    }

    fn tell_response(&mut self, now: Instant, id: ClientTxnId, code: u16, message: Box<Incoming>) {
        if (200..300).contains(&code) && self.repeat_ack(id, &message) {
            return;
        }
        let Some(txn) = self.clients.get(id) else {
            return;
        };
        match (txn.purpose, txn.usage) {
            (Purpose::Invite, usage) => self.invite_response(now, id, usage, code, message),
            (Purpose::Reinvite { tries }, Some(usage)) => {
                self.reinvite_response(now, usage, id, tries, code, message);
            }
            (Purpose::Bye, Some(usage)) if code >= 200 => self.end_usage(now, usage),
            (Purpose::User, usage) if code > 100 => {
                if (200..300).contains(&code)
                    && txn.out.method == "UPDATE"
                    && let Some(usage) = usage.and_then(|usage| self.usages.get_mut(usage))
                {
                    usage.dialog.refresh(&message);
                }
                let outcome = Ok(message);
                self.events.push_back(Event::Response {
                    txn: txn.known_as.unwrap_or(id),
                    usage,
                    outcome,
                });
            }
            _ => {}
        }
    }

    /// Answers a challenge (section 22.2): the same request under a new branch and CSeq takes the
    /// place of the refused one. A second challenge is answered only where it says that the nonce was
    /// stale, a third never, and none for a call that is being cancelled or has ended.
    fn met_challenge(
        &mut self,
        now: Instant,
        id: ClientTxnId,
        code: u16,
        message: &Incoming,
    ) -> bool {
        if !matches!(code, 401 | 407) {
            return false;
        }
        let branch = self.branch();
        let Some(txn) = self.clients.get_mut(id) else {
            return false;
        };
        let (Some(credentials), Some(hop), 0..=1) = (&txn.credentials, txn.hop, txn.challenges)
        else {
            return false;
        };
        let (purpose, usage_id, challenges) = (txn.purpose, txn.usage, txn.challenges);
        let usage = usage_id.and_then(|id| self.usages.get_mut(id));
        let is_over = usage
            .as_ref()
            .map_or_else(|| usage_id.is_some(), |usage| usage.is_over_for(purpose));
        if is_over {
            return false;
        }
        let (method, uri) = (&txn.out.method, &txn.out.request_uri);
        let only_stale = challenges > 0;
        let answer = digest::answer(message, credentials, method, uri, only_stale, &mut self.rng);
        let Some((name, value)) = answer else {
            return false;
        };
        let mut again = (*txn.out).clone();
        again.branch = branch;
        again.cseq += 1;
        again
            .fields
            .retain(|field| !matches!(field, HeaderField::Known(own, _) if *own == name));
        again.fields.push(HeaderField::Known(name, value));
        if let Some(usage) = usage {
            usage.dialog.local_cseq += 1;
            again.cseq = usage.dialog.local_cseq;
            usage.not_yet_cancellable();
        }
        let credentials = txn.credentials.take();
        let known_as = txn.known_as.or(Some(id));
        txn.purpose = Purpose::Silent;
        let next_hop = Some((hop.transport, hop.remote));
        let Ok(next) = self.send(now, again, purpose, usage_id, next_hop, credentials) else {
            if let Some(txn) = self.clients.get_mut(id) {
                txn.purpose = purpose;
            }
            return false;
        };
        if let Some(txn) = self.clients.get_mut(next) {
            (txn.challenges, txn.known_as) = (challenges + 1, known_as);
        }
        if let Some(usage) = usage_id.and_then(|id| self.usages.get_mut(id))
            && usage.open_out == Some(id)
        {
            usage.open_out = Some(next);
        }
        true
    }

    /// Arms the transaction's next deadline, or removes it when it is over.
    pub(crate) fn settle_client(&mut self, id: ClientTxnId) {
        let Some(txn) = self.clients.get_mut(id) else {
            return;
        };
        let (over, next) = match &txn.machine {
            Machine::Invite(machine) => (machine.is_terminated(), machine.poll_timeout()),
            Machine::Other(machine) => (machine.is_terminated(), machine.poll_timeout()),
            Machine::Resolving { give_up } => (false, Some(*give_up)),
        };
        if over {
            self.drop_client(id);
        } else {
            self.deadlines.set(Owner::Client(id), &mut txn.armed, next);
        }
    }

    pub(crate) fn branch(&mut self) -> String {
        format!("{}{}", crate::Via::MAGIC_COOKIE, self.rng.token(16))
    }
}
