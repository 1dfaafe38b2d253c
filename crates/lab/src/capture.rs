//! What one leg heard, kept whole, for destinations whose audio is judged afterwards.
//!
//! Packets are laid out by RTP timestamp, so that what never came is silence of the right
//! length (RFC 3550, 5.1). Memory is bounded; what comes after the bound is counted.

use crate::law::Law;

/// Bound of one capture: a minute of G.711.
pub const MAX_CAPTURE_BYTES: usize = 480_000;

/// The audio of one leg.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct Capture {
    law: Option<Law>,
    first: u32,
    samples: Vec<u8>,
    beyond: u64,
}

impl Capture {
    /// Takes one packet's payload.
    pub fn take(&mut self, law: Law, timestamp: u32, payload: &[u8]) {
        let first_law = *self.law.get_or_insert_with(|| {
            self.first = timestamp;
            law
        });
        let at = timestamp.wrapping_sub(self.first) as usize;
        let end = at.saturating_add(payload.len());
        if end > MAX_CAPTURE_BYTES || first_law != law {
            self.beyond += 1;
            return;
        }
        if end > self.samples.len() {
            self.samples.resize(end, silence(law));
        }
        self.samples[at..end].copy_from_slice(payload);
    }

    /// The law captured; `None` before the first packet.
    #[must_use]
    pub fn law(&self) -> Option<Law> {
        self.law
    }

    /// The codes, holes filled with silence.
    #[must_use]
    pub fn codes(&self) -> &[u8] {
        &self.samples
    }

    /// The same as 16-bit samples.
    #[must_use]
    pub fn pcm(&self) -> Vec<i16> {
        let law = self.law.unwrap_or(Law::A);
        self.samples.iter().map(|&code| law.expand(code)).collect()
    }

    /// Packets that were not kept: beyond the bound, before the first, or of another law.
    #[must_use]
    pub fn beyond(&self) -> u64 {
        self.beyond
    }
}

fn silence(law: Law) -> u8 {
    match law {
        Law::A => 0xd5,
        Law::Mu => 0xff,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_laid_out_by_timestamp_across_its_wrap() {
        let mut capture = Capture::default();
        capture.take(Law::A, u32::MAX - 159, &[1; 160]);
        capture.take(Law::A, 160, &[3; 160]);
        capture.take(Law::A, 0, &[2; 160]);
        assert_eq!(capture.codes().len(), 480);
        assert_eq!([0, 160, 320].map(|i| capture.codes()[i]), [1, 2, 3]);
    }

    #[test]
    fn holes_are_silent() {
        let mut capture = Capture::default();
        capture.take(Law::Mu, 0, &[1; 160]);
        capture.take(Law::Mu, 480, &[2; 160]);
        assert_eq!(capture.codes()[160..480], [0xff; 320]);
        assert_eq!(capture.pcm()[200], 0);
    }

    #[test]
    fn memory_is_bounded() {
        let mut capture = Capture::default();
        capture.take(Law::A, 0, &[1; 160]);
        capture.take(Law::A, MAX_CAPTURE_BYTES as u32, &[1; 160]);
        capture.take(Law::A, 0u32.wrapping_sub(160), &[1; 160]);
        capture.take(Law::Mu, 160, &[1; 160]);
        assert_eq!((capture.codes().len(), capture.beyond()), (160, 3));
    }
}
