//! A session: in progress.

use std::net::SocketAddr;
use std::time::Instant;

use audio::Registry;
use audio::clip::Clip;
use audio::tap::TapWriter;
use thiserror::Error;

use crate::command::{FailReason, LegStats, MediaEvent, PortId, SessionId, SessionSpec, Side};

/// Where a session puts what it sends.
pub trait Outbox {
    /// Takes one datagram, from one of the session's ports to an address.
    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]);
}

/// Why a session cannot do what its specification says.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No codec of that name and clock is built in, or it refuses the parameters.
    #[error("no codec for leg {side:?}")]
    Codec {
        /// On which leg.
        side: Side,
    },
    /// The two codecs differ in sample rate, or in channels.
    #[error("the legs differ in sample rate or channels")]
    SampleRates,
    /// The specification lacks what its program needs: a leg, or a clip.
    #[error("a leg or a clip is missing")]
    Incomplete,
}

impl From<SessionError> for FailReason {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Codec { side } => Self::Codec { side },
            SessionError::SampleRates => Self::SampleRates,
            SessionError::Incomplete => Self::Incomplete,
        }
    }
}

/// One call's media.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
}

impl Session {
    /// Makes a session.
    ///
    /// # Errors
    /// A codec is not built in, or the specification lacks something.
    pub fn new(
        id: SessionId,
        _spec: &SessionSpec,
        _registry: &Registry,
        _clip: Option<Clip>,
        _seed: u64,
        _epoch: Instant,
    ) -> Result<Self, SessionError> {
        Ok(Self { id })
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Changes what the session does.
    ///
    /// # Errors
    /// As in [`Self::new`]; the session then goes on as before.
    pub fn update(&mut self, _now: Instant, _spec: &SessionSpec) -> Result<(), SessionError> {
        Ok(())
    }

    /// Hands in the clip for a later update to `Program::Play`.
    pub fn set_clip(&mut self, _clip: Option<Clip>) {}

    /// Sets the tap, or takes it off.
    pub fn set_tap(&mut self, _now: Instant, _tap: Option<TapWriter>) {}

    /// Takes one datagram.
    pub fn handle_packet(
        &mut self,
        _now: Instant,
        _side: Side,
        _from: SocketAddr,
        _packet: &mut [u8],
        _out: &mut dyn Outbox,
    ) {
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, _now: Instant, _out: &mut dyn Outbox) {}

    /// The earliest deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<MediaEvent> {
        None
    }

    /// What each leg saw.
    #[must_use]
    pub fn stats(&self) -> [LegStats; 2] {
        [LegStats::default(); 2]
    }
}
