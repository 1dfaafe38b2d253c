//! Randomness handed in: a ChaCha20 generator over its owner's 32 byte seed.
//!
//! Tags, branches and Call-IDs must be hard to guess (RFC 3261, 19.3: at least 32 bits) and yet repeat in
//! a simulation. The shell draws one seed from the system; everything below derives from it.

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng as _, SeedableRng as _};

/// A seeded cryptographic generator.
#[derive(Clone, Debug)]
pub struct Rng(ChaCha20Rng);

impl Rng {
    /// The generator of that seed.
    #[must_use]
    pub fn new(seed: [u8; 32]) -> Self {
        Self(ChaCha20Rng::from_seed(seed))
    }

    /// A generator for a part of the owner, independent of what the owner draws later.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self::new(self.bytes())
    }

    /// 32 uniform bits.
    pub fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }

    /// 64 uniform bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// `N` uniform octets.
    pub fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut out = [0; N];
        self.0.fill_bytes(&mut out);
        out
    }

    /// A uniform number in `0..bound`; 0 when `bound` is 0 or 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound < 2 {
            return 0;
        }
        // Multiply-shift with rejection of the uneven remainder (Lemire, 2019).
        let reject_below = bound.wrapping_neg() % bound;
        loop {
            let wide = u128::from(self.next_u64()) * u128::from(bound);
            if wide as u64 >= reject_below {
                return (wide >> 64) as u64;
            }
        }
    }

    /// `len` characters of `[0-9a-zA-Z]` bar two, about 5.9 bits each: a valid tag, branch or Call-ID part.
    pub fn token(&mut self, len: usize) -> String {
        const ALPHABET: &[u8; 60] = b"0123456789ABCDEFGHJKLMNOPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz";
        (0..len)
            .map(|_| char::from(ALPHABET[self.below(60) as usize]))
            .collect()
    }

    /// A fresh hasher for a map keyed from the network.
    pub fn hasher(&mut self) -> crate::SeededState {
        crate::SeededState::new(self.next_u64(), self.next_u64())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_same_tokens() {
        let (mut a, mut b, mut c) = (Rng::new([7; 32]), Rng::new([7; 32]), Rng::new([8; 32]));
        let token = a.token(16);
        assert_eq!(token, b.token(16));
        assert_ne!(token, c.token(16));
        assert_ne!(token, a.token(16));
        assert!(token.len() == 16 && crate::lex::is_token_str(&token));
    }

    #[test]
    fn fork_is_untouched_by_later_draws() {
        let (mut a, mut b) = (Rng::new([1; 32]), Rng::new([1; 32]));
        let (mut fa, mut fb) = (a.fork(), b.fork());
        a.next_u64();
        assert_eq!(fa.next_u64(), fb.next_u64());
    }

    #[test]
    fn below_covers_its_range_evenly() {
        let mut rng = Rng::new([3; 32]);
        let mut seen = [0_u32; 7];
        for _ in 0..7_000 {
            seen[rng.below(7) as usize] += 1;
        }
        assert!(seen.iter().all(|&n| (850..1_150).contains(&n)), "{seen:?}");
        assert_eq!((rng.below(0), rng.below(1)), (0, 0));
    }
}
