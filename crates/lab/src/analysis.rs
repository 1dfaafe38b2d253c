//! Level and frequency of linear PCM, for destinations whose audio the server makes itself.
//!
//! The signal is cut into blocks of 50 ms. Goertzel's filter, tuned to any frequency, gives
//! each block's energy at the tone; the phase it turns from block to block gives the true
//! frequency to a fraction of a hertz.
//!
//! Units: samples are 16-bit, levels dBm0 with a full-scale sine at +3.14 dBm0 (ITU-T G.711,
//! A-law), frequencies hertz.

use std::f64::consts::{PI, TAU};

/// Level of a full-scale sine (ITU-T G.711, 4: theoretical load capacity of A-law).
#[expect(
    clippy::approx_constant,
    reason = "a level in dBm0, not a ratio of a circle"
)]
pub const FULL_SCALE_DBM0: f64 = 3.14;

/// Blocks below this count as silent.
pub const SILENCE_DBM0: f64 = -50.0;

/// Level in dBm0; silence gives minus infinity.
#[must_use]
pub fn level_dbm0(pcm: &[i16]) -> f64 {
    if pcm.is_empty() {
        return f64::NEG_INFINITY;
    }
    let energy: f64 = pcm.iter().map(|&s| f64::from(s) * f64::from(s)).sum();
    let mean = energy / pcm.len() as f64;
    10.0 * (mean / (32768.0 * 32768.0 / 2.0)).log10() + FULL_SCALE_DBM0
}

/// Share of a block's energy that makes it a tone; 5 Hz beside the filter, 0.81 is left.
pub const TONE_SHARE: f64 = 0.8;

/// A block seen through a filter tuned to one frequency.
#[derive(Copy, Clone, Debug)]
pub struct Goertzel {
    /// Share of the block's energy that is at the frequency: 1 for a pure tone.
    pub share: f64,
    /// Phase of the tone at the block's first sample, in radians.
    pub phase: f64,
}

impl Goertzel {
    /// Filters `block` at `hz`, with samples at `rate` per second.
    #[must_use]
    pub fn new(block: &[i16], rate: u32, hz: f64) -> Self {
        let step = TAU * hz / f64::from(rate);
        let (mut re, mut im, mut energy) = (0.0, 0.0, 0.0);
        for (n, &sample) in block.iter().enumerate() {
            let x = f64::from(sample);
            let (sin, cos) = (step * n as f64).sin_cos();
            re += x * cos;
            im -= x * sin;
            energy += x * x;
        }
        let share = if energy > 0.0 {
            2.0 * (re * re + im * im) / (energy * block.len() as f64)
        } else {
            0.0
        };
        Self {
            share,
            phase: im.atan2(re),
        }
    }
}

/// What a search for one tone found.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct ToneFound {
    /// Whole blocks looked at.
    pub blocks: usize,
    /// Blocks in which the tone holds at least [`TONE_SHARE`] of the energy.
    pub with_tone: usize,
    /// Blocks that are silent.
    pub silent: usize,
    /// Mean level of the blocks with the tone.
    pub level_dbm0: f64,
    /// The frequency itself, from the phase's turning; NaN with fewer than two such blocks.
    pub hz: f64,
}

impl ToneFound {
    /// Share of the blocks, silent ones aside, that hold the tone.
    #[must_use]
    pub fn purity(&self) -> f64 {
        let sounding = self.blocks - self.silent;
        if sounding == 0 {
            0.0
        } else {
            self.with_tone as f64 / sounding as f64
        }
    }
}

/// Looks for a tone near `hz` (within 5 Hz) in `pcm`.
#[must_use]
pub fn find_tone(pcm: &[i16], rate: u32, hz: f64) -> ToneFound {
    let len = block_len(rate);
    let mut found = ToneFound {
        blocks: 0,
        with_tone: 0,
        silent: 0,
        level_dbm0: f64::NEG_INFINITY,
        hz: f64::NAN,
    };
    let (mut levels, mut turns, mut turned) = (0.0, 0.0, 0usize);
    let mut before: Option<f64> = None;
    for block in pcm.chunks_exact(len) {
        found.blocks += 1;
        let level = level_dbm0(block);
        let tone = Goertzel::new(block, rate, hz);
        if level < SILENCE_DBM0 || tone.share < TONE_SHARE {
            found.silent += usize::from(level < SILENCE_DBM0);
            before = None;
            continue;
        }
        found.with_tone += 1;
        levels += level;
        if let Some(before) = before {
            let advance = TAU * hz * len as f64 / f64::from(rate);
            turns += wrap(tone.phase - before - advance);
            turned += 1;
        }
        before = Some(tone.phase);
    }
    if found.with_tone > 0 {
        found.level_dbm0 = levels / found.with_tone as f64;
    }
    if turned > 0 {
        let seconds = len as f64 / f64::from(rate);
        found.hz = hz + turns / turned as f64 / (TAU * seconds);
    }
    found
}

/// Share of `pcm`'s 50 ms blocks that are louder than [`SILENCE_DBM0`].
#[must_use]
pub fn sounding_share(pcm: &[i16], rate: u32) -> f64 {
    let blocks = pcm.chunks_exact(block_len(rate));
    let count = blocks.len();
    let loud = blocks.filter(|b| level_dbm0(b) >= SILENCE_DBM0).count();
    if count == 0 {
        0.0
    } else {
        loud as f64 / count as f64
    }
}

fn block_len(rate: u32) -> usize {
    (rate / 20) as usize
}

/// An angle brought into -pi to pi.
fn wrap(angle: f64) -> f64 {
    (angle + PI).rem_euclid(TAU) - PI
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sine(hz: f64, amplitude: f64, len: usize) -> Vec<i16> {
        (0..len)
            .map(|n| (amplitude * (TAU * hz * n as f64 / 8000.0).sin()).round() as i16)
            .collect()
    }

    #[test]
    fn a_full_scale_sine_is_at_the_load_capacity() {
        assert!((level_dbm0(&sine(1000.0, 32767.0, 8000)) - FULL_SCALE_DBM0).abs() < 0.01);
        assert!((level_dbm0(&sine(1000.0, 3276.7, 8000)) - (FULL_SCALE_DBM0 - 20.0)).abs() < 0.01);
        assert_eq!(level_dbm0(&[0; 160]), f64::NEG_INFINITY);
    }

    #[test]
    fn the_true_frequency_is_measured() {
        for hz in [1000.0, 1002.5, 1004.0, 1006.9] {
            let found = find_tone(&sine(hz, 8000.0, 16000), 8000, 1004.0);
            assert_eq!(found.with_tone, found.blocks);
            assert!((found.hz - hz).abs() < 0.1, "{hz}: {found:?}");
        }
    }

    #[test]
    fn another_tone_noise_and_silence_are_not_the_tone() {
        assert_eq!(
            find_tone(&sine(1100.0, 8000.0, 8000), 8000, 1004.0).with_tone,
            0
        );
        assert_eq!(find_tone(&[0; 8000], 8000, 1004.0).silent, 20);
        let mut state = 1u32;
        let noise: Vec<i16> = (0..8000)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 18) as i16
            })
            .collect();
        let found = find_tone(&noise, 8000, 1004.0);
        assert_eq!((found.with_tone, found.silent), (0, 0));
        assert!(found.purity() < 0.01 && found.hz.is_nan());
    }

    #[test]
    fn a_hole_in_the_tone_lowers_its_purity_only_when_filled_with_noise() {
        let mut pcm = sine(1004.0, 8000.0, 8000);
        pcm[2000..4000].fill(0);
        let found = find_tone(&pcm, 8000, 1004.0);
        assert_eq!((found.silent, found.with_tone), (5, 15));
        assert!((sounding_share(&pcm, 8000) - 0.75).abs() < 1e-9);
    }
}
