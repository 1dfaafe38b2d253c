//! One law to the other, octet by octet (G.711 tables 3 and 4).
//!
//! The tables pair values of the two laws that are nearest to each other, when each is measured
//! against its own overload point, +3.14 dBm0 for A-law and +3.17 dBm0 for mu-law, and signs are
//! kept. With one departure, which note 3 of the Recommendation states: mu-80 becomes A-81 instead
//! of becomes mu-79 instead of mu-80, so that bits 1 to 7 of A-law come through
//! mu-law and back unharmed. Numbers here are decoder output value numbers, which count from 0 in
//! mu-law and from 1 in A-law.
//!
//! This is not the same as decoding to PCM and encoding: 17 pairs of octets differ by one step.

use crate::law::{Law, positive_octet, positive_value};

/// By octet of A-law, the octet of mu-law (table 4).
pub static ALAW_TO_ULAW: [u8; 256] = table(Law::A, Law::Mu);

/// By octet of mu-law, the octet of A-law (table 3).
pub static ULAW_TO_ALAW: [u8; 256] = table(Law::Mu, Law::A);

/// Amplitude that stands for a level in mu-law PCM, over the one in A-law PCM, in millionths:
/// 32,768 x 10^(-3.14/20) over 32,636 x 10^(-3.17/20).
const MU_TO_A_MILLIONTHS: i64 = 1_007_519;

/// One octet of A-law to mu-law.
#[must_use]
pub fn alaw_to_ulaw(octet: u8) -> u8 {
    ALAW_TO_ULAW[usize::from(octet)]
}

/// One octet of mu-law to A-law.
#[must_use]
pub fn ulaw_to_alaw(octet: u8) -> u8 {
    ULAW_TO_ALAW[usize::from(octet)]
}

const fn table(from: Law, to: Law) -> [u8; 256] {
    let mut table = [0; 256];
    let mut number = 0;
    while number < 128 {
        let nearest = match (from, number) {
            (Law::Mu, 80) => 81 - 1,
            (Law::A, 79) => 79,
            _ => nearest(from, to, number),
        };
        let (octet, its_pair) = (positive_octet(from, number), positive_octet(to, nearest));
        table[octet as usize] = its_pair;
        table[(octet ^ 0x80) as usize] = its_pair ^ 0x80;
        number += 1;
    }
    table
}

/// The number, from 0, whose value is nearest; of two equally near the smaller.
const fn nearest(from: Law, to: Law, number: u8) -> u8 {
    let value = scaled(from, number);
    let mut best = 0;
    let mut candidate = 1;
    while candidate < 128 {
        if (scaled(to, candidate) - value).abs() < (scaled(to, best) - value).abs() {
            best = candidate;
        }
        candidate += 1;
    }
    best
}

/// A value on the scale of A-law, in millionths.
const fn scaled(law: Law, number: u8) -> i64 {
    let factor = match law {
        Law::A => 1_000_000,
        Law::Mu => MU_TO_A_MILLIONTHS,
    };
    positive_value(law, number) as i64 * factor
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::{alaw_decode, ulaw_decode};

    /// A positive octet by its number from 0.
    fn a(number: u8) -> u8 {
        positive_octet(Law::A, number)
    }

    fn mu(number: u8) -> u8 {
        positive_octet(Law::Mu, number)
    }

    /// Table 3 as printed, in runs: from mu-law value numbers to A-law value numbers, both
    /// inclusive, one to one.
    #[test]
    fn table_3_is_the_printed_one() {
        let pairs = [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8];
        for (number, expected) in (0..).zip(pairs) {
            assert_eq!(ulaw_to_alaw(mu(number)), a(expected - 1), "mu-{number}");
        }
        let runs = [
            (16..=32, 9),
            (33..=33, 27),
            (34..=34, 29),
            (35..=35, 31),
            (36..=47, 33),
            (48..=48, 46),
            (49..=63, 48),
            (64..=79, 64),
            (80..=127, 81),
        ];
        for (numbers, first) in runs {
            for (number, expected) in numbers.zip(first..) {
                assert_eq!(ulaw_to_alaw(mu(number)), a(expected - 1), "mu-{number}");
            }
        }
    }

    /// Table 4 as printed, in the same way.
    #[test]
    fn table_4_is_the_printed_one() {
        let runs = [
            (9..=24, 16),
            (25..=25, 32),
            (26..=26, 32),
            (27..=27, 33),
            (28..=28, 33),
            (29..=29, 34),
            (30..=30, 34),
            (31..=31, 35),
            (32..=32, 35),
            (33..=45, 36),
            (46..=46, 48),
            (47..=47, 49),
            (48..=62, 49),
            (63..=63, 64),
            (64..=79, 64),
            (80..=128, 79),
        ];
        for number in 1..=8 {
            assert_eq!(
                alaw_to_ulaw(a(number - 1)),
                mu(2 * number - 1),
                "A-{number}"
            );
        }
        for (numbers, first) in runs {
            for (number, expected) in numbers.zip(first..) {
                assert_eq!(alaw_to_ulaw(a(number - 1)), mu(expected), "A-{number}");
            }
        }
    }

    #[test]
    fn order_and_sign_are_kept() {
        for number in 1..128 {
            let values = |octet: u8| ulaw_decode(alaw_to_ulaw(octet));
            assert!(
                values(a(number)) >= values(a(number - 1)),
                "A-law number {number}"
            );
            let values = |octet: u8| alaw_decode(ulaw_to_alaw(octet));
            assert!(
                values(mu(number)) >= values(mu(number - 1)),
                "mu-law number {number}"
            );
        }
        for octet in 0..=255 {
            assert_eq!(alaw_to_ulaw(octet ^ 0x80), alaw_to_ulaw(octet) ^ 0x80);
            assert_eq!(ulaw_to_alaw(octet ^ 0x80), ulaw_to_alaw(octet) ^ 0x80);
            assert_eq!((alaw_to_ulaw(octet) ^ octet) & 0x80, 0);
        }
    }

    /// Note 3: bits 1 to 7 of A-law are transparent through mu-law and back; the eighth is the
    /// lowest.
    #[test]
    fn seven_bits_of_a_law_survive_the_way_there_and_back() {
        for octet in 0..=255 {
            let back = ulaw_to_alaw(alaw_to_ulaw(octet));
            assert_eq!(
                (back ^ octet) & 0xfe,
                0,
                "{octet:#04x} came back as {back:#04x}"
            );
        }
    }

    #[test]
    fn values_move_by_less_than_a_step() {
        for octet in 0..=255 {
            let before = f64::from(alaw_decode(octet));
            let after = f64::from(ulaw_decode(alaw_to_ulaw(octet))) * 1.0075;
            assert!(
                (after - before).abs() <= before.abs() / 16.0 + 9.0,
                "{before} to {after}"
            );
        }
    }
}
