//! The printer: a message from its start line, headers in order, and body.
//!
//! RFC 3261, 7. Content-Length is always written, last. Whatever text is handed in, a CR or LF in it becomes a
//! space, so no value taken from a peer can begin a header of its own; folded values come out on one line.

use core::fmt::{self, Display, Write as _};

use crate::{Message, Name};

/// Builds one message.
#[derive(Clone, Debug)]
#[must_use]
pub struct Writer {
    out: Vec<u8>,
}

impl Writer {
    /// Begins a request.
    pub fn request(method: &str, uri: &str) -> Self {
        Self::begin(format_args!("{method} {uri} SIP/2.0"))
    }

    /// Begins a response; `reason` of `None` is the registered phrase.
    pub fn response(code: u16, reason: Option<&str>) -> Self {
        let reason = reason.unwrap_or_else(|| crate::reason_phrase(code));
        Self::begin(format_args!("SIP/2.0 {code} {reason}"))
    }

    fn begin(line: fmt::Arguments<'_>) -> Self {
        let mut writer = Self {
            out: Vec::with_capacity(1_024),
        };
        writer.line(line);
        writer
    }

    /// Adds a header field.
    pub fn header(self, name: Name, value: impl Display) -> Self {
        self.header_named(name.as_str(), value)
    }

    /// Adds a header field of any name, as written.
    pub fn header_named(mut self, name: &str, value: impl Display) -> Self {
        self.push_named(name, value);
        self
    }

    /// Adds a header field in place.
    pub fn push(&mut self, name: Name, value: impl Display) {
        self.push_named(name.as_str(), value);
    }

    /// Adds a header field of any name in place.
    pub fn push_named(&mut self, name: &str, value: impl Display) {
        self.text(name);
        self.out.extend_from_slice(b": ");
        self.line(format_args!("{value}"));
    }

    /// Adds a header field whose value needs no formatting.
    fn push_text(&mut self, name: &str, value: &str) {
        self.text(name);
        self.out.extend_from_slice(b": ");
        self.text(value);
        self.out.extend_from_slice(b"\r\n");
    }

    fn text(&mut self, text: &str) {
        let begin = self.out.len();
        self.out.extend_from_slice(text.as_bytes());
        let mut rest = &mut self.out[begin..];
        while let Some(at) = memchr::memchr2(b'\r', b'\n', rest) {
            rest[at] = b' ';
            rest = &mut rest[at + 1..];
        }
    }

    /// Copies every header field of that kind from a message, in order.
    pub fn copy<B: AsRef<[u8]>>(mut self, message: &Message<B>, name: Name) -> Self {
        message
            .headers(name)
            .for_each(|value| self.push(name, value));
        self
    }

    /// Ends the message without a body.
    #[must_use]
    pub fn finish(mut self) -> Vec<u8> {
        self.push(Name::ContentLength, 0);
        self.out.extend_from_slice(b"\r\n");
        self.out
    }

    /// Ends the message with a body.
    #[must_use]
    pub fn body(mut self, content_type: &str, body: &[u8]) -> Vec<u8> {
        self.push(Name::ContentType, content_type);
        self.push(Name::ContentLength, body.len());
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(body);
        self.out
    }

    fn line(&mut self, text: fmt::Arguments<'_>) {
        OneLine(self)
            .write_fmt(text)
            .expect("a Vec takes any text and values print without failing");
        self.out.extend_from_slice(b"\r\n");
    }
}

/// Lets formatting write through [`Writer::text`], which makes spaces of line ends.
struct OneLine<'a>(&'a mut Writer);

impl fmt::Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.text(text);
        Ok(())
    }
}

impl<B: AsRef<[u8]>> Message<B> {
    /// Prints the message afresh: canonical names, one line per header, headers in order, Content-Length last.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = match (self.method(), self.status()) {
            (Some(method), _) => {
                Writer::request(method.as_str(), self.request_uri().unwrap_or_default())
            }
            (None, code) => Writer::response(code.unwrap_or_default(), self.reason_phrase()),
        };
        for (written, kind, value) in self.all_headers() {
            match kind {
                Some(Name::ContentLength) => {}
                Some(name) => writer.push_text(name.as_str(), value),
                None => writer.push_text(written, value),
            }
        }
        writer.push(Name::ContentLength, self.body().len());
        writer.out.extend_from_slice(b"\r\n");
        writer.out.extend_from_slice(self.body());
        writer.out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_a_request() {
        let bytes = Writer::request("OPTIONS", "sip:a@b")
            .header(Name::MaxForwards, 70)
            .header_named("X-Y", "z")
            .body("text/plain", b"hi");
        let text = "OPTIONS sip:a@b SIP/2.0\r\nMax-Forwards: 70\r\nX-Y: z\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nhi";
        assert_eq!(bytes, text.as_bytes());
    }

    #[test]
    fn prints_a_response_without_body() {
        let bytes = Writer::response(486, None)
            .header(Name::CallId, "x")
            .finish();
        assert_eq!(
            bytes,
            b"SIP/2.0 486 Busy Here\r\nCall-ID: x\r\nContent-Length: 0\r\n\r\n"
        );
    }

    #[test]
    fn no_value_begins_a_header_of_its_own() {
        let bytes = Writer::request("INFO", "sip:a@b\r\nVia: x")
            .header(Name::Subject, "a\r\n b\nEvil: 1\rx")
            .header_named("X\r\n\r\n", "v")
            .finish();
        let text = "INFO sip:a@b  Via: x SIP/2.0\r\nSubject: a   b Evil: 1 x\r\nX    : v\r\nContent-Length: 0\r\n\r\n";
        assert_eq!(core::str::from_utf8(&bytes), Ok(text));
    }
}
