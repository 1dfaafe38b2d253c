//! Laws that hold for any octets: nothing panics, printing is undone by reading, splits do not matter.

mod common;

use proptest::prelude::*;
use proptest::sample::Index;
use sip::framer::{Frame, FrameError, StreamFramer};
use sip::{Framing, Limits, Message, Name, NameAddr, Params, Uri, Via, quote, unquote};

/// Calls every reader; what they say does not matter, only that they come back.
fn read_everything(bytes: &[u8]) {
    for framing in [Framing::Datagram, Framing::Stream] {
        let source = "192.0.2.1:1".parse().expect("an address");
        let message = match Message::parse(bytes, framing, &Limits::default()) {
            Ok(message) => message,
            Err(error) => {
                assert!(error.offset <= bytes.len());
                let answer = sip::refusal(bytes, error.status().unwrap_or(400), source);
                assert!(answer.is_none_or(|a| a.starts_with(b"SIP/2.0 ")));
                continue;
            }
        };
        let _ = (
            message.check_request(),
            message.check_response(),
            message.body(),
        );
        let _ = (
            message.max_forwards(),
            message.expires(),
            message.rack(),
            message.rseq(),
            message.sdp_body(),
        );
        let _ = (message.contact_is_star(), message.contacts().count());
        for name in Name::all() {
            for value in message.values(name) {
                let _ = (
                    Params::parse(value),
                    NameAddr::parse(value).map(|a| a.uri().map(|u| u.lr())),
                );
                let _ = Via::parse(value).map(|v| v.stamped(source));
            }
            let _ = message.seconds(name);
        }
        if let Some(uri) = message.request_uri().and_then(|u| Uri::parse(u).ok()) {
            assert!(uri.equivalent(&uri), "{uri}");
        }
    }
}

/// What a reprint must keep: everything but white space in values and the spelling of known names.
#[derive(PartialEq, Debug)]
struct Essence {
    start: (Option<String>, Option<u16>),
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Essence {
    fn of(message: &Message<&[u8]>) -> Self {
        let squeeze = |value: &str| {
            let words = value
                .split([' ', '\t', '\r', '\n'])
                .filter(|w| !w.is_empty());
            words.collect::<Vec<_>>().join(" ")
        };
        let others = message
            .all_headers()
            .filter(|(_, kind, _)| *kind != Some(Name::ContentLength));
        let headers = others.map(|(written, kind, value)| {
            let name = kind.map_or_else(|| written.to_owned(), |k| k.to_string());
            (name, squeeze(value))
        });
        let start = message.request_uri().or_else(|| message.reason_phrase());
        Self {
            start: (start.map(str::to_owned), message.status()),
            headers: headers.collect(),
            body: message.body().to_vec(),
        }
    }
}

fn valid() -> impl Strategy<Value = Vec<u8>> {
    let header = prop_oneof![
        "[A-Za-z-]{1,12} ?: ?[ -~]{0,40}",
        Just("v: SIP/2.0/TCP [2001:db8::1]:5070;received=2001:db8::2;branch=z9hG4bKa".to_owned()),
        Just(
            "Contact: \"a, \\\"b\\\"\" <sip:a%00b@c;lr?x=y>;q=0.5;expires=60, <tel:+1>".to_owned()
        ),
        Just("Subject: one\n two\n\t three".to_owned()),
        Just("Warnung: \u{fc}ber\u{1f600}".to_owned()),
    ];
    let start = prop_oneof![
        Just("INVITE sip:a:b@c.example:5062;transport=tcp SIP/2.0"),
        Just("SIP/2.0 183 Session Progress"),
        Just("SIP/2.0 100 "),
        Just("NEW! tel:+1-2 SIP/2.0"),
    ];
    (
        start,
        prop::collection::vec(header, 0..12),
        prop::collection::vec(any::<u8>(), 0..60),
    )
        .prop_filter_map(
            "a header of the random kind may be a Content-Length",
            |(start, headers, body)| {
                let lines: String = headers.iter().map(|h| format!("{h}\n")).collect();
                let mut bytes = common::wire(&format!(
                    "{start}\n{lines}Content-Length: {}\n\n",
                    body.len()
                ));
                bytes.extend_from_slice(&body);
                common::datagram(&bytes).is_ok().then_some(bytes)
            },
        )
}

fn drain(framer: &mut StreamFramer, out: &mut Vec<Frame>) -> Option<FrameError> {
    loop {
        match framer.next() {
            Ok(Some(frame)) => out.push(frame),
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_octets_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        read_everything(&bytes);
    }

    #[test]
    fn random_lines_never_panic(text in "(INVITE|SIP/2.0|OPTIONS) [ -~]{0,20} ?SIP/2.0\r\n([a-zA-Z]{1,3}[ \t]?:[ -~\r\n\t\\\\\"<>é]{0,30}\r\n){0,8}\r\n") {
        read_everything(text.as_bytes());
    }

    #[test]
    fn mutated_messages_never_panic(bytes in valid(), changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0..4_u8), 1..6)) {
        let mut bytes = bytes;
        for (at, octet, how) in changes {
            let at = at.index(bytes.len());
            match how {
                0 => bytes[at] = octet,
                1 => bytes.insert(at, octet),
                2 => { bytes.remove(at); }
                _ => bytes.truncate(at + 1),
            }
            if bytes.is_empty() {
                break;
            }
        }
        read_everything(&bytes);
    }

    #[test]
    fn print_is_undone_by_parse(bytes in valid()) {
        let message = common::datagram(&bytes).unwrap();
        let printed = message.to_bytes();
        let again = Message::parse(&printed[..], Framing::Stream, &Limits::default()).unwrap();
        prop_assert_eq!(Essence::of(&message), Essence::of(&again));
        prop_assert_eq!(&again.to_bytes(), &printed);
    }

    #[test]
    fn frames_do_not_depend_on_splits(
        parts in prop::collection::vec(prop_oneof![4 => valid(), 1 => Just(b"\r\n\r\n".to_vec()), 1 => Just(b"\r\n".to_vec()), 1 => prop::collection::vec(any::<u8>(), 0..5)], 1..6),
        cuts in prop::collection::vec(any::<Index>(), 0..12),
    ) {
        let stream = parts.concat();
        let mut whole = StreamFramer::new(Limits::default());
        whole.push(&stream);
        let mut expected = Vec::new();
        let expected_error = drain(&mut whole, &mut expected);

        let mut cuts: Vec<_> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.extend([0, stream.len()]);
        cuts.sort_unstable();
        let mut framer = StreamFramer::new(Limits::default());
        let (mut frames, mut error) = (Vec::new(), None);
        for pair in cuts.windows(2) {
            framer.push(&stream[pair[0]..pair[1]]);
            error = drain(&mut framer, &mut frames).or(error);
        }
        prop_assert_eq!(frames, expected);
        prop_assert_eq!(error, expected_error);
    }

    /// Framer and parser must see one Content-Length, or a peer could hide a message in another's body.
    #[test]
    fn framer_and_parser_agree_on_the_body(bytes in valid(), changes in prop::collection::vec((any::<Index>(), "[\r\n :lL05]"), 0..4)) {
        let mut bytes = bytes;
        for (at, octet) in changes {
            let at = at.index(bytes.len());
            bytes.insert(at, octet.as_bytes()[0]);
        }
        let mut framer = StreamFramer::new(Limits::default());
        framer.push(&bytes);
        let mut frames = Vec::new();
        drain(&mut framer, &mut frames);
        for frame in frames {
            let Frame::Message(octets) = frame else { continue };
            if let Ok(message) = Message::parse(&octets[..], Framing::Stream, &Limits::default()) {
                prop_assert!(octets.ends_with(message.body()));
                let head = &octets[..octets.len() - message.body().len()];
                prop_assert!(head.ends_with(b"\n\r\n") || head.ends_with(b"\n\n"));
            }
        }
    }

    #[test]
    fn quoting_is_undone(text in "[^\r\n]{0,30}") {
        let quoted = quote(&text);
        prop_assert_eq!(unquote(&quoted), &text[..]);
        let address = format!("{quoted} <sip:a@b>;tag=x");
        let read = NameAddr::parse(&address).unwrap();
        prop_assert_eq!(read.display.as_deref().unwrap_or(""), &text[..]);
    }

    #[test]
    fn user_escaping_is_undone(text in "\\PC{1,20}") {
        let uri = format!("sip:{}@a.example", sip::uri::encode_user(&text));
        let decoded = Uri::parse(&uri).unwrap().user_decoded();
        prop_assert_eq!(decoded.as_deref(), Some(&text[..]));
    }
}
