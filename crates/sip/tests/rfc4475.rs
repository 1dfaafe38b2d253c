//! The rules that RFC 4475 exercises, each with a message of our own, named by the RFC's section.
//!
//! What becomes of the RFC's own files stands in `golden.rs`.

mod common;

use common::{Verdict, altered, datagram, judge, request, wire};
use sip::uri::{decode, encode_user};
use sip::{
    Framing, HeaderError, HeaderErrorKind, Host, Limits, Message, Method, Name, ParseErrorKind,
    Refusal, Scheme, Uri, unfold,
};

fn header_fault(name: Name, kind: HeaderErrorKind) -> Verdict {
    Verdict::Refused(Refusal::Header(HeaderError { name, kind }), 400)
}

fn malformed(name: Name) -> Verdict {
    header_fault(name, HeaderErrorKind::Malformed)
}

fn unreadable(kind: ParseErrorKind) -> Verdict {
    Verdict::Unreadable(kind, Some(kind.status()))
}

#[test]
fn rfc4475_3_1_1_1_short_tortuous() {
    let bytes = wire(
        "INVITE sip:hall@rooms.example;odd SIP/2.0\n\
         tO\t:\n <sip:hall@rooms.example> ;  TAG\n =\n 77\n\
         f  :\"Back\\\\slash \\\"and\\\" quote\"\n <sip:me@rooms.example>\n ;\n tag = q1\n\
         MAX-forwards: 0031\n\
         i:one@two\n\
         cseq:\n 0042\n  INVITE\n\
         VIA : SIP /\n 2.0 / UDP\n  192.0.2.77 ; branch=old\n\
         s:\n\
         Queue-Hint:  first half\n  second half\n\
         Punctuated: ,;;,;,\n\
         route:\n <sip:edge.example;lr;x=y;z>\n\
         v: SIP/2.0/TCP  pole.example  ;\n  branch = z9hG4bKpole , SIP / 2.0/UDP 192.0.2.78;branch=\n z9hG4bKlast\n\
         m:\"Q \\\"\\\" Q\" <sip:me@rooms.example> ; fresh =\n news ; other ; q = 0.25\n\
         L   : 5\n\n\
         v=0\n",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(message.to().unwrap().tag(), Some("77"));
    assert_eq!(
        message.from().unwrap().display.as_deref(),
        Some("Back\\slash \"and\" quote")
    );
    assert_eq!(message.from().unwrap().tag(), Some("q1"));
    assert_eq!(message.max_forwards(), Ok(Some(31)));
    assert_eq!(
        message.cseq().map(|c| (c.number, c.method)),
        Ok((42, Method::Invite))
    );
    let vias: Vec<_> = message.vias().map(Result::unwrap).collect();
    assert_eq!(
        vias.iter().map(|v| v.transport).collect::<Vec<_>>(),
        ["UDP", "TCP", "UDP"]
    );
    assert_eq!(
        vias.iter().map(sip::Via::branch).collect::<Vec<_>>(),
        [Some("old"), Some("z9hG4bKpole"), Some("z9hG4bKlast")]
    );
    assert_eq!(message.header(Name::Subject), Some(""));
    assert_eq!(
        message.header_named("QUEUE-hint").map(unfold).as_deref(),
        Some("first half second half")
    );
    assert_eq!(message.header_named("punctuated"), Some(",;;,;,"));
    let contact = message.contacts().next().unwrap().unwrap();
    assert_eq!(
        (contact.display.as_deref(), contact.q_milli()),
        (Some("Q \"\" Q"), Some(250))
    );
    assert_eq!(contact.params.value("fresh"), Some("news"));
    assert_eq!(message.body(), b"v=0\r\n");
}

#[test]
fn rfc4475_3_1_1_2_wide_range_of_valid_characters() {
    let bytes = wire(
        "-Odd!Method_1*+`.%'~ sip:u~(s)&e'r+$/x?,/;;*:&p=w,!~.()@odd.example SIP/2.0\n\
         Via: SIP/2.0/TCP odd.example;branch=z9hG4bK-.!%2a*_+`'~\n\
         To: \"nul \\\0 bel \\\x07 del \\\x7f\" <sip:u/;;*@odd.example>\n\
         From: a~` b'+_ c*%!.- <sip:plain@odd.example>;p''~+*_!.-%=\"\u{436}\u{1f514}\";tag=_t~`+*%!-.\n\
         Call-ID: w%Z!.*_+'@w`~)(><:\\/\"][?}{\n\
         CSeq: 5 -Odd!Method_1*+`.%'~\n\
         Max-Forwards: 255\n\
         odd-!.%*+_`'~: \u{4e16}\u{754c}\n\
         Content-Length: 0\n\n",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(
        message.method(),
        Some(Method::Other("-Odd!Method_1*+`.%'~"))
    );
    let uri = Uri::parse(message.request_uri().unwrap()).unwrap();
    assert_eq!(
        (uri.user(), uri.password()),
        (Some("u~(s)&e'r+$/x?,/;;*"), Some("&p=w,!~.()"))
    );
    assert_eq!(
        message.to().unwrap().display.as_deref(),
        Some("nul \0 bel \x07 del \x7f")
    );
    let from = message.from().unwrap();
    assert_eq!(from.display.as_deref(), Some("a~` b'+_ c*%!.-"));
    assert_eq!(
        from.params.unquoted("P''~+*_!.-%").as_deref(),
        Some("\u{436}\u{1f514}")
    );
    assert_eq!(message.call_id(), Ok("w%Z!.*_+'@w`~)(><:\\/\"][?}{"));
    assert_eq!(
        message.header_named("ODD-!.%*+_`'~"),
        Some("\u{4e16}\u{754c}")
    );
}

#[test]
fn rfc4475_3_1_1_3_percent_escapes_in_uris() {
    let bytes = request("Contact:\n <sip:t%61xi@rank.example;%6C%72;c%6flour=r%65d%25%30>\n");
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    let contact = message.contacts().next().unwrap().unwrap();
    let uri = contact.uri().unwrap();
    assert_eq!(uri.user_decoded().as_deref(), Some("taxi"));
    assert!(uri.lr());
    assert_eq!(
        uri.param("colour").flatten().map(decode).as_deref(),
        Some("red%0")
    );
    assert!(uri.equivalent(&Uri::parse("sip:taxi@RANK.example;lr;colour=red%250").unwrap()));
    let user = Uri::parse("sip:sips%3Aann%40home.example@rank.example").unwrap();
    assert_eq!(
        user.user_decoded().as_deref(),
        Some("sips:ann@home.example")
    );
    assert_eq!(user.host(), Some(Host::Name("rank.example")));
    assert_eq!(
        encode_user("sips:ann@home.example"),
        "sips%3Aann%40home.example"
    );
}

#[test]
fn rfc4475_3_1_1_4_escaped_nulls() {
    let bytes = altered("sip:ann@", "sip:an%00n@");
    assert_eq!(judge(&bytes), Verdict::Taken);
    let message = datagram(&bytes).unwrap();
    let from = message.from().unwrap();
    assert_eq!(from.uri().unwrap().user(), Some("an%00n"));
    assert_eq!(from.uri().unwrap().user_decoded().as_deref(), Some("an\0n"));
    let (one, two) = (
        Uri::parse("sip:%00@a").unwrap(),
        Uri::parse("sip:%00%00@a").unwrap(),
    );
    assert!(!one.equivalent(&two));
}

#[test]
fn rfc4475_3_1_1_5_percent_that_is_no_escape() {
    let bytes = wire(
        "O%50TIONS sip:x.example SIP/2.0\n\
         Via: SIP/2.0/UDP y.example;branch=z9hG4bK9%zz\n\
         To: \"%Q%41\" <sip:x@x.example>\nFrom: \"%Q%41\" <sip:x@x.example>;tag=1\nCall-ID: a%41\n\
         CSeq: 1 O%50TIONS\nContact: <sip:one@x.example>\nC%6Fntact: <sip:two@x.example>\n\
         Contact: <sip:three@x.example>\nl: 0\n\n",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(message.method(), Some(Method::Other("O%50TIONS")));
    assert_eq!(message.to().unwrap().display.as_deref(), Some("%Q%41"));
    assert_eq!(message.contacts().count(), 2);
    assert_eq!(
        message.header_named("c%6fntact"),
        Some("<sip:two@x.example>")
    );
    assert_eq!(message.top_via().unwrap().branch(), Some("z9hG4bK9%zz"));
}

#[test]
fn rfc4475_3_1_1_6_no_space_before_angle() {
    let bytes = altered("From: <", "From: Ann of X<");
    assert_eq!(judge(&bytes), Verdict::Taken);
    assert_eq!(
        datagram(&bytes).unwrap().from().unwrap().display.as_deref(),
        Some("Ann of X")
    );
}

#[test]
fn rfc4475_3_1_1_7_long_values() {
    let long = "tremendously".repeat(40);
    let vias: String = (0..60)
        .map(|n| {
            format!(
                "{}: SIP/2.0/TCP hop{n}.example\n",
                ["Via", "v ", "V", "vIA  "][n % 4]
            )
        })
        .collect();
    let bytes = wire(&format!(
        "INVITE sip:{long}@a.example;{long}={long} SIP/2.0\n{vias}\
         To: \"{long}\"<sip:{long}@a.example>\nf: sip:{long}@b.example;tag={long};{long}=\"{long}\"\n\
         Call-ID: {long}\nCSeq: 3882340 INVITE\n{long}: {long}; {long}={long}\nl: 0\n\n"
    ));
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(message.vias().count(), 60);
    assert_eq!(message.from().unwrap().tag(), Some(long.as_str()));
    assert!(message.header_named(&long).unwrap().starts_with(&long));
}

#[test]
fn rfc4475_3_1_1_8_extra_octets_in_a_datagram_are_dropped() {
    let mut bytes = request("");
    bytes.extend_from_slice(&request(""));
    let message = datagram(&bytes).unwrap();
    assert_eq!(
        (message.check_request(), message.body()),
        (Ok(()), &b""[..])
    );
    let mut bytes = String::from_utf8(request(""))
        .unwrap()
        .replace("Content-Length: 0", "Content-Length: 3")
        .into_bytes();
    bytes.extend_from_slice(b"abcdef");
    assert_eq!(datagram(&bytes).unwrap().body(), b"abc");
}

#[test]
fn rfc4475_3_1_1_9_semicolons_in_the_user_part() {
    let uri = Uri::parse("sip:room;floor=3%40north@hotel.example;lr").unwrap();
    assert_eq!(uri.user_decoded().as_deref(), Some("room;floor=3@north"));
    assert_eq!(
        (uri.host(), uri.lr()),
        (Some(Host::Name("hotel.example")), true)
    );
    assert_eq!(
        judge(&altered(
            "sip:desk@tandem.example SIP",
            "sip:desk;x=y%40z@tandem.example SIP"
        )),
        Verdict::Taken
    );
}

#[test]
fn rfc4475_3_1_1_10_unknown_transports() {
    let bytes = altered(
        "From:",
        "Via: SIP/2.0/SCTP a.example;branch=z9hG4bKa\r\nv: SIP/2.0/PIGEON b.example\r\nFrom:",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    let transports: Vec<_> = message
        .vias()
        .map(|v| v.unwrap().transport.to_owned())
        .collect();
    assert_eq!(transports, ["UDP", "SCTP", "PIGEON"]);
}

#[test]
fn rfc4475_3_1_1_11_multipart_with_binary() {
    let head = "MESSAGE sip:desk@tandem.example SIP/2.0\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bKm\n\
                From: <sip:a@b>;tag=1\nTo: <sip:c@d>\nCall-ID: m\nCSeq: 1 MESSAGE\n\
                Content-Type: multipart/mixed;boundary=\"--cut here\"\n";
    let mut body = wire("----cut here\nContent-Type: application/octet-stream\n\n");
    body.extend((0..=255).chain([b'\r', b'\n', b'\n', 0]));
    body.extend(wire(
        "\n----cut here\nc: application/sdp\n\nv=0\n\n----cut here--\n",
    ));
    let mut bytes = wire(&format!("{head}Content-Length: {}\n\n", body.len()));
    bytes.extend_from_slice(&body);
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(message.body(), body);
    assert_eq!(message.sdp_body(), Some(&b"v=0\r\n"[..]));
    let content_type = message.content_type().unwrap();
    let first = sip::multipart::parts(&content_type, message.body())
        .next()
        .unwrap();
    assert_eq!(first.body.len(), 260);
    assert!(
        first
            .content_type()
            .unwrap()
            .is("application", "octet-stream")
    );
}

fn response(start: &str) -> Vec<u8> {
    wire(&format!(
        "{start}\nVia: SIP/2.0/UDP 192.0.2.5;branch=z9hG4bKr\nFrom: <sip:a@b>;tag=1\nTo: <sip:c@d>;tag=2\n\
         Call-ID: r\nCSeq: 35 INVITE\nContent-Length: 0\n\n"
    ))
}

#[test]
fn rfc4475_3_1_1_12_unusual_reason_phrase() {
    let bytes = response("SIP/2.0 200 = 10**2 * 2 \u{434}\u{430} \u{2713}");
    let message = datagram(&bytes).unwrap();
    assert_eq!(
        (message.status(), message.check_response()),
        (Some(200), Ok(()))
    );
    assert_eq!(
        message.reason_phrase(),
        Some("= 10**2 * 2 \u{434}\u{430} \u{2713}")
    );
}

#[test]
fn rfc4475_3_1_1_13_empty_reason_phrase() {
    for start in ["SIP/2.0 100 ", "SIP/2.0 100", "sip/2.0 100 "] {
        let bytes = response(start);
        let message = datagram(&bytes).unwrap();
        assert_eq!(
            (message.status(), message.reason_phrase()),
            (Some(100), Some("")),
            "{start}"
        );
        assert_eq!(message.method(), None);
    }
}

#[test]
fn rfc4475_3_1_2_1_extraneous_separators() {
    assert_eq!(
        judge(&altered(";branch=z9hG4bKq7", ";;,;,,")),
        malformed(Name::Via)
    );
    assert_eq!(
        judge(&altered(";branch=z9hG4bKq7", ";branch=z9hG4bKq7,")),
        malformed(Name::Via)
    );
    assert_eq!(
        judge(&altered(
            "CSeq",
            "Contact: \"Jo\" <sip:jo@x.example>;;;\r\nCSeq"
        )),
        malformed(Name::Contact)
    );
}

#[test]
fn rfc4475_3_1_2_2_content_length_larger_than_message() {
    for length in ["1", "9999", "4294967296", "99999999999999999999999999"] {
        let bytes = altered("Content-Length: 0", &format!("Content-Length: {length}"));
        assert_eq!(
            judge(&bytes),
            unreadable(ParseErrorKind::ShortBody),
            "{length}"
        );
    }
}

#[test]
fn rfc4475_3_1_2_3_negative_content_length() {
    for length in ["-999", "+0", "0x0", "", "0 0", "0,0", "\u{664}"] {
        let bytes = altered("Content-Length: 0", &format!("Content-Length: {length}"));
        assert_eq!(
            judge(&bytes),
            unreadable(ParseErrorKind::ContentLength),
            "{length}"
        );
    }
}

#[test]
fn rfc4475_3_1_2_4_overlarge_request_scalars() {
    let out_of_range = |name| header_fault(name, HeaderErrorKind::OutOfRange);
    assert_eq!(
        judge(&altered("CSeq: 7 ", "CSeq: 2147483648 ")),
        out_of_range(Name::CSeq)
    );
    assert_eq!(
        judge(&altered("CSeq: 7 ", "CSeq: 36893488147419103232 ")),
        out_of_range(Name::CSeq)
    );
    assert_eq!(
        judge(&altered("CSeq: 7 ", "CSeq: 2147483647 ")),
        Verdict::Taken
    );
    assert_eq!(
        judge(&altered("CSeq", "Max-Forwards: 256\r\nCSeq")),
        out_of_range(Name::MaxForwards)
    );
    assert_eq!(
        judge(&altered("CSeq", "Max-Forwards: many\r\nCSeq")),
        malformed(Name::MaxForwards)
    );
    assert_eq!(
        judge(&altered("CSeq", "Expires: soon\r\nCSeq")),
        malformed(Name::Expires)
    );
    let bytes = altered(
        "CSeq",
        &format!(
            "Expires: 1{}\r\nContact: <sip:a@b>;expires=280297596632815\r\nCSeq",
            "0".repeat(100)
        ),
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(
        (message.check_request(), message.expires()),
        (Ok(()), Ok(Some(u32::MAX)))
    );
    assert_eq!(
        message.contacts().next().unwrap().unwrap().expires(),
        Some(u32::MAX)
    );
}

#[test]
fn rfc4475_3_1_2_5_overlarge_response_scalars() {
    let text = String::from_utf8(response("SIP/2.0 503 Busy")).unwrap();
    let bytes = text.replace(
        "CSeq: 35",
        "Retry-After: 949302838503028349304023988\r\nCSeq: 9292394834772304023312",
    );
    let fault = HeaderError {
        name: Name::CSeq,
        kind: HeaderErrorKind::OutOfRange,
    };
    assert_eq!(judge(bytes.as_bytes()), Verdict::Dropped(fault));
    let bytes = text.replace(
        "CSeq",
        "Retry-After: 949302838503028349304023988 (soon);duration=9\r\nCSeq",
    );
    let message = datagram(bytes.as_bytes()).unwrap();
    assert_eq!(message.seconds(Name::RetryAfter), Ok(Some(u32::MAX)));
}

#[test]
fn rfc4475_3_1_2_6_unterminated_quote() {
    assert_eq!(
        judge(&altered("To: <", "To: \"Mr. X <")),
        malformed(Name::To)
    );
    assert_eq!(
        judge(&altered("From: <", "From: \"Mr. X\\\" <")),
        malformed(Name::From)
    );
}

#[test]
fn rfc4475_3_1_2_7_angles_round_the_request_uri() {
    assert_eq!(
        judge(&altered(
            "sip:desk@tandem.example SIP",
            "<sip:desk@tandem.example> SIP"
        )),
        unreadable(ParseErrorKind::StartLine)
    );
}

#[test]
fn rfc4475_3_1_2_8_white_space_in_the_request_uri() {
    for uri in [
        "sip:desk@tandem.example; lr",
        "sip:desk @tandem.example",
        "sip:desk@tandem.example;\tlr",
    ] {
        let bytes = altered("sip:desk@tandem.example SIP", &format!("{uri} SIP"));
        assert_eq!(
            judge(&bytes),
            unreadable(ParseErrorKind::StartLine),
            "{uri}"
        );
    }
}

#[test]
fn rfc4475_3_1_2_9_multiple_spaces_in_the_request_line() {
    assert_eq!(
        judge(&altered("OPTIONS sip", "OPTIONS  sip")),
        unreadable(ParseErrorKind::StartLine)
    );
    assert_eq!(
        judge(&altered(" SIP/2.0", "  SIP/2.0")),
        unreadable(ParseErrorKind::StartLine)
    );
    let tab = judge(&altered("OPTIONS sip", "OPTIONS\tsip"));
    assert_eq!(tab, Verdict::Unreadable(ParseErrorKind::StartLine, None));
}

#[test]
fn rfc4475_3_1_2_10_spaces_after_the_request_line() {
    assert_eq!(
        judge(&altered("SIP/2.0\r\nVia", "SIP/2.0  \r\nVia")),
        unreadable(ParseErrorKind::StartLine)
    );
}

#[test]
fn rfc4475_3_1_2_11_escaped_headers_in_the_request_uri() {
    let bytes = altered(
        "sip:desk@tandem.example SIP",
        "sip:desk@tandem.example?Route=%3Csip:x.example%3E SIP",
    );
    assert_eq!(judge(&bytes), Verdict::Refused(Refusal::RequestUri, 400));
}

#[test]
fn rfc4475_3_1_2_12_odd_date_is_nobodys_business() {
    let bytes = altered("CSeq", "Date: Fri, 01 Jan 2010 16:00:00 EST\r\nCSeq");
    assert_eq!(judge(&bytes), Verdict::Taken);
    assert_eq!(
        datagram(&bytes).unwrap().header(Name::Date),
        Some("Fri, 01 Jan 2010 16:00:00 EST")
    );
}

#[test]
fn rfc4475_3_1_2_13_uri_with_headers_needs_angles() {
    assert_eq!(
        judge(&altered(
            "CSeq",
            "m: sip:ann@x.example?Route=%3Csip:y%3E\r\nCSeq"
        )),
        malformed(Name::Contact)
    );
    assert_eq!(
        judge(&altered("CSeq", "m: sip:ann,bob@x.example\r\nCSeq")),
        malformed(Name::Contact)
    );
    assert_eq!(
        judge(&altered(
            "CSeq",
            "m: <sip:ann,bob@x.example?Route=%3Csip:y%3E>\r\nCSeq"
        )),
        Verdict::Taken
    );
}

#[test]
fn rfc4475_3_1_2_14_spaces_inside_the_angles() {
    assert_eq!(
        judge(&altered(
            "To: <sip:desk@tandem.example>",
            "To: \"D, E\" < sip:desk@tandem.example >"
        )),
        malformed(Name::To)
    );
}

#[test]
fn rfc4475_3_1_2_15_comma_in_a_bare_display_name() {
    assert_eq!(
        judge(&altered("From: <", "From: Bell, Ann <")),
        malformed(Name::From)
    );
    assert_eq!(
        judge(&altered("From: <", "From: \"Bell, Ann\" <")),
        Verdict::Taken
    );
}

#[test]
fn rfc4475_3_1_2_16_unknown_version() {
    for version in ["SIP/7.0", "SIP/2.1", "SIP/1.0", "sip/3.0", "SIP/20.0"] {
        let bytes = altered(" SIP/2.0\r", &format!(" {version}\r"));
        assert_eq!(
            judge(&bytes),
            Verdict::Unreadable(ParseErrorKind::Version, Some(505)),
            "{version}"
        );
    }
    for version in ["SIP/2", "SIP/2.0.0", "SIP/x.y", "SIP/", "SIP/2."] {
        let bytes = altered(" SIP/2.0\r", &format!(" {version}\r"));
        assert_eq!(
            judge(&bytes),
            unreadable(ParseErrorKind::StartLine),
            "{version}"
        );
    }
    assert_eq!(judge(&altered(" SIP/2.0\r", " sip/2.0\r")), Verdict::Taken);
    let old_response = response("SIP/7.0 200 OK");
    assert_eq!(
        judge(&old_response),
        Verdict::Unreadable(ParseErrorKind::Version, None)
    );
}

#[test]
fn rfc4475_3_1_2_17_method_mismatch() {
    assert_eq!(
        judge(&altered("7 OPTIONS", "7 INVITE")),
        Verdict::Refused(Refusal::MethodMismatch, 400)
    );
    assert_eq!(
        judge(&altered("7 OPTIONS", "7 options")),
        Verdict::Refused(Refusal::MethodMismatch, 400)
    );
}

#[test]
fn rfc4475_3_1_2_18_unknown_method_mismatch() {
    assert_eq!(
        judge(&altered("OPTIONS sip", "BREW sip")),
        Verdict::Refused(Refusal::MethodMismatch, 400)
    );
    let text = String::from_utf8(request(""))
        .unwrap()
        .replace("OPTIONS", "BREW");
    assert_eq!(judge(text.as_bytes()), Verdict::Taken);
}

#[test]
fn rfc4475_3_1_2_19_overlarge_status() {
    for code in ["4294967301", "700", "099", "99", "0200", "65736"] {
        let bytes = response(&format!("SIP/2.0 {code} x"));
        assert_eq!(
            judge(&bytes),
            Verdict::Unreadable(ParseErrorKind::StatusCode, None),
            "{code}"
        );
    }
    assert_eq!(
        judge(&response("SIP/2.0 -200 x")),
        Verdict::Unreadable(ParseErrorKind::StartLine, None)
    );
}

#[test]
fn rfc4475_3_2_1_cookie_without_a_branch() {
    let bytes = altered("z9hG4bKq7", "z9hG4bK");
    assert_eq!(judge(&bytes), Verdict::Taken);
    let message = datagram(&bytes).unwrap();
    let via = message.top_via().unwrap();
    assert_eq!((via.branch(), via.magic_branch()), (Some("z9hG4bK"), None));
}

#[test]
fn rfc4475_3_3_1_missing_required_headers() {
    let missing = |name| header_fault(name, HeaderErrorKind::Missing);
    for (line, name) in [
        (
            "Via: SIP/2.0/UDP 198.51.100.4:5062;branch=z9hG4bKq7\r\n",
            Name::Via,
        ),
        ("From: <sip:ann@tandem.example>;tag=f1\r\n", Name::From),
        ("To: <sip:desk@tandem.example>\r\n", Name::To),
        ("Call-ID: c1@198.51.100.4\r\n", Name::CallId),
        ("CSeq: 7 OPTIONS\r\n", Name::CSeq),
    ] {
        assert_eq!(judge(&altered(line, "")), missing(name));
    }
    let no_via = String::from_utf8(response("SIP/2.0 200 OK"))
        .unwrap()
        .replace("Via:", "X-Via:");
    let fault = HeaderError {
        name: Name::Via,
        kind: HeaderErrorKind::Missing,
    };
    assert_eq!(judge(no_via.as_bytes()), Verdict::Dropped(fault));
}

#[test]
fn rfc4475_3_3_2_unknown_scheme() {
    assert_eq!(
        judge(&altered("sip:desk@tandem.example SIP", "quux:whatever SIP")),
        Verdict::Refused(Refusal::Scheme, 416)
    );
    assert_eq!(
        judge(&altered("sip:desk@tandem.example SIP", "tel:+15550100 SIP")),
        Verdict::Taken
    );
}

#[test]
fn rfc4475_3_3_3_atypical_scheme() {
    assert_eq!(
        judge(&altered(
            "sip:desk@tandem.example SIP",
            "http://tandem.example:80/x SIP"
        )),
        Verdict::Refused(Refusal::Scheme, 416)
    );
}

#[test]
fn rfc4475_3_3_4_unknown_schemes_in_headers() {
    let bytes = altered(
        "To: <sip:desk@tandem.example>",
        "To: isbn:2983792873\r\nContact: <name:Ann>",
    );
    assert_eq!(judge(&bytes), Verdict::Taken);
    let message = datagram(&bytes).unwrap();
    assert_eq!(
        message.to().unwrap().uri().unwrap().scheme(),
        Scheme::Other("isbn")
    );
}

#[test]
fn rfc4475_3_3_5_require_is_listed() {
    let bytes = altered(
        "CSeq",
        "Require: warp, , weft\r\nProxy-Require: woof\r\nrequire: selvage\r\nCSeq",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(
        message.values(Name::Require).collect::<Vec<_>>(),
        ["warp", "", "weft", "selvage"]
    );
    assert!(message.lists(Name::Require, "WEFT") && !message.lists(Name::Require, "woof"));
}

#[test]
fn rfc4475_3_3_6_unknown_content_type() {
    let bytes = altered("CSeq", "c: application/quux;x=y\r\nCSeq");
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert!(message.content_type().unwrap().is("Application", "QUUX"));
    assert_eq!(message.sdp_body(), None);
}

#[test]
fn rfc4475_3_3_7_unknown_authorization_scheme() {
    let bytes = altered("CSeq", "Authorization: Handshake firm=yes\r\nCSeq");
    assert_eq!(judge(&bytes), Verdict::Taken);
    assert_eq!(
        datagram(&bytes).unwrap().header(Name::Authorization),
        Some("Handshake firm=yes")
    );
}

#[test]
fn rfc4475_3_3_8_repeated_single_headers() {
    let repeated = |name| header_fault(name, HeaderErrorKind::Repeated);
    for (line, name) in [
        ("f: <sip:x@y>;tag=2\r\n", Name::From),
        ("t: <sip:x@y>\r\n", Name::To),
        ("i: other\r\n", Name::CallId),
        ("CSeq: 8 OPTIONS\r\n", Name::CSeq),
        ("Max-Forwards: 1\r\nMax-Forwards: 1\r\n", Name::MaxForwards),
        ("c: a/b\r\nContent-Type: a/c\r\n", Name::ContentType),
    ] {
        assert_eq!(
            judge(&altered("Content-Length", &format!("{line}Content-Length"))),
            repeated(name)
        );
    }
}

#[test]
fn rfc4475_3_3_9_repeated_content_length() {
    for other in ["Content-Length: 5", "l: 0", "CONTENT-LENGTH :\r\n 0"] {
        let bytes = altered("CSeq", &format!("{other}\r\nCSeq"));
        assert_eq!(
            judge(&bytes),
            unreadable(ParseErrorKind::RepeatedContentLength),
            "{other}"
        );
    }
}

#[test]
fn rfc4475_3_3_10_broadcast_via() {
    let text = String::from_utf8(response("SIP/2.0 200 OK")).unwrap();
    let bytes = text.replace(
        "From",
        "Via: SIP/2.0/UDP 255.255.255.255;branch=z9hG4bKb\r\nFrom",
    );
    let message = datagram(bytes.as_bytes()).unwrap();
    assert_eq!(message.check_response(), Ok(()));
    assert_eq!(
        message.vias().nth(1).unwrap().unwrap().host,
        Host::V4([255; 4].into())
    );
}

#[test]
fn rfc4475_3_3_11_max_forwards_of_zero() {
    let bytes = altered("CSeq", "Max-Forwards: 0\r\nCSeq");
    let message = datagram(&bytes).unwrap();
    assert_eq!(
        (message.check_request(), message.max_forwards()),
        (Ok(()), Ok(Some(0)))
    );
}

#[test]
fn rfc4475_3_3_12_bare_contact_parameter_is_the_headers() {
    let bytes = altered("CSeq", "Contact: sip:+15550100@gw.example;odd\r\nCSeq");
    let message = datagram(&bytes).unwrap();
    let contact = message.contacts().next().unwrap().unwrap();
    assert_eq!(
        (contact.uri, contact.params.get("odd")),
        ("sip:+15550100@gw.example", Some(None))
    );
}

#[test]
fn rfc4475_3_3_13_enclosed_contact_parameter_is_the_uris() {
    let bytes = altered("CSeq", "Contact: <sip:+15550100@gw.example;odd>\r\nCSeq");
    let message = datagram(&bytes).unwrap();
    let contact = message.contacts().next().unwrap().unwrap();
    assert!(contact.params.is_empty());
    assert_eq!(contact.uri().unwrap().param("odd"), Some(None));
}

#[test]
fn rfc4475_3_3_14_escaped_header_in_a_contact() {
    let bytes = altered(
        "CSeq",
        "M: <sip:ann@x.example?Route=%3Csip:y.example%3E>\r\nCSeq",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    let contact = message.contacts().next().unwrap().unwrap();
    let headers: Vec<_> = contact
        .uri()
        .unwrap()
        .headers()
        .map(|(n, v)| (n, decode(v)))
        .collect();
    assert_eq!(headers, [("Route", "<sip:y.example>".into())]);
}

#[test]
fn rfc4475_3_3_15_unacceptable_accept() {
    let bytes = altered("CSeq", "Accept: text/nothing\r\nCSeq");
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert!(!message.lists(Name::Accept, "application/sdp"));
}

#[test]
fn rfc4475_3_4_1_rfc2543_request() {
    let bytes = wire(
        "INVITE sip:Bob@old.example SIP/2.0\nVia: SIP/2.0/UDP gw.example\nFrom: <sip:+15550100@gw.example;user=phone>\n\
         Record-Route: <sip:Bob@old.example;maddr=edge.example>\nTo: sip:+15550101@old.example;user=phone\n\
         Call-ID: old\nCSeq: 56 INVITE\nContent-Type: application/sdp\n\nv=0\ns=-\n",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(
        (
            message.from().unwrap().tag(),
            message.top_via().unwrap().branch()
        ),
        (None, None)
    );
    assert_eq!(message.max_forwards(), Ok(None));
    assert_eq!(message.to().unwrap().params.value("user"), Some("phone"));
    assert_eq!(message.sdp_body(), Some(&b"v=0\r\ns=-\r\n"[..]));
    let stream = Message::parse(&bytes[..], Framing::Stream, &Limits::default()).unwrap_err();
    assert_eq!(stream.kind, ParseErrorKind::MissingContentLength);
}
