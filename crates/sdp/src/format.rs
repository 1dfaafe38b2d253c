//! Payload formats: `a=rtpmap` and `a=fmtp` read, static numbers named, numbers given out.

use sdp_types::Media;

use crate::types::Format;

/// Payload types are seven bits (RFC 3550, 5.1).
const PAYLOAD_TYPES: usize = 128;

/// Static audio payload types with a fixed clock (RFC 3551, 6, table 4): number, name, Hz,
/// channels.
const STATIC: [(u8, &str, u32, u8); 17] = [
    (0, "PCMU", 8_000, 1),
    (3, "GSM", 8_000, 1),
    (4, "G723", 8_000, 1),
    (5, "DVI4", 8_000, 1),
    (6, "DVI4", 16_000, 1),
    (7, "LPC", 8_000, 1),
    (8, "PCMA", 8_000, 1),
    (9, "G722", 8_000, 1),
    (10, "L16", 44_100, 2),
    (11, "L16", 44_100, 1),
    (12, "QCELP", 8_000, 1),
    (13, "CN", 8_000, 1),
    (14, "MPA", 90_000, 1),
    (15, "G728", 8_000, 1),
    (16, "DVI4", 11_025, 1),
    (17, "DVI4", 22_050, 1),
    (18, "G729", 8_000, 1),
];

/// The numbers of an RTP m= line in order, each once; `None` when one is no payload type.
pub(crate) fn payload_types(fmt: &str) -> Option<Vec<u8>> {
    let mut seen = [false; PAYLOAD_TYPES];
    let mut numbers = Vec::new();
    for token in fmt.split_ascii_whitespace() {
        let number: u8 = token
            .parse()
            .ok()
            .filter(|&n| usize::from(n) < PAYLOAD_TYPES)?;
        if !core::mem::replace(&mut seen[usize::from(number)], true) {
            numbers.push(number);
        }
    }
    Some(numbers)
}

/// The formats of an RTP m= line. A number without an rtpmap has its static meaning, or else that
/// of `fallback`, or else is left out.
///
/// Cost: one pass over the attributes, whatever the number of formats.
pub(crate) fn formats(media: &Media, fallback: &[Format]) -> Vec<Format> {
    let mut maps = [None; PAYLOAD_TYPES];
    let mut fmtps = [None; PAYLOAD_TYPES];
    for attribute in &media.attributes {
        let table = match attribute.attribute.as_str() {
            "rtpmap" => &mut maps,
            "fmtp" => &mut fmtps,
            _ => continue,
        };
        let Some((number, value)) = attribute.value.as_deref().and_then(numbered) else {
            continue;
        };
        if let Some(place) = table.get_mut(usize::from(number)) {
            place.get_or_insert(value);
        }
    }
    payload_types(&media.fmt)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|number| {
            let fmtp = fmtps[usize::from(number)].map(str::to_owned);
            match maps[usize::from(number)] {
                Some(map) => rtpmap(number, map, fmtp),
                None => implied(number, fallback, fmtp),
            }
        })
        .collect()
}

/// `NUMBER VALUE`
fn numbered(value: &str) -> Option<(u8, &str)> {
    let (number, rest) = value.trim_start().split_once(' ')?;
    Some((number.parse().ok()?, rest.trim()))
}

/// `NAME/CLOCK[/CHANNELS]`
fn rtpmap(payload_type: u8, map: &str, fmtp: Option<String>) -> Option<Format> {
    let mut parts = map.split('/').map(str::trim);
    let encoding = parts.next().filter(|name| is_token(name))?.to_owned();
    let clock_rate = parts.next()?.parse().ok().filter(|&hz| hz > 0)?;
    let channels = match parts.next() {
        Some(channels) => channels.parse().ok().filter(|&n| n > 0)?,
        None => 1,
    };
    Some(Format {
        payload_type,
        encoding,
        clock_rate,
        channels,
        fmtp,
    })
}

fn is_token(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_graphic())
}

fn implied(payload_type: u8, fallback: &[Format], fmtp: Option<String>) -> Option<Format> {
    if let Some(&(_, name, clock_rate, channels)) = STATIC.iter().find(|row| row.0 == payload_type)
    {
        let encoding = name.to_owned();
        return Some(Format {
            payload_type,
            encoding,
            clock_rate,
            channels,
            fmtp,
        });
    }
    let same = fallback
        .iter()
        .find(|format| format.payload_type == payload_type)?;
    Some(Format {
        fmtp,
        ..same.clone()
    })
}

/// Gives each format a number of its own. A codec that `previous` names keeps its number there,
/// and no number of `previous` changes its meaning (RFC 3264, 8.3.2); a format that finds no free
/// number is left out.
pub(crate) fn assign_numbers(formats: &[Format], previous: &[Format]) -> Vec<Format> {
    let mut assigned: Vec<Format> = Vec::with_capacity(formats.len());
    for format in formats {
        if assigned.iter().any(|other| other.is_same_codec(format)) {
            continue;
        }
        let is_free = |number: u8, assigned: &[Format]| {
            usize::from(number) < PAYLOAD_TYPES
                && !assigned.iter().any(|other| other.payload_type == number)
                && !previous
                    .iter()
                    .any(|other| other.payload_type == number && !other.is_same_codec(format))
        };
        let kept = previous.iter().find(|other| other.is_same_codec(format));
        let number = kept
            .map(|other| other.payload_type)
            .into_iter()
            .chain([format.payload_type])
            .chain(DYNAMIC)
            .find(|&number| is_free(number, &assigned));
        if let Some(payload_type) = number {
            assigned.push(Format {
                payload_type,
                ..format.clone()
            });
        }
    }
    assigned
}

/// Dynamic payload types (RFC 3551, 6).
const DYNAMIC: core::ops::RangeInclusive<u8> = 96..=127;

#[cfg(test)]
mod tests {
    use super::*;

    fn format(payload_type: u8, encoding: &str, clock_rate: u32) -> Format {
        let encoding = encoding.to_owned();
        Format {
            payload_type,
            encoding,
            clock_rate,
            channels: 1,
            fmtp: None,
        }
    }

    fn media(fmt: &str, attributes: &[(&str, &str)]) -> Media {
        let mut media = Media::new(
            sdp_types::MediaType::Audio,
            1,
            sdp_types::TransportProto::RtpAvp,
            fmt,
        );
        for (name, value) in attributes {
            media.add_attribute_with_value(name, value);
        }
        media
    }

    #[test]
    fn static_numbers_need_no_rtpmap() {
        let found = formats(&media("8 0 9 18 77", &[]), &[]);
        let names: Vec<_> = found.iter().map(|f| f.encoding.as_str()).collect();
        assert_eq!(names, ["PCMA", "PCMU", "G722", "G729"]);
        // RFC 3551, 4.5.2: G.722 keeps a clock of 8,000 although it samples at 16,000.
        assert!(found.iter().all(|f| f.clock_rate == 8_000));
    }

    #[test]
    fn rtpmap_and_fmtp_are_read_for_the_numbers_that_are_listed() {
        let found = formats(
            &media(
                "96 97 98",
                &[
                    ("rtpmap", "96 opus/48000/2"),
                    ("fmtp", "96 useinbandfec=1; stereo=0"),
                    ("rtpmap", "97 speex/16000"),
                    ("rtpmap", "98 nonsense"),
                    ("rtpmap", "99 PCMA/8000"),
                ],
            ),
            &[],
        );
        let fmtp = Some("useinbandfec=1; stereo=0".to_owned());
        let opus = Format {
            channels: 2,
            fmtp,
            ..format(96, "opus", 48_000)
        };
        assert_eq!(found, [opus, format(97, "speex", 16_000)]);
    }

    #[test]
    fn an_rtpmap_overrules_the_static_meaning() {
        let found = formats(&media("0", &[("rtpmap", "0 PCMA/8000")]), &[]);
        assert_eq!(found, [format(0, "PCMA", 8_000)]);
    }

    #[test]
    fn numbers_beyond_seven_bits_are_none() {
        for fmt in ["128", "8 4294967296", "-1", "*", "x"] {
            assert_eq!(payload_types(fmt), None, "{fmt}");
        }
        assert_eq!(payload_types("0 127 0"), Some(vec![0, 127]));
    }

    #[test]
    fn a_number_keeps_its_meaning_from_offer_to_offer() {
        let previous = [
            format(8, "PCMA", 8_000),
            format(96, "telephone-event", 8_000),
        ];
        let wanted = [
            format(96, "speex", 8_000),
            format(8, "pcma", 8_000),
            format(101, "telephone-event", 8_000),
            format(102, "telephone-event", 16_000),
        ];
        let numbers: Vec<_> = assign_numbers(&wanted, &previous)
            .iter()
            .map(|f| f.payload_type)
            .collect();
        assert_eq!(numbers, [97, 8, 96, 102]);
    }

    #[test]
    fn formats_that_clash_get_numbers_of_their_own() {
        let wanted = [
            format(96, "a", 8_000),
            format(96, "b", 8_000),
            format(200, "c", 8_000),
        ];
        let numbers: Vec<_> = assign_numbers(&wanted, &[])
            .iter()
            .map(|f| f.payload_type)
            .collect();
        assert_eq!(numbers, [96, 97, 98]);
    }
}
