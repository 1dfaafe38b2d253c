//! What the server's audio crate makes, judged by the lab's own measure.

use audio::level::Dbm0;
use audio::melody::melody;
use audio::tone::Tone;
use lab::analysis::{find_tone, sounding_share};
use lab::law::Law;

/// The way to a listener: through A-law.
fn heard(pcm: &[i16]) -> Vec<i16> {
    let codes = Law::A.codes();
    pcm.iter()
        .map(|&sample| Law::A.expand(codes.nearest(sample)))
        .collect()
}

#[test]
fn the_milliwatt_is_a_milliwatt() {
    let mut pcm = vec![0; 16_000];
    Tone::new(Tone::MILLIWATT_HZ, Dbm0(0.0), 8000).fill(&mut pcm);
    let found = find_tone(&heard(&pcm), 8000, 1004.0);
    assert_eq!(found.with_tone, found.blocks);
    assert!((found.hz - 1004.0).abs() < 0.1, "{found:?}");
    assert!(found.level_dbm0.abs() < 0.1, "{found:?}");
}

#[test]
fn the_music_sounds_without_a_pause() {
    let clip = melody(8000);
    for second in clip.samples.chunks_exact(8000) {
        let share = sounding_share(&heard(second), 8000);
        assert!(share >= 0.9, "{share}");
        assert!(find_tone(second, 8000, 1004.0).purity() < 0.5);
    }
}
