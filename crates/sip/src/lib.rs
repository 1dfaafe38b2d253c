//! SIP messages, transactions, dialogs and the INVITE usage as a sans-IO endpoint.
//!
//! The message layer (RFC 3261, 7, 18.3, 19, 20 and 25):
//!
//! ```text
//! stream -> StreamFramer --frame--\
//! datagram ------------------------> Message::parse -> check_request / check_response -> endpoint
//!                                        \-> ParseError -> refusal() or silence
//! endpoint -> Writer -> octets
//! ```
//!
//! Nothing here reads a clock, a socket, a file, the environment or entropy: time and seeds are arguments.
#![forbid(unsafe_code)]

mod arena;
mod check;
mod digest;
mod endpoint;
mod error;
pub mod framer;
mod hash;
mod host;
mod index;
mod lex;
mod limits;
mod message;
mod method;
pub mod multipart;
mod name;
mod nameaddr;
mod params;
mod random;
mod reason;
mod refusal;
mod transaction;
pub mod uri;
mod values;
mod via;
mod writer;

pub use arena::{ClientTxnId, ServerTxnId, UsageId};
pub use endpoint::{
    Body, Config, Counts, Credentials, Endpoint, Event, FailedFlow, Failure, Fields, Flow,
    HeaderField, Invite, Listener, Request, Resolve, ResolveError, ResolveId, Transmit, Transport,
    UsageError,
};
pub use error::{HeaderError, HeaderErrorKind, ParseError, ParseErrorKind, Refusal};
pub use framer::StreamFramer;
pub use hash::SeededState;
pub use host::Host;
pub use limits::Limits;
pub use message::{Framing, Incoming, Message};
pub use method::Method;
pub use name::Name;
pub use nameaddr::NameAddr;
pub use params::{Params, quote, unquote};
pub use random::Rng;
pub use reason::reason_phrase;
pub use refusal::refusal;
pub use uri::{Scheme, Uri, UriError};
pub use values::{CSeq, Contact, ContentType, RAck, unfold};
pub use via::Via;
pub use writer::Writer;
