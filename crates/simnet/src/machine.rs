//! What the world asks of a host.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

/// A datagram on its way.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Datagram {
    /// Source address.
    pub from: SocketAddr,
    /// Destination address.
    pub to: SocketAddr,
    /// Payload.
    pub bytes: Arc<[u8]>,
}

/// A sans-IO machine that speaks datagrams: the vocabulary of every machine of this project.
///
/// After each `handle_*` the world drains `poll_transmit` until `None` and asks `poll_timeout`
/// again.
pub trait Machine {
    /// Takes a datagram that has arrived.
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]);

    /// Does what is due; nothing when nothing is.
    fn handle_timeout(&mut self, now: Instant);

    /// The earliest moment at which something is due.
    fn poll_timeout(&self) -> Option<Instant>;

    /// The next datagram to send.
    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram>;

    /// A datagram sent earlier came back as undeliverable, as ICMP's "port unreachable" says: no
    /// host has its destination address. Ignored unless the machine cares.
    fn handle_unreachable(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) {
        let _ = (now, from, to);
    }
}

impl<M: Machine + ?Sized> Machine for Box<M> {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        (**self).handle_datagram(now, from, to, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        (**self).handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        (**self).poll_timeout()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        (**self).poll_transmit(now)
    }

    fn handle_unreachable(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) {
        (**self).handle_unreachable(now, from, to);
    }
}
