//! The plain values that offers, answers and their outcome are made of.

use core::fmt;
use core::net::{IpAddr, SocketAddr};

/// Which way media flows, seen from whoever wrote it down (RFC 8866, 6.7).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Direction {
    /// Both ways: what holds when a description names no direction.
    #[default]
    SendRecv,
    /// The writer sends and does not receive.
    SendOnly,
    /// The writer receives and does not send.
    RecvOnly,
    /// Neither way.
    Inactive,
}

impl Direction {
    /// The direction of these two facts.
    #[must_use]
    pub const fn new(sends: bool, receives: bool) -> Self {
        match (sends, receives) {
            (true, true) => Self::SendRecv,
            (true, false) => Self::SendOnly,
            (false, true) => Self::RecvOnly,
            (false, false) => Self::Inactive,
        }
    }

    /// Whether the writer sends.
    #[must_use]
    pub const fn sends(self) -> bool {
        matches!(self, Self::SendRecv | Self::SendOnly)
    }

    /// Whether the writer receives.
    #[must_use]
    pub const fn receives(self) -> bool {
        matches!(self, Self::SendRecv | Self::RecvOnly)
    }

    /// The same flow seen from the other end.
    #[must_use]
    pub const fn reversed(self) -> Self {
        Self::new(self.receives(), self.sends())
    }

    /// What both allow.
    #[must_use]
    pub const fn intersect(self, other: Self) -> Self {
        Self::new(
            self.sends() && other.sends(),
            self.receives() && other.receives(),
        )
    }

    /// The attribute's name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SendRecv => "sendrecv",
            Self::SendOnly => "sendonly",
            Self::RecvOnly => "recvonly",
            Self::Inactive => "inactive",
        }
    }

    pub(crate) fn from_attribute(name: &str) -> Option<Self> {
        [
            Self::SendRecv,
            Self::SendOnly,
            Self::RecvOnly,
            Self::Inactive,
        ]
        .into_iter()
        .find(|direction| direction.as_str() == name)
    }
}

impl fmt::Display for Direction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One RTP payload format under its number in one description (RFC 8866, 6.6).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Format {
    /// Payload type, 0 to 127.
    pub payload_type: u8,
    /// Encoding name as written; compare without case.
    pub encoding: String,
    /// RTP clock in Hz.
    pub clock_rate: u32,
    /// Channels; 1 unless the rtpmap says otherwise.
    pub channels: u8,
    /// Value of `a=fmtp` behind the number.
    pub fmtp: Option<String>,
}

impl Format {
    /// Whether both are the same encoding, clock and channels, whatever their numbers.
    #[must_use]
    pub fn is_same_codec(&self, other: &Self) -> bool {
        self.clock_rate == other.clock_rate
            && self.channels == other.channels
            && self.encoding.eq_ignore_ascii_case(&other.encoding)
    }

    /// Whether this is `telephone-event` (RFC 4733).
    #[must_use]
    pub fn is_telephone_event(&self) -> bool {
        self.encoding.eq_ignore_ascii_case("telephone-event")
    }

    /// Whether this carries speech by itself: neither events nor comfort noise (RFC 3389) nor
    /// redundancy (RFC 2198), which only accompany a codec.
    #[must_use]
    pub fn is_codec(&self) -> bool {
        !["telephone-event", "tone", "CN", "red"]
            .iter()
            .any(|other| self.encoding.eq_ignore_ascii_case(other))
    }
}

/// Who speaks in `o=` (RFC 8866, 5.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// User name; anything that cannot stand in the line becomes `-`.
    pub username: String,
    /// The same for the whole session.
    pub session_id: u64,
    /// Grows by one whenever a description differs from the one before (RFC 3264, 8).
    pub version: u64,
    /// Address of the speaker.
    pub address: IpAddr,
}

/// What we bring to one audio stream.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocalMedia {
    /// Where we receive.
    pub address: IpAddr,
    /// RTP port.
    pub port: u16,
    /// Codecs in order of preference, and the telephone-event formats that may go with them.
    pub formats: Vec<Format>,
    /// Milliseconds of audio per packet that we ask for; `None` follows the peer.
    pub ptime: Option<u32>,
    /// What we want.
    pub direction: Direction,
}

/// What both sides have agreed on, from our side.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Agreed {
    /// Which m= line, from 0.
    pub media_index: usize,
    /// Where RTP goes; `None` for an unspecified address (hold as in RFC 2543) and for port 0.
    pub remote: Option<SocketAddr>,
    /// Where RTCP goes (`a=rtcp`, RFC 3605; else the port above); `None` as for `remote`.
    pub remote_rtcp: Option<SocketAddr>,
    /// The codec we send, with the number and fmtp that the peer asks for.
    pub send_format: Format,
    /// The codecs we may receive, with our numbers; the one that `send_format` names is first.
    pub recv_formats: Vec<Format>,
    /// Payload type for events we send, on the codec's clock.
    pub send_dtmf: Option<u8>,
    /// Payload type of events we receive, on the codec's clock.
    pub recv_dtmf: Option<u8>,
    /// Milliseconds of audio per packet that we send.
    pub ptime_ms: u32,
    /// What we do: send, receive, both or neither.
    pub direction: Direction,
}

impl Agreed {
    /// `recv_formats` and the telephone-event that goes with them: what a later offer starts from.
    #[must_use]
    pub fn recv_formats_with_events(&self) -> Vec<Format> {
        let mut formats = self.recv_formats.clone();
        formats.extend(self.recv_dtmf.map(|payload_type| Format {
            payload_type,
            encoding: "telephone-event".to_owned(),
            clock_rate: self.send_format.clock_rate,
            channels: 1,
            fmtp: Some("0-15".to_owned()),
        }));
        formats
    }
}
