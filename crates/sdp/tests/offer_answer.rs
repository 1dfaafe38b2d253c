//! Offers, answers, and what they come to (RFC 3264).

use core::net::{IpAddr, SocketAddr};

use sdp::{
    AcceptError, Agreed, AnswerError, Direction, Format, LocalMedia, Origin, Session, accept,
    answer, offer, reoffer,
};

fn format(payload_type: u8, encoding: &str, clock_rate: u32) -> Format {
    let encoding = encoding.to_owned();
    Format {
        payload_type,
        encoding,
        clock_rate,
        channels: 1,
        fmtp: None,
    }
}

fn local() -> LocalMedia {
    LocalMedia {
        address: IpAddr::from([192, 0, 2, 1]),
        port: 16_384,
        formats: vec![
            format(8, "PCMA", 8_000),
            format(0, "PCMU", 8_000),
            format(101, "telephone-event", 8_000),
        ],
        ptime: None,
        direction: Direction::SendRecv,
    }
}

fn origin() -> Origin {
    Origin {
        username: "tandem".to_owned(),
        session_id: 7,
        version: 1,
        address: IpAddr::from([192, 0, 2, 1]),
    }
}

fn peer(media: &str) -> Session {
    let head = "v=0\r\no=- 1 1 IN IP4 192.0.2.20\r\ns=-\r\nc=IN IP4 192.0.2.20\r\nt=0 0\r\n";
    Session::parse(format!("{head}{media}").as_bytes()).expect(media)
}

fn answered(media: &str) -> (String, Agreed) {
    let answer = answer(&peer(media), &origin(), &local()).expect(media);
    (text(&answer.session), answer.agreed)
}

fn refused(media: &str) -> AnswerError {
    answer(&peer(media), &origin(), &local()).expect_err(media)
}

fn text(session: &Session) -> String {
    String::from_utf8(session.to_bytes()).expect("text")
}

fn m_lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.starts_with("m=")).collect()
}

#[test]
fn an_offer_says_all_of_it() {
    assert_eq!(
        text(&offer(
            &origin(),
            &LocalMedia {
                ptime: Some(20),
                ..local()
            }
        )),
        "v=0\r\n\
         o=tandem 7 1 IN IP4 192.0.2.1\r\n\
         s=-\r\n\
         c=IN IP4 192.0.2.1\r\n\
         t=0 0\r\n\
         m=audio 16384 RTP/AVP 8 0 101\r\n\
         a=rtpmap:8 PCMA/8000\r\n\
         a=rtpmap:0 PCMU/8000\r\n\
         a=rtpmap:101 telephone-event/8000\r\n\
         a=ptime:20\r\n\
         a=sendrecv\r\n"
    );
}

#[test]
fn a_user_name_that_cannot_stand_in_the_line_is_left_out() {
    let origin = Origin {
        username: "a b\r\nc=x".to_owned(),
        ..origin()
    };
    assert!(text(&offer(&origin, &local())).contains("o=- 7 1 IN IP4 192.0.2.1\r\n"));
}

#[test]
fn an_answer_names_one_codec_and_its_events_under_the_offer_s_numbers() {
    let (text, agreed) = answered(
        "m=audio 5004 RTP/AVP 0 97 96 100\r\na=rtpmap:97 pcma/8000\r\n\
         a=rtpmap:96 telephone-event/8000\r\na=rtpmap:100 telephone-event/16000\r\n",
    );
    assert_eq!(m_lines(&text), ["m=audio 16384 RTP/AVP 97 96"]);
    assert!(text.contains("a=rtpmap:97 pcma/8000\r\n"), "{text}");
    assert!(text.contains("a=fmtp:96 0-15\r\n"), "{text}");
    assert_eq!(
        (
            agreed.send_format.payload_type,
            agreed.recv_formats[0].payload_type
        ),
        (97, 97)
    );
    assert_eq!((agreed.send_dtmf, agreed.recv_dtmf), (Some(96), Some(96)));
    assert_eq!(
        agreed.remote,
        Some(SocketAddr::from(([192, 0, 2, 20], 5004)))
    );
    assert_eq!(
        agreed.remote_rtcp,
        Some(SocketAddr::from(([192, 0, 2, 20], 5005)))
    );
}

/// RFC 3264, 6.1: the answer to a direction, given what we want ourselves.
#[test]
fn directions_are_answered_in_kind() {
    use Direction::{Inactive, RecvOnly, SendOnly, SendRecv};
    let rows = [
        ("", SendRecv, SendRecv),
        ("a=sendrecv\r\n", SendRecv, SendRecv),
        ("a=sendonly\r\n", SendRecv, RecvOnly),
        ("a=recvonly\r\n", SendRecv, SendOnly),
        ("a=inactive\r\n", SendRecv, Inactive),
        ("c=IN IP4 0.0.0.0\r\n", SendRecv, RecvOnly),
        ("", SendOnly, SendOnly),
        ("a=sendonly\r\n", SendOnly, Inactive),
        ("a=recvonly\r\n", RecvOnly, Inactive),
        ("", Inactive, Inactive),
    ];
    for (line, wanted, expected) in rows {
        let offer = peer(&format!("m=audio 5004 RTP/AVP 0\r\n{line}"));
        let local = LocalMedia {
            direction: wanted,
            ..local()
        };
        let answer = answer(&offer, &origin(), &local).expect(line);
        assert_eq!(answer.agreed.direction, expected, "{line:?} {wanted}");
        assert!(
            text(&answer.session).contains(&format!("\r\na={expected}\r\n")),
            "{line:?} {wanted}"
        );
    }
}

/// Hold and resume as a peer does them: an address of zero is never sent to, and the next offer
/// without any direction means both ways again.
#[test]
fn hold_and_resume() {
    let (_, held) = answered("m=audio 5004 RTP/AVP 0\r\nc=IN IP4 0.0.0.0\r\n");
    assert_eq!((held.remote, held.remote_rtcp), (None, None));
    assert_eq!(held.direction, Direction::RecvOnly);
    let (_, resumed) = answered("m=audio 5006 RTP/AVP 0\r\nc=IN IP4 192.0.2.21\r\n");
    assert_eq!(
        resumed.remote,
        Some(SocketAddr::from(([192, 0, 2, 21], 5006)))
    );
    assert_eq!(resumed.direction, Direction::SendRecv);
}

/// RFC 3264, 6: as many m= lines as offered, in their order, those not taken with port 0.
#[test]
fn every_media_line_keeps_its_place() {
    let (text, agreed) = answered(
        "m=video 5000 RTP/AVP 31\r\nm=audio 5002/2 RTP/AVPF 18 0\r\nm=audio 5004 RTP/AVP 8\r\n\
         m=message 5006 TCP/\u{c4}/MSRP *\r\nm=image 5008 udptl t38\r\n",
    );
    assert_eq!(
        m_lines(&text),
        [
            "m=video 0 RTP/AVP 31",
            "m=audio 16384 RTP/AVPF 0",
            "m=audio 0 RTP/AVP 8",
            "m=message 0 TCP/\u{c4}/MSRP *",
            "m=image 0 udptl t38",
        ]
    );
    assert_eq!(agreed.media_index, 1);
}

#[test]
fn a_secure_stream_is_passed_over_and_refused_alone() {
    let (text, agreed) = answered("m=audio 5000 RTP/SAVP 8\r\nm=audio 5002 RTP/AVP 8\r\n");
    assert_eq!(
        m_lines(&text),
        ["m=audio 0 RTP/SAVP 8", "m=audio 16384 RTP/AVP 8"]
    );
    assert_eq!(agreed.media_index, 1);
    assert_eq!(refused("m=audio 5000 RTP/SAVP 8\r\n"), AnswerError::Secure);
    assert_eq!(
        refused("m=audio 5000 UDP/TLS/RTP/SAVPF 8\r\n"),
        AnswerError::Secure
    );
}

#[test]
fn nothing_to_agree_on_is_said_why() {
    assert_eq!(refused(""), AnswerError::NoMedia);
    assert_eq!(refused("m=video 5000 RTP/AVP 31\r\n"), AnswerError::NoAudio);
    assert_eq!(
        refused("m=audio 5000 TCP/RTP/AVP 0\r\n"),
        AnswerError::NoAudio
    );
    assert_eq!(
        refused("m=audio 5000 RTP/AVP 18\r\n"),
        AnswerError::NoCommonCodec
    );
    let events_only = "m=audio 5000 RTP/AVP 101\r\na=rtpmap:101 telephone-event/8000\r\n";
    assert_eq!(refused(events_only), AnswerError::NoCommonCodec);
    for address in [
        "IP4 host.example",
        "IP4 224.2.1.1/127",
        "IP4 255.255.255.255",
        "IP6 2001:db8::1",
    ] {
        let media = format!("m=audio 5000 RTP/AVP 0\r\nc=IN {address}\r\n");
        assert_eq!(refused(&media), AnswerError::UnusableAddress, "{address}");
    }
    let nowhere = Session::parse(b"v=0\r\nm=audio 5000 RTP/AVP 0\r\n").expect("valid");
    assert_eq!(
        answer(&nowhere, &origin(), &local()),
        Err(AnswerError::UnusableAddress)
    );
}

/// RFC 3264, 8.2: a stream that is taken out is answered alike, and nothing flows.
#[test]
fn a_stream_that_is_off_stays_off() {
    let (text, agreed) = answered("m=audio 0 RTP/AVP 0\r\n");
    assert_eq!(m_lines(&text), ["m=audio 0 RTP/AVP 0"]);
    assert_eq!(
        (agreed.remote, agreed.direction),
        (None, Direction::Inactive)
    );
}

/// RFC 8866, 6.4: the peer's wish for packets it receives, within what we can do.
#[test]
fn packets_are_as_long_as_the_receiver_asks() {
    let rows = [
        ("", None, 20, None),
        ("a=ptime:30\r\n", None, 30, Some(30)),
        ("a=ptime:30\r\n", Some(20), 30, Some(20)),
        ("", Some(40), 40, Some(40)),
        ("a=ptime:60\r\na=maxptime:40\r\n", None, 40, Some(60)),
        ("a=maxptime:10\r\n", None, 10, None),
        ("a=ptime:0\r\n", None, 20, None),
        ("a=ptime:5000\r\n", None, 20, None),
        ("a=ptime:4294967297\r\n", None, 20, None),
        ("a=ptime:\r\n", None, 20, None),
    ];
    for (lines, ours, sent, asked) in rows {
        let offer = peer(&format!("m=audio 5004 RTP/AVP 0\r\n{lines}"));
        let local = LocalMedia {
            ptime: ours,
            ..local()
        };
        let answer = answer(&offer, &origin(), &local).expect(lines);
        assert_eq!(answer.agreed.ptime_ms, sent, "{lines:?} {ours:?}");
        assert_eq!(
            answer.session.audio().expect("audio").ptime,
            asked,
            "{lines:?} {ours:?}"
        );
    }
}

#[test]
fn fmtp_of_each_side_goes_to_the_other() {
    let mut local = local();
    local.formats = vec![Format {
        channels: 2,
        fmtp: Some("ours".to_owned()),
        ..format(96, "opus", 48_000)
    }];
    let offer =
        peer("m=audio 5004 RTP/AVP 111\r\na=rtpmap:111 opus/48000/2\r\na=fmtp:111 theirs\r\n");
    let answer = answer(&offer, &origin(), &local).expect("common codec");
    let text = text(&answer.session);
    assert!(
        text.contains("a=rtpmap:111 opus/48000/2\r\na=fmtp:111 ours\r\n"),
        "{text}"
    );
    assert_eq!(answer.agreed.send_format.fmtp.as_deref(), Some("theirs"));
    assert_eq!(answer.agreed.recv_formats[0].fmtp.as_deref(), Some("ours"));
}

fn accepted(media: &str) -> Result<Agreed, AcceptError> {
    accept(&offer(&origin(), &local()), &peer(media))
}

/// RFC 3264, 5.1 and 6.1: we send under the answer's numbers and receive under ours.
#[test]
fn each_side_has_its_own_numbers() {
    let agreed = accepted(
        "m=audio 5004 RTP/AVP 97 96\r\na=rtpmap:97 PCMU/8000\r\na=rtpmap:96 telephone-event/8000\r\n",
    )
    .expect("fits");
    assert_eq!(
        (agreed.send_format.payload_type, agreed.send_dtmf),
        (97, Some(96))
    );
    assert_eq!(
        (agreed.recv_formats[0].payload_type, agreed.recv_dtmf),
        (0, Some(101))
    );
    let next = agreed.recv_formats_with_events();
    assert_eq!(
        next.iter().map(|f| f.payload_type).collect::<Vec<_>>(),
        [0, 101]
    );
}

#[test]
fn numbers_of_the_offer_need_no_rtpmap_in_the_answer() {
    let agreed = accepted("m=audio 5004 RTP/AVP 8 101\r\n").expect("fits");
    assert_eq!(
        (agreed.send_format.payload_type, agreed.send_dtmf),
        (8, Some(101))
    );
}

#[test]
fn events_on_another_clock_are_no_events_of_this_codec() {
    let agreed = accepted("m=audio 5004 RTP/AVP 8 100\r\na=rtpmap:100 telephone-event/16000\r\n");
    let agreed = agreed.expect("fits");
    assert_eq!((agreed.send_dtmf, agreed.recv_dtmf), (None, None));
}

#[test]
fn an_answer_of_several_codecs_is_taken_in_its_order() {
    let agreed = accepted("m=audio 5004 RTP/AVP 13 18 0 8\r\n").expect("fits");
    assert_eq!(agreed.send_format.encoding, "PCMU");
    let received: Vec<_> = agreed.recv_formats.iter().map(|f| f.payload_type).collect();
    assert_eq!(received, [0, 8]);
}

#[test]
fn an_answer_that_does_not_fit_is_said_why() {
    let rows = [
        (
            "",
            AcceptError::MediaCount {
                offered: 1,
                answered: 0,
            },
        ),
        ("m=audio 0 RTP/AVP 8\r\n", AcceptError::Refused),
        (
            "m=video 5004 RTP/AVP 8\r\n",
            AcceptError::Mismatch { media: 0 },
        ),
        (
            "m=audio 5004 RTP/SAVP 8\r\n",
            AcceptError::Mismatch { media: 0 },
        ),
        ("m=audio 5004 RTP/AVP 18\r\n", AcceptError::NoCommonCodec),
        (
            "m=audio 5004 RTP/AVP 8\r\nc=IN IP6 ::1\r\n",
            AcceptError::UnusableAddress,
        ),
    ];
    for (media, expected) in rows {
        assert_eq!(accepted(media), Err(expected), "{media}");
    }
    assert!(
        accepted("m=audio 5004 RTP/AVPF 8\r\n").is_ok(),
        "AVPF is RTP/AVP with feedback"
    );
    let nothing = peer("m=audio 0 RTP/AVP 8\r\n");
    assert_eq!(accept(&nothing, &nothing), Err(AcceptError::NothingOffered));
}

#[test]
fn an_answer_can_hold_what_we_offered() {
    use Direction::{Inactive, RecvOnly, SendOnly, SendRecv};
    let rows = [
        (SendRecv, "", SendRecv),
        (SendRecv, "a=recvonly\r\n", SendOnly),
        (SendOnly, "a=recvonly\r\n", SendOnly),
        // An answer may not widen the offer (RFC 3264, 6.1); what we offered stands.
        (SendOnly, "a=sendrecv\r\n", SendOnly),
        (SendOnly, "a=sendonly\r\n", Inactive),
        (RecvOnly, "a=sendonly\r\n", RecvOnly),
        (SendRecv, "c=IN IP4 0.0.0.0\r\n", RecvOnly),
    ];
    for (ours, line, expected) in rows {
        let offer = offer(
            &origin(),
            &LocalMedia {
                direction: ours,
                ..local()
            },
        );
        let agreed = accept(&offer, &peer(&format!("m=audio 5004 RTP/AVP 8\r\n{line}")));
        assert_eq!(agreed.expect(line).direction, expected, "{ours} {line:?}");
    }
}

/// RFC 3264, 8: m= lines stay, numbers keep their meaning, the version grows with a change only.
#[test]
fn a_later_offer_keeps_what_stands() {
    let first = answer(
        &peer(
            "m=video 5000 RTP/AVP 31\r\n\
             m=audio 5002 RTP/AVP 8 96\r\na=rtpmap:96 telephone-event/8000\r\n",
        ),
        &origin(),
        &local(),
    )
    .expect("common codec");
    let index = first.agreed.media_index;
    let formats = vec![
        format(8, "PCMA", 8_000),
        format(96, "speex", 8_000),
        format(101, "telephone-event", 8_000),
    ];
    let held = LocalMedia {
        formats,
        direction: Direction::SendOnly,
        ..local()
    };
    let later = reoffer(&first.session, index, &origin(), &held);
    assert_eq!(
        m_lines(&text(&later)),
        ["m=video 0 RTP/AVP 31", "m=audio 16384 RTP/AVP 8 97 96"]
    );
    assert_eq!(later.version(), first.session.version() + 1);

    let same = reoffer(&later, index, &origin(), &held);
    assert_eq!(same, later);
    let resumed = LocalMedia {
        direction: Direction::SendRecv,
        ..held
    };
    assert_eq!(
        reoffer(&same, index, &origin(), &resumed).version(),
        later.version() + 1
    );
}

#[test]
fn local_formats_can_follow_the_offer_s_order() {
    let offer = peer("m=audio 5004 RTP/AVP 0 8\r\n").audio().expect("audio");
    let ordered = offer.in_this_order(local().formats);
    let names: Vec<_> = ordered.iter().map(|f| f.encoding.as_str()).collect();
    assert_eq!(names, ["PCMU", "PCMA", "telephone-event"]);
}
