//! Comfort noise (RFC 3389) between legs that have it and legs that have not.

mod common;

use audio::level::dbm0;
use common::codecs::WIDE;
use common::{Bench, PCMA, PCMU, Sent, Talker, assert_continuous, bridge, leg_in, packet, payload};
use media::command::{SessionSpec, Side};

const CN: u8 = 13;
/// 50 dB below overload, and a spectrum of order one.
const DESCRIPTION: [u8; 2] = [50, 0x20];

/// Leg A has comfort noise under 13; leg B under this number, if any.
fn with_noise(mut spec: SessionSpec, to: Option<u8>) -> SessionSpec {
    for (leg, number) in spec.legs.iter_mut().flatten().zip([Some(CN), to]) {
        leg.cn_send = number;
        leg.cn_recv = number;
    }
    spec
}

fn describe(bench: &mut Bench, talker: &mut Talker) {
    let mut fields = talker.fields;
    fields.payload_type = CN;
    bench.receive(Side::A, &packet(&fields, &DESCRIPTION));
    talker.fields.sequence = fields.sequence.wrapping_add(1);
}

/// Ten packets, a description, so many milliseconds of pause, ten packets.
fn converse(bench: &mut Bench, pause_ms: u32) -> Vec<Sent> {
    let mut talker = Talker::new(PCMA);
    for part in 0..2 {
        for index in 0..10 {
            talker.fields.marker = index == 0;
            let packet = talker.next();
            bench.receive(Side::A, &packet);
            bench.run_for(20);
        }
        if part == 0 {
            describe(bench, &mut talker);
            bench.run_for(pause_ms.into());
            talker.fields.timestamp = talker.fields.timestamp.wrapping_add(pause_ms * 8);
        }
    }
    let sent = bench.take();
    assert_continuous(&sent);
    sent
}

#[test]
fn a_description_is_relayed_under_the_number_of_the_other_leg() {
    let mut bench = Bench::new(&with_noise(bridge(PCMA, PCMA), Some(77)));
    let sent = converse(&mut bench, 400);
    assert_eq!(sent.len(), 21);
    assert_eq!(
        (sent[10].fields.payload_type, &sent[10].payload[..]),
        (77, &DESCRIPTION[..])
    );
}

#[test]
fn a_description_passes_a_transcoder_between_its_talkspurts() {
    let mut spec = with_noise(bridge(PCMA, PCMU), Some(77));
    for (leg, ptime_ms) in spec.legs.iter_mut().flatten().zip([20, 40]) {
        leg.ptime_ms = ptime_ms;
    }
    let sent = converse(&mut Bench::new(&spec), 400);
    assert_eq!(sent.len(), 11);
    assert_eq!(
        (sent[5].fields.payload_type, &sent[5].payload[..]),
        (77, &DESCRIPTION[..])
    );
    assert!(sent[6].fields.marker && !sent[7].fields.marker);
    let step = sent[6]
        .fields
        .timestamp
        .wrapping_sub(sent[5].fields.timestamp);
    assert_eq!(step, 400 * 8);
}

#[test]
fn a_leg_of_another_band_is_told_the_level_alone() {
    let mut spec = bridge(PCMA, PCMA);
    spec.legs[1] = Some(leg_in(Side::B, WIDE));
    let sent = converse(&mut Bench::new(&with_noise(spec, Some(77))), 400);
    let noise: Vec<_> = sent
        .iter()
        .filter(|sent| sent.fields.payload_type == 77)
        .collect();
    assert_eq!(noise.len(), 1);
    assert_eq!(noise[0].payload, DESCRIPTION[..1]);
}

#[test]
fn a_leg_without_comfort_noise_hears_it_as_sound() {
    let mut spec = with_noise(bridge(PCMA, PCMU), None);
    for (leg, ptime_ms) in spec.legs.iter_mut().flatten().zip([20, 40]) {
        leg.ptime_ms = ptime_ms;
    }
    let sent = converse(&mut Bench::new(&spec), 2_000);
    let noise = &sent[6..sent.len() - 6];
    let octets: Vec<u8> = noise.iter().flat_map(|sent| sent.payload.clone()).collect();
    let pcm: Vec<i16> = octets
        .iter()
        .map(|octet| g711::law::ulaw_decode(*octet))
        .collect();
    assert!(
        (1_700..=2_000).contains(&(pcm.len() / 8)),
        "{} ms",
        pcm.len() / 8
    );
    // -50 dBov is 44 dB below the level of a sine at 0 dBm0.
    let level = dbm0(&pcm).0;
    assert!((-46.0..-42.0).contains(&level), "{level} dBm0");
    assert!(noise.windows(2).all(|pair| {
        pair[1]
            .fields
            .timestamp
            .wrapping_sub(pair[0].fields.timestamp)
            == 320
    }));
}

#[test]
fn noise_ends_by_itself_when_the_sender_is_gone() {
    let mut spec = with_noise(bridge(PCMA, PCMU), None);
    spec.legs[1].as_mut().expect("leg B").ptime_ms = 40;
    let mut bench = Bench::new(&spec);
    let _ = converse(&mut bench, 100);
    let mut talker = Talker::new(PCMA);
    talker.fields.sequence = talker.fields.sequence.wrapping_add(30);
    talker.fields.timestamp = talker.fields.timestamp.wrapping_add(5_000);
    describe(&mut bench, &mut talker);
    bench.run_for(120_000);
    let sent = bench.take();
    let ms = sent.len() * 40;
    assert!((58_000..=60_000).contains(&ms), "{ms} ms");
    assert_eq!(bench.session.poll_timeout(), None);
}

#[test]
fn a_description_is_neither_audio_nor_a_loss() {
    let mut bench = Bench::new(&with_noise(bridge(PCMA, PCMU), Some(CN)));
    let sent = converse(&mut bench, 0);
    assert_eq!(sent.len(), 21);
    assert_eq!(bench.stats(Side::B).concealed, 0);
    assert_eq!(bench.stats(Side::A).lost, 0);
    assert_eq!(bench.stats(Side::A).discarded, 0);
    assert_eq!(
        payload(&packet(&sent[10].fields, &DESCRIPTION)),
        DESCRIPTION
    );
}
