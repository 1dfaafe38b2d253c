//! Sound that a codec takes for speech, made of numbers alone.
//!
//! ```text
//!  pulses of the voice, pitch gliding --+
//!                                       +-> four resonances, moving -> level
//!  noise (s, f, breath) ----------------+
//! ```
//!
//! Three phrases of vowels, fricatives and stops with pauses in between. It is no language, but
//! has what speech codecs live from: a pitch that moves, formants that glide, onsets, noise and
//! silence. The crates of the codecs pass real speech to [`super::run_on`] besides.

use std::f64::consts::{PI, TAU};

use crate::level::{Dbm0, dbm0};

/// Level of the whole, pauses included.
const LEVEL: Dbm0 = Dbm0(-20.0);

/// Bandwidths of the resonances in Hz.
const BANDWIDTHS: [f64; 4] = [70.0, 90.0, 130.0, 180.0];

/// A piece of it.
struct Sound {
    ms: u32,
    /// Strength of the voice and of the noise.
    voice: f64,
    noise: f64,
    /// Frequencies of the resonances at its end; they glide from those of the sound before.
    formants: [f64; 4],
}

const fn sound(ms: u32, voice: f64, noise: f64, formants: [f64; 4]) -> Sound {
    Sound {
        ms,
        voice,
        noise,
        formants,
    }
}

const A: [f64; 4] = [730.0, 1_090.0, 2_440.0, 3_400.0];
const E: [f64; 4] = [530.0, 1_840.0, 2_480.0, 3_500.0];
const I: [f64; 4] = [270.0, 2_290.0, 3_010.0, 3_600.0];
const O: [f64; 4] = [570.0, 840.0, 2_410.0, 3_300.0];
const U: [f64; 4] = [300.0, 870.0, 2_240.0, 3_300.0];
const M: [f64; 4] = [250.0, 1_100.0, 2_200.0, 3_300.0];
/// Where the noise of a hiss lies; resonances above what the rate holds are left out.
const S: [f64; 4] = [400.0, 2_000.0, 3_300.0, 5_500.0];
const F: [f64; 4] = [400.0, 1_400.0, 2_900.0, 4_500.0];

static PHRASE: [Sound; 18] = [
    sound(150, 0.0, 0.0, A),
    sound(60, 0.3, 0.0, M),
    sound(180, 1.0, 0.0, A),
    sound(120, 0.0, 0.5, S),
    sound(90, 0.9, 0.02, I),
    sound(140, 0.9, 0.02, E),
    sound(60, 0.0, 0.0, U),
    sound(12, 0.0, 1.0, F),
    sound(200, 1.0, 0.01, O),
    sound(70, 0.3, 0.0, M),
    sound(170, 1.0, 0.0, U),
    sound(90, 0.0, 0.3, F),
    sound(210, 1.0, 0.02, A),
    sound(130, 0.8, 0.0, I),
    sound(40, 0.0, 0.0, I),
    sound(10, 0.0, 1.2, S),
    sound(160, 0.8, 0.03, E),
    sound(108, 0.0, 0.0, E),
];

/// Six seconds of it, mono, at -20 dBm0; the same at every call. Cost: allocates.
#[must_use]
pub fn speech(sample_rate: u32) -> Vec<i16> {
    let rate = f64::from(sample_rate.max(1));
    let mut voice = Voice::new(rate);
    let mut sound = Vec::new();
    for phrase in 0..3 {
        for piece in &PHRASE {
            voice.say(piece, f64::from(phrase), &mut sound);
        }
    }
    let power = sound.iter().map(|x| x * x).sum::<f64>() / sound.len().max(1) as f64;
    let as_pcm = |by: f64| -> Vec<i16> { sound.iter().map(|x| (x * by).round() as i16).collect() };
    let rough = 1_000.0 / power.sqrt().max(1e-9);
    let off = f64::from(LEVEL.0 - dbm0(&as_pcm(rough)).0);
    as_pcm(rough * 10_f64.powf(off / 20.0))
}

/// What makes the sound.
struct Voice {
    rate: f64,
    /// Where in a period of the voice, 0 to 1.
    period: f64,
    seconds: f64,
    random: u32,
    strength: [f64; 2],
    formants: [f64; 4],
    resonances: [[f64; 2]; 4],
    before: f64,
}

impl Voice {
    fn new(rate: f64) -> Self {
        Self {
            rate,
            period: 0.0,
            seconds: 0.0,
            random: 0x2545_f491,
            strength: [0.0; 2],
            formants: A,
            resonances: [[0.0; 2]; 4],
            before: 0.0,
        }
    }

    fn say(&mut self, piece: &Sound, phrase: f64, out: &mut Vec<f64>) {
        let samples = (self.rate * f64::from(piece.ms) / 1000.0) as u32;
        let goal = [piece.voice, piece.noise];
        let glide = 1.0 / (0.025 * self.rate);
        let soon = 1.0 / (0.004 * self.rate);
        for _ in 0..samples {
            for (now, goal) in self.formants.iter_mut().zip(piece.formants) {
                *now += (goal - *now) * glide;
            }
            for (now, goal) in self.strength.iter_mut().zip(goal) {
                *now += (goal - *now) * soon;
            }
            let breath = self.noise() * self.strength[1];
            let pulse = self.pulse(phrase) * self.strength[0];
            out.push(self.resonate(pulse + breath));
            self.seconds += 1.0 / self.rate;
        }
    }

    /// The flow through the glottis: it opens for 0.6 of a period and closes faster.
    fn pulse(&mut self, phrase: f64) -> f64 {
        let melody = (TAU * 0.7 * self.seconds).sin() + 0.4 * (TAU * 2.3 * self.seconds).sin();
        let hz = 105.0 + 25.0 * phrase + 18.0 * melody;
        self.period = (self.period + hz / self.rate).fract();
        let flow = match self.period {
            t if t < 0.4 => 0.5 - 0.5 * (PI * t / 0.4).cos(),
            t if t < 0.6 => (PI / 2.0 * (t - 0.4) / 0.2).cos(),
            _ => 0.0,
        };
        // Lips radiate the change of it, per second rather than per sample.
        let change = (flow - self.before) * self.rate / 8_000.0;
        self.before = flow;
        change
    }

    /// White, of the same density at every rate.
    fn noise(&mut self) -> f64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 17;
        self.random ^= self.random << 5;
        let white = f64::from(self.random) / f64::from(u32::MAX) - 0.5;
        white * 0.2 * (self.rate / 8_000.0).sqrt()
    }

    /// Four resonances one after another, each with a gain of 1 at 0 Hz.
    fn resonate(&mut self, mut x: f64) -> f64 {
        for ((state, hz), width) in self
            .resonances
            .iter_mut()
            .zip(self.formants)
            .zip(BANDWIDTHS)
        {
            if hz > 0.45 * self.rate {
                continue;
            }
            let radius = (-PI * width / self.rate).exp();
            let (a, b) = (2.0 * radius * (TAU * hz / self.rate).cos(), radius * radius);
            let y = (1.0 - a + b) * x + a * state[0] - b * state[1];
            *state = [y, state[0]];
            x = y;
        }
        x
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::peak;
    use crate::resample::RATES;

    #[test]
    fn it_is_six_seconds_at_its_level_and_does_not_clip() {
        for rate in RATES {
            let pcm = speech(rate);
            assert_eq!(pcm.len(), 6 * rate as usize, "{rate}");
            assert!((dbm0(&pcm).0 - LEVEL.0).abs() < 0.1, "{rate}");
            assert!(peak(&pcm) < 32_000, "{rate}: {}", peak(&pcm));
        }
    }

    #[test]
    fn it_pauses_and_speaks() {
        let pcm = speech(8_000);
        let levels: Vec<f32> = pcm.chunks(160).map(|frame| dbm0(frame).0).collect();
        let quiet = levels.iter().filter(|&&level| level < -55.0).count();
        let loud = levels.iter().filter(|&&level| level > -30.0).count();
        assert!((15..100).contains(&quiet), "{quiet} of {}", levels.len());
        assert!(loud > 150, "{loud} of {}", levels.len());
    }
}
