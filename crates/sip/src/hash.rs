//! A hasher whose keys its owner hands in, for maps keyed by what the network sends.
//!
//! SipHash-1-3 with 128 bits of key resists chosen-key flooding as the standard library's default does, but
//! draws no entropy itself: two runs from one seed iterate in the same order, so simulations repeat.

use core::hash::BuildHasher;

use siphasher::sip::SipHasher13;

/// Builds SipHash-1-3 hashers from two fixed keys.
#[derive(Clone, Copy, Debug)]
pub struct SeededState {
    k0: u64,
    k1: u64,
}

impl SeededState {
    /// A state with these keys; draw them from the owner's seeded [`Rng`](crate::Rng).
    #[must_use]
    pub const fn new(k0: u64, k1: u64) -> Self {
        Self { k0, k1 }
    }
}

impl BuildHasher for SeededState {
    type Hasher = SipHasher13;

    fn build_hasher(&self) -> SipHasher13 {
        SipHasher13::new_with_keys(self.k0, self.k1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_decide() {
        let hash = |k0, k1| SeededState::new(k0, k1).hash_one("call-id");
        assert_eq!(hash(1, 2), hash(1, 2));
        assert_ne!(hash(1, 2), hash(2, 1));
    }
}
