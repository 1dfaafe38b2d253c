//! The answer to a request that could not be read as a message.
//!
//! RFC 3261, 8.2.6.2 and 8.2.7. A datagram that fails [`Message::parse`](crate::Message::parse) or its check still has a
//! sender waiting. This looks for the five fields that a response copies with the most forgiving of readers and
//! answers from them alone, keeping nothing. The tag is made of the request, so that a repeat gets the same.

use core::net::SocketAddr;
use std::borrow::Cow;

use crate::error::HeaderErrorKind;
use crate::index::looks_like_request;
use crate::lex::{self, List};
use crate::{Name, NameAddr, Via, Writer};

/// Vias that are copied into a refusal at most; a request with more is not answered.
const MAX_VIAS: usize = 128;

/// A stateless answer to octets that began like a request; `None` when they did not, when they are an ACK, or when no
/// Via can be read, because then nobody is known to wait.
///
/// The topmost Via is stamped with `source` as [`Via::stamped`] does. Fields the request lacks are left out.
#[must_use]
pub fn refusal(bytes: &[u8], status: u16, source: SocketAddr) -> Option<Vec<u8>> {
    let begin = bytes.iter().position(|b| !matches!(b, b'\r' | b'\n'))?;
    if !looks_like_request(&bytes[begin..]) {
        return None;
    }
    let found = Found::read(&bytes[begin..]);
    let mut vias = found
        .vias
        .iter()
        .flat_map(|value| List::new(value, b',', true));
    let top = vias.next()?;
    let stamped = Via::parse(top)
        .or_else(|_| first_words(top))
        .ok()?
        .stamped(source);
    let mut writer = Writer::response(status, None).header(Name::Via, stamped);
    vias.for_each(|via| writer.push(Name::Via, via));
    for (name, value) in &found.others {
        match name {
            Name::To if !has_tag(value) => writer.push(*name, tagged(value, &found)),
            _ => writer.push(*name, value),
        }
    }
    Some(writer.finish())
}

/// A Via with its broken parameters cut off.
fn first_words(text: &str) -> Result<Via<'_>, HeaderErrorKind> {
    Via::parse(text.split(';').next().unwrap_or(text))
}

fn has_tag(to: &str) -> bool {
    NameAddr::parse(to).map_or_else(|_| to.contains(";tag"), |to| to.tag().is_some())
}

fn tagged(to: &str, found: &Found<'_>) -> String {
    // FNV-1a over what identifies the transaction; it only has to be the same for a repeat.
    let texts = found
        .vias
        .iter()
        .chain(found.others.iter().map(|(_, value)| value));
    let hash = texts
        .flat_map(|text| text.bytes())
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, b| {
            (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
        });
    format!("{to};tag={hash:016x}")
}

/// What a response copies.
#[derive(Default)]
struct Found<'a> {
    vias: Vec<Cow<'a, str>>,
    others: Vec<(Name, Cow<'a, str>)>,
}

impl<'a> Found<'a> {
    /// Reads header lines until the empty one, whatever their line ends; of a repeated field the first counts.
    fn read(bytes: &'a [u8]) -> Self {
        let mut found = Self::default();
        let mut rest = bytes;
        while let Some((line, next)) = lex::cut_line(rest) {
            rest = next;
            if lex::trim_bytes(line).is_empty() {
                break;
            }
            let Some(colon) = line.iter().position(|&b| b == b':') else {
                continue;
            };
            let Some(name) = Name::from_bytes(lex::trim_bytes(&line[..colon])) else {
                continue;
            };
            let value = String::from_utf8_lossy(lex::trim_bytes(&line[colon + 1..]));
            match name {
                Name::Via if found.vias.len() < MAX_VIAS => found.vias.push(value),
                Name::From | Name::To | Name::CallId | Name::CSeq
                    if !found.others.iter().any(|(seen, _)| *seen == name) =>
                {
                    found.others.push((name, value));
                }
                _ => {}
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Framing, Limits, Message};

    fn source() -> SocketAddr {
        "192.0.2.7:5090".parse().unwrap()
    }

    #[test]
    fn answers_what_parse_refused() {
        let bytes = b"OPTIONS  sip:a@b SIP/2.0\r\nVia: SIP/2.0/UDP c;rport;branch=z9hG4bK1, SIP/2.0/TCP d\r\nt: <sip:vintage@b>\nFrom: \xff <sip:c@d>;tag=1\r\ni: x\r\nCSeq: 1\r\n OPTIONS\r\n\r\n";
        let error = Message::parse(bytes, Framing::Datagram, &Limits::default()).unwrap_err();
        let answer = refusal(bytes, error.status().unwrap(), source()).unwrap();
        let read = Message::parse(&answer, Framing::Stream, &Limits::default()).unwrap();
        assert_eq!(read.status(), Some(400));
        read.check_response().unwrap();
        assert_eq!(read.top_via().unwrap().rport(), Some(Some(5090)));
        assert_eq!(read.vias().count(), 2);
        assert_eq!(read.cseq().unwrap().number, 1);
        assert!(read.to().unwrap().tag().is_some());
        assert_eq!(refusal(bytes, 400, source()), Some(answer));
    }

    #[test]
    fn is_silent_where_nobody_waits() {
        for bytes in [
            &b""[..],
            b"\r\n\r\n",
            b"SIP/2.0 200 OK\r\nVia: SIP/2.0/UDP a\r\n\r\n",
            b"ACK sip:a SIP/2.0\r\nVia: SIP/2.0/UDP a\r\n\r\n",
            b"OPTIONS sip:a SIP/2.0\r\nCSeq: 1 OPTIONS\r\n\r\n",
            b"OPTIONS sip:a SIP/2.0\r\nVia: nonsense\r\n\r\n",
            b"GET / HTTP/1.1\r\nVia: SIP/2.0/UDP a\r\n\r\n",
            b"\0\0\0\0",
        ] {
            assert_eq!(refusal(bytes, 400, source()), None, "{bytes:?}");
        }
    }

    #[test]
    fn broken_via_parameters_are_cut_off() {
        let answer = refusal(
            b"OPTIONS sip:a SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.7;;,;,,\r\n\r\n",
            400,
            source(),
        );
        assert!(
            answer
                .unwrap()
                .starts_with(b"SIP/2.0 400 Bad Request\r\nVia: SIP/2.0/UDP 192.0.2.7\r\n")
        );
    }
}
