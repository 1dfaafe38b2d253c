//! A session description, and the view of it that calls need: its RTP audio streams.

use core::net::IpAddr;
use std::str::FromStr;

use sdp_types::{Attribute, Media, ParserError};

use crate::error::SdpError;
use crate::format::{formats, payload_types};
use crate::tolerate::tolerate;
use crate::types::{Direction, Format};

/// A session description with every m= line in its order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    pub(crate) inner: sdp_types::Session,
}

/// The transport of an m= line (RFC 8866, 5.14).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Profile {
    /// `RTP/AVP` (RFC 3551).
    Avp,
    /// `RTP/AVPF` (RFC 4585): taken as AVP, since feedback may always stay away.
    Avpf,
    /// `RTP/SAVP` (RFC 3711), also over DTLS.
    Savp,
    /// `RTP/SAVPF` (RFC 5124), also over DTLS.
    Savpf,
    /// Not RTP over UDP.
    Other,
}

impl Profile {
    fn of(media: &Media) -> Self {
        match media.proto.as_str() {
            "RTP/AVP" => Self::Avp,
            "RTP/AVPF" => Self::Avpf,
            "RTP/SAVP" | "UDP/TLS/RTP/SAVP" => Self::Savp,
            "RTP/SAVPF" | "UDP/TLS/RTP/SAVPF" => Self::Savpf,
            _ => Self::Other,
        }
    }

    /// Whether packets are encrypted.
    #[must_use]
    pub const fn is_secure(self) -> bool {
        matches!(self, Self::Savp | Self::Savpf)
    }

    /// Whether this is RTP that we can read.
    #[must_use]
    pub const fn is_plain(self) -> bool {
        matches!(self, Self::Avp | Self::Avpf)
    }
}

/// An RTP audio stream as its writer describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Audio {
    /// Which m= line, from 0.
    pub index: usize,
    /// Address of the media's or the session's `c=`; `None` without one or when it is no IP literal.
    pub address: Option<IpAddr>,
    /// RTP port; 0 is a stream that is off.
    pub port: u16,
    /// Transport.
    pub profile: Profile,
    /// Formats in the writer's order, static ones named (RFC 3551, 6), unknown ones left out.
    pub formats: Vec<Format>,
    /// `a=ptime` in milliseconds.
    pub ptime: Option<u32>,
    /// `a=maxptime` in milliseconds.
    pub max_ptime: Option<u32>,
    /// The writer's direction; one that gives an unspecified address does not receive (hold as in
    /// RFC 2543; RFC 3264, 8.4).
    pub direction: Direction,
    /// Port of `a=rtcp` (RFC 3605).
    pub rtcp_port: Option<u16>,
    /// Address of `a=rtcp`, where it is another one.
    pub rtcp_address: Option<IpAddr>,
    /// `a=rtcp-mux` (RFC 5761).
    pub rtcp_mux: bool,
}

impl Audio {
    /// The payload type of telephone-event on this clock (RFC 4733, 2.1).
    #[must_use]
    pub fn telephone_event(&self, clock_rate: u32) -> Option<u8> {
        self.event_format(clock_rate)
            .map(|format| format.payload_type)
    }

    /// `formats` in this stream's order of preference (RFC 3264, 6.1); what it does not name
    /// comes last.
    #[must_use]
    pub fn in_this_order(&self, mut formats: Vec<Format>) -> Vec<Format> {
        formats.sort_by_key(|format| {
            let place = self
                .formats
                .iter()
                .position(|mine| mine.is_same_codec(format));
            place.unwrap_or(usize::MAX)
        });
        formats
    }

    pub(crate) fn event_format(&self, clock_rate: u32) -> Option<&Format> {
        self.formats
            .iter()
            .find(|f| f.is_telephone_event() && f.clock_rate == clock_rate)
    }
}

impl Session {
    /// Reads a description. What peers get wrong without harm is taken as meant: bare LF, a last
    /// line without a line end, text in other character sets, lines out of order, unknown letters,
    /// missing `o=`, `s=` and `t=`. No m= line is no error.
    ///
    /// # Errors
    /// [`SdpError`]: anything that leaves doubt about an m= line, an address or a number.
    pub fn parse(bytes: &[u8]) -> Result<Self, SdpError> {
        let inner = sdp_types::Session::parse(&tolerate(bytes)).map_err(|e| refusal(&e))?;
        for (index, media) in inner.medias.iter().enumerate() {
            if Profile::of(media) != Profile::Other && payload_types(&media.fmt).is_none() {
                return Err(SdpError::PayloadType { media: index });
            }
        }
        Ok(Self { inner })
    }

    /// Writes it, with CRLF after every line.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(512);
        self.inner
            .write(&mut bytes)
            .expect("writing to memory does not fail");
        bytes
    }

    /// Version in `o=`.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.inner.origin.sess_version
    }

    /// Sets the version in `o=`.
    pub const fn set_version(&mut self, version: u64) {
        self.inner.origin.sess_version = version;
    }

    /// Gives this description the version that it has after `previous` of the same speaker: the
    /// same when they say the same, else one more (RFC 3264, 8).
    pub fn follow(&mut self, previous: &Self) {
        self.set_version(previous.version());
        if self != previous {
            self.set_version(previous.version().saturating_add(1));
        }
    }

    /// How many m= lines there are.
    #[must_use]
    pub const fn media_count(&self) -> usize {
        self.inner.medias.len()
    }

    /// Every audio stream over RTP, in order.
    pub fn audio_streams(&self) -> impl Iterator<Item = Audio> + '_ {
        (0..self.media_count()).filter_map(|index| self.audio_at(index))
    }

    /// The audio stream that matters: the first that is on and that we can read, else the first
    /// that is on, else the first.
    #[must_use]
    pub fn audio(&self) -> Option<Audio> {
        // min_by_key returns the first of equals.
        self.audio_streams()
            .min_by_key(|audio| match (audio.port, audio.profile.is_plain()) {
                (1.., true) => 0,
                (1.., false) => 1,
                (0, _) => 2,
            })
    }

    /// The m= line at `index`, from 0, where it is audio over RTP.
    #[must_use]
    pub fn audio_at(&self, index: usize) -> Option<Audio> {
        self.audio_with(index, &[])
    }

    /// The same; numbers without an rtpmap have their meaning in `fallback`.
    pub(crate) fn audio_with(&self, index: usize, fallback: &[Format]) -> Option<Audio> {
        let media = self.inner.medias.get(index)?;
        let profile = Profile::of(media);
        if !media.media.eq_ignore_ascii_case("audio") || profile == Profile::Other {
            return None;
        }
        let connection = media.connections.first().or(self.inner.connection.as_ref());
        let address = connection.and_then(|c| c.connection_address.parse::<IpAddr>().ok());
        let written = direction(&media.attributes)
            .or_else(|| direction(&self.inner.attributes))
            .unwrap_or_default();
        let held = address.is_some_and(|address| address.to_canonical().is_unspecified());
        let direction = if held {
            written.intersect(Direction::SendOnly)
        } else {
            written
        };
        let rtcp = value(media, "rtcp");
        Some(Audio {
            index,
            address: address.map(|address| address.to_canonical()),
            port: media.port,
            profile,
            formats: formats(media, fallback),
            ptime: value(media, "ptime").and_then(number),
            max_ptime: value(media, "maxptime").and_then(number),
            direction,
            rtcp_port: rtcp.and_then(number).filter(|&port| port > 0),
            rtcp_address: rtcp.and_then(|rtcp| number(rtcp.split_ascii_whitespace().nth(3)?)),
            rtcp_mux: media.has_attribute("rtcp-mux"),
        })
    }
}

fn direction(attributes: &[Attribute]) -> Option<Direction> {
    attributes
        .iter()
        .find_map(|a| Direction::from_attribute(&a.attribute))
}

fn value<'a>(media: &'a Media, name: &'a str) -> Option<&'a str> {
    media.get_first_attribute_value(name).flatten()
}

/// The first field of an attribute's value.
fn number<T: FromStr>(value: &str) -> Option<T> {
    value.split_ascii_whitespace().next()?.parse().ok()
}

fn refusal(error: &ParserError) -> SdpError {
    use ParserError as E;
    match *error {
        E::InvalidVersion(..) | E::NoVersion => SdpError::Version,
        E::InvalidLineFormat(line, what)
        | E::InvalidFieldEncoding(line, what)
        | E::InvalidFieldFormat(line, what)
        | E::MissingField(line, what)
        | E::FieldTrailingData(line, what) => SdpError::Line { line, what },
        E::MultipleVersions(line)
        | E::MultipleOrigins(line)
        | E::MultipleSessionNames(line)
        | E::MultipleSessionDescription(line)
        | E::MultipleUris(line)
        | E::MultipleConnections(line)
        | E::MultipleTimeZones(line)
        | E::MultipleMediaTitles(line)
        | E::MultipleKeys(line) => SdpError::Repeated { line },
        // The rest is never made by this version of the grammar, or concerns lines dropped before.
        _ => SdpError::Line {
            line: 0,
            what: "description",
        },
    }
}
