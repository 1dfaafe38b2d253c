//! What one leg hears: every frame held against what its mark says it must be.
//!
//! ```text
//!   payload -> read mark -> right call, right side? -> same bytes? -> next frame number?
//!                 |                 |                     |                  |
//!             unreadable       wrong_party             altered       missing, repeated, late
//! ```
//!
//! The check streams: memory does not grow with the call. A payload is compared with the
//! frame its mark names, converted by the G.711 tables when the two legs speak different laws
//! (ITU-T G.711, tables 3 and 4), so "exact" means equal byte for byte.

use crate::law::Law;
use crate::mark::{Mark, MarkKey, Side};

/// What was heard, in counts. All are frames (packets with audio) unless said otherwise.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Heard {
    /// Frames of any kind.
    pub frames: u64,
    /// Frames of the right party, each for the first time, equal byte for byte.
    pub exact: u64,
    /// Frames of the right party whose bytes are not what was sent.
    pub altered: u64,
    /// Frames that carry no mark of this run.
    pub unreadable: u64,
    /// Frames of another call, or of the wrong side of this one.
    pub wrong_party: u64,
    /// Frames heard once before.
    pub repeated: u64,
    /// Frames that came after a younger one.
    pub late: u64,
    /// Frames between the first and the last heard that never came.
    pub missing: u64,
    /// Runs of missing frames.
    pub gaps: u64,
    /// The longest run of missing frames.
    pub longest_gap: u64,
    /// First and highest frame number heard of the right party.
    pub span: Option<(u32, u32)>,
    /// The first wrong party heard.
    pub stranger: Option<(u32, Side)>,
}

impl Heard {
    /// Whether all that was heard is right: something was, nothing is missing in between, and
    /// nothing is altered, repeated, foreign or out of order.
    #[must_use]
    pub fn is_exact(&self) -> bool {
        self.exact > 0 && self.exact == self.frames && self.missing == 0 && self.late == 0
    }
}

/// How far back a late frame is still told from a repeated one.
const WINDOW: u32 = 64;

/// The check of one leg's incoming audio.
#[derive(Clone, Debug)]
pub struct Hearing {
    key: MarkKey,
    /// The call that must be heard; learnt from the first mark when not known.
    call: Option<u32>,
    side: Side,
    /// Which of the frames `highest - i` came: bit i.
    window: u64,
    heard: Heard,
    ended: bool,
}

impl Hearing {
    /// A check that expects frames of `side` of `call`.
    ///
    /// With `call` unknown, the first mark heard decides which call it is.
    #[must_use]
    pub fn new(key: MarkKey, call: Option<u32>, side: Side) -> Self {
        Self {
            key,
            call,
            side,
            window: 0,
            heard: Heard::default(),
            ended: false,
        }
    }

    /// Takes one payload in `law`; returns its mark when it has one.
    pub fn hear(&mut self, law: Law, payload: &[u8]) -> Option<Mark> {
        self.heard.frames += 1;
        let Some(mark) = self.key.read(payload) else {
            self.heard.unreadable += 1;
            return None;
        };
        let call = *self.call.get_or_insert(mark.call);
        if (mark.call, mark.side) != (call, self.side) {
            self.heard.wrong_party += 1;
            self.heard.stranger.get_or_insert((mark.call, mark.side));
            return Some(mark);
        }
        self.ended |= mark.last;
        match self.place(mark.frame) {
            Place::Repeated => self.heard.repeated += 1,
            place => {
                self.heard.late += u64::from(place == Place::Late);
                if self.is_as_sent(mark, law, payload) {
                    self.heard.exact += 1;
                } else {
                    self.heard.altered += 1;
                }
            }
        }
        Some(mark)
    }

    /// The call heard, once known.
    #[must_use]
    pub fn call(&self) -> Option<u32> {
        self.call
    }

    /// Whether the speaker has said that it stops.
    #[must_use]
    pub fn is_ended(&self) -> bool {
        self.ended
    }

    /// The counts so far.
    #[must_use]
    pub fn heard(&self) -> &Heard {
        &self.heard
    }

    fn is_as_sent(&self, mark: Mark, law: Law, payload: &[u8]) -> bool {
        let mut buffer = [0u8; MAX_FRAME_BYTES];
        let Some(expected) = buffer.get_mut(..payload.len()) else {
            return false;
        };
        self.key.write(mark, expected);
        mark.law.convert(law, expected);
        expected == payload
    }

    fn place(&mut self, frame: u32) -> Place {
        let heard = &mut self.heard;
        let Some((first, highest)) = heard.span else {
            heard.span = Some((frame, frame));
            self.window = 1;
            return Place::Next;
        };
        if frame > highest {
            let skipped = frame - highest - 1;
            if skipped > 0 {
                heard.missing += u64::from(skipped);
                heard.gaps += 1;
                heard.longest_gap = heard.longest_gap.max(u64::from(skipped));
            }
            let step = frame - highest;
            self.window = if step < WINDOW {
                (self.window << step) | 1
            } else {
                1
            };
            heard.span = Some((first, frame));
            return Place::Next;
        }
        let back = highest - frame;
        if back >= WINDOW || self.window & (1 << back) != 0 {
            return Place::Repeated;
        }
        self.window |= 1 << back;
        if frame < first {
            heard.span = Some((frame, highest));
            heard.missing += u64::from(first - frame - 1);
        } else {
            heard.missing -= 1;
        }
        Place::Late
    }
}

/// Largest payload that can be compared: 180 ms of G.711.
const MAX_FRAME_BYTES: usize = 1440;

#[derive(PartialEq)]
enum Place {
    Next,
    Late,
    Repeated,
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: u64 = 99;

    fn frame(call: u32, side: Side, frame: u32) -> Vec<u8> {
        let mut bytes = vec![0; 160];
        let mark = Mark {
            call,
            side,
            frame,
            last: false,
            law: Law::A,
        };
        MarkKey::new(KEY).write(mark, &mut bytes);
        bytes
    }

    fn listen(frames: impl IntoIterator<Item = Vec<u8>>) -> Heard {
        let mut hearing = Hearing::new(MarkKey::new(KEY), Some(7), Side::Caller);
        for payload in frames {
            hearing.hear(Law::A, &payload);
        }
        hearing.heard().clone()
    }

    fn numbers(list: impl IntoIterator<Item = u32>) -> Heard {
        listen(list.into_iter().map(|n| frame(7, Side::Caller, n)))
    }

    #[test]
    fn an_unharmed_stream_is_exact() {
        let heard = numbers(0..1000);
        assert!(heard.is_exact());
        assert_eq!((heard.exact, heard.span), (1000, Some((0, 999))));
    }

    #[test]
    fn silence_is_not_exact() {
        assert!(!listen([]).is_exact());
    }

    #[test]
    fn loss_is_counted_in_frames_and_gaps() {
        let heard = numbers((0..10).chain(13..20).chain(21..30));
        assert_eq!((heard.missing, heard.gaps, heard.longest_gap), (4, 2, 3));
        assert!(!heard.is_exact());
    }

    #[test]
    fn repeats_are_counted_once_each() {
        let heard = numbers([0, 1, 1, 2, 2, 2, 3, 0]);
        assert_eq!((heard.repeated, heard.exact, heard.missing), (4, 4, 0));
        assert!(!heard.is_exact());
    }

    #[test]
    fn late_frames_fill_their_gap() {
        let heard = numbers([5, 6, 8, 7, 9, 4, 2]);
        assert_eq!((heard.late, heard.missing, heard.repeated), (3, 1, 0));
        assert_eq!(heard.span, Some((2, 9)));
    }

    #[test]
    fn a_frame_from_far_behind_counts_as_repeated() {
        let heard = numbers((0..200).chain([3]));
        assert_eq!((heard.repeated, heard.late), (1, 0));
    }

    #[test]
    fn another_call_is_a_wrong_party() {
        let heard = listen([frame(7, Side::Caller, 0), frame(8, Side::Caller, 1)]);
        assert_eq!(
            (heard.wrong_party, heard.stranger),
            (1, Some((8, Side::Caller)))
        );
        assert!(!heard.is_exact());
    }

    #[test]
    fn hearing_oneself_is_a_wrong_party() {
        let heard = listen([frame(7, Side::Callee, 0)]);
        assert_eq!((heard.wrong_party, heard.exact), (1, 0));
    }

    #[test]
    fn a_single_changed_bit_is_seen() {
        let mut bytes = frame(7, Side::Caller, 0);
        bytes[130] ^= 1;
        assert_eq!(listen([bytes]).altered, 1);
        let mut bytes = frame(7, Side::Caller, 0);
        bytes.truncate(150);
        bytes.extend([0xd5; 10]);
        assert_eq!(listen([bytes]).altered, 1);
    }

    #[test]
    fn noise_is_unreadable() {
        assert_eq!(listen([vec![0xd5; 160], vec![0x2a; 160]]).unreadable, 2);
    }

    #[test]
    fn the_other_law_is_held_against_the_table() {
        let mut hearing = Hearing::new(MarkKey::new(KEY), None, Side::Caller);
        for n in 0..50 {
            let mut bytes = frame(7, Side::Caller, n);
            Law::A.convert(Law::Mu, &mut bytes);
            hearing.hear(Law::Mu, &bytes);
        }
        assert!(hearing.heard().is_exact());
        assert_eq!(hearing.call(), Some(7));
        // Left unconverted, the bytes are not what a mu-law leg must hear.
        hearing.hear(Law::Mu, &frame(7, Side::Caller, 50));
        assert_eq!(hearing.heard().altered, 1);
    }

    #[test]
    fn the_end_is_heard() {
        let key = MarkKey::new(KEY);
        let mut hearing = Hearing::new(key, Some(7), Side::Caller);
        hearing.hear(Law::A, &frame(7, Side::Caller, 0));
        assert!(!hearing.is_ended());
        let mut bytes = [0u8; 160];
        let mark = Mark {
            call: 7,
            side: Side::Caller,
            frame: 1,
            last: true,
            law: Law::A,
        };
        key.write(mark, &mut bytes);
        hearing.hear(Law::A, &bytes);
        assert!(hearing.is_ended() && hearing.heard().is_exact());
    }
}
