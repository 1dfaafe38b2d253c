//! What holds for any input.
#![allow(missing_docs, reason = "a test")]

use audio::comfort::{ComfortNoise, MAX_PAYLOAD_BYTES, describe};
use audio::level::{Dbm0, dbm0, dbov, peak};
use audio::mix::{Mixer, mix};
use audio::resample::{RATES, Resampler};
use audio::tone::Tone;
use proptest::prelude::*;

proptest! {
    /// Whatever a peer sends, in whatever order, the noise is never louder than the loudest level
    /// that it has asked for, give or take what chance and a sharp resonance do in so short a time.
    #[test]
    fn comfort_noise_is_stable(
        seed: u64,
        payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 1..20),
        frame in 1_usize..400,
    ) {
        let mut noise = ComfortNoise::new(seed);
        let mut pcm = vec![0; frame];
        let mut loudest = 127_u8;
        for payload in payloads {
            noise.handle_payload(&payload);
            loudest = payload.first().map_or(loudest, |level| loudest.min(level & 0x7f));
            for _ in 0..20 {
                noise.fill(&mut pcm);
                // Twelve times the power of white noise: sixteen resonances in one place.
                let room = -f32::from(loudest) + 12.0;
                prop_assert!(dbov(&pcm).0 <= room.max(-75.0), "{} dBov", dbov(&pcm).0);
            }
        }
        // It is neither stuck nor gone.
        noise.handle_payload(&[30]);
        let mut pcm = vec![0; 8_000];
        noise.fill(&mut pcm);
        prop_assert!((dbov(&pcm[160..]).0 + 30.0).abs() < 1.0);
    }

    #[test]
    fn any_sound_can_be_described(pcm in prop::collection::vec(any::<i16>(), 0..500)) {
        let mut payload = [0; MAX_PAYLOAD_BYTES];
        let len = describe(&pcm, &mut payload);
        prop_assert!((1..=MAX_PAYLOAD_BYTES).contains(&len));
        prop_assert!(payload[0] <= 127 && payload[1..len].iter().all(|&index| index < 255));
    }
}

proptest! {
    /// Any number of inputs, in any order, makes the exact sum, cut once.
    #[test]
    fn a_mix_does_not_depend_on_the_order(
        inputs in prop::collection::vec(prop::collection::vec(any::<i16>(), 0..24), 0..40),
        turn in any::<prop::sample::Index>(),
    ) {
        let mixed = |order: &[Vec<i16>]| {
            let mut mixer = Mixer::new(16);
            order.iter().for_each(|pcm| mixer.add(pcm));
            let mut out = [0; 16];
            mixer.finish(&mut out);
            out
        };
        let exact: Vec<i16> = (0..16)
            .map(|n| inputs.iter().filter_map(|pcm| pcm.get(n)).map(|&x| i64::from(x)).sum())
            .map(|sum: i64| sum.clamp(i16::MIN.into(), i16::MAX.into()) as i16)
            .collect();
        prop_assert_eq!(&mixed(&inputs)[..], &exact[..]);
        let mut turned = inputs.clone();
        turned.rotate_left(if inputs.is_empty() { 0 } else { turn.index(inputs.len()) });
        prop_assert_eq!(mixed(&turned), mixed(&inputs));
        turned.reverse();
        prop_assert_eq!(mixed(&turned), mixed(&inputs));
        if let [a, b, ..] = &inputs[..] {
            let mut out = [0; 16];
            mix(a, b, &mut out);
            let both = a.len().min(b.len()).min(16);
            prop_assert_eq!(&out[..both], &mixed(&inputs[..2])[..both]);
        }
    }

    /// A level lies between silence and overload, below the peak and within reach of it.
    #[test]
    fn a_level_is_what_the_peak_allows(pcm in prop::collection::vec(any::<i16>(), 1..400)) {
        let level = dbov(&pcm).0;
        prop_assert!((-127.0..=0.001).contains(&level));
        let highest = 20.0 * (f32::from(peak(&pcm)) / 32_768.0).log10();
        let lowest = highest - 10.0 * (pcm.len() as f32).log10();
        prop_assert!(level <= highest.max(-127.0) + 0.001 && level >= lowest - 0.001);
        let shift = dbm0(&pcm).0 - level;
        prop_assert!((shift - 6.15).abs() < 0.001, "{}", shift);
    }

    /// However the input is cut, as many samples come out as the ratio says, and the same ones.
    #[test]
    fn resampling_keeps_the_length_law(
        from in prop::sample::select(RATES.to_vec()),
        to in prop::sample::select(RATES.to_vec()),
        pcm in prop::collection::vec(any::<i16>(), 0..3_000),
        cuts in prop::collection::vec(0_usize..700, 1..30),
    ) {
        let mut at_once = Resampler::new(from, to).expect("a pair of rates");
        let mut whole = vec![0; at_once.most_samples(pcm.len())];
        let written = at_once.process(&pcm, &mut whole);
        whole.truncate(written);

        let mut in_pieces = Resampler::new(from, to).expect("a pair of rates");
        let (mut heard, mut taken, mut rest) = (Vec::new(), 0, &pcm[..]);
        for cut in cuts.into_iter().chain([3_000]) {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            let mut out = vec![0; in_pieces.most_samples(piece.len())];
            let written = in_pieces.process(piece, &mut out);
            heard.extend_from_slice(&out[..written]);
            (taken, rest) = (taken + piece.len(), after);
            prop_assert_eq!(heard.len(), taken * to as usize / from as usize);
        }
        prop_assert_eq!(heard, whole);
    }
}

#[test]
fn resampling_allocates_nothing() {
    for (from, to) in [
        (8_000, 48_000),
        (48_000, 8_000),
        (32_000, 24_000),
        (8_000, 8_000),
    ] {
        let mut resampler = Resampler::new(from, to).expect("a pair of rates");
        let pcm = vec![1_000; 2_000];
        let mut out = vec![0; resampler.most_samples(pcm.len())];
        let counted = allocation_counter::measure(|| {
            for len in [0, 1, 160, 2_000] {
                resampler.process(&pcm[..len], &mut out);
            }
        });
        assert_eq!(counted.count_total, 0);
        assert_eq!(out[100], 1_000);
    }
}

#[test]
fn a_resampler_is_small() {
    for (from, to) in RATES
        .into_iter()
        .flat_map(|from| RATES.map(|to| (from, to)))
    {
        drop(Resampler::new(from, to));
        let mut kept = None;
        let counted = allocation_counter::measure(|| kept = Resampler::new(from, to).ok());
        let octets = counted.bytes_current as usize + size_of_val(&kept);
        assert!(octets < 1_200, "{from} to {to}: {octets} octets");
    }
}

#[test]
fn a_tone_has_its_level_at_every_rate() {
    for rate in RATES {
        for level in [3.0, 0.0, -10.0, -20.0, -35.0, -50.0] {
            let mut pcm = vec![0; rate as usize];
            Tone::new(Tone::MILLIWATT_HZ, Dbm0(level), rate).fill(&mut pcm);
            let off = dbm0(&pcm).0 - level;
            assert!(off.abs() < 0.1, "{level} dBm0 at {rate}: {off} dB off");
            let rises = pcm.windows(2).filter(|pair| pair[0] < 0 && pair[1] >= 0);
            assert!((1_003..=1_004).contains(&rises.count()), "{rate}");
        }
    }
}

#[test]
fn comfort_noise_allocates_nothing() {
    let mut noise = ComfortNoise::new(1);
    let mut pcm = [0; 160];
    let mut payload = [0; MAX_PAYLOAD_BYTES];
    let counted = allocation_counter::measure(|| {
        for level in 20..60 {
            noise.handle_payload(&[level, 60, 180, 100]);
            noise.fill(&mut pcm);
            describe(&pcm, &mut payload);
        }
    });
    assert_eq!(counted.count_total, 0);
    assert!(payload[0] > 0);
}
