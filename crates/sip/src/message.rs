//! A parsed message: octets, an index into them, and readers that look at a value when asked.
//!
//! RFC 3261, 7. [`Message::parse`] makes one pass (see `index`) and refuses what is no message; what a header
//! means is judged when it is read, or by `check_request` and `check_response` (see `check`), so a message with
//! a broken header nobody needs is still usable (RFC 3261, 8.2.2; RFC 4475, 3.1.1.1).
//!
//! ```text
//! octets --parse--> Message --check_request--> endpoint
//!    \--ParseError--> refusal (400, 414, 505, 513) or silence
//! ```

use core::fmt;
use core::ops::Range;
use std::sync::Arc;

use crate::error::ParseError;
use crate::index::{Index, Span, Start};
use crate::lex::List;
use crate::{Limits, Method, Name};

/// How a transport delimits messages (RFC 3261, 18.3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Framing {
    /// One message per datagram: octets after Content-Length are dropped, fewer are an error, and without
    /// Content-Length the body is the rest.
    Datagram,
    /// A message out of a stream: Content-Length must be there.
    Stream,
}

/// A message over any owner of its octets.
///
/// Cost: about 1.1 KB beside the octets, no allocation.
#[derive(Clone)]
pub struct Message<B = Arc<[u8]>> {
    buf: B,
    index: Index,
}

/// A message as events carry it.
pub type Incoming = Message<Arc<[u8]>>;

impl<B: AsRef<[u8]>> Message<B> {
    /// Indexes a message in one pass.
    ///
    /// Line ends in front of the start line are skipped. A header section may use bare LF throughout.
    ///
    /// # Errors
    /// [`ParseError`], whose [`status`](ParseError::status) is owed to the sender of a request.
    pub fn parse(buf: B, framing: Framing, limits: &Limits) -> Result<Self, ParseError> {
        let index = Index::build(buf.as_ref(), framing, limits)?;
        Ok(Self { buf, index })
    }

    /// Whether it is a request.
    pub fn is_request(&self) -> bool {
        matches!(self.index.start, Start::Request { .. })
    }

    /// The method of a request line; `None` for a response.
    pub fn method(&self) -> Option<Method<'_>> {
        match &self.index.start {
            Start::Request { method, .. } => Some(Method::new(self.text(method.clone()))),
            Start::Response { .. } => None,
        }
    }

    /// The Request-URI as written; `None` for a response.
    pub fn request_uri(&self) -> Option<&str> {
        match &self.index.start {
            Start::Request { uri, .. } => Some(self.text(uri.clone())),
            Start::Response { .. } => None,
        }
    }

    /// The status code, 100 to 699; `None` for a request.
    pub fn status(&self) -> Option<u16> {
        match self.index.start {
            Start::Request { .. } => None,
            Start::Response { code, .. } => Some(code),
        }
    }

    /// The reason phrase, possibly empty; `None` for a request.
    pub fn reason_phrase(&self) -> Option<&str> {
        match &self.index.start {
            Start::Request { .. } => None,
            Start::Response { reason, .. } => Some(self.text(reason.clone())),
        }
    }

    /// The first header field of that kind, trimmed; folds inside are left in.
    pub fn header(&self, name: Name) -> Option<&str> {
        self.headers(name).next()
    }

    /// Every header field of that kind, trimmed, in order.
    pub fn headers(&self, name: Name) -> impl Iterator<Item = &str> {
        let entries = self.index.entries().iter();
        entries
            .filter(move |e| e.kind() == Some(name))
            .map(|e| self.text(e.value()))
    }

    /// The elements of every header field of that kind, cut at commas outside quotes and angle brackets.
    ///
    /// Only for kinds whose grammar is a list: not for Date, Authorization and their like.
    pub fn values(&self, name: Name) -> impl Iterator<Item = &str> {
        self.headers(name)
            .flat_map(|value| List::new(value, b',', true))
    }

    /// The first header field of that name, in any case; a known name finds its compact form too.
    pub fn header_named(&self, name: &str) -> Option<&str> {
        match Name::lookup(name) {
            Some(name) => self.header(name),
            None => self
                .all_headers()
                .find(|(written, _, _)| written.eq_ignore_ascii_case(name))
                .map(|(_, _, value)| value),
        }
    }

    /// Every header field in order: name as written, kind, trimmed value.
    pub fn all_headers(&self) -> impl Iterator<Item = (&str, Option<Name>, &str)> {
        let entries = self.index.entries().iter();
        entries.map(|e| {
            (
                self.text(e.name(self.buf.as_ref())),
                e.kind(),
                self.text(e.value()),
            )
        })
    }

    /// The body, as delimited by the framing rules.
    pub fn body(&self) -> &[u8] {
        self.buf
            .as_ref()
            .get(self.index.body.clone())
            .unwrap_or_default()
    }

    /// All octets that were parsed.
    pub fn as_bytes(&self) -> &[u8] {
        self.buf.as_ref()
    }

    /// The owner of the octets.
    pub fn into_inner(self) -> B {
        self.buf
    }

    /// The same message over shared octets (copied).
    pub fn to_incoming(&self) -> Incoming {
        Message {
            buf: Arc::from(self.buf.as_ref()),
            index: self.index.clone(),
        }
    }

    /// Spans lie between ASCII delimiters of a section checked to be UTF-8, so this never falls back unless
    /// the owner of the octets shows different ones at every look.
    fn text(&self, span: Span) -> &str {
        let span: Range<usize> = span.start.into()..span.end.into();
        let octets = self.buf.as_ref().get(span).unwrap_or_default();
        core::str::from_utf8(octets).unwrap_or_default()
    }
}

impl<B: AsRef<[u8]>> fmt::Debug for Message<B> {
    /// The start line only: bodies and addresses stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = f.debug_struct("Message");
        match self.status() {
            Some(code) => out.field("status", &code),
            None => out.field("method", &self.method()),
        };
        out.field("headers", &self.index.entries().len())
            .field("body_bytes", &self.index.body.len())
            .finish()
    }
}
