//! Whatever comes in on a port: strangers, other protocols, headers that lie (BB-25 h), and random
//! octets.

mod common;

use std::net::SocketAddr;
use std::time::Duration;

use common::codecs::{FLEX, HIGH, WIDE};
use common::{
    Bench, DTMF, PCMA, PCMU, Sent, Talker, assert_continuous, bridge, packet, payload, peer, single,
};
use media::command::{MediaEvent, Program, Side};
use proptest::prelude::*;
use rtp::Fields;

fn stranger(port: u16) -> SocketAddr {
    SocketAddr::from(([203, 0, 113, 5], port))
}

/// BB-25 h: padding is stripped, sources and extension do not cross, RTCP is never taken for audio.
#[test]
fn padding_sources_extension_and_rtcp() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    talker.units = 160;
    let plain = talker.next();
    let audio = payload(&plain).to_vec();

    let mut padded = plain.clone();
    padded[0] |= 0x20;
    padded.extend_from_slice(&[0, 0, 0, 4]);
    let mut with_sources = plain[..12].to_vec();
    with_sources[0] |= 3;
    with_sources.extend_from_slice(&[7; 12]);
    with_sources.extend_from_slice(&audio);
    let mut extended = plain[..12].to_vec();
    extended[0] |= 0x10;
    extended.extend_from_slice(&[0xbe, 0xde, 0, 2, 1, 2, 3, 4, 5, 6, 7, 8]);
    extended.extend_from_slice(&audio);
    let mut all = extended.clone();
    all[0] |= 0x20;
    all.extend_from_slice(&[0, 0, 3]);
    for (number, mut packet) in (0_u16..).zip([padded, with_sources, extended, all]) {
        packet[2..4].copy_from_slice(&number.to_be_bytes());
        bench.receive(Side::A, &packet);
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 4);
    assert_continuous(&sent);
    assert!(sent.iter().all(|sent| sent.payload == audio));

    let report = [
        0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let binding = [
        0, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    let hello = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    for other in [
        &report[..],
        &binding,
        &hello,
        b"\r\n\r\n",
        b"",
        b"OPTIONS sip:x SIP/2.0",
    ] {
        bench.receive(Side::A, other);
    }
    assert!(bench.take().is_empty());
    let stats = bench.stats(Side::A);
    assert_eq!(
        (stats.not_rtp, stats.packets_received, stats.lost),
        (6, 4, 0)
    );
}

#[test]
fn headers_that_lie_are_counted_and_dropped() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let plain = Talker::new(PCMA).next();
    let liars = [
        (0, 0x80 | 15),
        (0, 0x90),
        (0, 0xa0),
        (0, 0x00),
        (0, 0x40),
        (0, 0xc0),
    ];
    for (at, octet) in liars {
        let mut packet = plain[..20].to_vec();
        packet[at] = octet;
        packet[14..16].copy_from_slice(&[0xff, 0xff]);
        packet[19] = 200;
        bench.receive(Side::A, &packet);
    }
    bench.receive(Side::A, &plain[..11]);
    assert!(bench.take().is_empty());
    assert_eq!(bench.stats(Side::A).not_rtp, liars.len() as u64 + 1);
}

#[test]
fn payload_numbers_that_were_not_negotiated_go_nowhere_and_leave_no_hole() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    for number in [PCMA, 13, PCMA, 96, 96, PCMU, PCMA] {
        talker.fields.payload_type = number;
        bench.receive(Side::A, &talker.next());
    }
    talker.fields.payload_type = PCMA;
    bench.receive(Side::A, &packet(&talker.fields, &[]));
    talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
    bench.receive(Side::A, &talker.next());
    let sent = bench.take();
    assert_eq!(sent.len(), 4);
    assert_continuous(&sent);
    let stats = bench.stats(Side::A);
    assert_eq!((stats.discarded, stats.lost), (5, 0));
}

#[test]
fn nothing_is_learned_from_a_number_that_was_not_negotiated() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(77);
    bench.receive_from(Side::A, stranger(1), &talker.next());
    assert_eq!(bench.stats(Side::A).strangers, 1);
    bench.receive(Side::B, &Talker::new(PCMA).next());
    assert_eq!(
        bench.take()[0].to,
        peer(Side::A),
        "still where the description says"
    );
}

#[test]
fn the_first_source_is_learned_and_strangers_are_counted_and_dropped() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let (mut a, mut b) = (Talker::new(PCMA), Talker::new(PCMA));
    bench.receive_from(Side::A, stranger(4_444), &a.next());
    let session = bench.session.id();
    let learned = MediaEvent::SourceLearned {
        session,
        side: Side::A,
        from: stranger(4_444),
    };
    assert_eq!(bench.events(), [learned]);
    bench.receive(Side::B, &b.next());
    let mut intruder = Talker::new(PCMA);
    intruder.fields.ssrc = 0x6666_6666;
    bench.receive_from(Side::A, stranger(5_555), &intruder.next());
    bench.receive_from(Side::A, stranger(4_444), &a.next());
    let sent = bench.take();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[1].to, stranger(4_444), "behind a NAT, as it seems");
    assert_continuous(&[sent[0].clone(), sent[2].clone()]);
    let stats = bench.stats(Side::A);
    assert_eq!((stats.strangers, stats.source), (1, Some(stranger(4_444))));
    assert!(bench.events().is_empty());
}

#[test]
fn a_peer_that_moves_is_followed_once_its_old_address_is_silent() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    bench.receive(Side::A, &talker.next());
    assert!(
        bench.events().is_empty(),
        "it is where its description says"
    );
    for _ in 0..120 {
        bench.advance(20);
        bench.receive_from(Side::A, stranger(1), &talker.next());
    }
    let stats = bench.stats(Side::A);
    assert_eq!(stats.strangers, 99, "for two seconds");
    assert_eq!(stats.source, Some(stranger(1)));
    assert_eq!(bench.events().len(), 1);
    assert_continuous(&bench.take()[1..]);
}

#[test]
fn nothing_is_sent_to_an_address_neither_negotiated_nor_learned() {
    let mut spec = bridge(PCMA, PCMA);
    if let Some(leg) = &mut spec.legs[1] {
        leg.remote = None;
    }
    let mut bench = Bench::new(&spec);
    let (mut a, mut b) = (Talker::new(PCMA), Talker::new(PCMA));
    bench.receive(Side::A, &a.next());
    assert!(bench.take().is_empty());
    bench.receive_from(Side::B, stranger(2), &b.next());
    bench.receive(Side::A, &a.next());
    let sent = bench.take();
    assert_eq!(sent.len(), 2);
    assert_eq!(sent[1].to, stranger(2));
    assert!(sent[1].fields.marker, "the first that this leg is sent");
}

#[test]
fn a_flood_of_keys_does_not_fill_memory() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(DTMF);
    for number in 0..1_000_u32 {
        talker.fields.timestamp = number * 1_000;
        let bytes = packet(&talker.fields, &[1, 0x80, 0, 160]);
        talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
        bench.receive(Side::A, &bytes);
    }
    assert_eq!(bench.events().len(), 16);
}

fn programs() -> impl Strategy<Value = media::command::SessionSpec> {
    prop_oneof![
        Just(bridge(PCMA, PCMA)),
        Just(bridge(PCMA, PCMU)),
        Just({
            let mut spec = bridge(PCMA, PCMU);
            if let Some(leg) = &mut spec.legs[0] {
                leg.ptime_ms = 30;
            }
            spec
        }),
        Just(single(
            PCMA,
            Program::Echo {
                delay: Duration::ZERO
            }
        )),
        Just(single(
            PCMA,
            Program::Echo {
                delay: Duration::from_millis(300)
            }
        )),
        Just(single(
            PCMU,
            Program::Tone {
                hz: 440.0,
                level_dbm0: -10.0
            }
        )),
        Just(single(PCMU, Program::Record { beep: true })),
        Just(between_codecs(FLEX, None)),
        Just(between_codecs(HIGH, Some(13))),
        Just(between_codecs(WIDE, None)),
    ]
}

/// Leg A speaks A-law, and besides it another codec and comfort noise; leg B this codec.
fn between_codecs(to: (&str, u32, u8), noise: Option<u8>) -> media::command::SessionSpec {
    let mut spec = bridge(PCMA, PCMA);
    let mut a = common::leg(Side::A, PCMA);
    a.also = vec![common::leg_in(Side::A, FLEX).format];
    a.cn_recv = Some(13);
    let mut b = common::leg_in(Side::B, to);
    b.cn_send = noise;
    spec.legs = [Some(a), Some(b)];
    spec
}

/// What a sender may do between two packets of its own.
#[derive(Clone, Debug)]
enum Step {
    Talk,
    Lose(u16),
    Pause(u32),
    ChangeSsrc(u32, u16, u32),
    JumpSequence(u16),
    JumpTimestamp(u32),
    Number(u8),
    Length(u32),
    Key(u8, u16),
    Update(usize),
    Junk(Vec<u8>),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        12 => Just(Step::Talk),
        2 => (1..6_u16).prop_map(Step::Lose),
        1 => (1..2_000_u32).prop_map(Step::Pause),
        1 => any::<(u32, u16, u32)>().prop_map(|(a, b, c)| Step::ChangeSsrc(a, b, c)),
        1 => any::<u16>().prop_map(Step::JumpSequence),
        1 => any::<u32>().prop_map(Step::JumpTimestamp),
        1 => prop_oneof![Just(PCMA), Just(PCMU), Just(13), Just(DTMF), Just(common::number("FLEX"))].prop_map(Step::Number),
        1 => (0..500_u32).prop_map(Step::Length),
        1 => any::<(u8, u16)>().prop_map(|(code, duration)| Step::Key(code, duration)),
        1 => (0..4_usize).prop_map(Step::Update),
        1 => prop::collection::vec(any::<u8>(), 0..64).prop_map(Step::Junk),
    ];
    prop::collection::vec(step, 1..200)
}

/// One SSRC; numbers and, of audio, timestamps that never go back. Gaps in the numbers are losses
/// that the relay shows; packets that it passes on late are left out.
fn check_stream(sent: &[Sent]) {
    let Some(first) = sent.first() else { return };
    let (mut newest, mut audio) = (first.fields, None);
    for fields in sent.iter().map(|sent| sent.fields) {
        assert_eq!(fields.ssrc, first.fields.ssrc);
        let step = fields.sequence.wrapping_sub(newest.sequence) as i16;
        assert!((-100..20_000).contains(&step), "a step of {step}");
        if step < 0 {
            continue;
        }
        newest = fields;
        if fields.payload_type != DTMF {
            let before = audio.replace(fields.timestamp).unwrap_or(fields.timestamp);
            let ahead = rtp::timestamp_delta(fields.timestamp, before);
            assert!(ahead >= 0, "{} after {before}", fields.timestamp);
        }
    }
}

proptest! {
    /// A sender in order, whatever it does, is heard as one stream on the far leg, through updates
    /// too.
    #[test]
    fn output_is_one_stream_whatever_a_sender_does(spec in programs(), steps in steps()) {
        let hold = |side: usize| {
            let mut spec = spec.clone();
            if let Some(leg) = &mut spec.legs[side] {
                leg.send = false;
                leg.receive = false;
            }
            spec
        };
        let mut repacked = spec.clone();
        if let Some(leg) = &mut repacked.legs[0] {
            leg.ptime_ms = 40;
        }
        let updates = [spec.clone(), hold(0), hold(1), repacked];
        let mut bench = Bench::new(&spec);
        let mut talker = Talker::new(PCMA);
        for step in steps {
            match step {
                Step::Talk => {}
                Step::Lose(count) => {
                    talker.fields.sequence = talker.fields.sequence.wrapping_add(count);
                    let units = talker.units * u32::from(count);
                    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(units);
                }
                Step::Pause(ms) => {
                    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(ms * 8);
                    bench.run_for(ms.into());
                }
                Step::ChangeSsrc(ssrc, sequence, timestamp) => {
                    talker.fields = Fields { ssrc, sequence, timestamp, ..talker.fields };
                }
                Step::JumpSequence(by) => {
                    talker.fields.sequence = talker.fields.sequence.wrapping_add(by);
                }
                Step::JumpTimestamp(by) => {
                    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(by);
                }
                Step::Number(number) => talker.fields.payload_type = number,
                Step::Length(units) => talker.units = units,
                Step::Key(code, duration) => {
                    let [high, low] = duration.to_be_bytes();
                    let fields = Fields { payload_type: DTMF, ..talker.fields };
                    bench.receive(Side::A, &packet(&fields, &[code, 0x80, high, low]));
                    talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
                }
                Step::Update(which) => bench.update(&updates[which]),
                Step::Junk(bytes) => bench.receive(Side::A, &bytes),
            }
            bench.receive(Side::A, &talker.next());
            bench.run_for(20);
        }
        bench.run_for(1_000);
        let (to_b, to_a): (Vec<_>, Vec<_>) =
            bench.take().into_iter().partition(|sent| sent.port == common::port(Side::B));
        check_stream(&to_a);
        check_stream(&to_b);
    }

    #[test]
    fn random_datagrams_do_no_harm(
        spec in programs(),
        datagrams in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..200), 0..100),
    ) {
        let mut bench = Bench::new(&spec);
        for (number, mut datagram) in datagrams.into_iter().enumerate() {
            if let ([first, second, ..], 0) = (&mut datagram[..], number % 2) {
                *first = 0x80 | *first & 0x3f;
                *second = if *second & 1 == 0 { PCMA } else { DTMF };
            }
            bench.receive(Side::A, &datagram);
            bench.receive(Side::B, &datagram);
            bench.run_for(7);
        }
    }
}
