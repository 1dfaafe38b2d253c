//! SIP framing for the network's streams.

use std::sync::Arc;

use net::sip::{Frame, Framer, FramingError, MakeFramer};
use sip::{Limits, StreamFramer};

/// Makes a framer for each connection.
pub(crate) fn maker() -> MakeFramer {
    Arc::new(|_| Box::new(SipFramer(StreamFramer::new(Limits::default()))))
}

#[derive(Debug)]
struct SipFramer(StreamFramer);

impl Framer for SipFramer {
    fn push(&mut self, bytes: &[u8]) {
        self.0.push(bytes);
    }

    fn next(&mut self) -> Result<Option<Frame>, FramingError> {
        match self.0.next() {
            Ok(None) => Ok(None),
            Ok(Some(sip::framer::Frame::Message(bytes))) => Ok(Some(Frame::Message(bytes))),
            Ok(Some(sip::framer::Frame::Ping)) => Ok(Some(Frame::KeepAlivePing)),
            Err(_) => Err(FramingError::default()),
        }
    }

    fn is_partial(&self) -> bool {
        !self.0.pending().is_empty()
    }
}

/// The network's transport for one of `sip`'s; the lab talks UDP and TCP.
pub(crate) fn net_transport(transport: sip::Transport) -> net::sip::Transport {
    match transport {
        sip::Transport::Udp => net::sip::Transport::Udp,
        _ => net::sip::Transport::Tcp,
    }
}

/// `sip`'s transport for one of the network's.
pub(crate) fn sip_transport(transport: net::sip::Transport) -> sip::Transport {
    match transport {
        net::sip::Transport::Udp => sip::Transport::Udp,
        _ => sip::Transport::Tcp,
    }
}

/// The way a message came.
pub(crate) fn sip_flow(flow: net::sip::Flow) -> sip::Flow {
    sip::Flow {
        transport: sip_transport(flow.transport),
        local: flow.local,
        remote: flow.remote,
        connection: flow.connection,
    }
}
