//! Between the words of `sip` and those of `net`, which know nothing of each other.

use net::sip::{Frame, Framer, FramingError, Outgoing, Transport};

/// The network's transport for one of `sip`'s, where there is one.
pub(crate) fn transport(transport: sip::Transport) -> Option<Transport> {
    match transport {
        sip::Transport::Udp => Some(Transport::Udp),
        sip::Transport::Tcp => Some(Transport::Tcp),
        _ => None,
    }
}

/// `sip`'s transport for one of the network's.
pub(crate) fn sip_transport(transport: Transport) -> sip::Transport {
    match transport {
        Transport::Tcp => sip::Transport::Tcp,
        _ => sip::Transport::Udp,
    }
}

/// The way a message came.
pub(crate) fn flow(flow: net::sip::Flow) -> sip::Flow {
    sip::Flow {
        transport: sip_transport(flow.transport),
        local: flow.local,
        remote: flow.remote,
        connection: flow.connection,
    }
}

/// A message to send, where the network can.
pub(crate) fn outgoing(transmit: sip::Transmit) -> Option<Outgoing> {
    Some(Outgoing {
        transport: transport(transmit.transport)?,
        local: transmit.local,
        remote: transmit.remote,
        connection: transmit.connection,
        bytes: transmit.bytes,
    })
}

/// SIP's framing for the network's streams.
#[derive(Debug, Default)]
pub(crate) struct SipFramer(sip::framer::StreamFramer);

impl Framer for SipFramer {
    fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    fn next(&mut self) -> Result<Option<Frame>, FramingError> {
        match self.0.next() {
            Ok(None) => Ok(None),
            Ok(Some(sip::framer::Frame::Message(bytes))) => Ok(Some(Frame::Message(bytes))),
            Ok(Some(sip::framer::Frame::KeepAlivePing)) => Ok(Some(Frame::KeepAlivePing)),
            Err(_) => Err(FramingError),
        }
    }

    fn is_partial(&self) -> bool {
        self.0.is_partial()
    }
}
