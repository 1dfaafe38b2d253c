//! Between codecs of different rates, clocks and manners.

mod common;

use std::time::Duration;

use audio::level::{Dbm0, dbm0};
use audio::tone::Tone;
use audio::{Codec, Decoder, Encoder, Input, Offered};
use common::codecs::{FLEX, HIGH, WIDE};
use common::{Bench, Sent, assert_continuous, leg_in, number, packet, port, registry};
use media::command::{Program, SessionSpec, Side};
use rtp::Fields;

const PCMA: (&str, u32, u8) = ("PCMA", 8_000, 1);
const ALL: [(&str, u32, u8); 4] = [PCMA, WIDE, FLEX, HIGH];
const LEVEL: Dbm0 = Dbm0(-10.0);

type Name = (&'static str, u32, u8);

fn bridge_in(a: Name, b: Name) -> SessionSpec {
    SessionSpec {
        legs: [Some(leg_in(Side::A, a)), Some(leg_in(Side::B, b))],
        program: Program::Bridge,
    }
}

fn with_ptime(mut spec: SessionSpec, [a, b]: [u32; 2]) -> SessionSpec {
    for (leg, ptime_ms) in spec.legs.iter_mut().flatten().zip([a, b]) {
        leg.ptime_ms = ptime_ms;
    }
    spec
}

/// Somebody who says a tone in a codec.
struct Voice {
    encoder: Box<dyn Encoder>,
    tone: Tone,
    fields: Fields,
    units: u32,
    payload: Vec<u8>,
}

impl Voice {
    fn new((name, clock, channels): Name, ptime_ms: u32) -> Self {
        let registry = registry();
        let codec = registry.find(name, clock, channels).expect("built in");
        let encoder = encoder(codec, ptime_ms);
        let units = codec.info().clock_units(encoder.frame_samples());
        Self {
            tone: Tone::new(440.0, LEVEL, codec.info().sample_rate),
            fields: Fields {
                marker: false,
                payload_type: number(name),
                sequence: 65_530,
                timestamp: u32::MAX - 5_000,
                ssrc: 7,
            },
            units,
            payload: vec![0; codec.info().max_payload_bytes],
            encoder,
        }
    }

    fn next(&mut self) -> Vec<u8> {
        let mut pcm = vec![0; self.encoder.frame_samples()];
        self.tone.fill(&mut pcm);
        let len = self
            .encoder
            .encode(&pcm, &mut self.payload)
            .expect("a frame");
        let packet = packet(&self.fields, &self.payload[..len]);
        self.pass();
        packet
    }

    /// Time passes for one packet, which is not there.
    fn pass(&mut self) {
        self.fields.sequence = self.fields.sequence.wrapping_add(1);
        self.fields.timestamp = self.fields.timestamp.wrapping_add(self.units);
    }

    fn pause(&mut self, packets: u32) {
        let units = self.units * packets;
        self.fields.timestamp = self.fields.timestamp.wrapping_add(units);
    }

    /// Says packets to a side at their times, the rest of what is queued too.
    fn talk(&mut self, bench: &mut Bench, side: Side, ptime_ms: u64, packets: usize) {
        for _ in 0..packets {
            bench.receive(side, &self.next());
            bench.run_for(ptime_ms);
        }
    }
}

fn encoder(codec: &dyn Codec, ptime_ms: u32) -> Box<dyn Encoder> {
    let params = codec.negotiate(&Offered {
        ptime_ms,
        ..Offered::default()
    });
    codec
        .encoder(&params.expect("no parameters"))
        .expect("an encoder")
}

fn decoder((name, clock, channels): Name) -> (Box<dyn Decoder>, usize) {
    let registry = registry();
    let codec = registry.find(name, clock, channels).expect("built in");
    let params = codec.negotiate(&Offered::default()).expect("no parameters");
    let decoder = codec.decoder(&params).expect("a decoder");
    (decoder, codec.info().max_frame_samples)
}

/// What somebody hears in a codec.
fn heard(codec: Name, sent: &[Sent]) -> Vec<i16> {
    let (mut decoder, room) = decoder(codec);
    let mut out = vec![0; room];
    let mut pcm = Vec::new();
    for sent in sent {
        let made = decoder.decode(Input::Frame(&sent.payload), &mut out);
        pcm.extend_from_slice(&out[..made.expect("a payload of ours")]);
    }
    pcm
}

fn steps(sent: &[Sent]) -> Vec<u32> {
    sent.windows(2)
        .map(|pair| {
            pair[1]
                .fields
                .timestamp
                .wrapping_sub(pair[0].fields.timestamp)
        })
        .collect()
}

/// BB-21: timestamps count in the clock of the codec, whatever it is sampled at.
#[test]
fn every_codec_is_converted_to_every_other_with_level_and_clock_right() {
    for a in ALL {
        for b in ALL {
            let mut bench = Bench::new(&bridge_in(a, b));
            Voice::new(a, 20).talk(&mut bench, Side::A, 20, 60);
            let sent = bench.take();
            let what = format!("{a:?} to {b:?}");
            assert_eq!(sent.len(), 60, "{what}");
            assert_continuous(&sent);
            assert!(steps(&sent).iter().all(|step| *step == b.1 / 50), "{what}");
            assert!(
                sent.iter()
                    .all(|sent| sent.fields.payload_type == number(b.0))
            );
            let pcm = heard(b, &sent[10..]);
            let off = dbm0(&pcm).0 - LEVEL.0;
            // Samples repeated have images, which a resampler takes out.
            assert!(off.abs() < 0.6, "{what}: {off} dB");
        }
    }
}

/// BB-22: packets of another length leave evenly, and their timestamps say so.
#[test]
fn packets_cut_anew_leave_evenly_in_every_codec() {
    let times = [10, 20, 30, 40, 60];
    for (a, b) in [(PCMA, FLEX), (FLEX, WIDE), (WIDE, PCMA), (HIGH, FLEX)] {
        for from in times {
            for to in times.into_iter().filter(|to| *to != from) {
                let mut bench = Bench::new(&with_ptime(bridge_in(a, b), [from, to]));
                let packets = 2_400 / from as usize;
                Voice::new(a, from).talk(&mut bench, Side::A, from.into(), packets);
                let sent = bench.take();
                let what = format!("{a:?} at {from} ms to {b:?} at {to} ms");
                assert_continuous(&sent);
                let ms: u32 = sent.len() as u32 * to;
                assert!(
                    (2_400 - 2 * (from + to) - 20..=2_400).contains(&ms),
                    "{what}: {ms} ms"
                );
                assert!(
                    steps(&sent).iter().all(|step| *step == b.1 / 1_000 * to),
                    "{what}"
                );
                for pair in sent.windows(2) {
                    let gap = pair[1].at - pair[0].at;
                    assert_eq!(gap, Duration::from_millis(to.into()), "{what}");
                }
            }
        }
    }
}

/// A peer that sends other lengths than it asked for is cut anew all the same.
#[test]
fn a_sender_that_keeps_no_packet_time_does_not_show_through() {
    let mut bench = Bench::new(&bridge_in(PCMA, FLEX));
    Voice::new(PCMA, 30).talk(&mut bench, Side::A, 30, 80);
    let sent = bench.take();
    assert_continuous(&sent);
    for pair in sent[3..].windows(2) {
        assert_eq!(pair[1].at - pair[0].at, Duration::from_millis(20));
    }
}

#[test]
fn a_lost_frame_is_taken_from_the_redundancy_of_the_next() {
    let mut bench = Bench::new(&bridge_in(FLEX, PCMA));
    let mut voice = Voice::new(FLEX, 20);
    for index in 0..50 {
        let packet = voice.next();
        if index % 10 != 5 {
            bench.receive(Side::A, &packet);
        }
        bench.run_for(20);
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 50);
    assert!(steps(&sent).iter().all(|step| *step == 160));
    assert_eq!(bench.stats(Side::B).concealed, 5);
    // Nothing is missing from the tone: without redundancy a tenth of it would be silence.
    let frames = heard(PCMA, &sent);
    for (index, frame) in frames.chunks(160).enumerate().skip(1) {
        assert!((dbm0(frame).0 - LEVEL.0).abs() < 1.0, "frame {index}");
    }
}

#[test]
fn of_two_lost_frames_the_last_is_recovered_and_the_first_made_up() {
    let mut bench = Bench::new(&bridge_in(FLEX, PCMA));
    let mut voice = Voice::new(FLEX, 20);
    for index in 0..20 {
        let packet = voice.next();
        if !(8..10).contains(&index) {
            bench.receive(Side::A, &packet);
        }
        bench.run_for(20);
    }
    let frames = heard(PCMA, &bench.take());
    let loud: Vec<bool> = frames
        .chunks(160)
        .map(|frame| dbm0(frame).0 > -20.0)
        .collect();
    assert_eq!(loud.len(), 20);
    assert!(!loud[8] && loud[9], "{loud:?}");
}

#[test]
fn what_cannot_be_decoded_counts_as_lost_and_the_stream_goes_on() {
    let mut bench = Bench::new(&bridge_in(FLEX, WIDE));
    let mut voice = Voice::new(FLEX, 20);
    for index in 0..40 {
        let good = voice.next();
        let bad = packet(
            &rtp::Header::read(&good).expect("ours").fields,
            &[0xff, 0xff, 1, 2, 3],
        );
        bench.receive(Side::A, if index % 8 == 4 { &bad } else { &good });
        bench.run_for(20);
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 40);
    assert_continuous(&sent);
    assert!(steps(&sent).iter().all(|step| *step == 160));
    assert_eq!(bench.stats(Side::A).discarded, 5);
    assert_eq!(bench.stats(Side::B).concealed, 5);
}

#[test]
fn silence_that_need_not_be_sent_is_not_and_speech_begins_with_the_marker() {
    let mut bench = Bench::new(&bridge_in(HIGH, FLEX));
    let mut voice = Voice::new(HIGH, 20);
    voice.talk(&mut bench, Side::A, 20, 10);
    let before = bench.take();
    let tone = std::mem::replace(&mut voice.tone, Tone::new(0.0, Dbm0(-200.0), 32_000));
    voice.talk(&mut bench, Side::A, 20, 20);
    // The resampler still holds the end of the tone for a packet.
    let pause = bench.take();
    assert!(pause.len() <= 1, "{} packets of silence", pause.len());
    voice.tone = tone;
    voice.talk(&mut bench, Side::A, 20, 10);
    let after = bench.take();
    assert_eq!(after.len(), 10);
    assert!(after[0].fields.marker && !after[1].fields.marker);
    let all = [before, pause, after].concat();
    assert_continuous(&all);
    let whole = all[all.len() - 1]
        .fields
        .timestamp
        .wrapping_sub(all[0].fields.timestamp);
    assert_eq!(whole, 39 * 960, "time goes on");
}

#[test]
fn a_pause_of_the_sender_stays_a_pause() {
    let mut bench = Bench::new(&bridge_in(FLEX, PCMA));
    let mut voice = Voice::new(FLEX, 20);
    voice.talk(&mut bench, Side::A, 20, 10);
    voice.pause(25);
    bench.run_for(500);
    voice.fields.marker = true;
    let first = voice.next();
    voice.fields.marker = false;
    bench.receive(Side::A, &first);
    bench.run_for(20);
    voice.talk(&mut bench, Side::A, 20, 5);
    let sent = bench.take();
    assert_eq!(sent.len(), 16);
    assert_continuous(&sent);
    let steps = steps(&sent);
    assert_eq!(steps[9], 26 * 160);
    assert!(sent[10].fields.marker);
    assert_eq!(bench.stats(Side::B).concealed, 0);
}

#[test]
fn a_peer_may_turn_to_another_of_its_codecs_and_back() {
    let mut spec = bridge_in(PCMA, WIDE);
    let flex = leg_in(Side::A, FLEX).format;
    spec.legs[0].as_mut().expect("leg A").also = vec![flex];
    let mut bench = Bench::new(&spec);
    let [mut law, mut flex] = [Voice::new(PCMA, 20), Voice::new(FLEX, 20)];
    for round in 0..6 {
        let voice = if round % 2 == 0 { &mut law } else { &mut flex };
        let sequence = voice.fields.sequence;
        voice.talk(&mut bench, Side::A, 20, 10);
        let next = voice.fields.sequence;
        assert_eq!(next, sequence.wrapping_add(10));
        // One source, so its numbers go on; its clock is that of the codec, wherever it stands.
        law.fields.sequence = next;
        flex.fields.sequence = next;
    }
    let sent = bench.take();
    assert_eq!(sent.len(), 60);
    assert_continuous(&sent);
    assert!(
        sent.iter()
            .all(|sent| sent.fields.payload_type == number("WIDE"))
    );
    assert!(
        steps(&sent).iter().all(|step| *step == 160),
        "{:?}",
        steps(&sent)
    );
    let off = dbm0(&heard(WIDE, &sent)).0 - LEVEL.0;
    assert!(off.abs() < 0.5, "{off} dB");
}

#[test]
fn a_tone_is_made_at_a_rate_that_the_codec_is_run_at() {
    for codec in ALL {
        let spec = SessionSpec {
            legs: [Some(leg_in(Side::A, codec)), None],
            program: Program::Tone {
                hz: 440.0,
                level_dbm0: LEVEL.0,
            },
        };
        let mut bench = Bench::new(&spec);
        bench.run_for(1_000);
        let sent = bench.take();
        assert!(sent.iter().all(|sent| sent.port == port(Side::A)));
        assert!(
            steps(&sent).iter().all(|step| *step == codec.1 / 50),
            "{codec:?}"
        );
        let off = dbm0(&heard(codec, &sent)).0 - LEVEL.0;
        assert!(off.abs() < 0.3, "{codec:?}: {off} dB");
    }
}
