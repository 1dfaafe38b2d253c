//! Line ends, limits and message borders: datagrams and streams (RFC 3261, 7.5, 18.3 and 25.1; RFC 5626, 4.4.1).

mod common;

use common::{Verdict, altered, datagram, judge, request, wire};
use sip::framer::{Frame, FrameError, StreamFramer};
use sip::{Framing, Limits, Message, Name, ParseErrorKind};

fn frames(framer: &mut StreamFramer) -> Result<Vec<Frame>, FrameError> {
    let mut out = Vec::new();
    while let Some(frame) = framer.next()? {
        out.push(frame);
    }
    Ok(out)
}

fn framed(bytes: &[u8]) -> Result<Vec<Frame>, FrameError> {
    let mut framer = StreamFramer::new(Limits::default());
    framer.push(bytes);
    frames(&mut framer)
}

fn with_body(body: &str) -> Vec<u8> {
    let mut bytes = altered(
        "Content-Length: 0",
        &format!("Content-Length: {}", body.len()),
    );
    bytes.extend_from_slice(body.as_bytes());
    bytes
}

#[test]
fn a_message_without_any_crlf_may_use_lf() {
    let bytes: Vec<u8> = request("Folded: one\n two\n")
        .into_iter()
        .filter(|b| *b != b'\r')
        .collect();
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(message.header_named("folded"), Some("one\n two"));
    assert_eq!(framed(&bytes), Ok(vec![Frame::Message(bytes)]));
}

/// Black-box case 25 d: a reader that takes bare LF for a line end would see another Content-Length.
#[test]
fn bare_lf_hiding_a_second_content_length_is_refused() {
    for hidden in [
        "Subject: x\nContent-Length: 5",
        "Subject: x\rContent-Length: 5",
        "Subject: x\r\r",
    ] {
        let bytes = altered("CSeq", &format!("{hidden}\r\nCSeq"));
        assert_eq!(
            judge(&bytes),
            Verdict::Unreadable(ParseErrorKind::LineEnds, Some(400)),
            "{hidden:?}"
        );
        assert_eq!(
            framed(&bytes),
            Err(FrameError::Head(ParseErrorKind::LineEnds)),
            "{hidden:?}"
        );
    }
    let lf_then_crlf = String::from_utf8(request(""))
        .unwrap()
        .replacen("\r\n", "\n", 1);
    assert_eq!(
        judge(lf_then_crlf.as_bytes()),
        Verdict::Unreadable(ParseErrorKind::LineEnds, Some(400))
    );
    assert_eq!(
        framed(lf_then_crlf.as_bytes()),
        Err(FrameError::Head(ParseErrorKind::LineEnds))
    );
    let lf_at_the_end = String::from_utf8(request(""))
        .unwrap()
        .replace("\r\n\r\n", "\r\n\n");
    assert_eq!(
        judge(lf_at_the_end.as_bytes()),
        Verdict::Unreadable(ParseErrorKind::LineEnds, Some(400))
    );
}

#[test]
fn line_ends_of_the_body_are_its_own() {
    let bytes = with_body("a\nb\r\nc\rd");
    assert_eq!(datagram(&bytes).unwrap().body(), b"a\nb\r\nc\rd");
    assert_eq!(framed(&bytes), Ok(vec![Frame::Message(bytes)]));
}

#[test]
fn malformed_lines_are_refused() {
    let line = |line: &str| judge(&altered("CSeq", &format!("{line}\r\nCSeq")));
    let refused = Verdict::Unreadable(ParseErrorKind::HeaderLine, Some(400));
    for bad in [
        "no colon here",
        ": no name",
        "Two words: x",
        "N\u{e4}me: x",
        "\"q\": x",
    ] {
        assert_eq!(line(bad), refused, "{bad}");
    }
    for fine in [
        "Name:value",
        "Name \t :value",
        "Name:",
        "Name:\r\n \r\n\tvalue",
        "n: :",
    ] {
        assert_eq!(line(fine), Verdict::Taken, "{fine}");
    }
    let folded_first = altered("Via", " Via");
    assert_eq!(judge(&folded_first), refused);
    let latin1 = [
        b"OPTIONS sip:a SIP/2.0\r\nSubject: ".as_slice(),
        b"\xe9\r\n\r\n",
    ]
    .concat();
    assert_eq!(
        judge(&latin1),
        Verdict::Unreadable(ParseErrorKind::NotUtf8, Some(400))
    );
}

#[test]
fn compact_names_and_no_space_after_the_colon() {
    let bytes = wire(
        "BYE sip:a@b SIP/2.0\nv:SIP/2.0/UDP c;branch=z9hG4bKb\nf:<sip:a@b>;tag=1\nt:<sip:c@d>;tag=2\ni:x\nCSeq:2 BYE\nl:0\n\n",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    assert_eq!(
        (
            message.call_id(),
            message.header_named("I"),
            message.header_named("call-id")
        ),
        (Ok("x"), Some("x"), Some("x"))
    );
}

#[test]
fn start_line_garbage_is_not_answered() {
    for bytes in [
        &b"\0\0\0\0"[..],
        b"\x16\x03\x01\x02\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"INVITE\r\n\r\n",
        b"INVITE sip:a\r\n\r\n",
        b" INVITE sip:a SIP/2.0\r\n\r\n",
        b"SIP/2.0\r\n\r\n",
        b"SIP/2.0 abc OK\r\n\r\n",
        b"INV\xc3\xa4TE sip:a SIP/2.0\r\n\r\n",
    ] {
        assert_eq!(datagram(bytes).unwrap_err().status(), None, "{bytes:?}");
    }
    let cut_off = datagram(b"INVITE sip:a SIP/2.0").unwrap_err();
    assert_eq!(
        (cut_off.kind, cut_off.status()),
        (ParseErrorKind::Unterminated, Some(400))
    );
    assert_eq!(
        datagram(b"\r\n\r\n").unwrap_err().kind,
        ParseErrorKind::Empty
    );
    assert_eq!(datagram(b"").unwrap_err().kind, ParseErrorKind::Empty);
    let mut after_line_ends = b"\r\n\r\n".to_vec();
    after_line_ends.extend(request(""));
    assert_eq!(judge(&after_line_ends), Verdict::Taken);
}

#[test]
fn every_limit_answers() {
    let refuse = |bytes: &[u8], limits: Limits| {
        let error = Message::parse(bytes, Framing::Datagram, &limits).unwrap_err();
        (error.kind, error.status())
    };
    let default = Limits::default();
    let kind = |kind, status| (kind, Some(status));
    let bytes = request("");
    let small = Limits {
        max_message_bytes: bytes.len() - 1,
        ..default
    };
    assert_eq!(refuse(&bytes, small), kind(ParseErrorKind::TooLarge, 513));
    let headers = Limits {
        max_headers: 5,
        ..default
    };
    assert_eq!(
        refuse(&bytes, headers),
        kind(ParseErrorKind::TooManyHeaders, 513)
    );
    assert!(
        Message::parse(
            &bytes[..],
            Framing::Datagram,
            &Limits {
                max_headers: 6,
                ..default
            }
        )
        .is_ok()
    );
    let many = "X: y\n".repeat(Limits::HEADER_SLOTS - 6);
    assert!(datagram(&request(&many)).is_ok());
    let too_many = Limits {
        max_headers: usize::MAX,
        ..default
    };
    assert_eq!(
        refuse(&request(&format!("{many}X: y\n")), too_many),
        kind(ParseErrorKind::TooManyHeaders, 513)
    );
    let line = Limits {
        max_start_line_bytes: 30,
        ..default
    };
    assert_eq!(
        refuse(&bytes, line),
        kind(ParseErrorKind::StartLineTooLong, 414)
    );
    let header = Limits {
        max_header_bytes: 40,
        ..default
    };
    assert_eq!(
        refuse(&bytes, header),
        kind(ParseErrorKind::HeaderTooLong, 513)
    );
    let folded = request(&format!("X: y\n{}", " fold\n".repeat(2_000)));
    assert_eq!(
        refuse(&folded, default),
        kind(ParseErrorKind::HeaderTooLong, 513)
    );
    let roomy = Limits {
        max_message_bytes: 1 << 20,
        max_header_bytes: 1 << 20,
        ..default
    };
    let long = "y".repeat(70_000);
    assert_eq!(
        refuse(&request(&format!("X: {long}\n")), roomy),
        kind(ParseErrorKind::TooLarge, 513)
    );
    let body = with_body(&long);
    assert_eq!(
        Message::parse(&body[..], Framing::Datagram, &roomy)
            .unwrap()
            .body()
            .len(),
        70_000
    );
}

#[test]
fn stream_joins_and_splits() {
    let (ack, bye) = (altered("OPTIONS", "ACK"), with_body("some body"));
    let stream = [ack.clone(), bye.clone()].concat();
    assert_eq!(
        framed(&stream),
        Ok(vec![
            Frame::Message(ack.clone()),
            Frame::Message(bye.clone())
        ])
    );
    let mut framer = StreamFramer::new(Limits::default());
    framer.push(&bye[..20]);
    assert_eq!(framer.next(), Ok(None));
    framer.push(&bye[20..bye.len() - 3]);
    assert_eq!(framer.next(), Ok(None));
    framer.push(&bye[bye.len() - 3..]);
    assert_eq!(frames(&mut framer), Ok(vec![Frame::Message(bye)]));
    assert!(framer.pending().is_empty());
}

#[test]
fn stream_keep_alives() {
    let message = request("");
    let stream = [
        b"\r\n\r\n",
        &message[..],
        b"\r\n",
        &message[..],
        b"\r\n\r\n\r\n\r\n\r\n",
        &message[..],
        b"\r\n\r",
    ]
    .concat();
    let one = || Frame::Message(message.clone());
    assert_eq!(
        framed(&stream),
        Ok(vec![
            Frame::Ping,
            one(),
            one(),
            Frame::Ping,
            Frame::Ping,
            one()
        ])
    );
    let mut framer = StreamFramer::new(Limits::default());
    let mut slow = Vec::new();
    for byte in &stream {
        framer.push(&[*byte]);
        slow.extend(frames(&mut framer).unwrap());
    }
    assert_eq!(slow, framed(&stream).unwrap());
}

#[test]
fn stream_garbage_closes() {
    for bytes in [
        &b"\x16\x03\x01"[..],
        b"\0",
        b" x",
        b"\r\rINVITE",
        b"GET / HTTP/1.1\r\n",
        b"hello\n",
        b"SIP/\r\n",
    ] {
        assert_eq!(framed(bytes), Err(FrameError::Garbage), "{bytes:?}");
    }
    assert_eq!(FrameError::Garbage.status(), None);
    let mut framer = StreamFramer::new(Limits::default());
    framer.push(b"\0");
    assert_eq!(framer.next(), Err(FrameError::Garbage));
    framer.push(&request(""));
    assert_eq!(framer.next(), Err(FrameError::Garbage));
    assert_eq!(framer.pending(), b"\0", "nothing is kept after an error");
}

#[test]
fn stream_content_length_rules() {
    let with = |line: &str| framed(&altered("Content-Length: 0\r\n", line)).unwrap_err();
    let head = FrameError::Head;
    assert_eq!(with(""), head(ParseErrorKind::MissingContentLength));
    assert_eq!(
        with("X: y\r\n Content-Length: 0\r\n"),
        head(ParseErrorKind::MissingContentLength)
    );
    assert_eq!(
        with("Content-Length: -1\r\n"),
        head(ParseErrorKind::ContentLength)
    );
    assert_eq!(
        with("Content-Length: 1\r\n 2\r\n"),
        head(ParseErrorKind::ContentLength)
    );
    assert_eq!(
        with("l: 0\r\nContent-length : 0\r\n"),
        head(ParseErrorKind::RepeatedContentLength)
    );
    assert_eq!(with("l: 65535\r\n"), head(ParseErrorKind::TooLarge));
    assert_eq!(
        with("l: 99999999999999999999999\r\n"),
        head(ParseErrorKind::TooLarge)
    );
    assert_eq!(head(ParseErrorKind::TooLarge).status(), Some(513));
    assert!(framed(&altered("Content-Length: 0", "L \t:\r\n\t0")).is_ok_and(|f| f.len() == 1));
}

#[test]
fn stream_refusal_can_be_answered_before_closing() {
    let mut framer = StreamFramer::new(Limits::default());
    framer.push(&request(""));
    framer.push(&altered("Content-Length: 0", "Content-Length: 99999"));
    assert!(matches!(framer.next(), Ok(Some(Frame::Message(_)))));
    let error = framer.next().unwrap_err();
    let source = "198.51.100.4:5062".parse().unwrap();
    let answer = sip::refusal(framer.pending(), error.status().unwrap(), source).unwrap();
    let answer = datagram(&answer).unwrap();
    assert_eq!(
        (answer.status(), answer.call_id()),
        (Some(513), Ok("c1@198.51.100.4"))
    );
}

#[test]
fn stream_memory_is_bounded() {
    let endless = |chunk: &[u8]| {
        let mut framer = StreamFramer::new(Limits::default());
        framer.push(b"OPTIONS sip:a SIP/2.0\r\n");
        let mut pushed = 0;
        loop {
            framer.push(chunk);
            pushed += chunk.len();
            if let Err(error) = framer.next() {
                return (error, pushed <= 70_000);
            }
        }
    };
    assert_eq!(
        endless(b"X: y\r\n"),
        (FrameError::Head(ParseErrorKind::TooLarge), true)
    );
    assert_eq!(
        endless(b"x"),
        (FrameError::Head(ParseErrorKind::HeaderTooLong), true)
    );
    assert_eq!(
        framed("x".repeat(8_193).as_bytes()),
        Err(FrameError::Head(ParseErrorKind::StartLineTooLong))
    );
}

#[test]
fn stream_frame_parses_as_a_stream_message() {
    let Some(Frame::Message(bytes)) = framed(&with_body("xyz")).unwrap().pop() else {
        panic!("one message was pushed");
    };
    let message = Message::parse(bytes, Framing::Stream, &Limits::default()).unwrap();
    assert_eq!(
        (message.body(), message.header(Name::ContentLength)),
        (&b"xyz"[..], Some("3"))
    );
    let incoming = message.to_incoming();
    assert_eq!(incoming.cseq().map(|c| c.number), Ok(7));
}
