//! Our own descriptions, written from what we bring.

use core::net::IpAddr;

use sdp_types::{Connection, Media, Time};

use crate::session::Session;
use crate::types::{Direction, Format, Origin};

/// One audio m= line of ours.
pub(crate) struct Section<'a> {
    pub(crate) port: u16,
    /// Transport as the other side wrote it, or ours.
    pub(crate) proto: &'a str,
    /// With the numbers that are to be written.
    pub(crate) formats: &'a [Format],
    pub(crate) ptime: Option<u32>,
    pub(crate) direction: Direction,
}

/// A description of ours without media: `v=`, `o=`, `s=`, `c=`, `t=` (RFC 3264, 5).
pub(crate) fn session(origin: &Origin, address: IpAddr) -> Session {
    let mut from =
        sdp_types::Origin::with_ip_addr(origin.session_id, origin.version, origin.address);
    let is_writable = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_graphic());
    if is_writable(&origin.username) {
        from.set_username(&origin.username);
    }
    let mut inner = sdp_types::Session::new(from, "-");
    inner.set_connection(Connection::from_ip_addr(address));
    inner.add_time(Time::new(0, 0));
    Session { inner }
}

/// An audio m= line. Every format has its rtpmap, the static ones too (RFC 3264, 5.1 recommends
/// it), and the direction is always written.
pub(crate) fn audio(section: &Section<'_>) -> Media {
    let numbers: Vec<_> = section
        .formats
        .iter()
        .map(|f| f.payload_type.to_string())
        .collect();
    let mut media = m_line("audio", section.port, section.proto, numbers.join(" "));
    for format in section.formats {
        let Format {
            payload_type,
            encoding,
            clock_rate,
            channels,
            fmtp,
        } = format;
        let map = match channels {
            1 => format!("{payload_type} {encoding}/{clock_rate}"),
            _ => format!("{payload_type} {encoding}/{clock_rate}/{channels}"),
        };
        media.add_attribute_with_value("rtpmap", map);
        if let Some(fmtp) = fmtp {
            media.add_attribute_with_value("fmtp", format!("{payload_type} {fmtp}"));
        }
    }
    if let Some(ptime) = section.ptime {
        media.add_attribute_with_value("ptime", ptime);
    }
    media.add_attribute_from_str(section.direction.as_str());
    media
}

/// The refusal of an m= line: the same with port 0 (RFC 3264, 6).
pub(crate) fn refused(media: &Media) -> Media {
    m_line(&media.media, 0, &media.proto, media.fmt.clone())
}

fn m_line(kind: &str, port: u16, proto: &str, fmt: String) -> Media {
    Media {
        media: kind.to_owned(),
        port,
        num_ports: None,
        proto: proto.to_owned(),
        fmt,
        media_title: None,
        connections: Vec::new(),
        bandwidths: Vec::new(),
        key: None,
        attributes: Vec::new(),
    }
}
