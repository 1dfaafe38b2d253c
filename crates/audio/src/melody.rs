//! Music to hold by, made by the program itself: sixteen bars over four chords, plucked, softly,
//! without end.
//!
//! Each note is a sum of four partials under an envelope that rises in 8 ms and dies away; a broken
//! chord in quavers, a bass note a bar, and a tune above. What still sounds at the end of the loop
//! is laid over its beginning, so that the loop has no seam. The tune was made up for this file.

use crate::clip::Clip;
use crate::level::{Dbm0, sine_peak};

/// Beats a minute.
const TEMPO: f64 = 88.0;
const BARS: usize = 16;
const BEATS_PER_BAR: f64 = 4.0;

/// Notes by their MIDI numbers (69 is 440 Hz): the bass and three notes of each chord. C, A minor,
/// F, G.
const CHORDS: [[u8; 4]; 4] = [
    [48, 60, 64, 67],
    [45, 57, 60, 64],
    [41, 57, 60, 65],
    [43, 59, 62, 67],
];

/// The tune: bar, beat, note, length in beats.
const TUNE: [(u8, f64, u8, f64); 32] = [
    (0, 0.0, 76, 1.5),
    (0, 1.5, 79, 0.5),
    (0, 2.0, 76, 2.0),
    (1, 0.0, 72, 1.5),
    (1, 1.5, 74, 0.5),
    (1, 2.0, 76, 2.0),
    (2, 0.0, 77, 1.0),
    (2, 1.0, 76, 1.0),
    (2, 2.0, 72, 2.0),
    (3, 0.0, 74, 3.0),
    (3, 3.0, 71, 1.0),
    (4, 0.0, 72, 1.5),
    (4, 1.5, 76, 0.5),
    (4, 2.0, 79, 2.0),
    (5, 0.0, 81, 2.0),
    (5, 2.0, 76, 2.0),
    (6, 0.0, 77, 1.5),
    (6, 1.5, 81, 0.5),
    (6, 2.0, 77, 2.0),
    (7, 0.0, 79, 4.0),
    (8, 0.0, 84, 2.0),
    (8, 2.0, 79, 2.0),
    (9, 0.0, 81, 2.0),
    (9, 2.0, 76, 2.0),
    (10, 0.0, 77, 1.0),
    (10, 1.0, 79, 1.0),
    (10, 2.0, 81, 2.0),
    (11, 0.0, 79, 4.0),
    (12, 0.0, 76, 2.0),
    (13, 0.0, 72, 2.0),
    (14, 0.0, 74, 2.0),
    (15, 0.0, 71, 4.0),
];

/// Makes the loop at this rate, about 44 s of it, with peaks at -10 dBm0. Cost: allocates; some
/// tens of milliseconds at 8 kHz; done once by the shell.
#[must_use]
pub fn melody(sample_rate: u32) -> Clip {
    let beat = f64::from(sample_rate) * 60.0 / TEMPO;
    let bar = beat * BEATS_PER_BAR;
    let mut sound = vec![0.0_f32; (bar * BARS as f64).round() as usize];
    for index in 0..BARS {
        let start = index as f64 * bar;
        let [bass, chord @ ..] = CHORDS[index % CHORDS.len()];
        pluck(&mut sound, sample_rate, start, bass, 3.5 * beat, 0.9);
        for quaver in 0..8 {
            let note = chord[[0, 1, 2, 1][quaver % 4]];
            pluck(
                &mut sound,
                sample_rate,
                start + quaver as f64 * beat / 2.0,
                note,
                beat,
                0.35,
            );
        }
    }
    for (index, at, note, beats) in TUNE {
        let start = f64::from(index) * bar + at * beat;
        pluck(&mut sound, sample_rate, start, note, beats * beat, 0.8);
    }
    let loudest = sound
        .iter()
        .fold(1e-6_f32, |loudest, sample| loudest.max(sample.abs()));
    let gain = sine_peak(Dbm0(-10.0)) as f32 / loudest;
    let samples: Vec<i16> = sound
        .iter()
        .map(|sample| (sample * gain).round() as i16)
        .collect();
    Clip::new(sample_rate, samples)
}

/// Adds a note of this length in samples, and its dying away; beyond the end it goes on at the
/// beginning.
fn pluck(sound: &mut [f32], sample_rate: u32, start: f64, note: u8, len: f64, volume: f64) {
    let rate = f64::from(sample_rate);
    let hz = 440.0 * 2_f64.powf((f64::from(note) - 69.0) / 12.0);
    let release = 0.15 * rate;
    let attack = 0.008 * rate;
    for n in 0..(len + release) as usize {
        let time = n as f64;
        let envelope = (time / attack).min(1.0)
            * (-2.2 * time / rate).exp()
            * ((len + release - time) / release).clamp(0.0, 1.0);
        let angle = std::f64::consts::TAU * hz * time / rate;
        let partials: f64 = [1.0, 0.35, 0.15, 0.06]
            .iter()
            .zip(1..)
            .filter(|&(_, order)| hz * f64::from(order) < rate * 0.45)
            .map(|(strength, order)| strength * (angle * f64::from(order)).sin())
            .sum();
        let place = (start.round() as usize + n) % sound.len();
        sound[place] += (volume * envelope * partials) as f32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{dbm0, peak};

    #[test]
    fn the_loop_is_loud_enough_everywhere_and_never_clips() {
        let clip = melody(8_000);
        assert_eq!(clip.samples.len(), 349_091, "64 beats at 88 a minute");
        let limit = sine_peak(Dbm0(-10.0)).ceil() as u16;
        assert!(peak(&clip.samples) <= limit);
        for (second, block) in clip.samples.chunks_exact(8_000).enumerate() {
            let level = dbm0(block).0;
            assert!(
                (-40.0..-10.0).contains(&level),
                "second {second}: {level} dBm0"
            );
        }
    }

    #[test]
    fn the_loop_has_no_seam() {
        let clip = melody(8_000);
        let steps = clip
            .samples
            .windows(2)
            .map(|pair| (pair[1] - pair[0]).unsigned_abs());
        let largest = steps.max().expect("not empty");
        let seam = (clip.samples[0] - clip.samples[clip.samples.len() - 1]).unsigned_abs();
        assert!(seam <= largest, "{seam} against {largest}");
    }

    #[test]
    fn it_is_the_same_music_every_time() {
        assert_eq!(melody(8_000), melody(8_000));
    }
}
