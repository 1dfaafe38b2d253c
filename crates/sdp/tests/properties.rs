//! Laws of reading and of offer/answer, over random descriptions.

use core::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use sdp::{Agreed, Direction, Format, LocalMedia, Origin, Session, accept, answer, offer, reoffer};

fn origin(n: u8) -> Origin {
    Origin {
        username: String::new(),
        session_id: u64::from(n),
        version: 1,
        address: IpAddr::from([192, 0, 2, n]),
    }
}

fn directions() -> impl Strategy<Value = Direction> {
    (any::<bool>(), any::<bool>()).prop_map(|(sends, receives)| Direction::new(sends, receives))
}

/// Codecs and events of several clocks, under numbers that may clash.
fn format_lists() -> impl Strategy<Value = Vec<Format>> {
    let known: [(&str, u32, u8); 7] = [
        ("PCMA", 8_000, 1),
        ("PCMU", 8_000, 1),
        ("speex", 16_000, 1),
        ("opus", 48_000, 2),
        ("telephone-event", 8_000, 1),
        ("telephone-event", 16_000, 1),
        ("CN", 8_000, 1),
    ];
    let format =
        (0..known.len(), any::<u8>(), any::<bool>()).prop_map(move |(n, number, tuned)| {
            let (encoding, clock_rate, channels) = known[n];
            Format {
                payload_type: number,
                encoding: encoding.to_owned(),
                clock_rate,
                channels,
                fmtp: tuned.then(|| "x=1".to_owned()),
            }
        });
    vec(format, 0..9)
}

fn local_media(n: u8) -> impl Strategy<Value = LocalMedia> {
    (
        format_lists(),
        proptest::option::of(1u32..200),
        directions(),
        1024u16..,
    )
        .prop_map(move |(formats, ptime, direction, port)| LocalMedia {
            address: IpAddr::from([192, 0, 2, n]),
            port,
            formats,
            ptime,
            direction,
        })
}

/// Text that looks like a description often enough to get past its first line.
fn descriptions() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        "m=(audio|video) [0-9]{1,5} (RTP/AVP|RTP/SAVP|RTP/AVPF|udptl) ((0|8|96|[0-9]{1,3}) ){1,4}",
        "a=rtpmap:[0-9]{1,3} [a-z-]{1,16}/[0-9]{1,6}(/[0-9])?",
        "a=fmtp:[0-9]{1,3} .{0,12}",
        "a=(ptime|maxptime|rtcp):[0-9]{0,12}",
        "a=(sendonly|recvonly|inactive|sendrecv|rtcp-mux)",
        "c=IN (IP4 [0-9.]{7,15}|IP6 [0-9a-f:]{2,20})",
        "[a-z]=.{0,20}",
    ];
    vec(line, 0..20).prop_map(|lines| {
        let mut text = String::from("v=0\r\nc=IN IP4 192.0.2.9\r\n");
        for line in lines {
            text.push_str(&line);
            text.push_str("\r\n");
        }
        text
    })
}

/// Descriptions that always read: any mix of streams, most of them audio.
fn readable_offers() -> impl Strategy<Value = String> {
    let media = (
        "m=(audio|audio|audio|video) (0|[1-9][0-9]{3}) (RTP/AVP|RTP/AVP|RTP/AVPF|RTP/SAVP|udptl)\
         ( (0|8|96|97|[1-9]?[0-9])){1,4}\r\n",
        "(a=rtpmap:96 telephone-event/8000\r\n)?(a=rtpmap:97 opus/48000/2\r\n)?",
        "(a=(sendonly|recvonly|inactive|sendrecv)\r\n)?(a=ptime:[0-9]{1,3}\r\n)?",
        "(c=IN IP4 0\\.0\\.0\\.0\r\n)?",
    );
    let head = "v=0\r\no=- 1 1 IN IP4 192.0.2.9\r\ns=-\r\nc=IN IP4 192.0.2.9\r\nt=0 0\r\n";
    vec(media, 0..5).prop_map(move |media| {
        let media = media
            .into_iter()
            .map(|(m, maps, a, c)| format!("{m}{maps}{a}{c}"));
        format!("{head}{}", media.collect::<String>())
    })
}

/// The answerer's outcome as the offerer must see it.
fn assert_mirrored(offerer: &Agreed, answerer: &Agreed) {
    assert_eq!(offerer.media_index, answerer.media_index);
    assert_eq!(offerer.direction, answerer.direction.reversed());
    assert!(offerer.send_format.is_same_codec(&answerer.send_format));
    assert_eq!(offerer.send_format, answerer.recv_formats[0]);
    assert_eq!(offerer.recv_formats[0], answerer.send_format);
    assert_eq!(offerer.send_dtmf, answerer.recv_dtmf);
    assert_eq!(offerer.recv_dtmf, answerer.send_dtmf);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in vec(any::<u8>(), 0..400)) {
        let _ = Session::parse(&bytes);
        let _ = Session::parse(&[&b"v=0\r\n"[..], &bytes].concat());
    }

    #[test]
    fn what_was_read_is_written_and_read_again(text in descriptions()) {
        if let Ok(session) = Session::parse(text.as_bytes()) {
            // What was missing (`o=`, `s=`, `t=`) is written, so the bytes are compared.
            let written = session.to_bytes();
            let again = Session::parse(&written).expect("what we wrote");
            prop_assert_eq!(again.to_bytes(), written);
        }
    }

    #[test]
    fn an_answer_has_the_offer_s_media_lines(text in readable_offers(), local in local_media(1)) {
        let offer = Session::parse(text.as_bytes()).expect("readable");
        let Ok(answer) = answer(&offer, &origin(1), &local) else { return Ok(()) };
        // What went over the wire.
        let written = answer.session.to_bytes();
        prop_assert_eq!(Session::parse(&written), Ok(answer.session.clone()));
        let m_line = |bytes: &[u8]| -> Vec<(String, String)> {
            String::from_utf8_lossy(bytes)
                .lines()
                .filter(|line| line.starts_with("m="))
                .map(|line| {
                    let fields: Vec<_> = line.split(' ').collect();
                    (fields[0].to_owned(), fields[2].to_owned())
                })
                .collect()
        };
        prop_assert_eq!(m_line(&written), m_line(&offer.to_bytes()));
        let on = answer.session.audio_streams().filter(|audio| audio.port != 0);
        prop_assert!(on.count() <= 1);
        // The answer names numbers of the offer.
        let offered = offer.audio_at(answer.agreed.media_index).expect("audio");
        let number = answer.agreed.send_format.payload_type;
        prop_assert!(offered.formats.iter().any(|format| format.payload_type == number));
        prop_assert!((5..=120).contains(&answer.agreed.ptime_ms));
        prop_assert!(answer.agreed.direction.intersect(offered.direction.reversed())
            == answer.agreed.direction);
    }

    #[test]
    fn both_sides_agree(a in local_media(1), b in local_media(2)) {
        let offer = offer(&origin(1), &a);
        prop_assume!(offer.audio().is_some());
        if let Ok(answer) = answer(&offer, &origin(2), &b) {
            let wire = Session::parse(&answer.session.to_bytes()).expect("our own");
            let agreed = accept(&offer, &wire).expect("an answer to our offer");
            assert_mirrored(&agreed, &answer.agreed);
            prop_assert_eq!(agreed.remote, Some((b.address, b.port).into()));
            prop_assert_eq!(answer.agreed.remote, Some((a.address, a.port).into()));
        }
    }

    #[test]
    fn a_later_offer_keeps_lines_and_numbers(a in local_media(1), b in local_media(1)) {
        let first = offer(&origin(1), &a);
        let second = reoffer(&first, 0, &origin(1), &b);
        prop_assert_eq!(second.media_count(), first.media_count());
        let known = first.audio().expect("ours").formats;
        for format in second.audio().expect("ours").formats {
            for before in &known {
                let same_number = before.payload_type == format.payload_type;
                prop_assert_eq!(same_number, before.is_same_codec(&format));
            }
        }
        prop_assert_eq!(reoffer(&second, 0, &origin(1), &b), second);
    }
}
