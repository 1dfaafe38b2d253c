//! Sines whose phase is exact for as long as they sound.
//!
//! The phase is a fraction of a turn in 32 bits. A step of `hz / rate` turns is kept as a whole
//! number of such units and a remainder, spread as Bresenham spreads a slope, so that after any
//! number of samples the phase is the exact one rounded down: no drift in hours, none between two
//! generators. Frequencies are exact to a thousandth of a hertz.

use crate::level::{Dbm0, sine_peak};

/// A generator of one sine.
#[derive(Clone, Debug, PartialEq)]
pub struct Tone {
    /// Turns, in units of 2^-32.
    phase: u32,
    step: u32,
    /// What `step` leaves out, in units of `1 / modulus` of its own.
    remainder: u64,
    modulus: u64,
    error: u64,
    peak: f64,
}

impl Tone {
    /// The frequency of the milliwatt test signal (ITU-T O.6: 1004 to 1020 Hz, never a divisor of
    /// the sample rate).
    pub const MILLIWATT_HZ: f32 = 1004.0;

    /// A sine of this frequency and level at this rate. A level above full scale is clipped by
    /// [`Self::fill`].
    #[must_use]
    pub fn new(hz: f32, level: Dbm0, sample_rate: u32) -> Self {
        let millihertz = (f64::from(hz.abs()) * 1000.0).round() as u64;
        let modulus = u64::from(sample_rate.max(1)) * 1000;
        let turns = u128::from(millihertz % modulus) << 32;
        Self {
            phase: 0,
            step: (turns / u128::from(modulus)) as u32,
            remainder: (turns % u128::from(modulus)) as u64,
            modulus,
            error: 0,
            peak: sine_peak(level),
        }
    }

    /// Writes the next samples. Cost: no allocation, a few nanoseconds a sample.
    pub fn fill(&mut self, out: &mut [i16]) {
        for sample in out {
            *sample = (self.peak * sine(self.phase)).round() as i16;
            self.advance();
        }
    }

    /// Passes over samples that nobody hears.
    pub fn skip(&mut self, samples: u64) {
        let error = u128::from(self.error) + u128::from(self.remainder) * u128::from(samples);
        let carried = (error / u128::from(self.modulus)) as u32;
        self.error = (error % u128::from(self.modulus)) as u64;
        self.phase = self
            .phase
            .wrapping_add(self.step.wrapping_mul(samples as u32))
            .wrapping_add(carried);
    }

    fn advance(&mut self) {
        self.phase = self.phase.wrapping_add(self.step);
        self.error += self.remainder;
        if self.error >= self.modulus {
            self.error -= self.modulus;
            self.phase = self.phase.wrapping_add(1);
        }
    }
}

/// The sine of a phase in units of 2^-32 turns: folded into a quarter, then the series up to x^13.
/// Error below 1e-9.
fn sine(phase: u32) -> f64 {
    let quarter = 1_u32 << 30;
    let folded = match phase >> 30 {
        0 | 3 => i64::from(phase as i32),
        _ => i64::from(2 * quarter) - i64::from(phase),
    };
    let x = folded as f64 * (std::f64::consts::FRAC_PI_2 / f64::from(quarter));
    let square = x * x;
    let series = [156.0, 110.0, 72.0, 42.0, 20.0, 6.0];
    x * series
        .iter()
        .fold(1.0, |sum, divisor| 1.0 - square / divisor * sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_is_a_sine() {
        for step in 0..4_096_u32 {
            let phase = step << 20;
            let expected = (f64::from(step) / 4_096.0 * std::f64::consts::TAU).sin();
            assert!(
                (sine(phase) - expected).abs() < 1e-8,
                "{step}: {}",
                sine(phase)
            );
        }
    }

    #[test]
    fn ten_hours_do_not_move_the_phase() {
        let mut tone = Tone::new(Tone::MILLIWATT_HZ, Dbm0(0.0), 8_000);
        let mut start = [0; 160];
        tone.fill(&mut start);
        // 1004 Hz at 8 kHz repeats every 2,000 samples.
        tone.skip(10 * 3_600 * 8_000 - 160);
        let mut later = [0; 160];
        tone.fill(&mut later);
        assert_eq!(start, later);
    }

    #[test]
    fn skipping_is_the_same_as_filling() {
        let mut filled = Tone::new(440.123, Dbm0(-10.0), 48_000);
        let mut skipped = filled.clone();
        let mut buffer = [0; 4_321];
        filled.fill(&mut buffer);
        skipped.skip(4_321);
        assert_eq!(filled, skipped);
    }

    #[test]
    fn the_frequency_is_the_one_asked_for() {
        let mut tone = Tone::new(1_000.0, Dbm0(0.0), 8_000);
        let mut buffer = [0; 800];
        tone.fill(&mut buffer);
        let rises = buffer
            .windows(2)
            .filter(|pair| pair[0] < 0 && pair[1] >= 0)
            .count();
        assert_eq!(rises, 99, "the first one lies before the buffer");
    }

    #[test]
    fn frequencies_at_and_above_the_rate_do_no_harm() {
        for hz in [0.0, 4_000.0, 8_000.0, 1e9, -440.0, f32::NAN, f32::INFINITY] {
            Tone::new(hz, Dbm0(90.0), 8_000).fill(&mut [0; 160]);
        }
    }
}
