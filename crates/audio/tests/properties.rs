//! What holds for any input.
#![allow(missing_docs, reason = "a test")]

use audio::comfort::{ComfortNoise, MAX_PAYLOAD_BYTES, describe};
use audio::level::dbov;
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
