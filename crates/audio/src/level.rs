//! How loud PCM is.
//!
//! dBov is relative to the digital overload point: a square wave at full scale has 0 dBov, a sine
//! at full scale -3.01 dBov (RFC 6464 section 3, ITU-T P.56). dBm0 is relative to a milliwatt at
//! the point of zero relative level: a sine at full scale has +3.14 dBm0 in A-law (ITU-T G.711
//! section 5; mu-law says +3.17), so 0 dBm0 = -6.15 dBov.

/// Level of a sine at full scale, in dBm0, for A-law (G.711 section 5).
#[expect(clippy::approx_constant, reason = "a level, not a ratio of circles")]
pub const SINE_OVERLOAD_DBM0: f64 = 3.14;

/// dBm0 of 0 dBov: a sine at full scale lies 10 log10(2) below a square wave.
pub const OVERLOAD_DBM0: f64 = SINE_OVERLOAD_DBM0 + 3.0103;

/// What digital silence is said to have: RFC 6464 counts down to -127.
pub const SILENCE_DBOV: f64 = -127.0;

/// A level in dBm0.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct Dbm0(pub f32);

/// A level in dBov.
#[derive(Copy, Clone, Debug, PartialEq, PartialOrd)]
pub struct Dbov(pub f32);

impl From<Dbov> for Dbm0 {
    fn from(level: Dbov) -> Self {
        Self((f64::from(level.0) + OVERLOAD_DBM0) as f32)
    }
}

impl From<Dbm0> for Dbov {
    fn from(level: Dbm0) -> Self {
        Self((f64::from(level.0) - OVERLOAD_DBM0) as f32)
    }
}

/// Level of a block; silence and an empty block have [`SILENCE_DBOV`].
#[must_use]
pub fn dbov(pcm: &[i16]) -> Dbov {
    let energy: u64 = pcm
        .iter()
        .map(|&s| u64::from(s.unsigned_abs()).pow(2))
        .sum();
    if energy == 0 {
        return Dbov(SILENCE_DBOV as f32);
    }
    let mean = energy as f64 / pcm.len() as f64 / 32_768_f64.powi(2);
    Dbov((10.0 * mean.log10()).max(SILENCE_DBOV) as f32)
}

/// Level of a block in dBm0.
#[must_use]
pub fn dbm0(pcm: &[i16]) -> Dbm0 {
    dbov(pcm).into()
}

/// The largest magnitude in a block, 0 to 32,768.
#[must_use]
pub fn peak(pcm: &[i16]) -> u16 {
    pcm.iter()
        .map(|sample| sample.unsigned_abs())
        .max()
        .unwrap_or(0)
}

/// The amplitude of a sine of this level, in PCM units; above 32,767 it clips.
#[must_use]
pub fn sine_peak(level: Dbm0) -> f64 {
    32_768.0 * 10_f64.powf((f64::from(level.0) - SINE_OVERLOAD_DBM0) / 20.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tone::Tone;

    #[test]
    fn a_full_scale_square_wave_has_0_dbov() {
        let square: Vec<i16> = (0..800)
            .map(|n| if n % 8 < 4 { 32_767 } else { -32_768 })
            .collect();
        assert!(dbov(&square).0.abs() < 0.001);
        assert_eq!(peak(&square), 32_768);
    }

    #[test]
    fn a_tone_has_the_level_it_was_made_with() {
        for level in [3.0, 0.0, -10.0, -30.0, -50.0] {
            let mut pcm = [0; 8_000];
            Tone::new(1004.0, Dbm0(level), 8_000).fill(&mut pcm);
            assert!(
                (dbm0(&pcm).0 - level).abs() < 0.05,
                "{level}: {:?}",
                dbm0(&pcm)
            );
        }
    }

    #[test]
    fn zero_dbm0_is_6_15_below_overload() {
        assert!((Dbov::from(Dbm0(0.0)).0 + 6.15).abs() < 0.001);
        assert!((sine_peak(Dbm0(SINE_OVERLOAD_DBM0 as f32)) - 32_768.0).abs() < 0.5);
    }

    #[test]
    fn silence_has_a_level_too() {
        assert_eq!(dbov(&[0; 160]), Dbov(-127.0));
        assert_eq!(dbov(&[]), Dbov(-127.0));
        assert_eq!(peak(&[]), 0);
    }
}
