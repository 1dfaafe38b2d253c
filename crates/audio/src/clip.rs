//! A piece of mono sound held in memory, shared by all who play it.

use std::sync::Arc;

use crate::mix::saturate;

/// Mono PCM and its rate. Cost: a clone is one reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// Samples per second.
    pub sample_rate: u32,
    /// The sound.
    pub samples: Arc<[i16]>,
}

/// Half the width of the resampling kernel, in samples of the lower of the two rates.
const KERNEL_HALF_WIDTH: f64 = 16.0;

impl Clip {
    /// A clip of these samples.
    #[must_use]
    pub fn new(sample_rate: u32, samples: impl Into<Arc<[i16]>>) -> Self {
        Self {
            sample_rate,
            samples: samples.into(),
        }
    }

    /// The same sound at another rate, for a codec that asks for it: done once, when the clip is
    /// loaded, and a plain clone when the rate is right already.
    ///
    /// A sinc under a Hann window of 32 samples, cutting at 0.95 of the lower Nyquist frequency.
    /// Cost: allocates, and takes about 32 multiplications and sines a sample when raising the
    /// rate, more when lowering it; not for the media path.
    #[must_use]
    pub fn at_rate(&self, sample_rate: u32) -> Self {
        if sample_rate == self.sample_rate || self.samples.is_empty() || sample_rate == 0 {
            return self.clone();
        }
        let ratio = f64::from(self.sample_rate) / f64::from(sample_rate);
        let len = (self.samples.len() as u64 * u64::from(sample_rate))
            .div_ceil(u64::from(self.sample_rate).max(1));
        let samples: Arc<[i16]> = (0..len)
            .map(|n| interpolate(&self.samples, n as f64 * ratio, ratio))
            .collect();
        Self {
            sample_rate,
            samples,
        }
    }
}

/// The value at a place between samples; beyond both ends there is silence.
fn interpolate(samples: &[i16], place: f64, ratio: f64) -> i16 {
    let stretch = ratio.max(1.0);
    let half_width = KERNEL_HALF_WIDTH * stretch;
    let cutoff = 0.95 / stretch;
    let first = (place - half_width).ceil().max(0.0) as usize;
    let last = ((place + half_width).floor().max(0.0) as usize).min(samples.len() - 1);
    let sum: f64 = (first..=last)
        .map(|index| {
            let distance = index as f64 - place;
            let window = 0.5 + 0.5 * (std::f64::consts::PI * distance / half_width).cos();
            cutoff * sinc(distance * cutoff) * window * f64::from(samples[index])
        })
        .sum();
    saturate(sum.round() as i32)
}

fn sinc(x: f64) -> f64 {
    let x = x * std::f64::consts::PI;
    if x.abs() < 1e-9 { 1.0 } else { x.sin() / x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Dbm0, dbm0};
    use crate::resample::RATES;
    use crate::tone::Tone;

    fn tone(hz: f32, sample_rate: u32, seconds: u32) -> Vec<i16> {
        let mut pcm = vec![0; (sample_rate * seconds) as usize];
        Tone::new(hz, Dbm0(-10.0), sample_rate).fill(&mut pcm);
        pcm
    }

    #[test]
    fn length_follows_the_rate() {
        for (from, to, len, expected) in [
            (8_000, 16_000, 100, 200),
            (48_000, 8_000, 481, 81),
            (44_100, 8_000, 44_100, 8_000),
        ] {
            let clip = Clip::new(from, vec![0; len]).at_rate(to);
            assert_eq!((clip.sample_rate, clip.samples.len()), (to, expected));
        }
    }

    #[test]
    fn the_same_rate_is_the_same_memory() {
        let clip = Clip::new(8_000, vec![1, 2, 3]);
        assert!(Arc::ptr_eq(&clip.samples, &clip.at_rate(8_000).samples));
    }

    #[test]
    fn a_tone_stays_that_tone() {
        for (from, to) in [
            (16_000, 8_000),
            (8_000, 16_000),
            (44_100, 8_000),
            (8_000, 48_000),
        ] {
            let clip = Clip::new(from, tone(1_000.0, from, 1)).at_rate(to);
            let expected = tone(1_000.0, to, 1);
            let middle = (to / 4) as usize..(to * 3 / 4) as usize;
            let difference: Vec<i16> = clip.samples[middle.clone()]
                .iter()
                .zip(&expected[middle.clone()])
                .map(|(a, b)| a.saturating_sub(*b))
                .collect();
            let noise = dbm0(&difference).0 - dbm0(&expected[middle]).0;
            assert!(noise < -50.0, "{from} to {to}: noise at {noise} dB");
        }
    }

    #[test]
    fn a_tone_keeps_its_level_at_every_rate() {
        for from in RATES {
            for to in RATES {
                let clip = Clip::new(from, tone(1_004.0, from, 1)).at_rate(to);
                let middle = &clip.samples[(to / 4) as usize..(to * 3 / 4) as usize];
                let off = dbm0(middle).0 + 10.0;
                assert!(off.abs() < 0.1, "{from} to {to}: {off} dB off");
            }
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_taken_out() {
        let clip = Clip::new(16_000, tone(6_000.0, 16_000, 1)).at_rate(8_000);
        let level = dbm0(&clip.samples[1_000..7_000]).0;
        assert!(level < -60.0, "an alias at {level} dBm0");
    }

    #[test]
    fn an_empty_clip_stays_empty() {
        assert!(Clip::new(8_000, vec![]).at_rate(16_000).samples.is_empty());
    }
}
