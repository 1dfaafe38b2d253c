//! How a shard reaches the network, and what it has to say to it.

use std::io;
use std::net::SocketAddr;

use media::Outbox;
use media::command::PortId;

/// Datagrams of one shard's ports. The shell implements it over sockets, a simulation over queues.
///
/// A shard calls it once per tick in the order `receive`, `send`..., `flush`. Nothing here may block.
pub trait PacketIo: Send {
    /// Makes `receive` report what comes in on this port.
    ///
    /// # Errors
    /// The port is unknown, or can't be watched.
    fn attach(&mut self, port: PortId) -> io::Result<()>;

    /// Forgets the port.
    fn detach(&mut self, port: PortId);

    /// Hands over every datagram that is ready, at most as many as a tick can bear: port, sender,
    /// octets. `sink` may change the octets in place.
    fn receive(&mut self, sink: &mut dyn FnMut(PortId, SocketAddr, &mut [u8]));

    /// Sends a datagram from a port, now or at the next `flush`. One that can't be sent is dropped,
    /// as UDP drops it.
    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]);

    /// Sends what waits.
    fn flush(&mut self);
}

/// What the sessions of a shard send during a tick. Its memory is reused from tick to tick.
#[derive(Debug, Default)]
pub(crate) struct Outgoing {
    octets: Vec<u8>,
    heads: Vec<Head>,
}

#[derive(Debug)]
struct Head {
    port: PortId,
    to: SocketAddr,
    end: usize,
}

impl Outgoing {
    /// Passes everything on, oldest first, and returns how many datagrams that was.
    pub(crate) fn drain_into(&mut self, io: &mut dyn PacketIo) -> u64 {
        let mut begin = 0;
        for head in &self.heads {
            io.send(head.port, head.to, &self.octets[begin..head.end]);
            begin = head.end;
        }
        let count = self.heads.len() as u64;
        self.octets.clear();
        self.heads.clear();
        count
    }
}

impl Outbox for Outgoing {
    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]) {
        self.octets.extend_from_slice(packet);
        self.heads.push(Head {
            port,
            to,
            end: self.octets.len(),
        });
    }
}
