//! What the call logic asks of the media plane, and what it hears back.
//!
//! These are plain values: whoever builds them needs no codec, socket or clock. A session has one
//! or two legs; a [`Program`] says what happens between them. All of it is stated again in full by
//! `Update`, so that a lost idea of the former state can do no harm.

use std::net::SocketAddr;
use std::time::Duration;

/// A media session; the call logic numbers them.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SessionId(pub u64);

/// A pair of bound ports, RTP and RTCP, lent by the shell: the low 20 bits are its place among
/// them, densely numbered, the others count its loans.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PortId(pub u32);

/// A clip that the shell has loaded.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ClipId(pub u64);

/// A leg of a session.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Side {
    /// The caller's.
    A,
    /// The callee's.
    B,
}

impl Side {
    /// Both, in order.
    pub const BOTH: [Self; 2] = [Self::A, Self::B];

    /// The other leg.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    /// 0 for A, 1 for B.
    #[must_use]
    pub fn index(self) -> usize {
        match self {
            Self::A => 0,
            Self::B => 1,
        }
    }
}

/// A codec as negotiated on a leg.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PayloadFormat {
    /// Encoding name of `a=rtpmap`.
    pub name: String,
    /// RTP clock rate.
    pub clock_rate: u32,
    /// Channels.
    pub channels: u8,
    /// The number on packets that we send.
    pub payload_type: u8,
    /// The number on packets that we receive.
    pub recv_payload_type: u8,
    /// The peer's `a=fmtp` parameters.
    pub fmtp: Option<String>,
    /// Our own settings for the encoder, such as complexity.
    pub params: Vec<(String, String)>,
}

/// A leg as negotiated, seen from us.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LegSpec {
    /// Our port.
    pub port: PortId,
    /// The peer's RTP address, as its description states it; `None` when it states none to send to.
    pub remote: Option<SocketAddr>,
    /// The codec that we send, and that the peer sends.
    pub format: PayloadFormat,
    /// Codecs that the peer may send besides, each under its `recv_payload_type`.
    pub also: Vec<PayloadFormat>,
    /// The packet time that the peer wants to receive, in milliseconds.
    pub ptime_ms: u32,
    /// The number of telephone-event on packets that we send (RFC 4733); `None` when the peer takes
    /// none.
    pub dtmf_send: Option<u8>,
    /// The number of telephone-event on packets that we receive.
    pub dtmf_recv: Option<u8>,
    /// The number of comfort noise on packets that we send (RFC 3389); `None` when the peer takes
    /// none.
    pub cn_send: Option<u8>,
    /// The number of comfort noise on packets that we receive.
    pub cn_recv: Option<u8>,
    /// Whether we send.
    pub send: bool,
    /// Whether we take what comes.
    pub receive: bool,
}

impl LegSpec {
    /// The codec of packets that come under this number.
    #[must_use]
    pub fn received(&self, payload_type: u8) -> Option<&PayloadFormat> {
        if self.format.recv_payload_type == payload_type {
            return Some(&self.format);
        }
        let mut others = self.also.iter();
        others.find(|format| format.recv_payload_type == payload_type)
    }

    /// The clock of packets that come under this number; that of the leg's codec where there is no
    /// codec of the number.
    pub(crate) fn clock_rate_of(&self, payload_type: u8) -> u32 {
        self.received(payload_type)
            .map_or(self.format.clock_rate, |format| format.clock_rate)
    }
}

/// What a session does.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Program {
    /// What comes in on one leg goes out on the other.
    Bridge,
    /// What comes in on leg A goes back.
    Echo {
        /// So much later; zero for at once.
        delay: Duration,
    },
    /// Leg A hears a sine.
    Tone {
        /// Frequency in Hz.
        hz: f32,
        /// Level in dBm0.
        level_dbm0: f32,
    },
    /// Leg A hears a clip.
    Play {
        /// Which.
        clip: ClipId,
        /// Again and again, instead of once with [`MediaEvent::PlayFinished`].
        repeat: bool,
    },
    /// Leg A hears silence.
    Silence,
    /// Leg A hears a beep and then silence, while it is recorded.
    Record {
        /// Whether there is a beep.
        beep: bool,
    },
}

/// A session as a whole. Programs of one leg use leg A.
#[derive(Clone, PartialEq, Debug)]
pub struct SessionSpec {
    /// Legs A and B. A bridge may lack leg B for a while, until the callee has described its media.
    pub legs: [Option<LegSpec>; 2],
    /// What happens between them.
    pub program: Program,
}

impl SessionSpec {
    /// The leg of a side.
    #[must_use]
    pub fn leg(&self, side: Side) -> Option<&LegSpec> {
        self.legs[side.index()].as_ref()
    }
}

/// A recording to be made of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RecordingSpec {
    /// Its number, for the events about it.
    pub id: u64,
    /// One leg a side, instead of both mixed.
    pub stereo: bool,
    /// Template of the file name; `None` for the recorder's own.
    pub template: Option<String>,
    /// Values for the template: caller, callee, call_id, user, ...
    pub fields: Vec<(String, String)>,
}

/// What the call logic asks for.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum MediaCommand {
    /// A session begins.
    Start {
        /// Which.
        session: SessionId,
        /// What it is.
        spec: SessionSpec,
    },
    /// A session changes: codec, address, hold, program.
    Update {
        /// Which.
        session: SessionId,
        /// What it is from now on, in full.
        spec: SessionSpec,
    },
    /// A session ends; [`MediaEvent::Stopped`] follows.
    Stop {
        /// Which.
        session: SessionId,
    },
    /// A session is recorded from now on.
    StartRecording {
        /// Which.
        session: SessionId,
        /// How.
        recording: RecordingSpec,
    },
    /// A session is no longer recorded.
    StopRecording {
        /// Which.
        session: SessionId,
    },
}

/// What the media plane tells.
#[expect(
    clippy::large_enum_variant,
    reason = "one large event a session; boxing allocates"
)]
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum MediaEvent {
    /// A session runs.
    Started {
        /// Which.
        session: SessionId,
    },
    /// A session has ended; its ports are free.
    Stopped {
        /// Which.
        session: SessionId,
        /// What each leg saw.
        stats: [LegStats; 2],
    },
    /// A session could not be started or changed. It is over, and no `Stopped` follows.
    Failed {
        /// Which.
        session: SessionId,
        /// Why.
        reason: FailReason,
    },
    /// The clip has been played to its end.
    PlayFinished {
        /// In which session.
        session: SessionId,
    },
    /// A key was pressed (RFC 4733), reported once, at its end.
    Digit {
        /// In which session.
        session: SessionId,
        /// On which leg.
        side: Side,
        /// `0` to `9`, `*`, `#`, `A` to `D`.
        digit: char,
        /// How long.
        duration_ms: u32,
    },
    /// The peer's RTP comes from another address than its description states, and ours goes there
    /// now.
    SourceLearned {
        /// In which session.
        session: SessionId,
        /// On which leg.
        side: Side,
        /// From where.
        from: SocketAddr,
    },
}

/// Why a session could not be had.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FailReason {
    /// No codec of that name and clock is built in, or it refuses the parameters.
    Codec {
        /// On which leg.
        side: Side,
    },
    /// No way leads from the sample rate or channels of one codec to those of the other.
    SampleRates,
    /// The specification lacks what its program needs: a leg, or a clip.
    Incomplete,
    /// A port could not be used.
    Port(PortId),
    /// The media plane has no room for another session.
    Overload,
    /// There is a session of that number, or, to change, there is none.
    Session,
}

/// What a leg saw.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
#[non_exhaustive]
pub struct LegStats {
    /// RTP packets taken from the peer, telephone-events included.
    pub packets_received: u64,
    /// Payload octets of these.
    pub bytes_received: u64,
    /// RTP packets sent to the peer.
    pub packets_sent: u64,
    /// Payload octets of these.
    pub bytes_sent: u64,
    /// Packets that never came (RFC 3550 section A.3), over all streams of the leg. Negative when
    /// more came than were expected.
    pub lost: i64,
    /// Packets that came too late to be used.
    pub late: u64,
    /// Packets that came twice.
    pub duplicates: u64,
    /// Valid packets of the peer that were not used: unknown payload number, leg on hold,
    /// undecodable.
    pub discarded: u64,
    /// Frames made up for lost ones.
    pub concealed: u64,
    /// Packets from a source that is not the peer.
    pub strangers: u64,
    /// Datagrams that are no RTP: RTCP, STUN, DTLS, junk, malformed headers.
    pub not_rtp: u64,
    /// Interarrival jitter of the latest stream (RFC 3550 section A.8).
    pub jitter: Duration,
    /// The largest jitter so far.
    pub jitter_max: Duration,
    /// Streams seen: SSRC changes and restarts, plus one.
    pub streams: u32,
    /// SSRC of the peer's latest stream.
    pub ssrc_received: Option<u32>,
    /// SSRC of our stream.
    pub ssrc_sent: u32,
    /// Where the peer's packets come from, once one has come.
    pub source: Option<SocketAddr>,
}
