//! Between the words of `sip` and those of `net`, which know nothing of each other.

use std::net::SocketAddr;
use std::sync::Arc;

use net::sip::{CloseReason, Framer, FramingError, MakeFramer, Outgoing, Transport};
use sip::FailedFlow;
use sip::framer::{Frame, StreamFramer};

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

/// Whom a closed connection cuts off; nobody when it simply ended, because what is still to be
/// said goes over a new one.
pub(crate) fn cut_off(flow: net::sip::Flow, reason: CloseReason) -> Option<FailedFlow> {
    match reason {
        CloseReason::NotConnected(_) | CloseReason::Failed(_) | CloseReason::SlowReader => {
            Some(unreachable(flow.transport, flow.remote))
        }
        _ => None,
    }
}

/// A peer that nothing can be sent to.
pub(crate) fn unreachable(transport: Transport, remote: SocketAddr) -> FailedFlow {
    FailedFlow {
        transport: sip_transport(transport),
        remote,
    }
}

/// SIP's framing for the network's streams.
#[derive(Debug)]
pub(crate) struct SipFramer {
    framer: StreamFramer,
    peer: SocketAddr,
}

impl SipFramer {
    /// A framer for a connection to `peer`, as the network asks for one.
    pub(crate) fn make(limits: sip::Limits) -> MakeFramer {
        Arc::new(move |peer| {
            Box::new(Self {
                framer: StreamFramer::new(limits),
                peer,
            })
        })
    }
}

impl Framer for SipFramer {
    fn push(&mut self, bytes: &[u8]) {
        self.framer.push(bytes);
    }

    fn next(&mut self) -> Result<Option<net::sip::Frame>, FramingError> {
        match self.framer.next() {
            Ok(None) => Ok(None),
            Ok(Some(Frame::Message(bytes))) => Ok(Some(net::sip::Frame::Message(bytes))),
            Ok(Some(Frame::Ping)) => Ok(Some(net::sip::Frame::KeepAlivePing)),
            Err(error) => {
                let answer = error
                    .status()
                    .and_then(|status| sip::refusal(self.framer.pending(), status, self.peer));
                Err(FramingError {
                    farewell: answer.unwrap_or_default(),
                })
            }
        }
    }

    fn is_partial(&self) -> bool {
        let between = |byte: &u8| matches!(byte, b'\r' | b'\n');
        self.framer
            .pending()
            .first()
            .is_some_and(|first| !between(first))
    }
}
