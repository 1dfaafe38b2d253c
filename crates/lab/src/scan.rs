//! Finding marks in a run of samples whose frame borders are unknown: a recording, or one
//! played back.
//!
//! A window of 64 sign bits slides over the samples; where its check fits, the whole frame is
//! compared with what the mark says. Frames must then stand where the sender's clock puts
//! them: frame `n + k` stands `k` frames after frame `n`, whatever was lost in between.

use std::collections::BTreeMap;

use crate::law::Law;
use crate::mark::{MARK_SAMPLES, Mark, MarkKey, Side};

/// What one channel holds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Scan {
    /// Samples looked at.
    pub samples: usize,
    /// Frames found, equal sample for sample to what was sent, by who spoke them.
    pub exact: BTreeMap<(u32, Side), usize>,
    /// Frames with a mark whose other samples differ.
    pub altered: usize,
    /// Frames that do not stand where the frame before them, of the same party, puts them.
    pub misplaced: usize,
    /// Offset and number of the first frame found.
    pub first: Option<(usize, u32)>,
    /// Offset and number of the last frame found.
    pub last: Option<(usize, u32)>,
}

impl Scan {
    /// Frames of one party found whole.
    #[must_use]
    pub fn frames_of(&self, call: u32, side: Side) -> usize {
        self.exact.get(&(call, side)).copied().unwrap_or(0)
    }

    /// Whether `call`'s `side` and nobody else is here, every frame whole and in its place.
    #[must_use]
    pub fn is_only(&self, call: u32, side: Side) -> bool {
        self.exact.len() == 1
            && self.frames_of(call, side) > 0
            && self.altered == 0
            && self.misplaced == 0
    }
}

/// Looks for marked frames of `frame_len` samples in G.711 bytes of `law`.
#[must_use]
pub fn scan(key: MarkKey, samples: &[u8], frame_len: usize, law: Law) -> Scan {
    let mut found = Scan {
        samples: samples.len(),
        ..Scan::default()
    };
    let mut placed: BTreeMap<(u32, Side), (usize, u32)> = BTreeMap::new();
    let mut expected = vec![0; frame_len];
    let mut bits = 0u64;
    for (i, sample) in samples.iter().enumerate() {
        bits = (bits << 1) | u64::from(sample >> 7);
        if i + 1 < MARK_SAMPLES {
            continue;
        }
        let Some(mark) = key.decode(bits) else {
            continue;
        };
        let offset = i + 1 - MARK_SAMPLES;
        let Some(frame) = samples.get(offset..offset + frame_len) else {
            continue;
        };
        key.write(mark, &mut expected);
        mark.law.convert(law, &mut expected);
        if frame != expected {
            // One offset in 65,536 carries a valid check by chance; a true frame that was
            // altered is told from it by having most of its samples right.
            let right = frame.iter().zip(&expected).filter(|(a, b)| a == b).count();
            found.altered += usize::from(right * 2 > frame_len);
            continue;
        }
        found.note(mark, offset, frame_len, &mut placed);
    }
    found
}

impl Scan {
    fn note(
        &mut self,
        mark: Mark,
        offset: usize,
        frame_len: usize,
        placed: &mut BTreeMap<(u32, Side), (usize, u32)>,
    ) {
        let party = (mark.call, mark.side);
        *self.exact.entry(party).or_insert(0) += 1;
        if let Some((before, number)) = placed.insert(party, (offset, mark.frame)) {
            let steps = mark.frame.wrapping_sub(number) as usize;
            self.misplaced += usize::from(offset - before != steps.saturating_mul(frame_len));
        }
        self.first.get_or_insert((offset, mark.frame));
        self.last = Some((offset, mark.frame));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;

    fn key() -> MarkKey {
        MarkKey::new(12)
    }

    fn speech(call: u32, side: Side, frames: impl IntoIterator<Item = u32>) -> Vec<u8> {
        fixture::speech(key(), call, side, frames)
    }

    #[test]
    fn frames_are_found_at_any_offset() {
        let mut samples = vec![0xd5; 77];
        samples.extend(speech(3, Side::Caller, 0..100));
        samples.extend([0x55; 31]);
        let found = scan(key(), &samples, 160, Law::A);
        assert!(found.is_only(3, Side::Caller));
        assert_eq!(found.frames_of(3, Side::Caller), 100);
        assert_eq!(
            (found.first, found.last),
            (Some((77, 0)), Some((77 + 99 * 160, 99)))
        );
    }

    #[test]
    fn swapped_channels_are_seen() {
        let samples = speech(3, Side::Callee, 0..10);
        let found = scan(key(), &samples, 160, Law::A);
        assert!(!found.is_only(3, Side::Caller) && found.is_only(3, Side::Callee));
    }

    #[test]
    fn a_gap_filled_with_silence_keeps_its_place() {
        let mut samples = speech(1, Side::Caller, 0..10);
        samples.extend([0xd5; 480]);
        samples.extend(speech(1, Side::Caller, 13..20));
        assert_eq!(scan(key(), &samples, 160, Law::A).misplaced, 0);
    }

    #[test]
    fn a_gap_that_was_closed_up_or_stretched_is_misplaced() {
        let mut closed = speech(1, Side::Caller, 0..10);
        closed.extend(speech(1, Side::Caller, 13..20));
        assert_eq!(scan(key(), &closed, 160, Law::A).misplaced, 1);
        let mut stretched = speech(1, Side::Caller, 0..10);
        stretched.extend([0xd5; 1]);
        stretched.extend(speech(1, Side::Caller, 10..20));
        assert_eq!(scan(key(), &stretched, 160, Law::A).misplaced, 1);
    }

    #[test]
    fn an_altered_frame_is_counted_apart() {
        let mut samples = speech(1, Side::Caller, 0..10);
        samples[3 * 160 + 100] ^= 0x04;
        let found = scan(key(), &samples, 160, Law::A);
        assert_eq!((found.frames_of(1, Side::Caller), found.altered), (9, 1));
    }

    #[test]
    fn the_other_law_is_followed() {
        let mut samples = speech(1, Side::Caller, 0..10);
        Law::A.convert(Law::Mu, &mut samples);
        let found = scan(key(), &samples, 160, Law::Mu);
        assert_eq!(found.frames_of(1, Side::Caller), 10);
    }
}
