//! The two laws, sample by sample (G.711 section 3, tables 1 and 2).
//!
//! An octet is a sign, three bits of segment and four bits within it; A-law inverts the even bits
//! of it for the line, mu-law all of them. In a segment the steps are equal, and each segment's are
//! twice as wide as those of the one below (in A-law the lowest two are equal).
//!
//! Where a negative sample lies right on a decision value, it goes to the smaller magnitude, as the
//! ITU's own software does (G.191: magnitudes of negative samples are taken by inverting bits); the
//! Recommendation leaves that open.

/// What is inverted in A-law octets on the line: the even bits (note 2 to table 1).
const ALAW_LINE: u8 = 0x55;
/// What is inverted in mu-law octets on the line: all bits (note to table 2).
const ULAW_LINE: u8 = 0xff;
/// The sign bit: set for positive values, before mu-law's inversion of the line is taken into
/// account.
const SIGN: u8 = 0x80;
/// Half a step of mu-law's lowest segment and the offset that makes its segments powers of two, in
/// 14 bits.
const ULAW_BIAS: u16 = 33;

static ALAW_DECODE: [i16; 256] = decode_table(Law::A);
static ULAW_DECODE: [i16; 256] = decode_table(Law::Mu);
/// By magnitude in units of 16, the width of the narrowest step.
static ALAW_ENCODE: [u8; 2048] = alaw_encode_table();
/// By biased magnitude in units of 8, the width of the narrowest step.
static ULAW_ENCODE: [u8; 4096] = ulaw_encode_table();

/// One sample to A-law.
#[must_use]
pub fn alaw_encode(sample: i16) -> u8 {
    let (magnitude, sign) = split(sample);
    ALAW_ENCODE[usize::from(magnitude >> 4)] ^ sign
}

/// One sample to mu-law.
#[must_use]
pub fn ulaw_encode(sample: i16) -> u8 {
    let (magnitude, sign) = split(sample);
    let biased = ((magnitude >> 2) + ULAW_BIAS).min(0x1fff);
    ULAW_ENCODE[usize::from(biased >> 1)] ^ sign
}

/// One octet of A-law to a sample; the lowest three bits are 0.
#[must_use]
pub fn alaw_decode(octet: u8) -> i16 {
    ALAW_DECODE[usize::from(octet)]
}

/// One octet of mu-law to a sample; the lowest two bits are 0.
#[must_use]
pub fn ulaw_decode(octet: u8) -> i16 {
    ULAW_DECODE[usize::from(octet)]
}

/// Magnitude by inverting bits, and what turns the octet of a positive sample into one of this
/// sign.
fn split(sample: i16) -> (u16, u8) {
    let negative = sample >> 15;
    ((sample ^ negative) as u16, negative as u8 & SIGN)
}

/// A segment and a place in it, for a magnitude of the lowest bits 4 (place) above the segment's
/// leading one.
const fn segment_and_place(magnitude: u16) -> u8 {
    let segment = 11 - magnitude.leading_zeros() as u16;
    (segment << 4 | (magnitude >> segment) & 0x0f) as u8
}

const fn alaw_encode_table() -> [u8; 2048] {
    let mut table = [0; 2048];
    let mut magnitude = 0;
    while magnitude < table.len() {
        let code = if magnitude < 32 {
            magnitude as u8
        } else {
            segment_and_place(magnitude as u16) + 0x10
        };
        table[magnitude] = code ^ SIGN ^ ALAW_LINE;
        magnitude += 1;
    }
    table
}

const fn ulaw_encode_table() -> [u8; 4096] {
    let mut table = [0; 4096];
    let mut biased = ULAW_BIAS as usize >> 1;
    while biased < table.len() {
        table[biased] = segment_and_place(biased as u16) ^ ULAW_LINE;
        biased += 1;
    }
    table
}

/// The value of an octet of A-law.
const fn alaw_value(octet: u8) -> i16 {
    let code = octet ^ ALAW_LINE;
    let place = (code & 0x0f) as i16;
    let magnitude = match code >> 4 & 7 {
        0 => (place << 4) + 8,
        segment => ((place << 4) + 0x108) << (segment - 1),
    };
    if code & SIGN == 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// The value of an octet of mu-law.
const fn ulaw_value(octet: u8) -> i16 {
    let code = octet ^ ULAW_LINE;
    let place = (code & 0x0f) as i16;
    let bias = ULAW_BIAS as i16;
    let magnitude = (((place << 1) + bias) << (code >> 4 & 7)) - bias;
    if code & SIGN == 0 {
        magnitude << 2
    } else {
        -magnitude << 2
    }
}

const fn decode_table(law: Law) -> [i16; 256] {
    let mut table = [0; 256];
    let mut octet = 0;
    while octet < 256 {
        table[octet] = value(law, octet as u8);
        octet += 1;
    }
    table
}

const fn value(law: Law, octet: u8) -> i16 {
    match law {
        Law::A => alaw_value(octet),
        Law::Mu => ulaw_value(octet),
    }
}

/// The octets of a law in order of value, positive ones: what tables 3 and 4 number.
pub(crate) const fn positive_octet(law: Law, number: u8) -> u8 {
    match law {
        Law::A => number ^ SIGN ^ ALAW_LINE,
        Law::Mu => number ^ ULAW_LINE,
    }
}

/// The value of a positive octet by its number, 16 bits wide.
pub(crate) const fn positive_value(law: Law, number: u8) -> i16 {
    value(law, positive_octet(law, number))
}

/// One of the two.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Law {
    A,
    Mu,
}

/// Encodes as many samples as both slices hold.
pub(crate) fn encode(law: Law, pcm: &[i16], out: &mut [u8]) {
    let pairs = out.iter_mut().zip(pcm);
    match law {
        Law::A => pairs.for_each(|(octet, &sample)| *octet = alaw_encode(sample)),
        Law::Mu => pairs.for_each(|(octet, &sample)| *octet = ulaw_encode(sample)),
    }
}

/// Decodes as many octets as both slices hold.
pub(crate) fn decode(law: Law, octets: &[u8], out: &mut [i16]) {
    let pairs = out.iter_mut().zip(octets);
    match law {
        Law::A => pairs.for_each(|(sample, &octet)| *sample = alaw_decode(octet)),
        Law::Mu => pairs.for_each(|(sample, &octet)| *sample = ulaw_decode(octet)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tables 1 and 2 worked out from their rule, in units of the uniform code (13 bits for A-law,
    /// 14 for mu-law): decision values x(1) to x(127); the quantized value y(n) lies midway, but
    /// for mu-law's y(0), which is 0.
    struct Reference {
        decisions: Vec<i32>,
        values: Vec<i32>,
        /// Bits of a sample below the uniform code.
        shift: u32,
        law: Law,
    }

    impl Reference {
        fn new(law: Law) -> Self {
            let (mut decisions, mut at) = (Vec::new(), 0);
            for segment in 0..8_u32 {
                let step = match law {
                    Law::A => 2 << segment.saturating_sub(1),
                    Law::Mu => 2 << segment,
                };
                for place in 0..16 {
                    let first_of_mu = law == Law::Mu && segment == 0 && place == 0;
                    at += if first_of_mu { 1 } else { step };
                    decisions.push(at);
                }
            }
            let overload = decisions.pop().expect("x(128), where overload begins");
            let mut lower = 0;
            let mut values = Vec::new();
            for &upper in decisions.iter().chain([&overload]) {
                let zero = law == Law::Mu && values.is_empty();
                values.push(if zero { 0 } else { (lower + upper) / 2 });
                lower = upper;
            }
            Self {
                decisions,
                values,
                shift: if law == Law::A { 3 } else { 2 },
                law,
            }
        }

        /// Sign and number of a sample: how many decision values its magnitude has reached. A
        /// negative sample right on a decision value stays below it.
        fn encode(&self, sample: i16) -> (bool, usize) {
            let reached = |&&decision: &&i32| {
                let (decision, sample) = (decision << self.shift, i32::from(sample));
                if sample < 0 {
                    -sample > decision
                } else {
                    sample >= decision
                }
            };
            (sample < 0, self.decisions.iter().filter(reached).count())
        }

        fn octet(&self, negative: bool, number: usize) -> u8 {
            let code = number as u8;
            match self.law {
                Law::A => (if negative { code } else { code | 0x80 }) ^ 0x55,
                Law::Mu => !(if negative { code | 0x80 } else { code }),
            }
        }
    }

    #[test]
    fn the_reference_has_the_values_printed_in_the_recommendation() {
        let a = Reference::new(Law::A);
        assert_eq!(
            (a.decisions[0], a.decisions[31], a.decisions[126]),
            (2, 64, 3_968)
        );
        assert_eq!((a.values[0], a.values[127]), (1, 4_032));
        let mu = Reference::new(Law::Mu);
        assert_eq!(
            (mu.decisions[0], mu.decisions[15], mu.decisions[126]),
            (1, 31, 7_903)
        );
        assert_eq!((mu.values[0], mu.values[1], mu.values[127]), (0, 2, 8_031));
    }

    #[test]
    fn every_sample_is_encoded_as_the_reference_says() {
        for (law, encode) in [
            (Law::A, alaw_encode as fn(i16) -> u8),
            (Law::Mu, ulaw_encode as fn(i16) -> u8),
        ] {
            let reference = Reference::new(law);
            for sample in i16::MIN..=i16::MAX {
                let (negative, number) = reference.encode(sample);
                assert_eq!(
                    encode(sample),
                    reference.octet(negative, number),
                    "{law:?} {sample}"
                );
            }
        }
    }

    #[test]
    fn every_octet_is_decoded_as_the_reference_says() {
        for (law, decode) in [
            (Law::A, alaw_decode as fn(u8) -> i16),
            (Law::Mu, ulaw_decode as fn(u8) -> i16),
        ] {
            let reference = Reference::new(law);
            let mut octets = [false; 256];
            for (number, value) in reference.values.iter().enumerate() {
                for negative in [false, true] {
                    let octet = reference.octet(negative, number);
                    let sample = value << reference.shift;
                    let sample = if negative { -sample } else { sample };
                    assert_eq!(i32::from(decode(octet)), sample, "{law:?} {octet:#04x}");
                    octets[usize::from(octet)] = true;
                }
            }
            assert!(octets.iter().all(|&seen| seen), "some octet was left out");
        }
    }

    #[test]
    fn what_was_decoded_encodes_to_the_same_octet() {
        for octet in 0..=255 {
            assert_eq!(alaw_encode(alaw_decode(octet)), octet);
            // Mu-law has two zeros, and PCM one.
            let expected = if octet == 0x7f { 0xff } else { octet };
            assert_eq!(ulaw_encode(ulaw_decode(octet)), expected);
        }
    }

    /// Table 5 and 6: the octets of a 1 kHz sine of 0 dBm0, which every network knows.
    #[test]
    fn the_milliwatt_sequences_have_the_level_of_a_milliwatt() {
        let a = [0x34, 0x21, 0x21, 0x34, 0xb4, 0xa1, 0xa1, 0xb4];
        let mu = [0x1e, 0x0b, 0x0b, 0x1e, 0x9e, 0x8b, 0x8b, 0x9e];
        let level = |pcm: Vec<i16>| audio::level::dbm0(&pcm).0;
        let a = level(a.iter().map(|&octet| alaw_decode(octet)).collect());
        let mu = level(mu.iter().map(|&octet| ulaw_decode(octet)).collect());
        assert!(a.abs() < 0.05, "{a}");
        // Mu-law overloads at +3.17 dBm0 where its PCM reaches 8,159 of 8,192.
        assert!((mu + 0.06).abs() < 0.05, "{mu}");
    }
}
