//! A small reader of SIP messages for the witnesses of the tests.
//!
//! Deliberately not `sip::Message`: a fault of that parser must not hide itself. It reads what a
//! decent peer sends, keeps everything as text, and is in no hurry.

use std::fmt;

/// A message taken apart: start line, headers under their long lower-case names, body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sip {
    /// Request line or status line.
    pub start: String,
    /// Headers in their order.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Vec<u8>,
}

/// Compact forms (RFC 3261 section 20, table 2 and 3).
const COMPACT: [(&str, &str); 10] = [
    ("v", "via"),
    ("f", "from"),
    ("t", "to"),
    ("i", "call-id"),
    ("m", "contact"),
    ("l", "content-length"),
    ("c", "content-type"),
    ("e", "content-encoding"),
    ("k", "supported"),
    ("s", "subject"),
];

impl Sip {
    /// Reads a datagram; `None` when it isn't SIP 2.0, or a header has no colon.
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end])
            .ok()?
            .replace("\r\n ", " ");
        let mut lines = head.split("\r\n");
        let start = lines.next()?.to_owned();
        if !start.starts_with("SIP/2.0 ") && !start.ends_with(" SIP/2.0") {
            return None;
        }
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(':')?;
                let name = name.trim().to_ascii_lowercase();
                let long = COMPACT.iter().find(|(short, _)| *short == name);
                let name = long.map_or(name.as_str(), |(_, long)| long).to_owned();
                Some((name, value.trim().to_owned()))
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            start,
            headers,
            body: bytes[end + 4..].to_vec(),
        })
    }

    /// The method of a request.
    #[must_use]
    pub fn method(&self) -> Option<&str> {
        (!self.start.starts_with("SIP/"))
            .then(|| self.start.split(' ').next())
            .flatten()
    }

    /// The Request-URI of a request.
    #[must_use]
    pub fn uri(&self) -> Option<&str> {
        self.method().and_then(|_| self.start.split(' ').nth(1))
    }

    /// The status code of a response.
    #[must_use]
    pub fn status(&self) -> Option<u16> {
        self.start
            .strip_prefix("SIP/2.0 ")?
            .split(' ')
            .next()?
            .parse()
            .ok()
    }

    /// The first header of this (long, lower-case) name.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every header of this name, one item a line.
    pub fn all<'a, 'n>(&'a self, name: &'n str) -> impl Iterator<Item = &'a str> + use<'a, 'n> {
        self.headers
            .iter()
            .filter(move |(n, _)| n == name)
            .map(|(_, value)| value.as_str())
    }

    /// A header that the message can't do without; empty when it does.
    #[must_use]
    pub fn must(&self, name: &str) -> &str {
        self.header(name).unwrap_or_default()
    }

    /// Sequence number and method of CSeq.
    #[must_use]
    pub fn cseq(&self) -> (u32, &str) {
        let (number, method) = self.must("cseq").split_once(' ').unwrap_or_default();
        (number.parse().unwrap_or(0), method.trim())
    }

    /// The branch of the topmost Via.
    #[must_use]
    pub fn branch(&self) -> &str {
        parameter(self.must("via"), "branch").unwrap_or_default()
    }

    /// The tag of From.
    #[must_use]
    pub fn sender_tag(&self) -> Option<&str> {
        parameter(self.must("from"), "tag")
    }

    /// The tag of To.
    #[must_use]
    pub fn receiver_tag(&self) -> Option<&str> {
        parameter(self.must("to"), "tag")
    }

    /// The URI of Contact.
    #[must_use]
    pub fn contact(&self) -> Option<&str> {
        uri_of(self.header("contact")?)
    }

    /// The session description, when the body is one.
    #[must_use]
    pub fn sdp(&self) -> Option<&str> {
        let is_sdp = self
            .header("content-type")
            .is_some_and(|t| t.starts_with("application/sdp"));
        is_sdp
            .then(|| std::str::from_utf8(&self.body).ok())
            .flatten()
    }

    /// Whether it is a request within a dialog.
    #[must_use]
    pub fn in_dialog(&self) -> bool {
        self.method().is_some() && self.receiver_tag().is_some()
    }
}

/// What ladders and logs call a message: `INVITE`, `re-INVITE`, `200 (INVITE)`.
impl fmt::Display for Sip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.method(), self.status()) {
            (Some("INVITE"), _) if self.in_dialog() => f.write_str("re-INVITE"),
            (Some(method), _) => f.write_str(method),
            (None, Some(code)) => write!(f, "{code} ({})", self.cseq().1),
            (None, None) => f.write_str("?"),
        }
    }
}

/// The name of a datagram in ladders.
#[must_use]
pub fn label(bytes: &[u8]) -> String {
    Sip::read(bytes).map_or_else(|| format!("{} bytes", bytes.len()), |sip| sip.to_string())
}

/// The URI of a name-addr or addr-spec.
#[must_use]
pub fn uri_of(value: &str) -> Option<&str> {
    match value.split_once('<') {
        Some((_, rest)) => rest.split_once('>').map(|(uri, _)| uri),
        None => value.split(';').next(),
    }
}

/// A parameter behind a name-addr or a Via.
#[must_use]
pub fn parameter<'a>(value: &'a str, name: &str) -> Option<&'a str> {
    let parameters = value.rsplit_once('>').map_or(value, |(_, rest)| rest);
    parameters.split(';').skip(1).find_map(|parameter| {
        let (n, v) = parameter.split_once('=').unwrap_or((parameter, ""));
        n.trim().eq_ignore_ascii_case(name).then_some(v.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_and_responses_are_read() {
        let request =
            b"INVITE sip:echo@192.0.2.1 SIP/2.0\r\nv: SIP/2.0/UDP 192.0.2.10;branch=z9\r\n\
            From: \"A; B\" <sip:a@x;p=1>;tag=1\r\nTo: <sip:echo@x>\r\nCSeq: 7 INVITE\r\n\
            Subject: one\r\n two\r\n\r\nbody";
        let sip = Sip::read(request).unwrap();
        assert_eq!(
            (sip.method(), sip.uri()),
            (Some("INVITE"), Some("sip:echo@192.0.2.1"))
        );
        assert_eq!(
            (sip.branch(), sip.sender_tag(), sip.receiver_tag()),
            ("z9", Some("1"), None)
        );
        assert_eq!(
            (sip.cseq(), sip.header("subject")),
            ((7, "INVITE"), Some("one two"))
        );
        assert_eq!(
            (sip.to_string().as_str(), sip.body.as_slice()),
            ("INVITE", &b"body"[..])
        );

        let response = b"SIP/2.0 200 OK\r\nCSeq: 2 BYE\r\nTo: sip:b@x;tag=t\r\n\r\n";
        let sip = Sip::read(response).unwrap();
        assert_eq!((sip.status(), sip.receiver_tag()), (Some(200), Some("t")));
        assert_eq!(sip.to_string(), "200 (BYE)");
    }

    #[test]
    fn what_is_no_message_is_not_read() {
        let rows: [&[u8]; 4] = [
            b"",
            b"\r\n\r\n",
            b"INVITE x HTTP/1.1\r\n\r\n",
            b"BYE x SIP/2.0\r\nVia\r\n\r\n",
        ];
        for bytes in rows {
            assert_eq!(Sip::read(bytes), None);
        }
    }
}
