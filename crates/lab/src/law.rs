//! The two laws of G.711, as the lab sees them: names, numbers, conversion.

/// Which of the two laws a G.711 byte is in.
#[derive(Copy, Clone, PartialEq, Eq, Hash, Debug)]
pub enum Law {
    /// A-law: RTP name PCMA, payload type 8.
    A,
    /// Mu-law: RTP name PCMU, payload type 0.
    Mu,
}

impl Law {
    /// The encoding name in SDP (RFC 3551, 6).
    #[must_use]
    pub fn encoding_name(self) -> &'static str {
        match self {
            Self::A => "PCMA",
            Self::Mu => "PCMU",
        }
    }

    /// The static payload type (RFC 3551, 6).
    #[must_use]
    pub fn payload_type(self) -> u8 {
        match self {
            Self::A => 8,
            Self::Mu => 0,
        }
    }

    /// The law with that encoding name, in any case.
    #[must_use]
    pub fn from_encoding_name(name: &str) -> Option<Self> {
        [Self::A, Self::Mu]
            .into_iter()
            .find(|law| law.encoding_name().eq_ignore_ascii_case(name))
    }

    /// Converts bytes of this law to `other` in place, by the tables of ITU-T G.711.
    pub fn convert(self, other: Self, bytes: &mut [u8]) {
        let table = match (self, other) {
            (Self::A, Self::A) | (Self::Mu, Self::Mu) => return,
            (Self::A, Self::Mu) => g711::convert::alaw_to_ulaw,
            (Self::Mu, Self::A) => g711::convert::ulaw_to_alaw,
        };
        for byte in bytes {
            *byte = table(*byte);
        }
    }
}

impl Law {
    /// The law of a static payload type (RFC 3551, 6), if it is one of the two.
    #[must_use]
    pub fn from_payload_type(payload_type: u8) -> Option<Self> {
        [Self::A, Self::Mu]
            .into_iter()
            .find(|law| law.payload_type() == payload_type)
    }

    /// The 16-bit sample that `code` stands for.
    #[must_use]
    pub fn expand(self, code: u8) -> i16 {
        match self {
            Self::A => expand_a(code),
            Self::Mu => expand_mu(code),
        }
    }

    /// All codes by their sample value, for reading codes back out of linear PCM.
    ///
    /// Mu-law's negative zero gives way to its positive one.
    #[must_use]
    pub fn codes(self) -> Codes {
        let mut codes: Vec<(i16, u8)> = (0..=255).map(|c| (self.expand(c), c)).collect();
        codes.sort_by_key(|&(value, code)| (value, std::cmp::Reverse(code)));
        codes.dedup_by_key(|&mut (value, _)| value);
        Codes(codes)
    }
}

/// The inverse of [`Law::expand`].
#[derive(Clone, Debug)]
pub struct Codes(Vec<(i16, u8)>);

impl Codes {
    /// The code whose value is nearest to `sample`.
    #[must_use]
    pub fn nearest(&self, sample: i16) -> u8 {
        let at = self.0.partition_point(|&(value, _)| value < sample);
        let above = self.0[at.min(self.0.len() - 1)];
        let below = self.0[at.saturating_sub(1)];
        let distance = |value: i16| (i32::from(value) - i32::from(sample)).abs();
        if distance(below.0) < distance(above.0) {
            below.1
        } else {
            above.1
        }
    }
}

/// ITU-T G.711, table 1: 13-bit values with even bits inverted, scaled to 16 bits.
fn expand_a(code: u8) -> i16 {
    let bits = code ^ 0x55;
    let (exponent, mantissa) = ((bits >> 4) & 7, i16::from(bits & 0x0f));
    let magnitude = match exponent {
        0 => (mantissa << 4) + 8,
        _ => ((mantissa << 4) + 0x108) << (exponent - 1),
    };
    if bits & 0x80 == 0 {
        -magnitude
    } else {
        magnitude
    }
}

/// ITU-T G.711, table 2: 14-bit values with all bits inverted, scaled to 16 bits.
fn expand_mu(code: u8) -> i16 {
    let bits = !code;
    let (exponent, mantissa) = ((bits >> 4) & 7, i16::from(bits & 0x0f));
    let magnitude = (((mantissa << 3) + 0x84) << exponent) - 0x84;
    if bits & 0x80 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_the_recommendation() {
        // ITU-T G.711, tables 1 and 2: the outermost and innermost values of each law.
        assert_eq!(Law::A.expand(0xaa), 4032 * 8);
        assert_eq!(Law::A.expand(0xd5), 8);
        assert_eq!(Law::A.expand(0x55), -8);
        assert_eq!(Law::Mu.expand(0x80), 8031 * 4);
        assert_eq!(Law::Mu.expand(0x00), -8031 * 4);
        assert_eq!((Law::Mu.expand(0xff), Law::Mu.expand(0x7f)), (0, 0));
    }

    #[test]
    fn every_code_is_its_value_s_nearest() {
        for law in [Law::A, Law::Mu] {
            let codes = law.codes();
            for code in (0..=255).filter(|&code| (law, code) != (Law::Mu, 0x7f)) {
                assert_eq!(codes.nearest(law.expand(code)), code, "{law:?} {code:#x}");
            }
            assert_eq!(
                law.expand(codes.nearest(i16::MAX)),
                law.expand(if law == Law::A { 0xaa } else { 0x80 })
            );
        }
    }

    #[test]
    fn names_and_numbers_of_rfc_3551() {
        assert_eq!(Law::from_payload_type(0), Some(Law::Mu));
        assert_eq!(Law::from_payload_type(8), Some(Law::A));
        assert_eq!(Law::from_payload_type(9), None);
        assert_eq!(Law::from_encoding_name("pcma"), Some(Law::A));
        assert_eq!(Law::from_encoding_name("G722"), None);
    }

    #[test]
    fn conversion_keeps_the_level_within_a_quantising_step() {
        for code in 0..=255u8 {
            for (from, to) in [(Law::A, Law::Mu), (Law::Mu, Law::A)] {
                let mut bytes = [code];
                from.convert(to, &mut bytes);
                let (a, b) = (i32::from(from.expand(code)), i32::from(to.expand(bytes[0])));
                assert!(
                    (a - b).abs() <= 8 + a.abs() / 16,
                    "{from:?} {code:#x}: {a} {b}"
                );
            }
        }
    }
}
