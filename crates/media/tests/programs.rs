//! Programs of one leg, hold and resume, and what the tap sees of it all.

mod common;

use std::time::Duration;

use audio::clip::Clip;
use audio::level::{dbm0, peak};
use audio::tap::{TapEvent, TapMark, tap};
use common::{
    Bench, DTMF, PCMA, PCMU, Sent, Talker, assert_continuous, bridge, leg, packet, payload, peer,
    port, registry, single,
};
use media::command::{ClipId, MediaEvent, PayloadFormat, Program, SessionId, SessionSpec, Side};
use media::{Session, SessionError};
use rtp::{Event, Fields};

const TONE: Program = Program::Tone {
    hz: 1_004.0,
    level_dbm0: 0.0,
};

fn pcm(sent: &[Sent]) -> Vec<i16> {
    sent.iter()
        .flat_map(|sent| sent.payload.iter().map(|&o| g711::law::alaw_decode(o)))
        .collect()
}

fn assert_paced(sent: &[Sent], period: Duration) {
    for (number, sent) in (0..).zip(sent) {
        assert_eq!(sent.at, period * number, "packet {number}");
    }
}

#[test]
fn echo_sends_back_what_it_gets_under_its_own_numbers() {
    let mut bench = Bench::new(&single(
        PCMA,
        Program::Echo {
            delay: Duration::ZERO,
        },
    ));
    let mut talker = Talker::new(PCMA);
    let packets: Vec<_> = (0..10).map(|_| talker.next()).collect();
    for packet in &packets {
        bench.receive(Side::A, packet);
        bench.advance(20);
    }
    let key = Event {
        code: 4,
        end: true,
        volume: 0,
        duration: 160,
    };
    let mut octets = [0; 4];
    key.write(&mut octets);
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
    let sent = bench.take();
    assert_eq!(sent.len(), 11);
    assert_continuous(&sent);
    for (sent, packet) in sent.iter().zip(&packets) {
        assert_eq!((sent.port, sent.to), (port(Side::A), peer(Side::A)));
        assert_eq!(sent.payload, payload(packet));
        assert_ne!(
            sent.fields.ssrc, talker.fields.ssrc,
            "an echo under the same SSRC is a loop"
        );
    }
    assert_eq!(
        (sent[10].fields.payload_type, &sent[10].payload[..]),
        (DTMF, &octets[..])
    );
}

#[test]
fn delayed_echo_comes_back_five_seconds_later() {
    let delay = Duration::from_secs(5);
    let mut bench = Bench::new(&single(PCMA, Program::Echo { delay }));
    let mut talker = Talker::new(PCMA);
    let mut said = Vec::new();
    for number in 0..400 {
        if number == 200 {
            talker.fields.ssrc = 77;
        }
        let packet = talker.next();
        said.push((bench.at(), payload(&packet).to_vec()));
        bench.receive(Side::A, &packet);
        bench.run_for(20);
    }
    bench.run_for(6_000);
    let sent = bench.take();
    assert_eq!(sent.len(), said.len());
    for (sent, (at, payload)) in sent.iter().zip(&said) {
        assert_eq!((sent.at, &sent.payload), (*at + delay, payload));
    }
    assert_continuous(&sent);
    assert_eq!(bench.session.poll_timeout(), None);
}

#[test]
fn a_tone_is_exact_in_level_frequency_and_time() {
    let mut bench = Bench::new(&single(PCMA, TONE));
    bench.run_for(10_000);
    let sent = bench.take();
    assert_eq!(sent.len(), 501, "at 0, 20, ... 10,000 ms");
    assert_paced(&sent, Duration::from_millis(20));
    assert_continuous(&sent);
    assert!(sent.windows(2).all(|pair| {
        pair[1]
            .fields
            .timestamp
            .wrapping_sub(pair[0].fields.timestamp)
            == 160
    }));
    assert!(sent[0].fields.marker && !sent[1].fields.marker);
    let pcm = pcm(&sent);
    assert!(dbm0(&pcm).0.abs() < 0.05, "{:?}", dbm0(&pcm));
    let rises = pcm
        .windows(2)
        .filter(|pair| pair[0] < 0 && pair[1] >= 0)
        .count();
    assert!(
        (rises as i64 - 10_060).abs() <= 2,
        "{rises} cycles in 10.02 s"
    );
}

#[test]
fn deadlines_do_not_drift_and_late_ticks_catch_up_in_bounds() {
    let mut bench = Bench::new(&single(PCMA, TONE));
    for step in 0..4_000_u64 {
        bench.tick();
        bench.advance(if step % 5 == 0 { 7 } else { 5 });
    }
    let elapsed = bench.at().as_millis() as u64;
    bench.tick();
    let sent = bench.take();
    assert_eq!(
        sent.len() as u64,
        elapsed / 20 + 1,
        "no packet more or less than time has passed"
    );
    assert_continuous(&sent);

    bench.advance(80);
    bench.tick();
    assert_eq!(bench.take().len(), 4, "four are late and leave together");
    bench.advance(10_000);
    bench.tick();
    let burst = bench.take();
    assert_eq!(burst.len(), 5, "the rest is passed over");
    bench.run_for(100);
    let after = bench.take();
    let whole: Vec<_> = sent[sent.len() - 1..]
        .iter()
        .chain(&burst)
        .chain(&after)
        .cloned()
        .collect();
    let total = whole[whole.len() - 1]
        .fields
        .timestamp
        .wrapping_sub(whole[0].fields.timestamp);
    assert_eq!(
        total,
        (80 + 10_000 + 100) * 8,
        "timestamps keep to wall time"
    );
}

fn clip(len: usize) -> Clip {
    let samples: Vec<i16> = (0..len).map(|n| (n % 100) as i16 * 256 - 12_800).collect();
    Clip::new(8_000, samples)
}

#[test]
fn a_clip_is_played_once_and_its_end_is_told_once() {
    let clip = clip(1_000);
    let play = Program::Play {
        clip: ClipId(1),
        repeat: false,
    };
    let mut bench = Bench::with_clip(&single(PCMA, play), Some(clip.clone()));
    bench.run_for(1_000);
    let heard = pcm(&bench.take());
    for (heard, sample) in heard.iter().zip(clip.samples.iter()) {
        assert_eq!(
            *heard,
            g711::law::alaw_decode(g711::law::alaw_encode(*sample))
        );
    }
    assert!(peak(&heard[1_000..]) <= 8, "silence after the end");
    let session = SessionId(7);
    assert_eq!(bench.events(), [MediaEvent::PlayFinished { session }]);
}

#[test]
fn a_repeated_clip_has_no_end() {
    let play = Program::Play {
        clip: ClipId(1),
        repeat: true,
    };
    let mut bench = Bench::with_clip(&single(PCMA, play), Some(clip(1_000)));
    bench.run_for(5_000);
    let heard = pcm(&bench.take());
    assert_eq!(heard[..1_000], heard[1_000..2_000]);
    assert_eq!(heard[..1_000], heard[4_000..5_000]);
    assert!(bench.events().is_empty());
}

#[test]
fn a_clip_of_another_rate_is_played_at_its_own_pitch_and_length() {
    let mut samples = vec![0; 16_000];
    audio::tone::Tone::new(500.0, audio::level::Dbm0(-6.0), 16_000).fill(&mut samples);
    let play = Program::Play {
        clip: ClipId(1),
        repeat: false,
    };
    let mut bench = Bench::with_clip(&single(PCMA, play), Some(Clip::new(16_000, samples)));
    bench.run_for(1_200);
    let heard = pcm(&bench.take());
    let rises = heard[..8_000]
        .windows(2)
        .filter(|pair| pair[0] < -8 && pair[1] >= 0)
        .count();
    assert!((495..=500).contains(&rises), "{rises} cycles in a second");
    assert!((dbm0(&heard[400..7_600]).0 + 6.0).abs() < 0.2);
    assert!(peak(&heard[8_160..]) <= 8);
}

#[test]
fn record_beeps_and_then_keeps_silent_while_it_is_heard() {
    let mut bench = Bench::new(&single(PCMA, Program::Record { beep: true }));
    bench.run_for(2_000);
    let sent = bench.take();
    let heard = pcm(&sent);
    assert!(dbm0(&heard[..3_200]).0 > -14.0);
    assert!(peak(&heard[3_200..]) <= 8);
    assert_continuous(&sent);
    let mut quiet = Bench::new(&single(PCMA, Program::Record { beep: false }));
    quiet.run_for(1_000);
    assert!(peak(&pcm(&quiet.take())) <= 8);
}

/// Relay, transcode, hold, resume, program: one stream for the peer, at wall time.
#[test]
fn a_leg_hears_one_stream_through_all_changes() {
    let relay = bridge(PCMA, PCMA);
    let mut other_law = bridge(PCMU, PCMA);
    let mut other_time = bridge(PCMA, PCMA);
    let mut hold = bridge(PCMA, PCMA);
    if let Some(leg) = &mut other_law.legs[0] {
        leg.ptime_ms = 30;
    }
    if let Some(leg) = &mut other_time.legs[0] {
        leg.ptime_ms = 10;
    }
    if let Some(leg) = &mut hold.legs[1] {
        leg.send = false;
    }
    let mut bench = Bench::new(&relay);
    let steps = [
        (&relay, PCMA),
        (&other_law, PCMU),
        (&hold, PCMA),
        (&relay, PCMA),
        (&other_time, PCMA),
        (&relay, PCMA),
    ];
    let mut talker = Talker::new(PCMA);
    let mut held = None;
    for (number, (spec, payload_type)) in steps.into_iter().enumerate() {
        bench.update(spec);
        talker.fields.payload_type = payload_type;
        let before = bench.sent.len();
        for _ in 0..50 {
            bench.receive(Side::A, &talker.next());
            bench.run_for(20);
        }
        if number == 2 {
            held = Some(bench.sent.len() - before);
        }
    }
    let sent = bench.take();
    assert_eq!(held, Some(0), "nothing is sent to a leg on hold");
    assert_continuous(&sent);
    assert!(sent.iter().all(|sent| sent.fields.payload_type == PCMA));
    let (first, last) = (&sent[0], &sent[sent.len() - 1]);
    let units = last.fields.timestamp.wrapping_sub(first.fields.timestamp);
    let wall = (last.at - first.at).as_millis() as u32 * 8;
    assert!(
        units.abs_diff(wall) <= 480,
        "{units} units in a time of {wall}"
    );
    let markers = sent.iter().filter(|sent| sent.fields.marker).count();
    assert_eq!(markers, 5, "one where each path begins");
    let hold_gap = sent.windows(2).map(|pair| pair[1].at - pair[0].at).max();
    assert!(hold_gap.is_some_and(|gap| gap >= Duration::from_secs(1)));
}

#[test]
fn an_update_that_changes_nothing_for_the_media_breaks_nothing() {
    let spec = bridge(PCMA, PCMA);
    let mut moved = spec.clone();
    if let Some(leg) = &mut moved.legs[1] {
        leg.remote = Some(([198, 51, 100, 1], 9_000).into());
    }
    let mut bench = Bench::new(&spec);
    let mut talker = Talker::new(PCMA);
    for number in 0..10 {
        if number == 5 {
            bench.update(&moved);
        }
        bench.receive(Side::A, &talker.next());
        bench.advance(20);
    }
    let sent = bench.take();
    assert_continuous(&sent);
    assert!(sent[1..].iter().all(|sent| !sent.fields.marker));
    assert_eq!(sent[4].to, peer(Side::B));
    assert_eq!(sent[5].to, ([198, 51, 100, 1], 9_000).into());
}

#[test]
fn a_tone_on_hold_is_silent_and_goes_on_afterwards() {
    let spec = single(PCMA, TONE);
    let mut hold = spec.clone();
    if let Some(leg) = &mut hold.legs[0] {
        leg.send = false;
    }
    let mut bench = Bench::new(&spec);
    bench.run_for(990);
    bench.update(&hold);
    assert_eq!(
        bench.session.poll_timeout(),
        None,
        "nothing to do while on hold"
    );
    bench.run_for(2_000);
    bench.update(&spec);
    bench.run_for(1_000);
    let sent = bench.take();
    assert_eq!(sent.len(), 50 + 51);
    assert_continuous(&sent);
    let gap = sent[50]
        .fields
        .timestamp
        .wrapping_sub(sent[49].fields.timestamp);
    assert_eq!(gap, (2_990 - 980) * 8, "at wall time");
}

#[test]
fn a_leg_that_does_not_receive_gets_and_gives_nothing() {
    let mut spec = bridge(PCMA, PCMA);
    if let Some(leg) = &mut spec.legs[0] {
        leg.receive = false;
    }
    let mut bench = Bench::new(&spec);
    let mut talker = Talker::new(PCMA);
    for _ in 0..5 {
        bench.receive(Side::A, &talker.next());
        bench.receive(Side::B, &talker.clone().next());
    }
    let sent = bench.take();
    assert!(
        sent.iter().all(|sent| sent.port == port(Side::A)),
        "B is still heard"
    );
    assert_eq!((sent.len(), bench.stats(Side::A).discarded), (5, 5));
}

#[test]
fn what_cannot_be_done_is_refused_and_leaves_the_session_as_it_was() {
    let unknown = |side: Side| {
        let mut spec = bridge(PCMA, PCMU);
        let leg = spec.legs[side.index()].as_mut().expect("both legs");
        leg.format = PayloadFormat {
            name: "G729".into(),
            ..leg.format.clone()
        };
        spec
    };
    let new = |spec: &SessionSpec| {
        Session::new(SessionId(1), spec, &registry(), None, 1, common::epoch()).map(drop)
    };
    for side in Side::BOTH {
        assert_eq!(new(&unknown(side)), Err(SessionError::Codec { side }));
    }
    let legs = [None, Some(leg(Side::B, PCMA))];
    let headless = SessionSpec {
        legs,
        program: Program::Bridge,
    };
    assert_eq!(new(&headless), Err(SessionError::Incomplete));
    let play = single(
        PCMA,
        Program::Play {
            clip: ClipId(1),
            repeat: true,
        },
    );
    assert_eq!(
        new(&play),
        Err(SessionError::Incomplete),
        "no clip was handed in"
    );

    let mut bench = Bench::new(&bridge(PCMA, PCMU));
    let mut talker = Talker::new(PCMA);
    bench.receive(Side::A, &talker.next());
    let refused = bench.session.update(bench.now, &unknown(Side::B));
    assert_eq!(refused, Err(SessionError::Codec { side: Side::B }));
    bench.receive(Side::A, &talker.next());
    let sent = bench.take();
    assert_eq!(sent.len(), 2);
    assert_continuous(&sent);
}

#[test]
fn a_codec_that_is_not_built_in_is_relayed_all_the_same() {
    let mut spec = bridge(18, 18);
    for leg in spec.legs.iter_mut().flatten() {
        leg.format.name = "G729".into();
    }
    let mut bench = Bench::new(&spec);
    let mut talker = Talker::new(18);
    bench.receive(Side::A, &talker.next());
    assert_eq!(bench.take().len(), 1);
}

#[test]
fn early_media_waits_for_leg_b() {
    let mut spec = bridge(PCMA, PCMA);
    let callee = spec.legs[1].take();
    let mut bench = Bench::new(&spec);
    let mut talker = Talker::new(PCMA);
    bench.receive(Side::A, &talker.next());
    bench.receive(Side::B, &talker.clone().next());
    assert!(bench.take().is_empty());
    spec.legs[1] = callee;
    bench.update(&spec);
    bench.receive(Side::A, &talker.next());
    bench.receive(Side::B, &talker.clone().next());
    assert_eq!(bench.take().len(), 2);
}

/// Side, arrival and payload of a tapped frame.
type Tapped = (u8, Duration, Vec<u8>);

/// What a tap holds: its frames, and its marks as text.
fn drain(reader: &mut audio::tap::TapReader) -> (Vec<Tapped>, Vec<String>) {
    let (mut frames, mut marks) = (Vec::new(), Vec::new());
    reader.pop(|event| match event {
        TapEvent::Frame(frame) => frames.push((frame.side, frame.at, frame.payload.to_vec())),
        TapEvent::Mark(TapMark::Codec {
            side,
            payload_type,
            name,
            clock_rate,
            ..
        }) => {
            marks.push(format!("{side}:{payload_type}={name}/{clock_rate}"));
        }
        TapEvent::Mark(TapMark::Start { .. }) => marks.push("start".to_owned()),
        TapEvent::Mark(TapMark::Stop { .. }) => marks.push("stop".to_owned()),
        TapEvent::Mark(other) => panic!("{other:?}"),
    });
    (frames, marks)
}

#[test]
fn the_tap_of_a_bridge_has_what_both_peers_say_before_it_is_changed() {
    let mut bench = Bench::new(&bridge(PCMA, PCMU));
    let (writer, mut reader) = tap(64);
    let (mut a, mut b) = (Talker::new(PCMA), Talker::new(PCMU));
    bench.receive(Side::A, &a.next());
    bench.session.set_tap(bench.now, Some(writer));
    bench.advance(20);
    let (said_a, said_b) = (a.next(), b.next());
    bench.receive(Side::A, &said_a);
    bench.receive(Side::B, &said_b);
    let swapped = bridge(PCMU, PCMU);
    bench.update(&swapped);
    bench.session.set_tap(bench.now, None);
    bench.receive(Side::A, &a.next());
    let (frames, marks) = drain(&mut reader);
    let at = Duration::from_millis(20);
    assert_eq!(
        frames,
        [
            (0, at, payload(&said_a).to_vec()),
            (1, at, payload(&said_b).to_vec())
        ],
        "as they came, before any law table"
    );
    let expected = [
        "start",
        "0:8=PCMA/8000",
        "1:0=PCMU/8000",
        "0:0=PCMU/8000",
        "1:0=PCMU/8000",
        "stop",
    ];
    assert_eq!(marks, expected);
    assert!(reader.is_closed());
}

#[test]
fn the_tap_of_one_leg_has_what_we_said_on_side_b() {
    for program in [
        Program::Echo {
            delay: Duration::ZERO,
        },
        Program::Echo {
            delay: Duration::from_millis(100),
        },
        TONE,
        Program::Record { beep: true },
    ] {
        let mut bench = Bench::new(&single(PCMA, program.clone()));
        let (writer, mut reader) = tap(256);
        bench.session.set_tap(bench.now, Some(writer));
        let mut talker = Talker::new(PCMA);
        let mut said = Vec::new();
        for _ in 0..20 {
            let packet = talker.next();
            said.push(payload(&packet).to_vec());
            bench.receive(Side::A, &packet);
            bench.run_for(20);
        }
        let (frames, marks) = drain(&mut reader);
        let side = |which: u8| -> Vec<Vec<u8>> {
            let frames = frames.iter().filter(|(side, ..)| *side == which);
            frames.map(|(.., payload)| payload.clone()).collect()
        };
        assert_eq!(side(0), said, "{program:?}");
        let sent: Vec<_> = bench.take().into_iter().map(|sent| sent.payload).collect();
        assert_eq!(side(1), sent, "{program:?}");
        assert_eq!(marks, ["start", "0:8=PCMA/8000", "1:8=PCMA/8000"]);
    }
}
