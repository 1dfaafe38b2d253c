//! Comfort noise (RFC 3389): what is heard while the other side says nothing.
//!
//! ```text
//!  payload: level | k1 | k2 | ...          generator -> white, power 1 -> lattice -> gain -> PCM
//! ```
//!
//! The filter is a normalised lattice: each stage turns the pair of what runs forwards and what
//! runs backwards by an angle whose sine is the reflection coefficient. A turn keeps the power, so
//! noise comes out as strong as it went in, whatever the coefficients are and whenever they change;
//! only then the gain is applied. For the same reason no payload can make it grow.
//!
//! Sign of the coefficients: `A(z) = 1 + k1 z^-1` for order one, so noise in which low frequencies
//! prevail has a negative first one. Nothing here knows the sample rate: a payload describes noise
//! at the rate of the codec beside it (RFC 3389 section 4).

use crate::level::dbov;

/// The largest payload that [`describe`] writes: the level and ten reflection coefficients.
pub const MAX_PAYLOAD_BYTES: usize = 11;

/// Coefficients that [`describe`] looks for.
const DESCRIBED: usize = MAX_PAYLOAD_BYTES - 1;

/// Coefficients that [`ComfortNoise`] keeps; the model order is open (RFC 3389 section 3).
const KEPT: usize = 16;

/// The level octet that says digital silence (RFC 3389 section 3: 0 to -127 dBov).
const SILENT: u8 = 127;

/// The gain goes from one level to the next in this many samples: 20 ms at 8 kHz.
const RAMP_SAMPLES: u16 = 160;

/// Makes noise as a payload describes it.
#[derive(Clone, Debug)]
pub struct ComfortNoise {
    random: u64,
    /// Sine and cosine of each stage's turn.
    stages: [(f32, f32); KEPT],
    order: usize,
    /// What runs backwards, a sample old.
    backwards: [f32; KEPT],
    gain: f32,
    target: f32,
    step: f32,
    ramp: u16,
}

impl ComfortNoise {
    /// Silence, until it is told otherwise. `seed` decides the noise.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            // The generator stands still at 0 alone.
            random: (seed ^ 0x9e37_79b9_7f4a_7c15).max(1),
            stages: [(0.0, 1.0); KEPT],
            order: 0,
            backwards: [0.0; KEPT],
            gain: 0.0,
            target: 0.0,
            step: 0.0,
            ramp: 0,
        }
    }

    /// Takes a payload: the level in -dBov, then reflection coefficients (RFC 3389 section 3). An
    /// empty one changes nothing.
    pub fn handle_payload(&mut self, payload: &[u8]) {
        let Some((&level, indices)) = payload.split_first() else {
            return;
        };
        // The first bit is always 0 (RFC 3389 section 3); a peer that sets it says nothing by it.
        self.target = gain(level & 0x7f);
        self.step = (self.target - self.gain) / f32::from(RAMP_SAMPLES);
        self.ramp = RAMP_SAMPLES;
        let order = indices.len().min(KEPT);
        for (stage, &index) in self.stages.iter_mut().zip(indices) {
            let k = coefficient(index);
            *stage = (k, (1.0 - k * k).sqrt());
        }
        for backwards in &mut self.backwards[order..] {
            *backwards = 0.0;
        }
        self.order = order;
    }

    /// Makes the next samples. Cost: no allocation.
    pub fn fill(&mut self, out: &mut [i16]) {
        for sample in out {
            if self.ramp > 0 {
                self.ramp -= 1;
                self.gain = self.target - self.step * f32::from(self.ramp);
            } else if self.gain == 0.0 {
                *sample = 0;
                continue;
            }
            *sample = (self.gain * self.next()).round() as i16;
        }
    }

    /// The next sample of power 1.
    fn next(&mut self) -> f32 {
        let mut forwards = self.white();
        let stages = &self.stages[..self.order];
        // From the last stage to the first; what leaves a stage backwards enters the one above.
        for (index, &(sine, cosine)) in stages.iter().enumerate().rev() {
            let behind = self.backwards[index];
            if let Some(above) = self.backwards[..self.order].get_mut(index + 1) {
                *above = sine * forwards + cosine * behind;
            }
            forwards = cosine * forwards - sine * behind;
        }
        if let Some(first) = self.backwards[..self.order].first_mut() {
            *first = forwards;
        }
        forwards
    }

    /// White noise, uniform from -sqrt(3) to sqrt(3), of power 1 (xorshift, 64 bits).
    fn white(&mut self) -> f32 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let value = (self.random >> 40) as i32 - (1 << 23);
        value as f32 * (3_f32.sqrt() / (1 << 23) as f32)
    }
}

/// The gain of noise at this many dB below overload.
fn gain(level: u8) -> f32 {
    if level == SILENT {
        return 0.0;
    }
    32_768.0 * 10_f32.powf(-f32::from(level) / 20.0)
}

/// `k = 258 (N - 127) / 32768`; 255 is reserved and read as nothing said (RFC 3389 section 3).
fn coefficient(index: u8) -> f32 {
    match index {
        255 => 0.0,
        _ => 258.0 * (f32::from(index) - 127.0) / 32_768.0,
    }
}

/// The index whose coefficient is nearest.
fn index(k: f32) -> u8 {
    (k * (32_768.0 / 258.0) + 127.0).round().clamp(0.0, 254.0) as u8
}

/// Describes noise as a payload. Returns the octets written, at most [`MAX_PAYLOAD_BYTES`].
///
/// A constant offset is no sound and is left out. Coefficients at the end that say nothing are not
/// sent. Cost: no allocation, about a dozen multiplications a sample.
///
/// # Panics
/// `out` is smaller than that.
pub fn describe(pcm: &[i16], out: &mut [u8]) -> usize {
    let sum: i64 = pcm.iter().map(|&sample| i64::from(sample)).sum();
    let mean = (sum as f64 / pcm.len().max(1) as f64) as f32;
    out[0] = level(pcm, mean);
    if out[0] == SILENT {
        return 1;
    }
    let reflections = reflections(&autocorrelation(pcm, mean));
    let mut len = 1;
    for (place, &k) in reflections.iter().enumerate() {
        let octet = index(k);
        out[place + 1] = octet;
        if coefficient(octet) != 0.0 {
            len = place + 2;
        }
    }
    len
}

/// The level octet of what remains without the mean.
fn level(pcm: &[i16], mean: f32) -> u8 {
    let power = 10_f64.powf(f64::from(dbov(pcm).0) / 10.0) - (f64::from(mean) / 32_768.0).powi(2);
    if power <= 0.0 {
        return SILENT;
    }
    (-10.0 * power.log10()).round().clamp(0.0, SILENT.into()) as u8
}

/// Autocorrelation under a parabola that falls to nothing at both ends.
fn autocorrelation(pcm: &[i16], mean: f32) -> [f64; DESCRIBED + 1] {
    let mut sums = [0.0; DESCRIBED + 1];
    let mut recent = [0.0_f32; DESCRIBED + 1];
    let half = (pcm.len() + 1) as f32 / 2.0;
    for (place, &sample) in pcm.iter().enumerate() {
        let x = (place + 1) as f32 / half - 1.0;
        recent.rotate_right(1);
        recent[0] = (f32::from(sample) - mean) * (1.0 - x * x);
        for (sum, &earlier) in sums.iter_mut().zip(&recent) {
            *sum += f64::from(recent[0] * earlier);
        }
    }
    sums
}

/// Reflection coefficients by Levinson's recursion as Durbin has it. White noise 40 dB down is
/// added, so that a pure tone has an answer as well.
fn reflections(autocorrelation: &[f64; DESCRIBED + 1]) -> [f32; DESCRIBED] {
    let mut reflections = [0.0; DESCRIBED];
    let mut predictor = [0.0; DESCRIBED + 1];
    predictor[0] = 1.0;
    let mut error = autocorrelation[0] * 1.0001;
    for order in 1..=DESCRIBED {
        if error <= 0.0 {
            break;
        }
        let ahead: f64 = (0..order)
            .map(|n| predictor[n] * autocorrelation[order - n])
            .sum();
        let k = -ahead / error;
        if !(-1.0..=1.0).contains(&k) {
            break;
        }
        let before = predictor;
        for n in 1..=order {
            predictor[n] = before[n] + k * before[order - n];
        }
        error *= 1.0 - k * k;
        reflections[order - 1] = k as f32;
    }
    reflections
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Dbm0, peak};
    use crate::tone::Tone;

    fn made_of(payload: &[u8], samples: usize) -> Vec<i16> {
        let mut noise = ComfortNoise::new(7);
        noise.handle_payload(payload);
        let mut pcm = vec![0; samples + usize::from(RAMP_SAMPLES)];
        noise.fill(&mut pcm);
        pcm.split_off(RAMP_SAMPLES.into())
    }

    /// Power in each of 16 bands of equal width, in dB, by the transform's definition.
    fn bands(pcm: &[i16]) -> [f64; 16] {
        let mut powers = [0.0; 16];
        for block in pcm.chunks_exact(128) {
            for (bin, power) in (1..64).map(|bin| (bin, bin / 4)) {
                let turn = std::f64::consts::TAU * f64::from(bin) / 128.0;
                let (mut re, mut im) = (0.0, 0.0);
                for (n, &sample) in block.iter().enumerate() {
                    let window = (std::f64::consts::PI * n as f64 / 128.0).sin().powi(2);
                    re += f64::from(sample) * window * (turn * n as f64).cos();
                    im += f64::from(sample) * window * (turn * n as f64).sin();
                }
                powers[power as usize] += re * re + im * im;
            }
        }
        powers.map(|power| 10.0 * power.max(1.0).log10())
    }

    #[test]
    fn indices_are_those_of_the_rfc() {
        assert_eq!(coefficient(127), 0.0);
        assert_eq!(coefficient(0), -258.0 * 127.0 / 32_768.0);
        assert_eq!(coefficient(254), 258.0 * 127.0 / 32_768.0);
        for octet in 0..255 {
            assert_eq!(index(coefficient(octet)), octet);
            assert!(coefficient(octet).abs() < 1.0);
        }
        assert_eq!(index(1.0), 254);
        assert_eq!(index(-1.0), 0);
    }

    #[test]
    fn the_level_is_the_one_asked_for() {
        for coefficients in [&[][..], &[60], &[20, 200], &[10, 230, 90, 127, 180]] {
            for level in [20_u8, 40, 60, 75] {
                let payload = [&[level], coefficients].concat();
                let heard = dbov(&made_of(&payload, 80_000)).0;
                let off = heard + f32::from(level);
                assert!(off.abs() < 1.0, "{payload:?}: {heard} dBov");
            }
        }
    }

    #[test]
    fn described_noise_sounds_alike() {
        let shapes: [&[u8]; 4] = [
            &[40],
            &[35, 40],
            &[50, 200, 160],
            &[45, 50, 190, 120, 100, 150, 127, 110],
        ];
        for shape in shapes {
            let original = made_of(shape, 32_000);
            let mut payload = [0; MAX_PAYLOAD_BYTES];
            let len = describe(&original, &mut payload);
            let again = made_of(&payload[..len], 32_000);
            let off = dbov(&again).0 - dbov(&original).0;
            assert!(off.abs() < 1.0, "{shape:?}: {off} dB louder");
            for (one, other) in bands(&original).iter().zip(bands(&again)) {
                assert!((one - other).abs() < 2.0, "{shape:?}: {one} and {other} dB");
            }
        }
    }

    #[test]
    fn a_frame_is_enough_to_describe_it() {
        let original = made_of(&[40, 50, 160], 160 * 200);
        for frame in original.chunks_exact(160) {
            let mut payload = [0; MAX_PAYLOAD_BYTES];
            describe(frame, &mut payload);
            let off = f32::from(payload[0]) + dbov(frame).0;
            assert!(off.abs() < 1.0, "{off} dB");
            assert!(payload[1] < 90, "low frequencies prevail: {payload:?}");
        }
    }

    #[test]
    fn silence_is_said_and_kept() {
        let mut payload = [0xff; MAX_PAYLOAD_BYTES];
        for quiet in [&[][..], &[0; 160], &[-8; 160], &[i16::MIN; 160]] {
            assert_eq!(describe(quiet, &mut payload), 1);
            assert_eq!(payload[0], SILENT);
        }
        assert!(made_of(&[SILENT, 0, 254], 500).iter().all(|&s| s == 0));
        let mut noise = ComfortNoise::new(1);
        let mut pcm = [1; 160];
        noise.fill(&mut pcm);
        assert_eq!(pcm, [0; 160], "before anything was said");
    }

    #[test]
    fn the_extremes_are_described_without_harm() {
        let square: Vec<i16> = (0..160)
            .map(|n| if n % 2 == 0 { i16::MAX } else { i16::MIN })
            .collect();
        let mut tone = vec![0; 160];
        Tone::new(425.0, Dbm0(3.0), 8_000).fill(&mut tone);
        for pcm in [&square[..], &tone, &[1], &[5, -5], &square[..11]] {
            let mut payload = [0; MAX_PAYLOAD_BYTES];
            let len = describe(pcm, &mut payload);
            assert!((1..=MAX_PAYLOAD_BYTES).contains(&len));
            assert!(made_of(&payload[..len], 800).iter().any(|&s| s != 0) || payload[0] > 90);
        }
    }

    #[test]
    fn levels_change_without_a_step() {
        let mut noise = ComfortNoise::new(3);
        let mut pcm = [0; 160];
        noise.handle_payload(&[20]);
        noise.fill(&mut pcm);
        assert!(peak(&pcm[..8]) < 600, "it begins softly: {:?}", &pcm[..8]);
        noise.fill(&mut pcm);
        let loud = dbov(&pcm).0;
        noise.handle_payload(&[60]);
        noise.fill(&mut pcm);
        assert!((dbov(&pcm[..16]).0 - loud).abs() < 3.0);
        noise.fill(&mut pcm);
        assert!((dbov(&pcm).0 + 60.0).abs() < 1.0);
        noise.handle_payload(&[]);
        noise.fill(&mut pcm);
        assert!((dbov(&pcm).0 + 60.0).abs() < 1.0, "nothing was said");
    }

    #[test]
    fn the_seed_decides_the_noise() {
        let make = |seed| {
            let mut noise = ComfortNoise::new(seed);
            noise.handle_payload(&[30, 100]);
            let mut pcm = [0; 320];
            noise.fill(&mut pcm);
            pcm
        };
        assert_eq!(make(1), make(1));
        assert_ne!(make(1), make(2));
        assert_ne!(make(0x9e37_79b9_7f4a_7c15), [0; 320]);
    }
}
