//! What is read as a description, what is refused, and what of an audio stream is seen.

use core::net::IpAddr;

use sdp::{Direction, Profile, SdpError, Session};

const HEAD: &str = "v=0\r\no=- 1 1 IN IP4 192.0.2.20\r\ns=-\r\nc=IN IP4 192.0.2.20\r\nt=0 0\r\n";

fn session(media: &str) -> Session {
    Session::parse(format!("{HEAD}{media}").as_bytes()).expect(media)
}

fn direction(media: &str) -> Direction {
    session(media).audio().expect("audio").direction
}

#[test]
fn a_direction_stands_with_the_media_or_the_session_or_is_sendrecv() {
    let rows = [
        ("m=audio 5004 RTP/AVP 0\r\n", Direction::SendRecv),
        (
            "m=audio 5004 RTP/AVP 0\r\na=sendonly\r\n",
            Direction::SendOnly,
        ),
        (
            "a=sendonly\r\nm=audio 5004 RTP/AVP 0\r\n",
            Direction::SendOnly,
        ),
        (
            "a=sendonly\r\nm=audio 5004 RTP/AVP 0\r\na=inactive\r\n",
            Direction::Inactive,
        ),
        (
            "a=inactive\r\nm=audio 5004 RTP/AVP 0\r\na=sendrecv\r\n",
            Direction::SendRecv,
        ),
    ];
    for (media, expected) in rows {
        assert_eq!(direction(media), expected, "{media}");
    }
}

/// RFC 8866, 5 asks for tolerance: the last line counts without its line end, and bare LF ends one.
#[test]
fn the_last_line_counts_without_a_line_end() {
    assert_eq!(
        direction("m=audio 5004 RTP/AVP 0\r\na=sendonly"),
        Direction::SendOnly
    );
    let bare = format!("{HEAD}m=audio 5004 RTP/AVP 0\r\na=sendonly").replace('\r', "");
    let audio = Session::parse(bare.as_bytes())
        .expect("bare LF")
        .audio()
        .expect("audio");
    assert_eq!(audio.direction, Direction::SendOnly);
}

/// RFC 3264, 8.4: the hold of RFC 2543.
#[test]
fn an_unspecified_address_does_not_receive() {
    for zero in ["IP4 0.0.0.0", "IP6 ::", "IP6 ::ffff:0.0.0.0"] {
        let held = format!("m=audio 5004 RTP/AVP 0\r\nc=IN {zero}\r\n");
        assert_eq!(direction(&held), Direction::SendOnly, "{zero}");
        assert_eq!(
            direction(&format!("{held}a=recvonly\r\n")),
            Direction::Inactive,
            "{zero}"
        );
    }
}

#[test]
fn what_peers_get_wrong_without_harm_is_taken_as_meant() {
    let rows: [&[u8]; 8] = [
        b"v=0 \r\nm=audio  5004  RTP/AVP  0 \r\nc=IN IP4 192.0.2.1\r\n",
        b"v=0\r\ns=caf\xe9\r\nc=IN IP4 192.0.2.1\r\nm=audio 5004 RTP/AVP 0\r\na=x:\xff\r\n",
        b"v=0\nc=IN IP4 192.0.2.1\nb=AS:64.5\nb=AS\nb=AS:99999999999999999999\nm=audio 5004 RTP/AVP 0\n",
        b"v=0\r\nr=7d 1h 0 25h\r\nz=x\r\nk=clear:x\r\nk=prompt\r\nc=IN IP4 192.0.2.1\r\nm=audio 5004 RTP/AVP 0\r\n",
        b"v=0\r\nt=0 0\r\ns=-\r\nc=IN IP4 192.0.2.1\r\no=- 1 1 IN IP4 192.0.2.1\r\nm=audio 5004 RTP/AVP 0",
        b"v=0\r\nx=unknown\r\nc=IN IP4 192.0.2.1\r\nm=audio 5004 RTP/AVP 0\r\ny=unknown\r\n",
        b"v=0\r\nc=IN IP4 192.0.2.1\r\n\r\nm=audio 5004 RTP/AVP 0\r\n\r\n",
        b"v=0\r\nm=AUDIO 5004/2 RTP/AVP 0 8 0\r\nc=IN IP4 192.0.2.1\r\nc=IN IP4 192.0.2.2\r\n",
    ];
    for bytes in rows {
        let text = String::from_utf8_lossy(bytes);
        let session = Session::parse(bytes).unwrap_or_else(|error| panic!("{error}: {text}"));
        let audio = session
            .audio()
            .unwrap_or_else(|| panic!("no audio: {text}"));
        assert_eq!(audio.address, Some(IpAddr::from([192, 0, 2, 1])), "{text}");
        assert_eq!(
            (audio.port, audio.formats[0].encoding.as_str()),
            (5004, "PCMU"),
            "{text}"
        );
    }
}

#[test]
fn what_leaves_doubt_is_refused() {
    let media = |m: &str| format!("{HEAD}{m}\r\n").into_bytes();
    assert_eq!(Session::parse(b""), Err(SdpError::Version));
    assert_eq!(Session::parse(b"v=1\r\n"), Err(SdpError::Version));
    assert_eq!(Session::parse(b"s=-\r\nv=0\r\n"), Err(SdpError::Version));
    for m in [
        "m=audio 5004 RTP/AVP 4294967296",
        "m=video 5004 RTP/AVP 128",
        "m=audio 5004 RTP/SAVP x",
    ] {
        assert_eq!(
            Session::parse(&media(m)),
            Err(SdpError::PayloadType { media: 0 }),
            "{m}"
        );
    }
    let lines = [
        "m=audio 70000 RTP/AVP 0",
        "m=audio -1 RTP/AVP 0",
        "m=audio 5004 RTP/AVP",
        "m=audio",
        "m=",
        "a=x:\0",
        "a=x\ry",
        "no equals sign",
        "=x",
        "t=",
    ];
    for line in lines {
        let error = Session::parse(&media(line)).expect_err(line);
        // Six lines in, as the peer counts.
        let SdpError::Line { line: 6, .. } = error else {
            panic!("{line:?}: {error:?}")
        };
    }
    assert_eq!(
        Session::parse(&media("c=IN IP4 192.0.2.1")),
        Err(SdpError::Repeated { line: 6 })
    );
}

/// A protocol that we don't know is an m= line to refuse, not a description to refuse; in another
/// character set it cannot be written back, which refuses the description.
#[test]
fn an_unknown_transport_is_no_audio() {
    let session = session("m=message 7654 TCP/\u{c4}/MSRP *\r\n");
    assert_eq!((session.media_count(), session.audio()), (1, None));
    let latin_1 = [HEAD.as_bytes(), b"m=message 7654 TCP/\xc4/MSRP *\r\n"].concat();
    assert!(matches!(
        Session::parse(&latin_1),
        Err(SdpError::Line { line: 6, .. })
    ));
}

#[test]
fn no_media_is_a_description() {
    let session = session("");
    assert_eq!((session.media_count(), session.audio()), (0, None));
}

#[test]
fn an_audio_stream_is_seen_with_all_that_media_needs() {
    let session = session(
        "m=audio 5004 RTP/AVPF 8 101 100\r\n\
         c=IN IP6 2001:db8::7\r\n\
         a=rtpmap:8 PCMA/8000\r\n\
         a=rtpmap:101 telephone-event/8000\r\n\
         a=fmtp:101 0-15\r\n\
         a=rtpmap:100 telephone-event/16000\r\n\
         a=ptime:30\r\n\
         a=maxptime:60\r\n\
         a=rtcp:5999 IN IP6 2001:db8::8\r\n\
         a=rtcp-mux\r\n\
         a=recvonly\r\n",
    );
    let audio = session.audio().expect("audio");
    assert_eq!(audio.address, "2001:db8::7".parse().ok());
    assert_eq!(
        (audio.index, audio.port, audio.profile),
        (0, 5004, Profile::Avpf)
    );
    assert_eq!((audio.ptime, audio.max_ptime), (Some(30), Some(60)));
    assert_eq!(audio.direction, Direction::RecvOnly);
    assert_eq!((audio.rtcp_port, audio.rtcp_mux), (Some(5999), true));
    assert_eq!(audio.rtcp_address, "2001:db8::8".parse().ok());
    assert_eq!(audio.telephone_event(8_000), Some(101));
    assert_eq!(audio.telephone_event(16_000), Some(100));
    assert_eq!(audio.telephone_event(48_000), None);
    assert_eq!(audio.formats[1].fmtp.as_deref(), Some("0-15"));
}

#[test]
fn the_stream_that_matters_is_on_and_readable() {
    let media =
        |lines: &[&str]| -> String { lines.iter().map(|l| format!("m={l} 0\r\n")).collect() };
    let rows = [
        (
            &[
                "video 1 RTP/AVP",
                "audio 0 RTP/AVP",
                "audio 3 RTP/SAVP",
                "audio 4 RTP/AVP",
            ][..],
            3,
        ),
        (&["audio 0 RTP/AVP", "audio 3 UDP/TLS/RTP/SAVPF"][..], 1),
        (&["video 1 RTP/AVP", "audio 0 RTP/SAVP"][..], 1),
        (&["audio 2 RTP/AVP", "audio 4 RTP/AVP"][..], 0),
    ];
    for (lines, index) in rows {
        assert_eq!(
            session(&media(lines)).audio().expect("audio").index,
            index,
            "{lines:?}"
        );
    }
}

#[test]
fn what_is_written_reads_the_same() {
    let text = format!(
        "{HEAD}a=group:LS 1 2\r\nm=audio 5004 RTP/AVP 0 8\r\na=ptime:20\r\na=mid:1\r\n\
         m=video 5006 RTP/AVP 31\r\nb=AS:256\r\na=mid:2\r\n"
    );
    let session = Session::parse(text.as_bytes()).expect("valid");
    assert_eq!(String::from_utf8(session.to_bytes()).expect("text"), text);
}
