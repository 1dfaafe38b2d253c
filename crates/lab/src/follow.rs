//! Following one speaker through a recording that is not exact: mixed, or coded once more.
//!
//! A mix adds the other side, be it only the idle noise of its codec, so samples are no longer
//! equal to what was said, and small ones may change their sign. The speaker's frames are
//! therefore looked for where the first readable mark puts them, and each is compared sample by
//! sample within a margin.

use crate::analysis::level_dbm0;
use crate::mark::{MARK_SAMPLES, Mark, MarkKey, Side};

/// What was found of a speaker's frames.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Followed {
    /// Where the speaker's frame 0 stands, in samples; below zero when it was cut off. `None`
    /// when no frame was found at all.
    pub offset: Option<i64>,
    /// Frames that are there within the margin.
    pub whole: u64,
    /// Frames that are not, before the first that is.
    pub before: u64,
    /// Frames that are not, after the first that is.
    pub broken: u64,
}

/// Who is followed.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Speaker {
    /// Number of the call.
    pub call: u32,
    /// Which side of it.
    pub side: Side,
    /// The law it spoke.
    pub law: crate::law::Law,
    /// How many frames it said, the last three marked as such.
    pub frames: u64,
}

impl Speaker {
    /// The samples of frame `n`.
    fn frame(&self, key: MarkKey, n: u32, len: usize) -> Vec<i16> {
        let mut codes = vec![0; len];
        let mark = Mark {
            call: self.call,
            side: self.side,
            frame: n,
            last: u64::from(n) + LAST_FRAMES >= self.frames,
            law: self.law,
        };
        key.write(mark, &mut codes);
        codes
            .into_iter()
            .map(|code| self.law.expand(code))
            .collect()
    }
}

/// Frames at the end that say so.
const LAST_FRAMES: u64 = 3;

/// Follows `speaker` through `pcm`, in frames of `frame_len` samples.
#[must_use]
pub fn follow(key: MarkKey, pcm: &[i16], frame_len: usize, speaker: Speaker) -> Followed {
    let mut followed = Followed {
        offset: find(key, pcm, frame_len, speaker),
        ..Followed::default()
    };
    let Some(offset) = followed.offset else {
        followed.before = speaker.frames;
        return followed;
    };
    for n in 0..speaker.frames {
        let number = u32::try_from(n).unwrap_or(u32::MAX);
        let at = offset + i64::from(number) * frame_len as i64;
        let there = usize::try_from(at)
            .ok()
            .and_then(|at| pcm.get(at..at + frame_len));
        let expected = speaker.frame(key, number, frame_len);
        if there.is_some_and(|there| is_near(there, &expected)) {
            followed.whole += 1;
        } else if followed.whole == 0 {
            followed.before += 1;
        } else {
            followed.broken += 1;
        }
    }
    followed
}

/// Where frame 0 stands, by the first mark of the speaker whose frame is there.
fn find(key: MarkKey, pcm: &[i16], frame_len: usize, speaker: Speaker) -> Option<i64> {
    let mut bits = 0u64;
    for (i, &sample) in pcm.iter().enumerate() {
        bits = (bits << 1) | u64::from(sample >= 0);
        let Some(offset) = (i + 1).checked_sub(MARK_SAMPLES) else {
            continue;
        };
        let Some(mark) = key.decode(bits) else {
            continue;
        };
        if (mark.call, mark.side) != (speaker.call, speaker.side) {
            continue;
        }
        let there = pcm.get(offset..offset + frame_len);
        let expected = speaker.frame(key, mark.frame, frame_len);
        if there.is_some_and(|there| is_near(there, &expected)) {
            return Some(offset as i64 - i64::from(mark.frame) * frame_len as i64);
        }
    }
    None
}

/// Whether what differs is a quantising step of either law or less: at least 25 dB below what
/// is expected, which is what one more coding by G.711 leaves of loud noise.
fn is_near(there: &[i16], expected: &[i16]) -> bool {
    let difference: Vec<i16> = there
        .iter()
        .zip(expected)
        .map(|(a, b)| a.saturating_sub(*b))
        .collect();
    level_dbm0(&difference) + 25.0 <= level_dbm0(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Law;

    const SPEAKER: Speaker = Speaker {
        call: 6,
        side: Side::Caller,
        law: Law::A,
        frames: 50,
    };

    fn key() -> MarkKey {
        MarkKey::new(9)
    }

    fn said() -> Vec<i16> {
        (0..50).flat_map(|n| SPEAKER.frame(key(), n, 160)).collect()
    }

    fn followed(pcm: &[i16]) -> Followed {
        follow(key(), pcm, 160, SPEAKER)
    }

    #[test]
    fn an_idle_codec_in_the_mix_hides_nothing() {
        let mixed: Vec<i16> = said()
            .iter()
            .map(|sample| sample.saturating_add(8))
            .collect();
        let found = followed(&mixed);
        assert_eq!((found.offset, found.whole, found.broken), (Some(0), 50, 0));
    }

    #[test]
    fn a_coding_more_hides_nothing() {
        let codes = Law::Mu.codes();
        let again = |sample: i16| Law::Mu.expand(codes.nearest(sample.saturating_add(8)));
        let mut pcm = vec![0; 37];
        pcm.extend(said().into_iter().map(again));
        let found = followed(&pcm);
        assert_eq!((found.offset, found.whole), (Some(37), 50));
    }

    #[test]
    fn a_beep_at_the_start_costs_the_frames_under_it() {
        let mut pcm = said();
        for (n, sample) in pcm[..1600].iter_mut().enumerate() {
            let beep = 8000.0 * (n as f64 * 0.785).sin();
            *sample = sample.saturating_add(beep as i16);
        }
        let found = followed(&pcm);
        assert_eq!((found.before, found.whole, found.broken), (10, 40, 0));
    }

    #[test]
    fn a_gap_a_shift_and_another_party_are_seen() {
        let mut gap = said();
        gap[3200..3360].fill(0);
        assert_eq!((followed(&gap).whole, followed(&gap).broken), (49, 1));
        let mut shifted = said();
        shifted.drain(3200..3201);
        assert_eq!(
            (followed(&shifted).whole, followed(&shifted).broken),
            (20, 30)
        );
        let other = Speaker { call: 7, ..SPEAKER };
        let found = follow(key(), &said(), 160, other);
        assert_eq!((found.offset, found.before), (None, 50));
    }
}
