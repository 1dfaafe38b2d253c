//! The timeline on simulated time: what each leg does to the length and the place of its audio.

mod support;

use std::time::Duration;

use audio::tap::{TapEvent, TapMark};
use proptest::prelude::*;
use recorder::Layout;
use support::*;

const LOUD: i16 = 0x2000;

/// xorshift: repeatable jitter.
struct Noise(u64);

impl Noise {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn no_rtp_at_all_is_silence_of_the_exact_length() {
    let recorded = record(&[], Duration::from_micros(10_000_500));
    assert_eq!(recorded.left.len(), 80_004);
    assert_eq!(recorded.right.len(), 80_004);
    assert!(
        recorded
            .left
            .iter()
            .chain(&recorded.right)
            .all(|sample| *sample == 0)
    );
    assert_eq!(recorded.stats[0].silence, 80_004);
    // Written as time goes by, not all at the end.
    assert!(recorded.largest_drain <= 8000);
}

#[test]
fn length_is_from_start_mark_to_stop_mark() {
    let mut run = Run::new(Layout::Mono);
    let mut talker = Talker::new(0, ms(5));
    for frame in talker.talk(7, 0x20) {
        run.handle(TapEvent::Frame(frame.tap_frame()));
    }
    // In the middle of a frame; a second mark and frames after it change nothing.
    run.handle(TapEvent::Mark(TapMark::Stop { at: ms(131) }));
    run.handle(TapEvent::Mark(TapMark::Stop { at: ms(900) }));
    run.handle(TapEvent::Frame(talker.say(0x20).tap_frame()));
    run.drain();
    assert!(run.timeline.is_done());
    assert_eq!(run.out.len(), 1048);
    assert_eq!(stretches(&run.out), [(40, 1048, LOUD)]);
    let stats = run.timeline.stats()[0];
    assert_eq!((stats.frames, stats.silence), (7, 40));
}

#[test]
fn tap_that_closes_without_a_mark_ends_at_the_latest_moment_known() {
    let mut run = Run::new(Layout::Mono);
    run.timeline.handle_timeout(ms(1500), &mut run.scratch);
    run.drain();
    run.timeline.handle_closed(&mut run.scratch);
    run.drain();
    assert_eq!(run.out.len(), 12_000);
    assert!(run.timeline.is_done());
}

#[test]
fn mono_is_the_limited_sum() {
    let mut run = Run::new(Layout::Mono);
    let (mut a, mut b) = (Talker::new(0, ms(0)), Talker::new(1, ms(0)));
    for (left, right) in [(0x10, 0x20), (0x70, 0x70), (0x90, 0x90)] {
        run.handle(TapEvent::Frame(a.say(left).tap_frame()));
        run.handle(TapEvent::Frame(b.say(right).tap_frame()));
    }
    run.handle(TapEvent::Mark(TapMark::Stop { at: ms(60) }));
    run.drain();
    assert_eq!(
        [run.out[0], run.out[160], run.out[320]],
        [0x3000, i16::MAX, i16::MIN]
    );
}

#[test]
fn leg_that_starts_late_begins_where_it_arrived() {
    let mut frames = Talker::new(0, ms(0)).talk(250, 0x20);
    frames.extend(Talker::new(1, ms(3000)).talk(100, 0x30));
    let recorded = record(&frames, ms(5000));
    assert_eq!(stretches(&recorded.left), [(0, 40_000, LOUD)]);
    assert_eq!(stretches(&recorded.right), [(24_000, 40_000, 0x3000)]);
}

#[test]
fn loss_leaves_exactly_its_own_gap() {
    let mut frames = Talker::new(0, ms(0)).talk(100, 0x20);
    for lost in [90, 41, 40, 7] {
        frames.remove(lost);
    }
    let recorded = record(&frames, ms(2000));
    let at = |frame: usize| frame * FRAME;
    assert_eq!(
        stretches(&recorded.left),
        [
            (0, at(7), LOUD),
            (at(8), at(40), LOUD),
            (at(42), at(90), LOUD),
            (at(91), at(100), LOUD)
        ]
    );
    assert_eq!(recorded.stats[0].silence, at(4) as u64);
}

#[test]
fn long_pause_is_kept_whether_timestamps_go_on_or_stand_still() {
    for goes_on in [true, false] {
        let mut talker = Talker::new(0, ms(0));
        let mut frames = talker.talk(250, 0x20);
        let before = talker.timestamp;
        talker.pause(1000);
        if !goes_on {
            talker.timestamp = before;
        }
        frames.extend(talker.talk(250, 0x30));
        let recorded = record(&frames, ms(30_000));
        assert_eq!(
            stretches(&recorded.left),
            [(0, 40_000, LOUD), (200_000, 240_000, 0x3000)],
            "timestamps go on: {goes_on}"
        );
        assert_eq!(recorded.stats[0].anchors, if goes_on { 1 } else { 2 });
    }
}

#[test]
fn new_source_is_placed_by_its_arrival() {
    let mut talker = Talker::new(0, ms(0));
    let mut frames = talker.talk(100, 0x20);
    let mut other = Talker {
        ssrc: 9,
        sequence: 4,
        timestamp: 77,
        ..Talker::new(0, ms(2010))
    };
    frames.extend(other.talk(100, 0x30));
    let recorded = record(&frames, ms(5000));
    assert_eq!(
        stretches(&recorded.left),
        [(0, 16_000, LOUD), (16_080, 32_080, 0x3000)]
    );
    assert_eq!(recorded.stats[0].anchors, 2);
}

#[test]
fn clock_that_jumps_forward_does_not_lengthen_the_leg() {
    let mut talker = Talker::new(0, ms(0));
    let mut frames = talker.talk(100, 0x20);
    talker.timestamp = talker.timestamp.wrapping_add(8000 * 60);
    frames.extend(talker.talk(100, 0x30));
    let recorded = record(&frames, ms(5000));
    let stretches: Vec<_> = stretches(&recorded.left)
        .iter()
        .map(|s| (s.0, s.1))
        .collect();
    assert_eq!(stretches, [(0, 32_000)]);
}

#[test]
fn comfort_noise_and_keys_are_silence_that_keeps_its_length() {
    let mut talker = Talker::new(0, ms(0));
    let mut frames = talker.talk(50, 0x20);
    // RFC 3389: one packet, then nothing for 300 ms.
    frames.push(talker.send(13, vec![60]));
    talker.pause(14);
    frames.extend(talker.talk(50, 0x20));
    // RFC 4733, 2.3: packets of one event repeat its first timestamp.
    let begun = talker.timestamp;
    for _ in 0..8 {
        let mut event = talker.send(101, vec![5, 10, 0, 160]);
        event.timestamp = begun;
        frames.push(event);
    }
    frames.extend(talker.talk(50, 0x20));
    let recorded = record(&frames, ms(4000));
    let at = |frame: usize| frame * FRAME;
    assert_eq!(
        stretches(&recorded.left),
        [
            (0, at(50), LOUD),
            (at(65), at(115), LOUD),
            (at(123), at(173), LOUD)
        ]
    );
    assert_eq!(
        (recorded.stats[0].skipped, recorded.stats[0].anchors),
        (9, 1)
    );
}

#[test]
fn reused_payload_number_changes_meaning_at_its_mark() {
    let mut run = Run::new(Layout::Mono);
    let mut talker = Talker::new(0, ms(0));
    run.handle(TapEvent::Frame(talker.say(0x20).tap_frame()));
    run.handle(TapEvent::Mark(TapMark::Codec {
        at: ms(20),
        side: 0,
        payload_type: PLAIN,
        name: "unheard-of",
        clock_rate: 8000,
        channels: 1,
        sample_rate: 0,
        fmtp: "",
    }));
    run.handle(TapEvent::Frame(talker.say(0x20).tap_frame()));
    run.handle(plain_codec(0));
    run.handle(TapEvent::Frame(talker.say(0x20).tap_frame()));
    run.handle(TapEvent::Mark(TapMark::Stop { at: ms(60) }));
    run.drain();
    assert_eq!(stretches(&run.out), [(0, 160, LOUD), (320, 480, LOUD)]);
}

#[test]
fn each_leg_is_decoded_by_its_own_law() {
    let mut run = Run::new(Layout::Stereo);
    run.registry.register(Box::new(g711::Pcma));
    run.registry.register(Box::new(g711::Pcmu));
    for (side, payload_type, name) in [(0, 8, "PCMA"), (1, 0, "PCMU")] {
        let (at, clock_rate, channels, fmtp) = (ms(0), 8000, 1, "");
        run.handle(TapEvent::Mark(TapMark::Codec {
            at,
            side,
            payload_type,
            name,
            clock_rate,
            channels,
            sample_rate: 0,
            fmtp,
        }));
    }
    let pcm: Vec<i16> = (0..160).map(|i| (i - 80) * 300).collect();
    for (side, payload_type) in [(0, 8), (1, 0)] {
        let encode = |&sample: &i16| match side {
            0 => g711::law::alaw_encode(sample),
            _ => g711::law::ulaw_encode(sample),
        };
        let payload = pcm.iter().map(encode).collect();
        let frame = Talker::new(side, ms(0)).send(payload_type, payload);
        run.handle(TapEvent::Frame(frame.tap_frame()));
    }
    run.handle(TapEvent::Mark(TapMark::Stop { at: ms(20) }));
    run.drain();
    for (pair, sample) in run.out.chunks(2).zip(&pcm) {
        assert!(
            pair.iter().all(|heard| heard.abs_diff(*sample) <= 512),
            "{pair:?} for {sample}"
        );
    }
    assert_ne!(run.out[0], run.out[1]);
}

#[test]
fn first_packets_delayed_do_not_move_the_rest() {
    let mut frames = Talker::new(0, ms(500)).talk(200, 0x20);
    for (index, frame) in frames.iter_mut().enumerate().take(4) {
        frame.at += ms(80 - 20 * index as u64);
    }
    let recorded = record(&frames, ms(5000));
    assert_eq!(stretches(&recorded.left), [(4000, 36_000, LOUD)]);
}

#[test]
fn burst_after_an_outage_keeps_what_still_has_room() {
    let mut frames = Talker::new(0, ms(0)).talk(250, 0x20);
    // From 2 s on nothing comes through for a second, then all of it at once.
    for frame in &mut frames[100..150] {
        frame.at = ms(3000);
    }
    let recorded = record(&frames, ms(5000));
    let stretches = stretches(&recorded.left);
    assert_eq!(stretches[0], (0, 16_000, LOUD));
    let (begin, end, _) = stretches[1];
    assert_eq!((stretches.len(), end), (2, 40_000));
    // Within the lag of 350 ms and the last look at the tap.
    assert!(begin <= 24_000 - 2000, "{begin}");
    assert_eq!(recorded.stats[0].anchors, 1);
}

#[test]
fn a_look_at_the_tap_more_or_less_changes_nothing() {
    let mut noise = Noise(7);
    let mut frames = Talker {
        ppm: 200.0,
        ..Talker::new(0, ms(33))
    }
    .talk(3000, 0x20);
    frames.retain(|_| noise.below(20) > 0);
    for frame in &mut frames {
        frame.at += Duration::from_micros(noise.below(40_000));
    }
    let often = record_with(&frames, ms(60_000), ms(10));
    for poll in [ms(100), ms(500), ms(60_000)] {
        let seldom = record_with(&frames, ms(60_000), poll);
        assert!(often.left == seldom.left, "{poll:?}");
        assert_eq!(often.stats, seldom.stats);
    }
}

/// Half an hour with clocks `ppm` apart, jitter and loss: once a second both legs click at the same
/// moment. Returns the greatest distance of a click from its moment, in samples.
fn drift_run(ppm_a: f64, ppm_b: f64, minutes: u64) -> usize {
    let mut noise = Noise(0x5eed);
    let stop = Duration::from_secs(60 * minutes);
    let mut frames = Vec::new();
    for (side, ppm) in [(0, ppm_a), (1, ppm_b)] {
        let mut talker = Talker {
            ppm,
            ..Talker::new(side, ms(0))
        };
        let mut next_click = Duration::from_secs(1);
        while talker.now() < stop {
            // The click is where the frame's own clock has the full second.
            let begins = talker.now();
            let mut payload = vec![0; FRAME];
            if begins + ms(20) > next_click {
                let offset = next_click.saturating_sub(begins);
                payload[position(offset).min(FRAME - 1)] = 0x7f;
                next_click += Duration::from_secs(1);
            }
            let mut frame = talker.send(PLAIN, payload);
            frame.at += Duration::from_micros(noise.below(30_000));
            if noise.below(100) > 0 {
                frames.push(frame);
            }
        }
    }
    let recorded = record(&frames, stop);
    let mut worst = 0;
    for leg in [&recorded.left, &recorded.right] {
        assert_eq!(leg.len(), position(stop));
        let clicks = stretches(leg);
        let seconds = 60 * minutes as usize;
        // One in a hundred is lost, and slewing may take one off.
        assert!(clicks.len() > seconds * 97 / 100, "{} clicks", clicks.len());
        for (at, ..) in clicks {
            let nearest = (at + 4000) / 8000 * 8000;
            worst = worst.max(at.abs_diff(nearest));
        }
    }
    for leg in recorded.stats {
        assert_eq!(leg.anchors, 1);
        assert_eq!(leg.late, 0);
    }
    worst
}

#[test]
fn legs_stay_aligned_through_half_an_hour_of_drift() {
    for (a, b) in [(0.0, 200.0), (0.0, -200.0), (-100.0, 100.0)] {
        let worst = drift_run(a, b, 30);
        // 8 ms tolerated, and what drifts while that is found out.
        assert!(worst <= 80, "{worst} samples at {a} and {b} ppm");
    }
}

#[test]
fn drift_is_taken_off_one_sample_at_a_time() {
    let mut frames = Talker {
        ppm: 200.0,
        ..Talker::new(0, ms(0))
    }
    .talk(15_000, 0x20);
    frames.extend(
        Talker {
            ppm: -200.0,
            ..Talker::new(1, ms(0))
        }
        .talk(15_000, 0x30),
    );
    let recorded = record(&frames, ms(299_900));
    // Neither a hole nor a repeated frame: continuous throughout.
    assert_eq!(stretches(&recorded.left), [(0, 2_399_200, LOUD)]);
    assert_eq!(stretches(&recorded.right), [(0, 2_399_200, 0x3000)]);
    let [a, b] = recorded.stats;
    assert!((400..520).contains(&a.slewed), "{}", a.slewed);
    assert!((-520..-400).contains(&b.slewed), "{}", b.slewed);
}

#[test]
fn bb_24_speech_pause_speech_against_a_late_drifting_leg_with_comfort_noise() {
    let stop = Duration::from_secs(30 * 60) + ms(7);
    let mut a = Talker::new(0, ms(0));
    let mut frames = a.talk(250, 0x20);
    a.pause(1000);
    frames.extend(a.talk(250, 0x20));
    a.pause((30 * 60 - 30 - 5) * 50);
    let last_words = position(a.now());
    frames.extend(a.talk(250, 0x20));

    let mut b = Talker {
        ppm: 200.0,
        ..Talker::new(1, ms(3000))
    };
    while b.now() + ms(2000) < stop {
        frames.extend(b.talk(50, 0x30));
        frames.push(b.send(13, vec![50]));
        b.pause(29);
    }
    let last_spurt = b.now().saturating_sub(ms(1600));
    let recorded = record(&frames, stop);
    assert_eq!(recorded.left.len(), 14_400_056);
    assert_eq!(recorded.right.len(), 14_400_056);
    assert_eq!(
        stretches(&recorded.left),
        [
            (0, 40_000, LOUD),
            (200_000, 240_000, LOUD),
            (last_words, last_words + 40_000, LOUD)
        ]
    );
    let spurts = stretches(&recorded.right);
    assert_eq!(spurts[0].0, 24_000);
    let off = spurts.last().unwrap().0.abs_diff(position(last_spurt));
    assert!(off <= 160, "{off} samples off at the end");
    assert!(
        spurts
            .iter()
            .all(|(begin, end, _)| (7990..8010).contains(&(end - begin)))
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// Every other frame comes in time, the others up to 150 ms late, some of them twice.
    #[test]
    fn any_order_within_the_window_gives_the_same_samples(
        delays in prop::collection::vec((0_u64..=150_000, any::<bool>()), 120),
    ) {
        let mut straight = Vec::new();
        for side in [0, 1] {
            let mut talker = Talker::new(side, ms(40));
            straight.extend((0..120_u8).map(|octet| talker.say(octet + 1)));
        }
        let mut shuffled = straight.clone();
        for (index, (delay, again)) in delays.iter().enumerate() {
            let frame = &mut shuffled[2 * index + 1];
            frame.at += Duration::from_micros(*delay);
            let copy = frame.clone();
            if *again {
                shuffled.push(copy);
            }
        }
        let (expected, got) = (record(&straight, ms(2600)), record(&shuffled, ms(2600)));
        prop_assert!(expected.left == got.left);
        prop_assert!(expected.right == got.right);
        prop_assert_eq!(got.stats[0].late + got.stats[1].late, 0);
    }

    /// Whatever comes in, the length is that of the span, and memory is bounded by it.
    #[test]
    fn length_is_the_span_whatever_comes(
        frames in prop::collection::vec(
            (0_u64..3000, any::<u16>(), any::<u32>(), 0_u32..3, 0_u8..3, 0_usize..1500),
            0..200,
        ),
        stop_us in 1_u64..4_000_000,
    ) {
        let frames: Vec<_> = frames
            .into_iter()
            .map(|(at, sequence, timestamp, ssrc, side, length)| Sent {
                side,
                at: ms(at),
                ssrc,
                sequence,
                timestamp,
                payload_type: PLAIN,
                payload: vec![0x20; length],
            })
            .collect();
        let stop = Duration::from_micros(stop_us);
        let recorded = record(&frames, stop);
        let expected = (stop_us * 8 + 500) / 1000;
        prop_assert_eq!(recorded.left.len() as u64, expected);
        prop_assert_eq!(recorded.right.len() as u64, expected);
    }
}
