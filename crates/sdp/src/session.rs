//! A session description.

use core::net::IpAddr;

use crate::error::SdpError;
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
    /// `RTP/SAVP` (RFC 3711).
    Savp,
    /// `RTP/SAVPF` (RFC 5124) and their forms over DTLS or TLS.
    Savpf,
    /// Not RTP as we know it.
    Other,
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
    /// The writer's direction; one that gives an unspecified address does not receive.
    pub direction: Direction,
    /// Port of `a=rtcp` (RFC 3605).
    pub rtcp_port: Option<u16>,
    /// `a=rtcp-mux` (RFC 5761).
    pub rtcp_mux: bool,
}

impl Session {
    /// Reads a description.
    ///
    /// # Errors
    /// [`SdpError`]
    pub fn parse(_bytes: &[u8]) -> Result<Self, SdpError> {
        unimplemented!()
    }

    /// Writes it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        unimplemented!()
    }

    /// Version in `o=`.
    #[must_use]
    pub fn version(&self) -> u64 {
        unimplemented!()
    }

    /// Sets the version in `o=`.
    pub fn set_version(&mut self, _version: u64) {
        unimplemented!()
    }

    /// How many m= lines there are.
    #[must_use]
    pub fn media_count(&self) -> usize {
        unimplemented!()
    }

    /// The audio stream that an answer would take.
    #[must_use]
    pub fn audio(&self) -> Option<Audio> {
        unimplemented!()
    }

    /// The m= line at `index` as an audio stream.
    #[must_use]
    pub fn audio_at(&self, _index: usize) -> Option<Audio> {
        unimplemented!()
    }
}
