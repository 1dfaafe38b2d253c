//! Sound that stays what it was.

use super::spectrum::{distance_db, lag, segmental_snr_db};
use super::{Bench, Options};
use crate::level::{Dbm0, dbm0};
use crate::tone::Tone;

/// How speech came through a codec.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Heard {
    /// By how much it is louder, in dB.
    pub level_change_db: f32,
    /// How far its spectrum has moved, in dB (see `Options::max_spectral_distance_db`).
    pub spectral_distance_db: f32,
    /// Mean signal to noise of 20 ms frames, each from -10 to 35 dB.
    pub segmental_snr_db: f32,
    /// How much later it is, in samples per channel.
    pub delay_samples: usize,
}

impl Bench<'_> {
    /// A tone of -10 dBm0 on every channel.
    pub(super) fn tone(&self, seconds: usize) -> Vec<i16> {
        let rate = self.info.sample_rate;
        let mut mono = vec![0; rate as usize * seconds];
        Tone::new(Tone::MILLIWATT_HZ, Dbm0(-10.0), rate).fill(&mut mono);
        self.on_all_channels(&mono)
    }

    pub(super) fn silence_stays_silent(&self) {
        let heard = self.through(&vec![0; self.frame() * 50]);
        let level = dbm0(&heard[heard.len() / 2..]).0;
        assert!(
            level < self.options.max_silence.0,
            "silence at {level} dBm0"
        );
    }

    pub(super) fn a_tone_stays_a_tone(&self) {
        let sent = self.tone(2);
        let heard = self.through(&sent);
        let half = heard.len() / 2;
        let change = dbm0(&heard[half..]).0 - dbm0(&sent[half..]).0;
        assert!(
            change.abs() <= self.options.max_level_change_db,
            "level changed by {change} dB"
        );
        let best = (0..=self.options.max_delay_samples)
            .map(|delay| snr_db(&sent[half..], &heard[half..], delay * self.channels()))
            .fold(f32::NEG_INFINITY, f32::max);
        assert!(best >= self.options.min_snr_db, "signal to noise {best} dB");
    }

    /// A tone on one channel is heard there, and on no other louder: a codec that codes the mean of
    /// two channels makes it 6 dB quieter on both. How far they are apart is for the options to
    /// say.
    pub(super) fn channels_stay_apart(&self) {
        let channels = self.channels();
        let Options {
            max_level_change_db,
            min_separation_db,
            ..
        } = *self.options;
        for on in (0..channels).filter(|_| channels > 1) {
            let mut pcm = self.tone(2);
            for (place, sample) in pcm.iter_mut().enumerate() {
                *sample = if place % channels == on { *sample } else { 0 };
            }
            let heard = self.through(&pcm);
            let level = |channel: usize| {
                let half = &heard[heard.len() / channels / 2 * channels..];
                let there = half.iter().skip(channel).step_by(channels);
                dbm0(&there.copied().collect::<Vec<_>>()).0
            };
            let there = level(on);
            let change = there + 10.0;
            assert!(
                change.abs() <= max_level_change_db
                    || min_separation_db.is_none() && change > -6.1 - max_level_change_db,
                "a tone on channel {on} changed by {change} dB"
            );
            for other in (0..channels).filter(|&other| other != on) {
                let apart = there - level(other);
                let least = min_separation_db.unwrap_or(-0.5);
                assert!(apart >= least, "channels {on}, {other}: {apart} dB apart");
            }
        }
    }

    pub(super) fn speech_stays_speech(&self, mono: &[i16]) -> Heard {
        let (rate, options) = (self.info.sample_rate, self.options);
        let whole = mono.len() / self.params.frame_samples * self.params.frame_samples;
        assert!(whole > rate as usize, "too short to judge by");
        let mono = &mono[..whole];
        let heard = self.through(&self.on_all_channels(mono));
        let heard: Vec<i16> = heard.into_iter().step_by(self.channels()).collect();
        let delay_samples = lag(mono, &heard, options.max_delay_samples);
        let (said, heard) = (&mono[..whole - delay_samples], &heard[delay_samples..]);
        let measured = Heard {
            level_change_db: dbm0(heard).0 - dbm0(said).0,
            spectral_distance_db: distance_db(said, heard, rate, options.speech_edge_hz),
            segmental_snr_db: segmental_snr_db(said, heard, rate),
            delay_samples,
        };
        let is_right = measured.level_change_db.abs() <= options.max_level_change_db
            && measured.spectral_distance_db <= options.max_spectral_distance_db
            && options
                .min_segmental_snr_db
                .is_none_or(|least| measured.segmental_snr_db >= least);
        assert!(is_right, "speech: {measured:?}");
        measured
    }
}

/// Signal to noise when `heard` lags behind `sent` by this many samples.
fn snr_db(sent: &[i16], heard: &[i16], delay: usize) -> f32 {
    let pairs = || sent.iter().zip(heard.iter().skip(delay));
    let energy = |value: i32| f64::from(value).powi(2);
    let signal: f64 = pairs().map(|(&a, _)| energy(a.into())).sum();
    let noise: f64 = pairs()
        .map(|(&a, &b)| energy(i32::from(a) - i32::from(b)))
        .sum();
    (10.0 * (signal / noise.max(1e-9)).log10()) as f32
}
