//! The relay path: what goes in on one leg comes out on the other.

mod common;

use common::{
    Bench, DTMF, PCMA, PCMU, Talker, assert_continuous, bridge, packet, payload, peer, port,
};
use media::command::{MediaEvent, Side};
use rtp::{Event, Fields};

#[test]
fn a_law_to_a_law_is_equal_octet_by_octet() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    let packets: Vec<_> = (0..50).map(|_| talker.next()).collect();
    for packet in &packets {
        bench.receive(Side::A, packet);
        bench.advance(20);
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 50);
    for (sent, packet) in sent.iter().zip(&packets) {
        assert_eq!((sent.port, sent.to), (port(Side::B), peer(Side::B)));
        assert_eq!(sent.payload, payload(packet));
        assert_eq!(sent.fields.payload_type, PCMA);
    }
    assert_continuous(&sent);
    assert!(sent[0].fields.marker && sent[1..].iter().all(|sent| !sent.fields.marker));
    assert_ne!(sent[0].fields.ssrc, 0x1111_2222, "our own SSRC");
}

#[test]
fn law_to_law_is_what_the_tables_of_g_711_say() {
    let mut bench = Bench::new(&bridge(PCMA, PCMU));
    let all: Vec<u8> = (0..=255).collect();
    let fields = Fields {
        payload_type: PCMA,
        ssrc: 1,
        ..Fields::default()
    };
    bench.receive(Side::A, &packet(&fields, &all));
    let fields = Fields {
        payload_type: PCMU,
        ssrc: 2,
        ..Fields::default()
    };
    bench.receive(Side::B, &packet(&fields, &all));
    let sent = bench.take();
    assert_eq!(sent[0].payload, g711::convert::ALAW_TO_ULAW);
    assert_eq!(
        (sent[0].port, sent[0].fields.payload_type),
        (port(Side::B), PCMU)
    );
    assert_eq!(sent[1].payload, g711::convert::ULAW_TO_ALAW);
    assert_eq!(
        (sent[1].port, sent[1].fields.payload_type),
        (port(Side::A), PCMA)
    );
}

#[test]
fn sequence_numbers_and_timestamps_wrap() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    for _ in 0..70_000 {
        bench.receive(Side::A, &talker.next());
        bench.advance(20);
        if bench.sent.len() == 2 {
            assert_continuous(&bench.sent);
            let [before, after] = &bench.sent[..] else {
                unreachable!("two")
            };
            assert_eq!(
                after.fields.timestamp.wrapping_sub(before.fields.timestamp),
                160
            );
            bench.sent.remove(0);
        }
    }
    let stats = bench.stats(Side::A);
    assert_eq!(
        (stats.packets_received, stats.lost, stats.streams),
        (70_000, 0, 1)
    );
    assert_eq!(bench.stats(Side::B).packets_sent, 70_000);
}

#[test]
fn order_and_loss_show_through_and_duplicates_do_not() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    let packets: Vec<_> = (0..10).map(|_| talker.next()).collect();
    for index in [0, 1, 3, 2, 3, 3, 6, 7, 4, 9] {
        bench.receive(Side::A, &packets[index]);
    }
    let sent = bench.take();
    let first = sent[0].fields;
    let places: Vec<_> = sent
        .iter()
        .map(|sent| sent.fields.sequence.wrapping_sub(first.sequence))
        .collect();
    assert_eq!(places, [0, 1, 3, 2, 6, 7, 4, 9]);
    for (sent, place) in sent.iter().zip(&places) {
        let ahead = sent.fields.timestamp.wrapping_sub(first.timestamp);
        assert_eq!(ahead, u32::from(*place) * 160);
        assert_eq!(sent.payload, payload(&packets[usize::from(*place)]));
    }
    let stats = bench.stats(Side::A);
    assert_eq!(
        (stats.packets_received, stats.duplicates, stats.lost),
        (8, 2, 2)
    );
}

/// BB-18, without SRTP: right after the wrap the sender changes its SSRC and jumps back 9,000 in
/// sequence.
#[test]
fn a_change_of_ssrc_after_the_wrap_goes_unnoticed_on_the_far_leg() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    for _ in 0..10 {
        bench.receive(Side::A, &talker.next());
        bench.advance(20);
    }
    talker.fields.ssrc = 0x3333_4444;
    talker.fields.sequence = talker.fields.sequence.wrapping_sub(9_000);
    talker.fields.timestamp = 12;
    for _ in 0..10 {
        bench.receive(Side::A, &talker.next());
        bench.advance(20);
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 20, "no packet of the new stream is lost");
    assert_continuous(&sent);
    assert!(sent[10].fields.marker);
    let step = sent[10]
        .fields
        .timestamp
        .wrapping_sub(sent[9].fields.timestamp);
    assert_eq!(step, 160, "wall time went on by 20 ms");
    assert_eq!(bench.stats(Side::A).streams, 2);
}

/// The same SSRC starting again elsewhere: one packet is held to be a stray, the next begins a new
/// stream.
#[test]
fn a_restart_under_the_same_ssrc_is_taken_up() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    for round in 0..2 {
        for _ in 0..10 {
            bench.receive(Side::A, &talker.next());
            bench.advance(20);
        }
        talker.fields.sequence = talker.fields.sequence.wrapping_add(20_000);
        talker.fields.timestamp = 77 * round;
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 19);
    assert_continuous(&sent);
    let step = sent[10]
        .fields
        .timestamp
        .wrapping_sub(sent[9].fields.timestamp);
    assert_eq!(step, 320, "the stray's time is passed over");
}

#[test]
fn a_sender_whose_timestamps_jump_is_brought_back_to_wall_time() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    for jump in [0_u32, 1 << 30, 0_u32.wrapping_sub(1 << 29), 0] {
        talker.fields.timestamp = talker.fields.timestamp.wrapping_add(jump);
        for _ in 0..5 {
            bench.receive(Side::A, &talker.next());
            bench.advance(20);
        }
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 20);
    assert_continuous(&sent);
    let whole = sent[19]
        .fields
        .timestamp
        .wrapping_sub(sent[0].fields.timestamp);
    assert_eq!(whole, 19 * 160);
}

#[test]
fn a_pause_of_the_senders_stays_a_pause() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    bench.receive(Side::A, &talker.next());
    bench.advance(60_000);
    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(60_000 * 8 - 160);
    talker.fields.marker = true;
    bench.receive(Side::A, &talker.next());
    let sent = bench.take();
    assert_continuous(&sent);
    assert!(sent[1].fields.marker);
    assert_eq!(
        sent[1]
            .fields
            .timestamp
            .wrapping_sub(sent[0].fields.timestamp),
        480_000
    );
}

fn event(talker: &mut Talker, payload_type: u8, event: Event, marker: bool) -> Vec<u8> {
    let mut payload = [0; 4];
    event.write(&mut payload);
    let bytes = packet(
        &Fields {
            payload_type,
            marker,
            ..talker.fields
        },
        &payload,
    );
    talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
    bytes
}

/// BB-19: each leg has its own number for telephone-events, and the audio number is never used for
/// them.
#[test]
fn events_leave_each_side_under_that_sides_number() {
    let mut spec = bridge(PCMA, PCMU);
    for (leg, number) in spec.legs.iter_mut().flatten().zip([96, DTMF]) {
        leg.dtmf_send = Some(number);
        leg.dtmf_recv = Some(number);
    }
    for (side, audio, number, other) in [(Side::A, PCMA, 96, DTMF), (Side::B, PCMU, DTMF, 96)] {
        let mut bench = Bench::new(&spec);
        let mut talker = Talker::new(audio);
        bench.receive(side, &talker.next());
        bench.advance(20);
        let key = |end, duration| Event {
            code: 5,
            end,
            volume: 10,
            duration,
        };
        for (step, end) in [false, false, false, true, true, true]
            .into_iter()
            .enumerate()
        {
            let duration = 160 * (step as u16 + 1).min(4);
            bench.receive(
                side,
                &event(&mut talker, number, key(end, duration), step == 0),
            );
            bench.advance(20);
        }
        talker.fields.timestamp = talker.fields.timestamp.wrapping_add(960);
        bench.receive(side, &talker.next());
        let sent = bench.take();
        let numbers: Vec<_> = sent.iter().map(|sent| sent.fields.payload_type).collect();
        let to_audio = if audio == PCMA { PCMU } else { PCMA };
        assert_eq!(
            numbers,
            [to_audio, other, other, other, other, other, other, to_audio]
        );
        assert_continuous(&sent);
        let stamps: Vec<_> = sent[1..7]
            .iter()
            .map(|sent| sent.fields.timestamp)
            .collect();
        assert!(
            stamps.iter().all(|&stamp| stamp == stamps[0]),
            "one timestamp per event"
        );
        assert!(sent[1].fields.marker && !sent[2].fields.marker);
        assert_eq!(
            sent[6].payload,
            [5, 0x80 | 10, 2, 128],
            "untouched, not taken through a law table"
        );
        let expected = MediaEvent::Digit {
            session: bench.session.id(),
            side,
            digit: '5',
            duration_ms: 80,
        };
        assert_eq!(bench.events(), [expected]);
    }
}

#[test]
fn events_for_a_leg_that_takes_none_leave_no_hole() {
    let mut spec = bridge(PCMA, PCMA);
    if let Some(leg) = &mut spec.legs[1] {
        leg.dtmf_send = None;
    }
    let mut bench = Bench::new(&spec);
    let mut talker = Talker::new(PCMA);
    bench.receive(Side::A, &talker.next());
    let key = Event {
        code: 1,
        end: true,
        volume: 10,
        duration: 400,
    };
    for _ in 0..3 {
        bench.receive(Side::A, &event(&mut talker, DTMF, key, false));
    }
    bench.receive(Side::A, &talker.next());
    let sent = bench.take();
    assert_eq!(sent.len(), 2);
    assert_continuous(&sent);
    assert_eq!(bench.events().len(), 1, "but the key is reported");
}

#[test]
fn an_event_whose_end_is_lost_is_reported_after_a_while() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    let key = Event {
        code: 11,
        end: false,
        volume: 10,
        duration: 800,
    };
    bench.receive(Side::A, &event(&mut talker, DTMF, key, true));
    bench.run_for(2_900);
    assert!(bench.events().is_empty());
    bench.run_for(200);
    let session = bench.session.id();
    let expected = MediaEvent::Digit {
        session,
        side: Side::A,
        digit: '#',
        duration_ms: 100,
    };
    assert_eq!(bench.events(), [expected]);
    assert_eq!(bench.session.poll_timeout(), None);
}

/// Found by the property test: events far off the sender's own audio clock pulled audio timestamps
/// back by half a circle.
#[test]
fn events_with_a_clock_of_their_own_do_not_pull_audio_back() {
    let mut bench = Bench::new(&bridge(PCMA, PCMA));
    let mut talker = Talker::new(PCMA);
    let key = Event {
        code: 1,
        end: false,
        volume: 10,
        duration: 160,
    };
    bench.receive(Side::A, &talker.next());
    for jump in [3_806_346, 2_143_676_342] {
        bench.advance(20);
        talker.fields.timestamp = talker.fields.timestamp.wrapping_add(jump);
        bench.receive(Side::A, &event(&mut talker, DTMF, key, true));
    }
    bench.advance(20);
    bench.receive(Side::A, &talker.next());
    let sent = bench.take();
    assert_eq!(sent.len(), 4);
    assert_continuous(&sent);
    let whole = sent[3]
        .fields
        .timestamp
        .wrapping_sub(sent[0].fields.timestamp);
    assert_eq!(
        whole,
        2 * 160,
        "audio goes on at the timestamp of the event"
    );
}
