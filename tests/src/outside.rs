//! rsip reads again what the server has said: a reader that shares nothing with us.
//!
//! It must take every message, and find in it what our own small reader finds. Two exceptions, kept
//! narrow, where rsip 0.4 refuses what RFC 3261 section 25.1 allows: IPv6 references as hosts (the
//! Request-URI is replaced before rsip sees it, a header that holds one is not compared), and
//! methods that it doesn't know (CSeq is not compared).

use std::borrow::Cow;

use rsip::SipMessage;
use rsip::param::Tag;
use rsip::prelude::*;

use crate::message::{Sip, parameter, uri_of};

/// What rsip and our own reader don't agree on; empty when all is well.
#[must_use]
pub fn disagreements(bytes: &[u8]) -> Vec<String> {
    let Some(ours) = Sip::read(bytes) else {
        return vec!["our own reader refuses it".to_owned()];
    };
    let bytes = without_ipv6(&ours, bytes);
    let theirs = match SipMessage::try_from(bytes.as_ref()) {
        Ok(message) => message,
        Err(error) => return vec![format!("rsip refuses it: {error}")],
    };
    let mut compared = start_line(&ours, &theirs);
    compared.push(("body", debug(&ours.body), Ok(debug(theirs.body()))));
    let count = theirs.headers().iter().count();
    compared.push(("headers", debug(&ours.headers.len()), Ok(debug(&count))));
    compared.extend(headers(&ours, &theirs));

    let differ = |(what, ours, theirs): (&str, String, Result<String, rsip::Error>)| match theirs {
        Ok(theirs) if theirs == ours => None,
        Ok(theirs) => Some(format!("{what}: {ours:?} is {theirs:?} to rsip")),
        Err(error) => Some(format!("{what}: {ours:?} is refused by rsip: {error}")),
    };
    compared.into_iter().filter_map(differ).collect()
}

/// The message with a name instead of an IPv6 reference in its Request-URI.
fn without_ipv6<'a>(ours: &Sip, bytes: &'a [u8]) -> Cow<'a, [u8]> {
    match ours.uri() {
        Some(uri) if uri.contains('[') => {
            let start = ours.start.replacen(uri, "sip:ipv6.invalid", 1);
            Cow::Owned([start.as_bytes(), &bytes[ours.start.len()..]].concat())
        }
        _ => Cow::Borrowed(bytes),
    }
}

/// A thing, what we read, what rsip reads.
type Compared = (&'static str, String, Result<String, rsip::Error>);

fn start_line(ours: &Sip, theirs: &SipMessage) -> Vec<Compared> {
    match theirs {
        SipMessage::Request(request) => {
            let method = ours.method().unwrap_or_default().to_owned();
            let uri = ours.uri().unwrap_or_default().to_owned();
            let mut compared = vec![("method", method, Ok(request.method.to_string()))];
            if !uri.contains('[') {
                compared.push(("Request-URI", uri, Ok(request.uri.to_string())));
            }
            compared
        }
        SipMessage::Response(response) => {
            let code = ours.status().unwrap_or_default().to_string();
            vec![("status", code, Ok(response.status_code.code().to_string()))]
        }
    }
}

fn headers(ours: &Sip, theirs: &SipMessage) -> Vec<Compared> {
    let (number, method) = ours.cseq();
    let cseq = theirs.cseq_header().and_then(ToTypedHeader::typed);
    let call_id = theirs
        .call_id_header()
        .map(|header| header.value().to_owned());
    let mut compared = vec![("Call-ID", ours.must("call-id").to_owned(), call_id)];
    if KNOWN_METHODS.contains(&method) {
        let read = cseq.map(|cseq| format!("{} {}", cseq.seq, cseq.method));
        compared.push(("CSeq", format!("{number} {method}"), read));
    }
    let plain = |name: &str| !ours.must(name).contains('[');
    if plain("via") {
        let via = theirs.via_header().and_then(ToTypedHeader::typed);
        let branch = via.map(|via| via.branch().map(ToString::to_string).unwrap_or_default());
        compared.push(("branch", ours.branch().to_owned(), branch));
    }
    if plain("from") {
        let from = theirs.from_header().and_then(ToTypedHeader::typed);
        let read = from.map(|from| address(&from.uri, from.tag().map(Tag::value)));
        compared.push(("From", ours_of(ours.must("from")), read));
    }
    if plain("to") {
        let to = theirs.to_header().and_then(ToTypedHeader::typed);
        let read = to.map(|to| address(&to.uri, to.tag().map(Tag::value)));
        compared.push(("To", ours_of(ours.must("to")), read));
    }
    if plain("contact") && ours.all("contact").count() == 1 {
        let contact = theirs.contact_header().and_then(ToTypedHeader::typed);
        let read = contact.map(|contact| address(&contact.uri, None));
        let uri = uri_of(ours.must("contact")).unwrap_or_default();
        compared.push(("Contact", format!("{uri} -"), read));
    }
    compared
}

/// The methods that rsip knows.
const KNOWN_METHODS: [&str; 14] = [
    "ACK",
    "BYE",
    "CANCEL",
    "INFO",
    "INVITE",
    "MESSAGE",
    "NOTIFY",
    "OPTIONS",
    "PRACK",
    "PUBLISH",
    "REFER",
    "REGISTER",
    "SUBSCRIBE",
    "UPDATE",
];

fn ours_of(value: &str) -> String {
    let uri = uri_of(value).unwrap_or_default();
    format!("{uri} {}", parameter(value, "tag").unwrap_or("-"))
}

fn address(uri: &rsip::Uri, tag: Option<&str>) -> String {
    format!("{uri} {}", tag.unwrap_or("-"))
}

fn debug(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "INVITE sip:bob@192.0.2.20:5060 SIP/2.0\r\n\
        Via: SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKx;rport\r\nMax-Forwards: 70\r\n\
        From: \"Alice\" <sip:alice@192.0.2.1>;tag=1\r\nTo: <sip:bob@192.0.2.20>\r\n\
        Call-ID: a@b\r\nCSeq: 1 INVITE\r\nContact: <sip:192.0.2.1:5060>\r\n\
        Content-Length: 4\r\n\r\nv=0\n";

    #[test]
    fn both_readers_agree_on_a_decent_message() {
        assert_eq!(disagreements(GOOD.as_bytes()), Vec::<String>::new());
    }

    #[test]
    fn what_rsip_cannot_read_is_told() {
        let breaks = [
            ("CSeq: 1 INVITE", "CSeq: one INVITE"),
            (
                "From: \"Alice\" <sip:alice@192.0.2.1>",
                "From: <sip:alice@192.0.2.1",
            ),
            ("Call-ID: a@b\r\n", ""),
        ];
        for (good, bad) in breaks {
            let text = GOOD.replacen(good, bad, 1);
            assert!(
                !disagreements(text.as_bytes()).is_empty(),
                "{good} -> {bad}"
            );
        }
    }

    #[test]
    fn the_exceptions_are_ipv6_and_unknown_methods_and_nothing_else() {
        let text = GOOD.replace("CSeq: 1 INVITE", "CSeq: 1 FOO");
        assert_eq!(disagreements(text.as_bytes()), Vec::<String>::new());
        let text = GOOD.replace("192.0.2.20", "[2001:db8::20]");
        assert_eq!(disagreements(text.as_bytes()), Vec::<String>::new());
        let text = text.replace("CSeq: 1 INVITE", "CSeq: one INVITE");
        assert!(!disagreements(text.as_bytes()).is_empty());
    }
}
