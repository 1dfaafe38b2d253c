//! Numbers that wrap: 16-bit sequence numbers, 32-bit timestamps (RFC 3550 section 5.1 and appendix
//! A.1).

use std::time::Duration;

/// Whether `a` comes after `b`, on a circle of 2^16; half a circle apart counts as before.
#[must_use]
pub fn is_newer_sequence(a: u16, b: u16) -> bool {
    (a.wrapping_sub(b) as i16) > 0
}

/// Whether `a` comes after `b`, on a circle of 2^32; half a circle apart counts as before.
#[must_use]
pub fn is_newer_timestamp(a: u32, b: u32) -> bool {
    timestamp_delta(a, b) > 0
}

/// How far `a` is ahead of `b`; negative when it is behind.
#[must_use]
pub fn timestamp_delta(a: u32, b: u32) -> i32 {
    a.wrapping_sub(b) as i32
}

/// Units of a clock in a time. Cost: one 64-bit division by a constant.
#[must_use]
pub fn clock_units(time: Duration, clock_rate: u32) -> u64 {
    let rate = u64::from(clock_rate);
    time.as_secs().wrapping_mul(rate) + u64::from(time.subsec_nanos()) * rate / 1_000_000_000
}

/// A sequence number that does not wrap: cycles above, the sixteen bits of the wire below.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExtSeqNo(pub u64);

impl ExtSeqNo {
    /// The first number of a stream. One cycle stands above it, so that what was sent before it has
    /// a number too.
    #[must_use]
    pub fn first(sequence: u16) -> Self {
        Self(1 << 16 | u64::from(sequence))
    }

    /// The number nearest to this one whose low sixteen bits are `sequence`.
    #[must_use]
    pub fn nearest(self, sequence: u16) -> Self {
        let step = sequence.wrapping_sub(self.sequence()) as i16;
        Self(self.0.wrapping_add_signed(step.into()))
    }

    /// What stands on the wire.
    #[must_use]
    pub fn sequence(self) -> u16 {
        self.0 as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_goes_round_the_wrap() {
        assert!(is_newer_sequence(0, 65_535));
        assert!(!is_newer_sequence(65_535, 0));
        assert!(!is_newer_sequence(5, 5));
        assert!(is_newer_timestamp(0, u32::MAX));
        assert!(!is_newer_timestamp(u32::MAX, 0));
        assert_eq!(timestamp_delta(100, u32::MAX - 59), 160);
        assert_eq!(timestamp_delta(u32::MAX - 59, 100), -160);
    }

    #[test]
    fn clock_units_are_exact_after_years() {
        for (time, rate, units) in [
            (Duration::from_micros(20_125), 8_000, 161),
            (Duration::from_nanos(124_999), 8_000, 0),
            (
                Duration::from_secs(300_000_000) + Duration::from_millis(1),
                48_000,
                14_400_000_000_048,
            ),
        ] {
            assert_eq!(clock_units(time, rate), units, "{time:?}");
        }
    }

    #[test]
    fn extended_numbers_count_cycles_both_ways() {
        let before = ExtSeqNo::first(65_534);
        let after = before.nearest(1);
        assert_eq!(after.0 - before.0, 3);
        assert_eq!(after.nearest(65_535).0, before.0 + 1);
        assert_eq!(after.sequence(), 1);
    }

    #[test]
    fn every_step_within_half_a_circle_is_found() {
        let from = ExtSeqNo::first(1_000);
        for step in -32_768_i64..32_768 {
            let to = from.0.wrapping_add_signed(step);
            assert_eq!(from.nearest(to as u16).0, to);
        }
    }
}
