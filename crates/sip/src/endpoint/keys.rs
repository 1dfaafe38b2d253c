//! What transactions are found by (RFC 3261 sections 8.2.2.2, 17.1.3 and 17.2.3).
//!
//! A key is a 128 bit hash of the texts that the RFC compares, under a key of our own (SipHash-1-3).
//! Nobody can make two that meet, chance makes it less likely than a broken memory, and nothing has
//! to be allocated to look a message up.

use siphasher::sip128::{Hasher128 as _, SipHasher13};

use core::hash::Hasher as _;

use crate::{Host, Incoming, Method, Name, Rng};

/// The key of a transaction.
#[derive(Copy, Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) struct Key(u128);

/// Makes keys.
#[derive(Clone, Debug)]
pub(crate) struct Keys(SipHasher13);

impl Keys {
    pub(crate) fn new(rng: &mut Rng) -> Self {
        Self(SipHasher13::new_with_keys(rng.next_u64(), rng.next_u64()))
    }

    /// Of our own requests: the branch, and the method because CANCEL shares it with its INVITE.
    pub(crate) fn client(&self, branch: &str, method: &str) -> Key {
        let mut sum = self.sum(Kind::Client);
        sum.text(branch);
        sum.text(method);
        sum.key()
    }

    /// Of the peer's requests: branch, sent-by and method; where the branch is of RFC 2543, what
    /// that one compared. ACK finds its INVITE.
    pub(crate) fn server(&self, message: &Incoming, method: Method<'_>) -> Option<Key> {
        let via = message.top_via().ok()?;
        let method = match method {
            Method::Ack => Method::Invite,
            method => method,
        };
        if let Some(branch) = via.magic_branch() {
            let mut sum = self.sum(Kind::Server);
            sum.text(branch);
            sum.host(via.host);
            sum.0.write_u16(via.port_or_default());
            sum.text(method.as_str());
            return Some(sum.key());
        }
        let from = message.from().ok()?;
        let mut sum = self.sum(Kind::Rfc2543);
        sum.text(message.request_uri()?);
        sum.text(from.tag().unwrap_or_default());
        sum.text(message.call_id().ok()?);
        sum.0.write_u32(message.cseq().ok()?.number);
        sum.text(message.values(Name::Via).next()?);
        sum.text(method.as_str());
        Some(sum.key())
    }

    /// What the same request has in common on every path (section 8.2.2.2).
    pub(crate) fn merge(&self, message: &Incoming) -> Option<Key> {
        let (from, cseq) = (message.from().ok()?, message.cseq().ok()?);
        let mut sum = self.sum(Kind::Merge);
        sum.text(from.tag().unwrap_or_default());
        sum.text(message.call_id().ok()?);
        sum.0.write_u32(cseq.number);
        sum.text(cseq.method.as_str());
        Some(sum.key())
    }

    fn sum(&self, kind: Kind) -> Sum {
        let mut sum = self.0;
        sum.write_u8(kind as u8);
        Sum(sum)
    }
}

/// Keeps keys of different uses apart.
#[derive(Copy, Clone)]
enum Kind {
    Client,
    Server,
    Rfc2543,
    Merge,
}

/// A key in the making.
struct Sum(SipHasher13);

impl Sum {
    /// A text and its length, so that no two lists of texts run together.
    fn text(&mut self, text: &str) {
        self.0.write_usize(text.len());
        self.0.write(text.as_bytes());
    }

    /// Hosts compare without case (section 19.1.4).
    fn host(&mut self, host: Host<'_>) {
        match host {
            Host::V4(v4) => self.0.write_u32(v4.into()),
            Host::V6(v6) => self.0.write_u128(v6.into()),
            Host::Name(name) => {
                self.0.write_usize(name.len());
                let octets = name.bytes();
                octets.for_each(|octet| self.0.write_u8(octet.to_ascii_lowercase()));
            }
        }
    }

    fn key(&self) -> Key {
        Key(self.0.finish128().as_u128())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, Limits, Message};

    fn keys() -> Keys {
        Keys::new(&mut Rng::new([1; 32]))
    }

    fn request(method: &str, via: &str) -> Incoming {
        let text = format!(
            "{method} sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP {via}\r\nFrom: <sip:x@y>;tag=1\r\n\
             To: <sip:a@b>\r\nCall-ID: c\r\nCSeq: 1 {method}\r\nContent-Length: 0\r\n\r\n"
        );
        let octets = text.into_bytes().into();
        Message::parse(octets, Framing::Stream, &Limits::default()).expect("a request")
    }

    fn key(method: &str, via: &str) -> Key {
        let message = request(method, via);
        keys()
            .server(&message, message.method().expect("there"))
            .expect("a key")
    }

    #[test]
    fn branch_sent_by_and_method_tell_apart() {
        let invite = key("INVITE", "h.example;branch=z9hG4bK1");
        assert_eq!(
            invite,
            key("INVITE", "H.Example:5060;branch=z9hG4bK1;rport")
        );
        assert_eq!(invite, key("ACK", "h.example;branch=z9hG4bK1"));
        for (method, via) in [
            ("CANCEL", "h.example;branch=z9hG4bK1"),
            ("INVITE", "h.example;branch=z9hG4bK2"),
            ("INVITE", "h.example:5061;branch=z9hG4bK1"),
            ("INVITE", "g.example;branch=z9hG4bK1"),
            ("INVITE", "h.example;branch=1"),
            ("INVITE", "h.example"),
        ] {
            assert_ne!(invite, key(method, via), "{method} {via}");
        }
    }

    #[test]
    fn without_the_cookie_the_rest_is_compared() {
        let invite = key("INVITE", "h.example;branch=1");
        assert_eq!(invite, key("ACK", "h.example;branch=1"));
        assert_ne!(invite, key("INVITE", "h.example;branch=2"));
    }

    #[test]
    fn texts_do_not_run_together() {
        let keys = keys();
        assert_ne!(keys.client("ab", "c"), keys.client("a", "bc"));
        assert_eq!(keys.client("ab", "c"), keys.client("ab", "c"));
    }
}
