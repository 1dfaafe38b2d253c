//! What the machine asks of its shell, and what the shell answers.

use std::net::SocketAddr;

use media::command::{MediaCommand, PortId};

use crate::cdr::Cdr;

/// A call of this machine: a slab place and its generation, so that a late answer of the shell
/// never reaches the call that has the place now.
#[derive(Copy, Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct CallId {
    pub(crate) key: u32,
    pub(crate) generation: u32,
}

impl CallId {
    /// As one number: what the media plane and recordings know the call by.
    #[must_use]
    pub fn as_u64(self) -> u64 {
        u64::from(self.generation) << 32 | u64::from(self.key)
    }

    /// The call behind the number of [`CallId::as_u64`].
    #[must_use]
    pub fn from_u64(number: u64) -> Self {
        let half = |n: u64| u32::try_from(n & u64::from(u32::MAX)).expect("masked to 32 bits");
        Self {
            key: half(number),
            generation: half(number >> 32),
        }
    }
}

impl std::fmt::Display for CallId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:x}", self.as_u64())
    }
}

/// Something for the shell to do. Drained by [`crate::B2bua::poll_output`].
#[expect(
    clippy::large_enum_variant,
    reason = "a few commands a call, each passed on at once; boxing allocates"
)]
#[derive(Debug)]
#[non_exhaustive]
pub enum Output {
    /// Send a SIP message.
    Transmit(sip::Transmit),
    /// Resolve a host name; answer by [`crate::B2bua::handle_resolved`].
    Resolve(sip::Resolve),
    /// Find what a call needs before it goes on; answer by [`crate::B2bua::handle_prepared`].
    Prepare(Prepare),
    /// These ports are free again.
    Release {
        /// The ports.
        ports: Vec<PortId>,
    },
    /// A command for the media plane. Commands of one session stay in their order.
    Media(MediaCommand),
    /// A call is over. Its record may already be written.
    Cdr(Box<Cdr>),
}

/// What a call needs of the shell.
#[derive(Clone, Debug)]
pub struct Prepare {
    /// For whom.
    pub call: CallId,
    /// How many RTP ports.
    pub ports: usize,
    /// A clip to be played.
    pub clip: Option<dialplan::Clip>,
    /// Whose latest recording a clip may mean.
    pub caller_user: String,
}

/// The shell's answer to [`Prepare`].
#[derive(Clone, Debug, Default)]
pub struct Prepared {
    /// As many as asked, each with the address that peers send to.
    pub ports: Vec<(PortId, SocketAddr)>,
    /// The clip, where one was asked for.
    pub clip: Option<media::command::ClipId>,
}

/// Why the shell cannot give what a call needs.
#[derive(Copy, Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareError {
    /// Every RTP port is taken: 503.
    #[error("no RTP port is free")]
    NoPort,
    /// There is no such clip: 404.
    #[error("no such recording")]
    NoClip,
}

impl PrepareError {
    /// The SIP status that the caller gets.
    #[must_use]
    pub fn status(self) -> u16 {
        match self {
            Self::NoPort => 503,
            Self::NoClip => 404,
        }
    }
}
