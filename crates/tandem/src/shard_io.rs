//! The network's sockets in the shape that the media engine asks for.

use std::io;
use std::net::SocketAddr;

use engine::PacketIo;
use media::command::PortId;
use net::rtp::ShardSockets;

/// One shard's sockets.
#[derive(Debug)]
pub(crate) struct ShardIo(pub(crate) ShardSockets);

impl PacketIo for ShardIo {
    fn attach(&mut self, port: PortId) -> io::Result<()> {
        self.0.attach(port.0)
    }

    fn detach(&mut self, port: PortId) {
        self.0.detach(port.0);
    }

    fn receive(&mut self, sink: &mut dyn FnMut(PortId, SocketAddr, &mut [u8])) {
        self.0
            .receive(|port, from, packet| sink(PortId(port), from, packet));
    }

    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]) {
        self.0.send(port.0, to, packet);
    }

    fn flush(&mut self) {
        self.0.flush();
    }
}
