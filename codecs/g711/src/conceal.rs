//! Making up for lost frames: the last pitch period again and again, fading.
//!
//! ```text
//!  heard ......[ period ] lost: [ period ][ period ][ peri...   next frame
//!  gain                         1.0 for 10 ms, then down to 0 at 60 ms  \ crossfade, 4 ms /
//! ```
//!
//! The period is the lag, between 40 and 120 samples (66 to 200 Hz), at which the sound before the
//! loss is most like itself, as in appendix I of G.711; appendix I's overlap at the start of a loss
//! and its delay of 3.75 ms are left out. Before anything was heard a lost frame is silent. Samples
//! are at 8 kHz.

/// Sound kept: the longest period, and as much again to compare it with.
const HISTORY: usize = 2 * MAX_LAG;
const MIN_LAG: usize = 40;
const MAX_LAG: usize = 120;
/// Full gain for this long, in samples.
const HOLD: usize = 80;
/// Silent from here on.
const SILENT: usize = 480;
/// Crossfade into the first frame after a loss.
const JOIN: usize = 32;

#[derive(Clone, Debug)]
pub(crate) struct Concealer {
    history: [i16; HISTORY],
    /// Samples made up since the last frame.
    made_up: usize,
    lag: usize,
}

impl Concealer {
    pub(crate) fn new() -> Self {
        Self {
            history: [0; HISTORY],
            made_up: 0,
            lag: MAX_LAG,
        }
    }

    /// Makes up the next samples.
    pub(crate) fn conceal(&mut self, out: &mut [i16]) {
        if self.made_up == 0 {
            self.lag = pitch_lag(&self.history);
        }
        for sample in out {
            *sample = self.next_sample();
        }
    }

    /// Takes a frame that was heard, and leads over to it when something was made up before.
    pub(crate) fn hear(&mut self, pcm: &mut [i16]) {
        if self.made_up > 0 {
            for (step, sample) in (1..).zip(pcm.iter_mut().take(JOIN)) {
                let made_up = i32::from(self.next_sample());
                let width = JOIN as i32 + 1;
                *sample = ((i32::from(*sample) * step + made_up * (width - step)) / width) as i16;
            }
            self.made_up = 0;
        }
        match pcm.last_chunk::<HISTORY>() {
            Some(all) => self.history = *all,
            None => {
                self.history.copy_within(pcm.len().., 0);
                self.history[HISTORY - pcm.len()..].copy_from_slice(pcm);
            }
        }
    }

    fn next_sample(&mut self) -> i16 {
        let position = self.made_up;
        self.made_up = (position + 1).min(SILENT);
        let sample = i32::from(self.history[HISTORY - self.lag + position % self.lag]);
        let left = (SILENT - position.clamp(HOLD, SILENT)) as i32;
        (sample * left / (SILENT - HOLD) as i32) as i16
    }
}

/// The lag with the largest normalised correlation; the shortest when all is silent.
fn pitch_lag(history: &[i16; HISTORY]) -> usize {
    let (earlier, recent) = history.split_at(HISTORY - MAX_LAG);
    debug_assert_eq!(earlier.len(), MAX_LAG);
    let mut best = (MIN_LAG, 0.0);
    for lag in MIN_LAG..=MAX_LAG {
        let (mut product, mut energy) = (0_i64, 0_i64);
        for (index, &now) in (HISTORY - MAX_LAG..).zip(recent) {
            let then = i64::from(history[index - lag]);
            product += i64::from(now) * then;
            energy += then * then;
        }
        let likeness = product as f64 / (energy as f64).sqrt().max(1.0);
        if likeness > best.1 {
            best = (lag, likeness);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 100 Hz: a period of 80 samples.
    fn buzz(from: usize, len: usize) -> Vec<i16> {
        (from..from + len)
            .map(|n| (n % 80) as i16 * 100 - 4_000)
            .collect()
    }

    #[test]
    fn a_steady_sound_goes_on_through_a_short_loss() {
        let mut concealer = Concealer::new();
        for frame in 0..5 {
            concealer.hear(&mut buzz(frame * 160, 160));
        }
        let mut made_up = [0; 80];
        concealer.conceal(&mut made_up);
        assert_eq!(concealer.lag, 80);
        assert_eq!(made_up[..], buzz(5 * 160, 80));
    }

    #[test]
    fn a_long_loss_fades_to_silence() {
        let mut concealer = Concealer::new();
        concealer.hear(&mut buzz(0, 320));
        let mut made_up = [0; 800];
        concealer.conceal(&mut made_up);
        let peak = |range: std::ops::Range<usize>| audio::level::peak(&made_up[range]);
        assert!(peak(80..160) <= 4_000 && peak(400..480) < 900 && peak(400..480) > 0);
        assert_eq!(peak(480..800), 0);
    }

    #[test]
    fn the_frame_after_a_loss_is_led_over_to_and_then_untouched() {
        let mut concealer = Concealer::new();
        concealer.hear(&mut [1_000; 160]);
        concealer.conceal(&mut [0; 160]);
        let mut frame = [-1_000; 160];
        concealer.hear(&mut frame);
        assert!(frame[0] > -1_000 && frame[0] > frame[31]);
        assert!(frame[JOIN..].iter().all(|&sample| sample == -1_000));
        let mut next = [-500; 160];
        concealer.hear(&mut next);
        assert_eq!(next, [-500; 160]);
    }

    #[test]
    fn nothing_comes_of_nothing() {
        let mut made_up = [1; 160];
        Concealer::new().conceal(&mut made_up);
        assert_eq!(made_up, [0; 160]);
    }
}
