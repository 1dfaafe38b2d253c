//! What the endpoint and its user say to each other.

use core::net::SocketAddr;
use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::arena::{ClientTxnId, ServerTxnId, UsageId};
use crate::{Incoming, Limits, Name};

/// A SIP transport (RFC 3261 section 18; RFC 7118 for WebSocket).
#[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Transport {
    /// Datagrams.
    Udp,
    /// A stream.
    Tcp,
    /// TLS over TCP.
    Tls,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
}

impl Transport {
    /// As Via writes it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Udp => "UDP",
            Self::Tcp => "TCP",
            Self::Tls => "TLS",
            Self::Ws => "WS",
            Self::Wss => "WSS",
        }
    }

    /// From a Via or a `transport` parameter, whatever the case.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Udp, Self::Tcp, Self::Tls, Self::Ws, Self::Wss]
            .into_iter()
            .find(|transport| transport.as_str().eq_ignore_ascii_case(name))
    }

    /// Whether it repeats lost octets itself.
    #[must_use]
    pub fn is_reliable(self) -> bool {
        self != Self::Udp
    }
}

/// Between which ends a message came.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub struct Flow {
    /// Over what.
    pub transport: Transport,
    /// Our end.
    pub local: SocketAddr,
    /// The peer's end.
    pub remote: SocketAddr,
    /// The stream connection; 0 for UDP.
    pub connection: u64,
}

/// A peer that the transport could not deliver to.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub struct FailedFlow {
    /// Over what.
    pub transport: Transport,
    /// To whom.
    pub remote: SocketAddr,
}

/// A message to be sent.
#[derive(Clone, Debug)]
pub struct Transmit {
    /// Over what.
    pub transport: Transport,
    /// The listener to send from, where it matters.
    pub local: Option<SocketAddr>,
    /// To whom.
    pub remote: SocketAddr,
    /// The connection to try first (RFC 3261 section 18.2.2); else one to `remote`.
    pub connection: Option<u64>,
    /// The message.
    pub bytes: Arc<[u8]>,
}

/// A host name to be resolved (RFC 3263).
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Resolve {
    /// For the answer.
    pub id: ResolveId,
    /// The name.
    pub host: String,
    /// The port, where the URI names one.
    pub port: Option<u16>,
    /// The transport, where the URI names one.
    pub transport: Option<Transport>,
}

/// A question to the resolver.
#[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ResolveId(pub(crate) ClientTxnId);

/// The name has no address, or nobody could say.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("the name does not resolve")]
pub struct ResolveError;

/// An address that we listen on.
#[derive(Clone, Debug)]
pub struct Listener {
    /// Over what.
    pub transport: Transport,
    /// Where.
    pub local: SocketAddr,
    /// Host and port to write into Via and Contact instead.
    pub advertised: Option<(String, u16)>,
}

/// Settings of an endpoint.
#[derive(Clone, Debug)]
pub struct Config {
    /// Round-trip estimate T1 (RFC 3261 section 17.1.1.1).
    pub t1: Duration,
    /// Longest interval between repeats, T2.
    pub t2: Duration,
    /// How long a message may live in the network, T4.
    pub t4: Duration,
    /// For User-Agent and Server.
    pub user_agent: String,
    /// Limits of what is parsed.
    pub limits: Limits,
    /// Where we listen; the first that fits is what we send from.
    pub listeners: Vec<Listener>,
    /// Most transactions of one direction at a time; above it requests get 503 without state.
    pub max_transactions: usize,
    /// Most usages at a time; above it INVITEs get 503.
    pub max_usages: usize,
    /// Option tags that we understand in Require (RFC 3261 section 20.32).
    pub supported: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            t1: Duration::from_millis(500),
            t2: Duration::from_secs(4),
            t4: Duration::from_secs(5),
            user_agent: concat!("tandem/", env!("CARGO_PKG_VERSION")).to_owned(),
            limits: Limits::default(),
            listeners: Vec::new(),
            max_transactions: 500_000,
            max_usages: 100_000,
            supported: Vec::new(),
        }
    }
}

/// A header to be added to a message.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HeaderField {
    /// One of the known names.
    Known(Name, String),
    /// Any other, by name.
    Other(String, String),
}

/// Headers to be added.
pub type Fields = Vec<HeaderField>;

/// A message body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Body {
    /// Its Content-Type.
    pub content_type: Cow<'static, str>,
    /// Its octets.
    pub bytes: Vec<u8>,
}

/// What a peer that challenges us is shown (RFC 3261 section 22).
#[derive(Clone, Debug)]
pub struct Credentials {
    /// User name.
    pub username: String,
    /// Password.
    pub password: String,
}

/// An INVITE that opens a call.
#[derive(Clone, Debug, Default)]
pub struct Invite {
    /// Whom to call.
    pub request_uri: String,
    /// From, as name-addr without tag.
    pub from: String,
    /// To, as name-addr.
    pub to: String,
    /// User part of our Contact.
    pub contact_user: Option<String>,
    /// Route set to start with.
    pub route: Vec<String>,
    /// Where to send it, instead of where the URIs say.
    pub next_hop: Option<(Transport, SocketAddr)>,
    /// Further headers. A Max-Forwards among them replaces our own.
    pub fields: Fields,
    /// The offer.
    pub body: Option<Body>,
    /// For a challenge.
    pub credentials: Option<Credentials>,
    /// Call-ID; a fresh one when absent.
    pub call_id: Option<String>,
}

/// A request outside any dialog.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Its method.
    pub method: String,
    /// Its Request-URI.
    pub request_uri: String,
    /// From, as name-addr without tag.
    pub from: String,
    /// To, as name-addr.
    pub to: String,
    /// Route set.
    pub route: Vec<String>,
    /// Where to send it, instead of where the URIs say.
    pub next_hop: Option<(Transport, SocketAddr)>,
    /// Further headers.
    pub fields: Fields,
    /// Body.
    pub body: Option<Body>,
    /// For a challenge.
    pub credentials: Option<Credentials>,
    /// Call-ID; a fresh one when absent.
    pub call_id: Option<String>,
    /// CSeq number; 1 when absent. Registrations count upwards (RFC 3261 section 10.2).
    pub cseq: Option<u32>,
}

/// Why a request of ours came to nothing.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// This final response came.
    Response(u16),
    /// Nothing came in 64 x T1.
    Timeout,
    /// The transport could not deliver.
    Transport,
    /// The host name has no address.
    Unresolved,
    /// We cancelled it.
    Cancelled,
}

/// Why the endpoint does not do what it was asked.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum UsageError {
    /// There is no such usage or transaction any more.
    #[error("gone")]
    Gone,
    /// Not in the state that this needs.
    #[error("not possible in this state")]
    State,
    /// A re-INVITE is open in one direction or the other (RFC 3261 section 14.1).
    #[error("a re-INVITE is open")]
    Pending,
    /// A URI cannot be read, or names a transport that we do not listen on.
    #[error("no way to send there")]
    Unroutable,
    /// A limit is reached.
    #[error("too many transactions")]
    Full,
}

/// What the endpoint tells its user.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event {
    /// An INVITE outside any dialog; 100 has been sent.
    Invite {
        /// The new leg.
        usage: UsageId,
        /// The INVITE.
        message: Box<Incoming>,
        /// How it came.
        flow: Flow,
    },
    /// The caller gave up before our final response; 200 and 487 are sent. The usage is gone.
    Cancelled {
        /// Which.
        usage: UsageId,
        /// The CANCEL, or an early BYE.
        message: Box<Incoming>,
    },
    /// The first ACK of our 2xx; it may carry the answer.
    Acked {
        /// Which.
        usage: UsageId,
        /// The ACK.
        message: Box<Incoming>,
    },
    /// No ACK in 64 x T1: the endpoint sends BYE (RFC 3261 section 13.3.1.4); `Ended` follows.
    AckMissing {
        /// Which.
        usage: UsageId,
    },
    /// A provisional response above 100.
    Provisional {
        /// Which.
        usage: UsageId,
        /// 101 to 199.
        code: u16,
        /// The response.
        message: Box<Incoming>,
    },
    /// A 2xx to our INVITE; [`crate::Endpoint::ack`] is owed.
    Answered {
        /// Which.
        usage: UsageId,
        /// 200 to 299.
        code: u16,
        /// The response.
        message: Box<Incoming>,
    },
    /// Our INVITE came to nothing. The usage is gone.
    Refused {
        /// Which.
        usage: UsageId,
        /// Why.
        failure: Failure,
        /// The response, where one came.
        message: Option<Box<Incoming>>,
    },
    /// A re-INVITE; [`crate::Endpoint::respond_reinvite`] is owed.
    Reinvite {
        /// Which.
        usage: UsageId,
        /// The INVITE.
        message: Box<Incoming>,
    },
    /// The peer took its re-INVITE back before our final response; 200 and 487 are sent, and the
    /// session stays as it is.
    ReinviteCancelled {
        /// Which.
        usage: UsageId,
    },
    /// A 2xx to our re-INVITE; [`crate::Endpoint::ack`] is owed.
    ReinviteAnswered {
        /// Which.
        usage: UsageId,
        /// The response.
        message: Box<Incoming>,
    },
    /// Our re-INVITE came to nothing; the session is as before.
    ReinviteRefused {
        /// Which.
        usage: UsageId,
        /// Why.
        failure: Failure,
        /// The response, where one came.
        message: Option<Box<Incoming>>,
    },
    /// A BYE; 200 is sent. The usage is gone.
    Bye {
        /// Which.
        usage: UsageId,
        /// The BYE.
        message: Box<Incoming>,
    },
    /// Our BYE is over, answered or given up. The usage is gone.
    Ended {
        /// Which.
        usage: UsageId,
    },
    /// Any other request; [`crate::Endpoint::respond`] is owed.
    Request {
        /// To respond by.
        txn: ServerTxnId,
        /// The leg that it belongs to.
        usage: Option<UsageId>,
        /// The request.
        message: Box<Incoming>,
        /// How it came.
        flow: Flow,
    },
    /// A response to a request of [`crate::Endpoint::request`] or `request_in`: provisional ones
    /// above 100 and the final one.
    Response {
        /// Which.
        txn: ClientTxnId,
        /// The leg that it belongs to.
        usage: Option<UsageId>,
        /// The response, or why there is none.
        outcome: Result<Box<Incoming>, Failure>,
    },
}

/// What an endpoint holds; all zero when nothing goes on.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Server transactions.
    pub server_transactions: usize,
    /// Client transactions.
    pub client_transactions: usize,
    /// INVITE usages.
    pub usages: usize,
    /// Armed timers.
    pub timers: usize,
}
