//! The sans-IO user agent core: transactions, dialogs and INVITE usages behind one door.
//!
//! ```text
//!   message --> parse, check --> server transaction --> dialog --> Event
//!           \-> client transaction (by branch) ------> usage  --> Event
//!   user's call --> usage --> client transaction, or response --> Transmit
//! ```
//! RFC 3261 sections 8 to 15 and 17, RFC 6026, RFC 3581 (rport). In-dialog requests are matched by
//! Call-ID and tags alone, whatever their Request-URI. A request larger than the path's MTU stays on
//! the transport that its URI names: section 18.1.1 would move it to TCP, but a peer that
//! gave a UDP address often listens on nothing else, and IP fragments where it must.
//! Deliberately not here: reliable provisional responses (RFC 3262), session timers (RFC 4028),
//! NAPTR and SRV (the shell's resolver may do them).
//!
//! The owner calls `handle_*`, then drains `poll_transmit`, `poll_resolve` and `poll_event`.

mod ack;
mod api;
mod client;
mod in_dialog;
mod keys;
mod outgoing;
mod receive;
mod reinvite;
mod server;
mod uac;
mod uas;
mod usage;

use core::net::SocketAddr;
use std::collections::{HashMap, VecDeque};
use std::time::Instant;

pub use api::*;
use client::ClientTxn;
use keys::{Key, Keys};
use outgoing::{Hop, SentBy};
use server::ServerTxn;
use usage::Usage;

use crate::arena::{Arena, ClientTxnId, Deadlines, ServerTxnId, UsageId};
use crate::transaction::Timing;
use crate::{Framing, Incoming, Message, Rng, SeededState};

/// The user agent core of one server.
#[derive(Debug)]
pub struct Endpoint {
    config: Config,
    /// How we name ourselves, listener by listener.
    names: Vec<SentBy>,
    rng: Rng,
    keys: Keys,
    clients: Arena<ClientTxnId, ClientTxn>,
    /// By branch and method (section 17.1.3).
    client_keys: HashMap<Key, ClientTxnId, SeededState>,
    servers: Arena<ServerTxnId, ServerTxn>,
    /// By branch, sent-by and method (section 17.2.3).
    server_keys: HashMap<Key, ServerTxnId, SeededState>,
    /// By From tag, Call-ID and CSeq, of requests outside dialogs (section 8.2.2.2).
    merge_keys: HashMap<Key, ServerTxnId, SeededState>,
    usages: Arena<UsageId, Usage>,
    /// By our tag, which nobody else makes.
    tags: HashMap<Box<str>, UsageId, SeededState>,
    /// For the To tags of responses without a transaction.
    stateless: SeededState,
    deadlines: Deadlines<Owner>,
    transmits: VecDeque<Transmit>,
    resolves: VecDeque<Resolve>,
    events: VecDeque<Event>,
}

/// Whose deadline it is.
#[derive(Copy, Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Owner {
    Client(ClientTxnId),
    Server(ServerTxnId),
    Usage(UsageId),
}

impl Endpoint {
    /// An endpoint without anything going on. Tags, branches and hashers come from the seed.
    #[must_use]
    pub fn new(config: Config, seed: [u8; 32]) -> Self {
        let mut rng = Rng::new(seed);
        Self {
            clients: Arena::new(),
            client_keys: HashMap::with_hasher(rng.hasher()),
            servers: Arena::new(),
            server_keys: HashMap::with_hasher(rng.hasher()),
            merge_keys: HashMap::with_hasher(rng.hasher()),
            usages: Arena::new(),
            tags: HashMap::with_hasher(rng.hasher()),
            stateless: rng.hasher(),
            keys: Keys::new(&mut rng),
            names: config.listeners.iter().map(SentBy::of).collect(),
            deadlines: Deadlines::new(),
            transmits: VecDeque::new(),
            resolves: VecDeque::new(),
            events: VecDeque::new(),
            config,
            rng,
        }
    }

    /// Takes one UDP datagram, or one framed message of a stream. Whatever the octets are, the
    /// answer is a response, an event, or silence.
    pub fn handle_message(&mut self, now: Instant, flow: Flow, bytes: &[u8]) {
        let framing = if flow.transport == Transport::Udp {
            Framing::Datagram
        } else {
            Framing::Stream
        };
        let message: Box<Incoming> =
            match Message::parse(bytes.into(), framing, &self.config.limits) {
                Ok(message) => Box::new(message),
                Err(error) => {
                    if let Some(status) = error.status() {
                        let hop = server::reply_hop(&flow, None);
                        self.refuse_octets(flow, hop, bytes, status);
                    }
                    return;
                }
            };
        if message.is_request() {
            match message.check_request() {
                Ok(()) => self.on_request(now, flow, message),
                Err(refusal) => {
                    let hop = server::reply_hop(&flow, Some(&message));
                    self.refuse_octets(flow, hop, bytes, refusal.status());
                }
            }
        } else if message.check_response().is_ok() {
            self.on_response(now, message);
        }
    }

    /// The transport could not deliver to this peer: whatever waits for it has failed
    /// (section 17.1.4).
    pub fn handle_flow_failed(&mut self, now: Instant, failed: &FailedFlow) {
        let hit = |hop: Option<Hop>| {
            hop.is_some_and(|h| h.remote == failed.remote && h.transport == failed.transport)
        };
        let clients: Vec<_> = self
            .clients
            .iter()
            .filter(|(_, txn)| hit(txn.hop))
            .map(|(id, _)| id)
            .collect();
        for id in clients {
            self.client_transport_error(now, id);
        }
    }

    /// The resolver's answer. The first address that one of our listeners can reach is taken.
    pub fn handle_resolved(
        &mut self,
        now: Instant,
        id: ResolveId,
        result: Result<Vec<(Transport, SocketAddr)>, ResolveError>,
    ) {
        self.client_resolved(now, id.0, result.unwrap_or_default());
    }

    /// Does what is due; nothing when nothing is.
    pub fn handle_timeout(&mut self, now: Instant) {
        while let Some(owner) = self.deadlines.pop_due(now) {
            match owner {
                Owner::Client(id) => self.client_timeout(now, id),
                Owner::Server(id) => self.server_timeout(now, id),
                Owner::Usage(id) => self.usage_timeout(now, id),
            }
        }
    }

    /// Gives back the room that the busiest time took. Cost: what is left is moved; meant for when
    /// nothing goes on.
    pub fn shrink(&mut self) {
        self.clients.shrink();
        self.servers.shrink();
        self.usages.shrink();
        self.client_keys.shrink_to_fit();
        self.server_keys.shrink_to_fit();
        self.merge_keys.shrink_to_fit();
        self.tags.shrink_to_fit();
        self.transmits.shrink_to_fit();
        self.resolves.shrink_to_fit();
        self.events.shrink_to_fit();
    }

    /// The earliest deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.deadlines.first()
    }

    /// The next message to send.
    pub fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// The next name to resolve.
    pub fn poll_resolve(&mut self) -> Option<Resolve> {
        self.resolves.pop_front()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// What is held.
    #[must_use]
    pub fn counts(&self) -> Counts {
        Counts {
            server_transactions: self.servers.len(),
            client_transactions: self.clients.len(),
            usages: self.usages.len(),
            timers: self.deadlines.len(),
        }
    }

    /// Call-ID of a leg.
    #[must_use]
    pub fn call_id(&self, usage: UsageId) -> Option<&str> {
        self.usages
            .get(usage)
            .map(|usage| usage.dialog.call_id.as_str())
    }

    /// Our tag and the peer's in a leg; the peer's is absent before its first response.
    #[must_use]
    pub fn tags(&self, usage: UsageId) -> Option<(&str, Option<&str>)> {
        let dialog = &self.usages.get(usage)?.dialog;
        Some((&dialog.local_tag, dialog.remote_tag.as_deref()))
    }

    /// Where requests within the leg's dialog go.
    #[must_use]
    pub fn remote_target(&self, usage: UsageId) -> Option<&str> {
        self.usages
            .get(usage)
            .map(|usage| usage.dialog.remote_target.as_str())
    }

    fn timing(&self, transport: Transport) -> Timing {
        let Config { t1, t2, t4, .. } = self.config;
        Timing {
            t1,
            t2,
            t4,
            reliable: transport.is_reliable(),
        }
    }

    /// The listener to send from: over that transport, of the peer's address family, the one that
    /// the peer used before when it has.
    fn listener(
        &self,
        transport: Transport,
        remote: SocketAddr,
        used: Option<SocketAddr>,
    ) -> Option<&SentBy> {
        let fits = |listener: &&SentBy| {
            listener.transport == transport && listener.local.is_ipv4() == remote.is_ipv4()
        };
        let mut fitting = self.names.iter().filter(fits);
        let first = fitting.clone().next();
        fitting
            .find(|listener| Some(listener.local) == used)
            .or(first)
    }

    /// Answers octets that are no request to act on, as far as anybody waits for it.
    fn refuse_octets(&mut self, flow: Flow, hop: Hop, bytes: &[u8], status: u16) {
        if let Some(response) = crate::refusal(bytes, status, flow.remote) {
            self.transmits.push_back(hop.transmit(response.into()));
        }
    }
}
