//! SIP sockets: UDP listeners and TCP connections behind one queue of events.
//!
//! ```text
//! UDP reader (one a listener)  --+                          +--> send_to at once
//! TCP accept (one a listener)  --+--> bounded channel --> SipSockets::receive   SipSockets::send
//! TCP connection (one each)    --+                          +--> that connection's bounded queue
//! ```
//!
//! RFC 3261 section 18: a message goes out on the connection it names, else on one open to that
//! address, else on a new one (18.2.2); UDP leaves from the listener it names. Framing of streams
//! is the caller's ([`Framer`]); a double CRLF is answered with a CRLF (RFC 5626 4.4.1).
//!
//! **Nobody blocks us.** `send` never waits: a connection whose reader is slow fills its own queue
//! and is closed. A full event channel stops reading, so a flood waits in kernel buffers. Limits
//! are in [`Limits`]. TLS and WebSocket are further connection tasks over the same queue.
//!
//! Tasks run on the current tokio runtime and end with [`SipSockets`].

mod connection;
mod icmp;
mod sockets;
mod udp;

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

pub use sockets::SipSockets;

/// What carries a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Transport {
    /// One message a datagram.
    Udp,
    /// A stream, framed by Content-Length.
    Tcp,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

/// One socket to listen on. Port 0 takes a free one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenSpec {
    /// Its kind.
    pub transport: Transport,
    /// Its address.
    pub address: SocketAddr,
}

impl fmt::Display for ListenSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.transport, self.address)
    }
}

/// Why a text names no listener.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no listener; write udp:ADDRESS:PORT or tcp:ADDRESS:PORT")]
pub struct ListenError(Box<str>);

impl FromStr for ListenSpec {
    type Err = ListenError;

    /// Reads `udp:127.0.0.1:5060` or `tcp:[::1]:5060`.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ListenError(text.into());
        let (transport, address) = text.split_once(':').ok_or_else(error)?;
        let transport = match transport {
            "udp" => Transport::Udp,
            "tcp" => Transport::Tcp,
            _ => return Err(error()),
        };
        let address = address.parse().map_err(|_| error())?;
        Ok(Self { transport, address })
    }
}

/// A listener that can't be had.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {spec}: {source}")]
pub struct BindError {
    /// What was asked for.
    pub spec: ListenSpec,
    /// What the system said.
    pub source: io::Error,
}

/// What the sockets put up with.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Stream connections at once, in and out; further ones are closed on accept. Default 10,000.
    pub connections: usize,
    /// A connection that brings nothing, not even a keep-alive, is closed. Default 1 h: phones
    /// keep one open for the life of a registration.
    pub idle: Duration,
    /// Time from accept to the first whole message, and from the first byte of a message to its
    /// last. Default 32 s, 64*T1 (RFC 3261 18.1.1 keeps connections that long).
    pub message: Duration,
    /// Time to connect. Default 10 s.
    pub connect: Duration,
    /// Time one message may take to be written. Default 32 s.
    pub write: Duration,
    /// Bytes waiting for a connection's reader before it is closed. Default 1 MiB.
    pub queued_bytes: usize,
    /// Messages waiting for a connection's reader before it is closed. Default 1,024.
    pub queued_messages: usize,
    /// Events waiting for the driver before reading stops. Default 4,096.
    pub events: usize,
    /// Receive and send buffer asked of the kernel for each UDP listener, in bytes. Default
    /// 8 MiB; without CAP_NET_ADMIN net.core.rmem_max caps it.
    pub udp_buffer: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            idle: Duration::from_secs(3600),
            message: Duration::from_secs(32),
            connect: Duration::from_secs(10),
            write: Duration::from_secs(32),
            queued_bytes: 1 << 20,
            queued_messages: 1024,
            events: 4096,
            udp_buffer: 8 << 20,
        }
    }
}

/// Which way a message came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// UDP or TCP.
    pub transport: Transport,
    /// Our end; for a connection that we opened the port is the kernel's choice.
    pub local: SocketAddr,
    /// Their end.
    pub remote: SocketAddr,
    /// Which connection; 0 for UDP.
    pub connection: u64,
}

/// A message to send.
#[derive(Debug, Clone)]
pub struct Outgoing {
    /// UDP or TCP.
    pub transport: Transport,
    /// The listener to send from, or for a new connection the address to bind; any that fits
    /// when absent.
    pub local: Option<SocketAddr>,
    /// Where to.
    pub remote: SocketAddr,
    /// The connection to try first.
    pub connection: Option<u64>,
    /// The whole message.
    pub bytes: Arc<[u8]>,
}

/// What happened on the sockets.
#[derive(Debug)]
#[non_exhaustive]
pub enum NetEvent {
    /// A whole datagram or one framed message.
    Message {
        /// Which way it came.
        flow: Flow,
        /// Its bytes, never empty.
        bytes: Vec<u8>,
    },
    /// A connection is gone; what was queued on it may be lost.
    Closed {
        /// The connection.
        flow: Flow,
        /// Why.
        reason: CloseReason,
    },
    /// A message could not be sent, or a datagram came back as undeliverable (ICMP).
    SendFailed {
        /// UDP or TCP.
        transport: Transport,
        /// Where it should have gone.
        remote: SocketAddr,
        /// What the system, or the network, said.
        error: io::ErrorKind,
    },
}

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// They closed it.
    ByPeer,
    /// Reading or writing failed.
    Failed(io::ErrorKind),
    /// It could not be opened.
    NotConnected(io::ErrorKind),
    /// The bytes are no SIP.
    Framing,
    /// Nothing came for [`Limits::idle`].
    Idle,
    /// A message took longer than [`Limits::message`] to arrive.
    SlowSender,
    /// The peer does not read what we send.
    SlowReader,
}

/// Cuts a byte stream into messages; one per connection.
pub trait Framer: Send {
    /// Takes what was read.
    fn push(&mut self, bytes: &[u8]);
    /// The next whole piece, `None` when more bytes are needed.
    ///
    /// # Errors
    /// [`FramingError`] when the stream can't be followed any further.
    fn next(&mut self) -> Result<Option<Frame>, FramingError>;
    /// Whether a message has begun and not ended.
    fn is_partial(&self) -> bool;
}

/// A piece of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Frame {
    /// One whole message.
    Message(Vec<u8>),
    /// A double CRLF between messages: answered with a CRLF.
    KeepAlivePing,
}

/// The stream can't be followed any further; the connection is closed.
#[derive(Debug, Clone, Default, PartialEq, Eq, thiserror::Error)]
#[error("the stream is not a sequence of messages")]
pub struct FramingError {
    /// Sent before the connection closes, an error response for example; empty for nothing.
    pub farewell: Vec<u8>,
}

/// Makes a framer for a connection to this peer.
pub type MakeFramer = Arc<dyn Fn(SocketAddr) -> Box<dyn Framer> + Send + Sync>;

/// What goes through the channel from the tasks to [`SipSockets`].
#[derive(Debug)]
enum Inner {
    Event(NetEvent),
    Accepted {
        stream: tokio::net::TcpStream,
        local: SocketAddr,
        remote: SocketAddr,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_written_as_they_are_read() {
        for text in ["udp:127.0.0.1:5060", "tcp:[::1]:0"] {
            assert_eq!(text.parse::<ListenSpec>().expect(text).to_string(), text);
        }
        for text in [
            "",
            "udp",
            "udp:127.0.0.1",
            "sctp:127.0.0.1:5060",
            "udp:localhost:5060",
            "udp:::1:5060x",
        ] {
            assert!(text.parse::<ListenSpec>().is_err(), "{text}");
        }
    }
}
