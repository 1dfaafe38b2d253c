//! What is wrong with a message, and whose answer it earns.
//!
//! [`ParseError`] is about the octets: the message cannot be indexed. [`HeaderError`] is about one header field
//! of a message that could be. [`Refusal`] is the verdict of [`Message::check_request`](crate::Message::check_request).

use thiserror::Error;

use crate::Name;

/// Why octets are not a message, and where that showed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{kind} at octet {offset}")]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// Octets from the start of the buffer.
    pub offset: usize,
    /// Whether the octets began like a request other than ACK: only those are ever answered.
    pub(crate) answerable: bool,
}

impl ParseError {
    /// The status owed to the sender; `None` when it was a response, an ACK or no SIP at all.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.answerable.then(|| self.kind.status())
    }

    pub(crate) const fn new(kind: ParseErrorKind, offset: usize) -> Self {
        Self {
            kind,
            offset,
            answerable: false,
        }
    }
}

/// The ways in which octets fail to be a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// Nothing, or nothing but line ends: a keep-alive.
    #[error("no message")]
    Empty,
    /// The start line is neither a request line nor a status line (RFC 3261, 7.1, 7.2).
    #[error("malformed start line")]
    StartLine,
    /// A version other than SIP/2.0.
    #[error("unsupported version")]
    Version,
    /// A status code that is not three digits from 100 to 699.
    #[error("status code out of range")]
    StatusCode,
    /// A line without a colon, with an empty or impossible name, or a fold before the first header.
    #[error("malformed header line")]
    HeaderLine,
    /// CRLF and bare LF in one header section, or a lone CR (RFC 3261, 7 and 25.1).
    #[error("mixed line ends")]
    LineEnds,
    /// Start line and headers are not UTF-8.
    #[error("header section is not UTF-8")]
    NotUtf8,
    /// The empty line after the headers never came.
    #[error("header section does not end")]
    Unterminated,
    /// Content-Length is no decimal number.
    #[error("malformed Content-Length")]
    ContentLength,
    /// Content-Length stands more than once.
    #[error("repeated Content-Length")]
    RepeatedContentLength,
    /// A stream needs Content-Length (RFC 3261, 18.3).
    #[error("missing Content-Length")]
    MissingContentLength,
    /// Fewer octets of body than Content-Length says.
    #[error("body shorter than Content-Length")]
    ShortBody,
    /// Above [`Limits::max_start_line_bytes`](crate::Limits::max_start_line_bytes).
    #[error("start line too long")]
    StartLineTooLong,
    /// Above [`Limits::max_headers`](crate::Limits::max_headers).
    #[error("too many headers")]
    TooManyHeaders,
    /// Above [`Limits::max_header_bytes`](crate::Limits::max_header_bytes).
    #[error("header too long")]
    HeaderTooLong,
    /// Above [`Limits::max_message_bytes`](crate::Limits::max_message_bytes), or a header section above 65,535 octets.
    #[error("message too large")]
    TooLarge,
}

impl ParseErrorKind {
    /// The status that names this fault (RFC 3261, 21.4 and 21.5).
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Version => 505,
            Self::StartLineTooLong => 414,
            Self::TooManyHeaders | Self::HeaderTooLong | Self::TooLarge => 513,
            _ => 400,
        }
    }
}

/// Why one header field cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{name}: {kind}")]
pub struct HeaderError {
    /// Which header field.
    pub name: Name,
    /// What is wrong with it.
    pub kind: HeaderErrorKind,
}

/// The ways in which a header field cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum HeaderErrorKind {
    /// It is not there.
    #[error("missing")]
    Missing,
    /// It stands more than once and may not.
    #[error("repeated")]
    Repeated,
    /// Its value does not follow the grammar.
    #[error("malformed")]
    Malformed,
    /// Its number does not fit its range.
    #[error("out of range")]
    OutOfRange,
}

impl HeaderErrorKind {
    pub(crate) const fn of(self, name: Name) -> HeaderError {
        HeaderError { name, kind: self }
    }
}

/// Why a request that could be indexed is refused before anything looks at its meaning.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// A header field that every request needs, or one that would be acted on, is unusable.
    #[error(transparent)]
    Header(#[from] HeaderError),
    /// CSeq names another method than the request line (RFC 3261, 8.1.1.5).
    #[error("method of CSeq differs from the request line")]
    MethodMismatch,
    /// The Request-URI does not follow the grammar, or carries headers (RFC 3261, 19.1.1).
    #[error("malformed Request-URI")]
    RequestUri,
    /// The Request-URI is neither `sip:`, `sips:` nor `tel:` (RFC 3261, 8.2.2.1).
    #[error("unsupported URI scheme")]
    Scheme,
}

impl Refusal {
    /// The status to answer with.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::Scheme => 416,
            Self::Header(_) | Self::MethodMismatch | Self::RequestUri => 400,
        }
    }
}
