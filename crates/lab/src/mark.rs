//! Marks: what the lab sends so that the far end can tell which call it hears.
//!
//! Every G.711 frame carries, in the sign bits of its first 64 samples, who speaks and which
//! frame it is; every other bit of the frame is pseudo-random and a function of (key, mark).
//!
//! ```text
//!   sample   0 ........ 23 | 24   | 25   | 26  | 27 .. 47     | 48 .. 63 | 64 .. n
//!   sign     call number   | side | last | law | frame number | CRC-16   | random
//!   magnitude  random ..........................................................
//! ```
//!
//! The sign of a sample survives A-law to mu-law conversion and a trip through linear PCM, so a
//! mark is read without knowing what to expect; the whole frame is then compared byte for byte
//! with what the mark says it must be. Two calls, two sides or two frames never share a payload.
//!
//! Units: frames count from 0 at the sender's first packet. The CRC covers the run's key, so
//! packets left over from another run are not taken for ours.

use crate::law::Law;

/// Samples (bytes of G.711) that a mark needs at least.
pub const MARK_SAMPLES: usize = 64;

/// The largest call number that fits into a mark.
pub const MAX_CALL: u32 = (1 << 24) - 1;

/// The largest frame number that fits into a mark: 11 hours of 20 ms frames.
pub const MAX_FRAME: u32 = (1 << 21) - 1;

/// Who speaks.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Side {
    /// The lab's caller.
    Caller,
    /// The lab's callee.
    Callee,
}

impl Side {
    /// The other side of the call.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Caller => Self::Callee,
            Self::Callee => Self::Caller,
        }
    }
}

/// What one frame says about itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Mark {
    /// Number of the call within the run, at most [`MAX_CALL`].
    pub call: u32,
    /// Who sent it.
    pub side: Side,
    /// Frame number since the sender's first packet, at most [`MAX_FRAME`].
    pub frame: u32,
    /// Whether the sender is about to stop: set on its last few frames.
    pub last: bool,
    /// The law it was sent in.
    pub law: Law,
}

impl Mark {
    fn bits(self, key: MarkKey) -> u64 {
        let body = (u64::from(self.call & MAX_CALL) << 24)
            | (u64::from(self.side == Side::Callee) << 23)
            | (u64::from(self.last) << 22)
            | (u64::from(self.law == Law::Mu) << 21)
            | u64::from(self.frame & MAX_FRAME);
        (body << 16) | u64::from(key.check(body))
    }
}

/// The secret of one run: what makes its marks its own.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct MarkKey(u64);

impl MarkKey {
    /// A key made from the run's seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed ^ 0x7461_6e64_656d_6c61))
    }

    /// Writes the frame that `mark` stands for.
    ///
    /// `out` holds one frame of G.711, at least [`MARK_SAMPLES`] bytes; a shorter one is filled
    /// with as much of the mark as fits and cannot be read back.
    pub fn write(self, mark: Mark, out: &mut [u8]) {
        let header = mark.bits(self);
        let mut state = mix(self.0 ^ header);
        for chunk in out.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            chunk.copy_from_slice(&mix(state).to_le_bytes()[..chunk.len()]);
        }
        for (i, byte) in out.iter_mut().take(MARK_SAMPLES).enumerate() {
            let sign = (header >> (63 - i)) & 1;
            *byte = (*byte & 0x7f) | ((sign as u8) << 7);
        }
        // Mu-law has two zeros, which linear PCM cannot tell apart: neither is sent.
        for byte in out.iter_mut().filter(|byte| **byte & 0x7f == 0x7f) {
            *byte ^= 1;
        }
    }

    /// Reads the mark of a frame, or `None` when it carries none of this run's.
    ///
    /// Only the sign bits are looked at, so either G.711 law will do.
    #[must_use]
    pub fn read(self, frame: &[u8]) -> Option<Mark> {
        let head = frame.get(..MARK_SAMPLES)?;
        let bits = head
            .iter()
            .fold(0u64, |bits, byte| (bits << 1) | u64::from(byte >> 7));
        self.decode(bits)
    }

    /// Reads a mark from 64 sign bits, the first sample's uppermost.
    #[must_use]
    pub fn decode(self, bits: u64) -> Option<Mark> {
        let body = bits >> 16;
        if self.check(body) != (bits & 0xffff) as u16 {
            return None;
        }
        Some(Mark {
            call: (body >> 24) as u32 & MAX_CALL,
            side: if body >> 23 & 1 == 1 {
                Side::Callee
            } else {
                Side::Caller
            },
            last: body >> 22 & 1 == 1,
            law: if body >> 21 & 1 == 1 { Law::Mu } else { Law::A },
            frame: body as u32 & MAX_FRAME,
        })
    }

    /// CRC-16 (CCITT polynomial 0x1021) over the key and the 48 bits of the mark.
    fn check(self, body: u64) -> u16 {
        let key = self.0.to_be_bytes();
        let body = body.to_be_bytes();
        key.iter().chain(&body[2..]).fold(0xffff, |crc, &byte| {
            (crc << 8) ^ CRC[usize::from((crc >> 8) as u8 ^ byte)]
        })
    }
}

/// The finaliser of SplitMix64: a bijection of 64 bits that scatters neighbours.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

const CRC: [u16; 256] = {
    let mut table = [0u16; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = (i as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 {
                crc << 1
            } else {
                (crc << 1) ^ 0x1021
            };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(call: u32, side: Side, frame: u32) -> Mark {
        Mark {
            call,
            side,
            frame,
            last: false,
            law: Law::A,
        }
    }

    #[test]
    fn a_mark_reads_back_from_any_frame_size() {
        let key = MarkKey::new(1);
        for len in [64, 80, 160, 240, 1440] {
            for m in [
                mark(0, Side::Caller, 0),
                mark(MAX_CALL, Side::Callee, MAX_FRAME),
                Mark {
                    last: true,
                    law: Law::Mu,
                    ..mark(4711, Side::Caller, 81)
                },
            ] {
                let mut frame = vec![0; len];
                key.write(m, &mut frame);
                assert_eq!(key.read(&frame), Some(m));
            }
        }
    }

    #[test]
    fn the_sign_survives_both_conversions() {
        let key = MarkKey::new(2);
        let m = mark(77, Side::Callee, 123);
        let mut frame = [0u8; 160];
        key.write(m, &mut frame);
        let converted: Vec<u8> = frame
            .iter()
            .map(|&b| g711::convert::alaw_to_ulaw(b))
            .collect();
        assert_eq!(key.read(&converted), Some(m));
        let converted: Vec<u8> = frame
            .iter()
            .map(|&b| g711::convert::ulaw_to_alaw(b))
            .collect();
        assert_eq!(key.read(&converted), Some(m));
    }

    #[test]
    fn no_two_marks_share_a_payload() {
        let key = MarkKey::new(3);
        let mut seen = std::collections::BTreeSet::new();
        for call in 0..50 {
            for side in [Side::Caller, Side::Callee] {
                for frame in 0..50 {
                    let mut bytes = [0u8; 160];
                    key.write(mark(call, side, frame), &mut bytes);
                    assert!(seen.insert(bytes));
                }
            }
        }
    }

    #[test]
    fn foreign_noise_and_other_runs_carry_no_mark() {
        let (ours, other) = (MarkKey::new(4), MarkKey::new(5));
        let taken = (0..20_000u32)
            .filter(|&n| {
                let mut frame = [0u8; 160];
                other.write(mark(n, Side::Caller, n), &mut frame);
                ours.read(&frame).is_some()
            })
            .count();
        // A 16-bit check lets about one in 65,536 through.
        assert!(taken <= 4, "{taken} of 20000 taken");
        assert_eq!(ours.read(&[0xd5; 160]), None);
        assert_eq!(ours.read(&[0x55; 160]), None);
        assert_eq!(ours.read(&[0; 40]), None);
    }
}
