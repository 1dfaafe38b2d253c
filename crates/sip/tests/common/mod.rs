//! What the message tests share: texts become octets, octets become a verdict.
#![allow(dead_code, reason = "every test file takes what it needs of these")]

use sip::{Framing, HeaderError, Limits, Message, ParseError, ParseErrorKind, Refusal};

/// A text with its line ends made CRLF.
pub(crate) fn wire(text: &str) -> Vec<u8> {
    text.replace('\n', "\r\n").into_bytes()
}

/// Indexes a datagram under the default limits.
pub(crate) fn datagram(bytes: &[u8]) -> Result<Message<&[u8]>, ParseError> {
    Message::parse(bytes, Framing::Datagram, &Limits::default())
}

/// What becomes of a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// Goes on to the transaction layer.
    Taken,
    /// Cannot be indexed; the status owed, if any.
    Unreadable(ParseErrorKind, Option<u16>),
    /// A request that is answered with that status.
    Refused(Refusal, u16),
    /// A response that is dropped.
    Dropped(HeaderError),
}

impl Verdict {
    /// The status sent back, if any.
    pub(crate) fn status(self) -> Option<u16> {
        match self {
            Self::Taken | Self::Dropped(_) => None,
            Self::Unreadable(_, status) => status,
            Self::Refused(_, status) => Some(status),
        }
    }
}

/// Judges a datagram as an endpoint does.
pub(crate) fn judge(bytes: &[u8]) -> Verdict {
    let message = match datagram(bytes) {
        Ok(message) => message,
        Err(error) => return Verdict::Unreadable(error.kind, error.status()),
    };
    if !message.is_request() {
        return message
            .check_response()
            .map_or_else(Verdict::Dropped, |()| Verdict::Taken);
    }
    match message.check_request() {
        Ok(()) => Verdict::Taken,
        Err(refusal) => Verdict::Refused(refusal, refusal.status()),
    }
}

/// A plain request; `extra` stands in front of Content-Length.
pub(crate) fn request(extra: &str) -> Vec<u8> {
    wire(&format!(
        "OPTIONS sip:desk@tandem.example SIP/2.0\n\
         Via: SIP/2.0/UDP 198.51.100.4:5062;branch=z9hG4bKq7\n\
         From: <sip:ann@tandem.example>;tag=f1\n\
         To: <sip:desk@tandem.example>\n\
         Call-ID: c1@198.51.100.4\n\
         CSeq: 7 OPTIONS\n\
         {extra}Content-Length: 0\n\n"
    ))
}

/// [`request`] with one text replaced.
pub(crate) fn altered(from: &str, to: &str) -> Vec<u8> {
    let text = String::from_utf8(request("")).expect("the plain request is UTF-8");
    assert!(text.contains(from), "{from:?} is not in the plain request");
    text.replacen(from, to, 1).into_bytes()
}
