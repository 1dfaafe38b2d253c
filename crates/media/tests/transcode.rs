//! The transcode path, and packet times that differ.

mod common;

use std::time::Duration;

use audio::level::dbm0;
use common::{Bench, DTMF, PCMA, PCMU, Sent, Talker, assert_continuous, bridge, packet, payload};
use media::command::{SessionSpec, Side};
use rtp::{Event, Fields};

/// Legs of different packet times: the way through decoder, queue and encoder.
fn paced(a: (u8, u32), b: (u8, u32)) -> SessionSpec {
    let mut spec = bridge(a.0, b.0);
    for (leg, (_, ptime_ms)) in spec.legs.iter_mut().flatten().zip([a, b]) {
        leg.ptime_ms = ptime_ms;
    }
    spec
}

/// Sends packets of this many milliseconds at their times, and lets the rest leave.
fn talk(bench: &mut Bench, side: Side, talker: &mut Talker, ms: u64, count: usize) -> Vec<u8> {
    talker.units = ms as u32 * 8;
    let mut said = Vec::new();
    for _ in 0..count {
        let packet = talker.next();
        said.extend_from_slice(payload(&packet));
        bench.receive(side, &packet);
        bench.run_for(ms);
    }
    bench.run_for(200);
    said
}

fn heard(sent: &[Sent]) -> Vec<u8> {
    sent.iter()
        .flat_map(|sent| sent.payload.iter().copied())
        .collect()
}

/// BB-22: one leg asks for 30 ms, the other for 20 ms, then 60 ms.
#[test]
fn packets_are_cut_anew_and_leave_evenly() {
    for (from_ms, to_ms) in [
        (20, 30),
        (30, 20),
        (20, 60),
        (60, 20),
        (30, 60),
        (10, 30),
        (20, 10),
    ] {
        let mut bench = Bench::new(&paced((PCMA, from_ms), (PCMA, to_ms)));
        let mut talker = Talker::new(PCMA);
        let said = talk(&mut bench, Side::A, &mut talker, from_ms.into(), 60);
        let sent = bench.take();
        assert!(
            sent.iter()
                .all(|sent| sent.payload.len() == to_ms as usize * 8)
        );
        assert_continuous(&sent);
        let period = Duration::from_millis(to_ms.into());
        for pair in sent.windows(2) {
            assert_eq!(pair[1].at - pair[0].at, period, "{from_ms} to {to_ms} ms");
            let step = pair[1]
                .fields
                .timestamp
                .wrapping_sub(pair[0].fields.timestamp);
            assert_eq!(step, to_ms * 8);
        }
        let heard = heard(&sent);
        assert_eq!(
            heard,
            said[..heard.len()],
            "A-law stays A-law, octet by octet"
        );
        assert!(
            said.len() - heard.len() < to_ms as usize * 8,
            "nothing whole is kept back"
        );
    }
}

#[test]
fn packets_cut_anew_in_the_other_law_are_what_the_table_says() {
    let mut bench = Bench::new(&paced((PCMA, 30), (PCMU, 20)));
    let mut talker = Talker::new(PCMA);
    let said = talk(&mut bench, Side::A, &mut talker, 30, 40);
    let heard = heard(&bench.take());
    for (said, heard) in said.iter().zip(&heard) {
        let table = g711::convert::alaw_to_ulaw(*said);
        // The two zeros of mu-law are one in PCM.
        let expected = if table == 0x7f { 0xff } else { table };
        assert_eq!(*heard, expected);
    }
    assert!(heard.len() >= 39 * 240);
}

#[test]
fn packets_that_come_late_leave_on_time_and_a_dry_queue_starts_anew() {
    let mut bench = Bench::new(&paced((PCMA, 20), (PCMA, 30)));
    let mut talker = Talker::new(PCMA);
    let mut late = 0;
    for number in 0..60 {
        late = if number % 3 == 0 { 8 } else { 0 };
        bench.run_for(late);
        bench.receive(Side::A, &talker.next());
        bench.run_for(20 - late);
    }
    let sent = bench.take();
    assert!(
        sent.windows(2)
            .all(|pair| pair[1].at - pair[0].at == Duration::from_millis(30))
    );
    assert_eq!(late, 0);
    bench.run_for(500);
    bench.take();
    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(500 * 8);
    talk(&mut bench, Side::A, &mut talker, 20, 30);
    let again = bench.take();
    assert!(again.len() >= 19);
    let even = again[1..]
        .windows(2)
        .all(|pair| pair[1].at - pair[0].at == Duration::from_millis(30));
    assert!(even, "what was left goes first, the rest evenly");
    assert_continuous(&again);
}

#[test]
fn up_to_three_lost_frames_are_concealed_with_timestamps_of_their_own() {
    for lost in 1..=4_u16 {
        let mut bench = Bench::new(&paced((PCMA, 20), (PCMU, 10)));
        let mut talker = Talker::new(PCMA);
        talk(&mut bench, Side::A, &mut talker, 20, 10);
        bench.take();
        bench.advance(20 * u64::from(lost));
        talker.fields.sequence = talker.fields.sequence.wrapping_add(lost);
        talker.fields.timestamp = talker.fields.timestamp.wrapping_add(160 * u32::from(lost));
        talk(&mut bench, Side::A, &mut talker, 20, 5);
        let sent = bench.take();
        assert_continuous(&sent);
        let steps: Vec<_> = sent
            .windows(2)
            .map(|pair| {
                pair[1]
                    .fields
                    .timestamp
                    .wrapping_sub(pair[0].fields.timestamp)
            })
            .collect();
        assert!(steps.iter().all(|&step| step == 80), "{lost}: {steps:?}");
        let concealed = u64::from(if lost <= 3 { lost } else { 0 });
        assert_eq!(bench.stats(Side::B).concealed, concealed);
        assert_eq!(sent.len() as u64, 2 * (5 + concealed), "{lost} lost");
        assert_eq!(bench.stats(Side::A).lost, i64::from(lost));
    }
}

#[test]
fn a_frame_older_than_the_last_decoded_is_dropped_and_counted() {
    let mut bench = Bench::new(&paced((PCMA, 20), (PCMU, 10)));
    let mut talker = Talker::new(PCMA);
    let packets: Vec<_> = (0..6).map(|_| talker.next()).collect();
    for index in [0, 1, 3, 2, 4, 5] {
        bench.receive(Side::A, &packets[index]);
        bench.run_for(20);
    }
    bench.run_for(100);
    assert_eq!(bench.stats(Side::A).late, 1);
    assert_eq!(bench.stats(Side::B).concealed, 1);
    let sent = bench.take();
    assert_continuous(&sent);
    assert_eq!(sent.len(), 12);
}

#[test]
fn a_pause_is_not_concealed_and_what_was_left_goes_out() {
    let mut bench = Bench::new(&paced((PCMA, 20), (PCMA, 30)));
    let mut talker = Talker::new(PCMA);
    talk(&mut bench, Side::A, &mut talker, 20, 4);
    assert_eq!(
        bench.take().len(),
        2,
        "80 ms are two packets and 20 ms left"
    );
    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(8_000);
    talker.fields.marker = true;
    bench.advance(1_000);
    talk(&mut bench, Side::A, &mut talker, 20, 3);
    let sent = bench.take();
    assert_eq!(sent.len(), 3);
    assert_eq!(sent[0].payload[160..], [0xd5; 80], "filled up with silence");
    assert!(sent[1].fields.marker, "a talk spurt begins");
    assert_eq!(bench.stats(Side::B).concealed, 0);
    let step = sent[1]
        .fields
        .timestamp
        .wrapping_sub(sent[0].fields.timestamp);
    assert_eq!(
        step, 8_160,
        "where it began, 160 after the last whole packet and a pause of 8,000"
    );
    assert_continuous(&sent);
}

#[test]
fn events_pass_by_the_codecs_and_are_no_loss() {
    let mut spec = paced((PCMA, 20), (PCMU, 10));
    if let Some(leg) = &mut spec.legs[1] {
        leg.dtmf_send = Some(96);
    }
    let mut bench = Bench::new(&spec);
    let mut talker = Talker::new(PCMA);
    talk(&mut bench, Side::A, &mut talker, 20, 5);
    let key = Event {
        code: 3,
        end: true,
        volume: 10,
        duration: 480,
    };
    let mut octets = [0; 4];
    key.write(&mut octets);
    for _ in 0..3 {
        bench.receive(
            Side::A,
            &packet(
                &Fields {
                    payload_type: DTMF,
                    ..talker.fields
                },
                &octets,
            ),
        );
        talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
    }
    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(480);
    talk(&mut bench, Side::A, &mut talker, 20, 5);
    let sent = bench.take();
    assert_continuous(&sent);
    let events: Vec<_> = sent
        .iter()
        .filter(|sent| sent.fields.payload_type == 96)
        .collect();
    assert_eq!(events.len(), 3);
    assert!(events.iter().all(|sent| sent.payload == octets));
    assert_eq!(bench.stats(Side::B).concealed, 0);
    assert_eq!(bench.events().len(), 1);
}

#[test]
fn a_change_of_ssrc_goes_unnoticed_on_the_far_leg() {
    let mut bench = Bench::new(&paced((PCMA, 20), (PCMU, 10)));
    let mut talker = Talker::new(PCMA);
    talk(&mut bench, Side::A, &mut talker, 20, 5);
    talker.fields = Fields {
        ssrc: 9,
        sequence: 5,
        timestamp: 123_456,
        ..talker.fields
    };
    talk(&mut bench, Side::A, &mut talker, 20, 5);
    let sent = bench.take();
    assert_eq!(sent.len(), 20);
    assert_continuous(&sent);
}

#[test]
fn a_payload_that_cannot_be_decoded_is_counted_and_made_up_for() {
    let mut bench = Bench::new(&paced((PCMA, 20), (PCMU, 10)));
    let mut talker = Talker::new(PCMA);
    talk(&mut bench, Side::A, &mut talker, 20, 5);
    bench.receive(Side::A, &packet(&talker.fields, &[0x55; 1_400]));
    bench.run_for(20);
    talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(160);
    talk(&mut bench, Side::A, &mut talker, 20, 5);
    assert_eq!(bench.stats(Side::A).discarded, 1);
    assert_eq!(bench.stats(Side::B).concealed, 1);
    assert_continuous(&bench.take());
}

#[test]
fn sound_keeps_its_level_through_the_other_law() {
    let mut bench = Bench::new(&paced((PCMA, 20), (PCMU, 30)));
    let mut tone = audio::tone::Tone::new(1_004.0, audio::level::Dbm0(-12.0), 8_000);
    let mut fields = Fields {
        payload_type: PCMA,
        ssrc: 5,
        ..Fields::default()
    };
    for _ in 0..50 {
        let mut pcm = [0; 160];
        tone.fill(&mut pcm);
        let octets = pcm.map(g711::law::alaw_encode);
        bench.receive(Side::A, &packet(&fields, &octets));
        fields.sequence += 1;
        fields.timestamp += 160;
        bench.run_for(20);
    }
    let pcm: Vec<i16> = heard(&bench.take())
        .into_iter()
        .map(g711::law::ulaw_decode)
        .collect();
    let level = dbm0(&pcm).0;
    assert!((level + 12.1).abs() < 0.15, "{level}");
}

/// Found by the property test: such an event moved the timestamps of audio that still waited.
#[test]
fn an_event_with_a_clock_of_its_own_lets_waiting_audio_go_first() {
    let mut bench = Bench::new(&paced((PCMA, 40), (PCMA, 20)));
    let mut talker = Talker::new(PCMA);
    for _ in 0..5 {
        bench.receive(Side::A, &talker.next());
        bench.run_for(20);
    }
    let timestamp = talker.fields.timestamp.wrapping_sub(1 << 30);
    let fields = Fields {
        payload_type: DTMF,
        timestamp,
        ..talker.fields
    };
    bench.receive(Side::A, &packet(&fields, &[1, 0x80, 0, 160]));
    talker.fields.sequence = talker.fields.sequence.wrapping_add(1);
    for _ in 0..5 {
        bench.receive(Side::A, &talker.next());
        bench.run_for(20);
    }
    bench.run_for(100);
    let sent = bench.take();
    assert_eq!(sent.len(), 11);
    assert_continuous(&sent);
}
