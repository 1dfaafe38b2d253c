//! The RTP header (RFC 3550 section 5.1), read where it lies and rewritten where it lies.
//!
//! ```text
//!   0                   1                   2                   3
//!  |V=2|P|X|  CC   |M|     PT      |       sequence number         |
//!  |                           timestamp                           |
//!  |                             SSRC                              |
//!  |  CC x CSRC  |  X: profile(16) length(16) words  |  payload  |  P: padding, length last |
//! ```
//!
//! Every count is checked against the datagram. Rewriting puts twelve octets right before the
//! payload: contributing sources, header extensions (RFC 8285; negotiated per leg, and we negotiate
//! none) and padding do not cross.

use thiserror::Error;

/// Octets of a header without contributing sources and extension.
pub const HEADER_BYTES: usize = 12;

/// What a datagram on an RTP port is, by its first two octets (RFC 7983 section 7, RFC 5761 section
/// 4).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// RTP, as far as two octets tell.
    Rtp,
    /// RTCP: packet types 192 to 223.
    Rtcp,
    /// STUN (RFC 8489).
    Stun,
    /// DTLS (RFC 9147).
    Dtls,
    /// Something else, or nothing.
    Other,
}

/// Tells what a datagram is.
#[must_use]
pub fn classify(datagram: &[u8]) -> Kind {
    match datagram {
        [128..=191, 192..=223, ..] => Kind::Rtcp,
        [128..=191, _, ..] => Kind::Rtp,
        [0..=3, _, ..] => Kind::Stun,
        [20..=63, _, ..] => Kind::Dtls,
        _ => Kind::Other,
    }
}

/// Why a datagram is not an RTP packet: the peer's fault.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// Shorter than a header.
    #[error("{len} octets are too few for a header")]
    Short {
        /// Octets given.
        len: usize,
    },
    /// Another version than 2.
    #[error("version {version} is not 2")]
    Version {
        /// The version field.
        version: u8,
    },
    /// The packet ends within its contributing sources or its extension.
    #[error("header of {needed} octets in a packet of {len}")]
    Truncated {
        /// Octets that the header claims.
        needed: usize,
        /// Octets given.
        len: usize,
    },
    /// The padding is zero octets long, or longer than what follows the header.
    #[error("padding of {padding} octets after a header of {header} in a packet of {len}")]
    Padding {
        /// The padding's own length field.
        padding: usize,
        /// Octets of the header.
        header: usize,
        /// Octets given.
        len: usize,
    },
}

/// The fields that a stream advances.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Fields {
    /// The marker bit: for audio, the first packet after a silence (RFC 3551 section 4.1).
    pub marker: bool,
    /// Payload number, 0 to 127.
    pub payload_type: u8,
    /// Sequence number.
    pub sequence: u16,
    /// Timestamp, in units of the stream's clock.
    pub timestamp: u32,
    /// Synchronisation source.
    pub ssrc: u32,
}

impl Fields {
    /// Writes a header without contributing sources, extension or padding.
    pub fn write(&self, out: &mut [u8; HEADER_BYTES]) {
        out[0] = 0x80;
        out[1] = u8::from(self.marker) << 7 | self.payload_type & 0x7f;
        out[2..4].copy_from_slice(&self.sequence.to_be_bytes());
        out[4..8].copy_from_slice(&self.timestamp.to_be_bytes());
        out[8..12].copy_from_slice(&self.ssrc.to_be_bytes());
    }
}

/// A header as read, and where the payload lies.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The fixed fields.
    pub fields: Fields,
    start: usize,
    end: usize,
}

impl Header {
    /// Reads a packet's header.
    ///
    /// # Errors
    /// The octets are no RTP packet. A datagram that passes may still be RTCP: ask [`classify`]
    /// first.
    pub fn read(packet: &[u8]) -> Result<Self, HeaderError> {
        let len = packet.len();
        let Some((fixed, rest)) = packet.split_first_chunk::<HEADER_BYTES>() else {
            return Err(HeaderError::Short { len });
        };
        let [first, second, s0, s1, t0, t1, t2, t3, c0, c1, c2, c3] = *fixed;
        if first >> 6 != 2 {
            return Err(HeaderError::Version {
                version: first >> 6,
            });
        }
        let mut start = HEADER_BYTES + 4 * usize::from(first & 0x0f);
        if first & 0x10 != 0 {
            let at = start - HEADER_BYTES;
            let Some([_, _, high, low]) = rest.get(at..at + 4) else {
                return Err(HeaderError::Truncated {
                    needed: start + 4,
                    len,
                });
            };
            start += 4 + 4 * usize::from(u16::from_be_bytes([*high, *low]));
        }
        if start > len {
            return Err(HeaderError::Truncated { needed: start, len });
        }
        let mut end = len;
        if first & 0x20 != 0 {
            let padding = packet[start..].last().map_or(0, |&last| usize::from(last));
            if padding == 0 || padding > len - start {
                return Err(HeaderError::Padding {
                    padding,
                    header: start,
                    len,
                });
            }
            end -= padding;
        }
        let fields = Fields {
            marker: second & 0x80 != 0,
            payload_type: second & 0x7f,
            sequence: u16::from_be_bytes([s0, s1]),
            timestamp: u32::from_be_bytes([t0, t1, t2, t3]),
            ssrc: u32::from_be_bytes([c0, c1, c2, c3]),
        };
        Ok(Self { fields, start, end })
    }

    /// Octets of payload, padding not counted.
    #[must_use]
    pub fn payload_len(&self) -> usize {
        self.end - self.start
    }

    /// The payload of the packet that this header was read from, without padding.
    #[must_use]
    pub fn payload<'p>(&self, packet: &'p [u8]) -> &'p [u8] {
        packet.get(self.start..self.end).unwrap_or_default()
    }

    /// The same, to be changed.
    #[must_use]
    pub fn payload_mut<'p>(&self, packet: &'p mut [u8]) -> &'p mut [u8] {
        packet.get_mut(self.start..self.end).unwrap_or_default()
    }

    /// Puts a header with these fields right before the payload and returns the new packet, which
    /// is a part of the old one. Cost: twelve octets written, nothing moved.
    ///
    /// Given another packet than the one that the header was read from, it may return an empty
    /// slice.
    #[must_use]
    pub fn rewrite<'p>(&self, packet: &'p mut [u8], fields: &Fields) -> &'p mut [u8] {
        let packet = packet
            .get_mut(self.start - HEADER_BYTES..self.end)
            .unwrap_or_default();
        if let Some(header) = packet.first_chunk_mut() {
            fields.write(header);
        }
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIELDS: Fields = Fields {
        marker: true,
        payload_type: 8,
        sequence: 0xfffe,
        timestamp: 0xdead_beef,
        ssrc: 0x0102_0304,
    };

    fn plain(payload: &[u8]) -> Vec<u8> {
        let mut packet = vec![0; HEADER_BYTES];
        FIELDS.write(packet.first_chunk_mut().expect("twelve octets"));
        packet.extend_from_slice(payload);
        packet
    }

    /// CSRC list of two, extension of one word, payload `abc`, padding of five.
    fn loaded() -> Vec<u8> {
        let mut packet = plain(&[]);
        packet[0] |= 0x30 | 2;
        packet.extend_from_slice(&[1; 8]);
        packet.extend_from_slice(&[0xbe, 0xde, 0, 1, 9, 9, 9, 9]);
        packet.extend_from_slice(b"abc");
        packet.extend_from_slice(&[0, 0, 0, 0, 5]);
        packet
    }

    #[test]
    fn fields_survive_a_round_trip() {
        let packet = plain(b"hello");
        let header = Header::read(&packet).expect("valid");
        assert_eq!(header.fields, FIELDS);
        assert_eq!(header.payload(&packet), b"hello");
        assert_eq!(header.payload_len(), 5);
    }

    #[test]
    fn sources_extension_and_padding_are_left_out() {
        let mut packet = loaded();
        let header = Header::read(&packet).expect("valid");
        assert_eq!(header.payload(&packet), b"abc");
        let fields = Fields {
            sequence: 7,
            ..FIELDS
        };
        let rewritten = header.rewrite(&mut packet, &fields).to_vec();
        let again = Header::read(&rewritten).expect("valid");
        assert_eq!(again.fields, fields);
        assert_eq!(rewritten.len(), HEADER_BYTES + 3);
        assert_eq!(again.payload(&rewritten), b"abc");
    }

    #[test]
    fn counts_that_lie_are_refused() {
        let cut = |len: usize| Header::read(&loaded()[..len]);
        assert_eq!(cut(0), Err(HeaderError::Short { len: 0 }));
        assert_eq!(cut(11), Err(HeaderError::Short { len: 11 }));
        assert_eq!(
            cut(19),
            Err(HeaderError::Truncated {
                needed: 24,
                len: 19
            })
        );
        assert_eq!(
            cut(23),
            Err(HeaderError::Truncated {
                needed: 24,
                len: 23
            })
        );
        assert_eq!(
            cut(27),
            Err(HeaderError::Truncated {
                needed: 28,
                len: 27
            })
        );
        let mut huge = loaded();
        huge[22..24].copy_from_slice(&[0xff, 0xff]);
        assert!(matches!(
            Header::read(&huge),
            Err(HeaderError::Truncated { .. })
        ));
    }

    #[test]
    fn padding_that_lies_is_refused() {
        for (last, fits) in [(0, false), (1, true), (8, true), (9, false), (255, false)] {
            let mut packet = loaded();
            *packet.last_mut().expect("not empty") = last;
            assert_eq!(Header::read(&packet).is_ok(), fits, "padding {last}");
        }
        let mut nothing_but_header = plain(&[]);
        nothing_but_header[0] |= 0x20;
        assert!(matches!(
            Header::read(&nothing_but_header),
            Err(HeaderError::Padding { .. })
        ));
    }

    #[test]
    fn versions_other_than_two_are_refused() {
        for version in [0, 1, 3] {
            let mut packet = plain(b"x");
            packet[0] = version << 6;
            assert_eq!(Header::read(&packet), Err(HeaderError::Version { version }));
        }
    }

    #[test]
    fn any_cut_and_any_first_octets_are_read_without_panic() {
        let packet = loaded();
        for first in 0..=255 {
            for len in 0..=packet.len() {
                let mut cut = packet[..len].to_vec();
                if let Some(octet) = cut.first_mut() {
                    *octet = first;
                }
                if let Ok(header) = Header::read(&cut) {
                    assert!(header.payload(&cut).len() <= len);
                    assert!(header.rewrite(&mut cut, &FIELDS).len() >= HEADER_BYTES);
                }
            }
        }
    }

    #[test]
    fn neighbours_on_the_port_are_told_apart() {
        assert_eq!(classify(&[0x80, 0x08]), Kind::Rtp);
        assert_eq!(
            classify(&[0x80, 0x80 | 63]),
            Kind::Rtp,
            "marker and payload number 63"
        );
        assert_eq!(
            classify(&[0x80, 0x80 | 96]),
            Kind::Rtp,
            "marker and payload number 96"
        );
        for rtcp in [192, 200, 201, 202, 207, 223] {
            assert_eq!(classify(&[0x80, rtcp]), Kind::Rtcp);
        }
        assert_eq!(classify(&[0, 1]), Kind::Stun);
        assert_eq!(classify(&[22, 0xfe]), Kind::Dtls);
        assert_eq!(classify(&[0x40, 8]), Kind::Other);
        assert_eq!(classify(&[0x80]), Kind::Other);
        assert_eq!(classify(&[]), Kind::Other);
    }
}
