//! What a codec is to the rest of the program.
//!
//! [`Codec`] is the factory and the only place that allocates; an [`Encoder`] or [`Decoder`] works
//! on slices of its caller. A codec crate implements the three, states its facts in a
//! [`CodecInfo`], and passes `audio::conformance`.

use thiserror::Error;

use crate::settings::{self, Setting, SettingError};

/// The facts of a codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecInfo {
    /// The encoding name as `a=rtpmap` spells it (RFC 4855); compared without case.
    pub name: &'static str,
    /// The payload number that needs no `rtpmap` (RFC 3551 section 6).
    pub static_payload_type: Option<u8>,
    /// Units per second of the RTP timestamp. Not always the sample rate: G.722 says 8,000 (RFC
    /// 3551 section 4.5.2).
    pub clock_rate: u32,
    /// Channels as `a=rtpmap` states them. Always 2 for Opus, whatever is coded (RFC 7587 section
    /// 7).
    pub rtpmap_channels: u8,
    /// PCM samples per second and channel.
    pub sample_rate: u32,
    /// Interleaved channels of the PCM.
    pub channels: u8,
    /// A frame is a positive multiple of this many samples per channel.
    pub frame_step_samples: usize,
    /// The longest frame that one call of `encode` or `decode` handles, in samples per channel.
    pub max_frame_samples: usize,
    /// The packet time where nobody asked for another, in milliseconds.
    pub default_ptime_ms: u32,
    /// The largest payload that `encode` writes, in octets.
    pub max_payload_bytes: usize,
}

impl CodecInfo {
    /// Samples per channel in a packet of `ptime_ms`, rounded down to whole steps, at least one and
    /// at most the longest frame.
    #[must_use]
    pub fn samples_per_packet(&self, ptime_ms: u32) -> usize {
        let wanted = u64::from(self.sample_rate) * u64::from(ptime_ms) / 1000;
        let wanted = usize::try_from(wanted)
            .unwrap_or(usize::MAX)
            .min(self.max_frame_samples);
        (wanted / self.frame_step_samples).max(1) * self.frame_step_samples
    }

    /// RTP timestamp units for this many samples per channel.
    #[must_use]
    pub fn clock_units(&self, samples: usize) -> u32 {
        (samples as u64 * u64::from(self.clock_rate) / u64::from(self.sample_rate)) as u32
    }

    /// Samples per channel for this many RTP timestamp units.
    #[must_use]
    pub fn samples(&self, clock_units: u32) -> usize {
        (u64::from(clock_units) * u64::from(self.sample_rate) / u64::from(self.clock_rate)) as usize
    }

    /// Whether this is what `a=rtpmap:n NAME/clock_rate/channels` names.
    #[must_use]
    pub fn is_named(&self, name: &str, clock_rate: u32, channels: u8) -> bool {
        (self.clock_rate, self.rtpmap_channels) == (clock_rate, channels)
            && self.name.eq_ignore_ascii_case(name)
    }
}

/// What was agreed with a peer about a codec, before the codec has read it.
#[derive(Copy, Clone, Debug, Default)]
pub struct Offered<'a> {
    /// The peer's `a=fmtp` parameters, without the payload number.
    pub fmtp: Option<&'a str>,
    /// What our own configuration asks for, such as quality or complexity.
    pub settings: &'a [(String, String)],
    /// The packet time that the peer wants to receive, in milliseconds; 0 when it did not say.
    pub ptime_ms: u32,
    /// The sample rate at which the sound goes on behind us, so that a codec that can say so asks
    /// the peer for no more; 0 when it is not known.
    pub sample_rate: u32,
}

/// What the codec made of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    /// Samples per channel in a packet that we send.
    pub frame_samples: usize,
    /// The `a=fmtp` value that we state.
    pub fmtp: Option<String>,
    /// Settings of the encoder: those given, within what the peer's `a=fmtp` allows.
    pub settings: Vec<(String, String)>,
}

/// What a codec costs, as far as one codec is to be preferred to another: nanoseconds of CPU per
/// 20 ms frame, rounded figures of the benches. Never a promise.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// To encode.
    pub encode_ns: u32,
    /// To decode.
    pub decode_ns: u32,
}

/// Why the peer's parameters cannot be met.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NegotiateError {
    /// The `a=fmtp` text breaks the codec's grammar.
    #[error("malformed format parameters")]
    Malformed,
    /// It is well formed and asks for something that is not built.
    #[error("unsupported format parameters")]
    Unsupported,
    /// A setting of our own configuration is unknown or out of range.
    #[error(transparent)]
    Setting(#[from] SettingError),
}

/// Why a frame could not be encoded or decoded.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CodecError {
    /// The caller's slice is too small.
    #[error("output holds {available}, needs {needed}")]
    OutputTooSmall {
        /// Elements needed.
        needed: usize,
        /// Elements given.
        available: usize,
    },
    /// The number of samples is not one that a frame can have.
    #[error("a frame cannot have {samples} samples")]
    FrameLength {
        /// Samples given, over all channels.
        samples: usize,
    },
    /// The payload cannot be decoded: the peer's fault.
    #[error("payload of {len} octets cannot be decoded")]
    BadPayload {
        /// Octets given.
        len: usize,
    },
    /// The encoder or decoder could not be made.
    #[error("codec cannot be set up")]
    Setup,
}

/// A codec: facts and factory.
pub trait Codec: Send + Sync {
    /// The facts.
    fn info(&self) -> &CodecInfo;

    /// What `Offered::settings` may hold.
    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    /// The same codec with PCM of this rate and these channels, where it can be run so. Opus is run
    /// at the rate of the other side, which spares a resampler.
    fn variant(&self, sample_rate: u32, channels: u8) -> Option<&dyn Codec> {
        let _ = (sample_rate, channels);
        None
    }

    /// What the codec costs with these settings.
    fn cost(&self, settings: &[(String, String)]) -> Cost {
        let _ = settings;
        Cost::default()
    }

    /// The `a=fmtp` of an offer of ours; `offered.fmtp` is `None`.
    ///
    /// # Errors
    /// [`NegotiateError::Setting`].
    fn offer(&self, offered: &Offered<'_>) -> Result<Option<String>, NegotiateError> {
        settings::check(self.settings(), offered.settings)?;
        Ok(None)
    }

    /// Reads what was agreed with the peer: its parameters for what we send, ours for what it
    /// sends.
    ///
    /// # Errors
    /// The parameters are malformed, or ask for what is not built.
    fn negotiate(&self, offered: &Offered<'_>) -> Result<Params, NegotiateError>;

    /// Makes an encoder. Cost: allocates.
    ///
    /// # Errors
    /// [`CodecError::Setup`], [`CodecError::FrameLength`].
    fn encoder(&self, params: &Params) -> Result<Box<dyn Encoder>, CodecError>;

    /// Makes a decoder. Cost: allocates.
    ///
    /// # Errors
    /// [`CodecError::Setup`].
    fn decoder(&self, params: &Params) -> Result<Box<dyn Decoder>, CodecError>;

    /// A table that turns each octet of our payload into an octet of a payload of `to`, when the
    /// two codecs are so close that this is all it takes (G.711 tables 3 and 4).
    fn octet_map(&self, to: &CodecInfo) -> Option<&'static [u8; 256]> {
        let _ = to;
        None
    }
}

/// Turns PCM into payloads, one frame a call.
pub trait Encoder: Send {
    /// Encodes one frame and returns the octets written; 0 when nothing needs to be sent for it
    /// (discontinuous transmission, RFC 3551 section 4.1).
    ///
    /// Shape: `pcm` holds [`Self::frame_samples`] samples per channel, interleaved; `out` at least
    /// [`CodecInfo::max_payload_bytes`] or what the frame needs. Cost: no allocation.
    ///
    /// # Errors
    /// `pcm` is no frame, or `out` is too small; the encoder's state is then as before.
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> Result<usize, CodecError>;

    /// Samples per channel of a frame.
    fn frame_samples(&self) -> usize;
}

/// What a decoder is given.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Input<'a> {
    /// A payload.
    Frame(&'a [u8]),
    /// A payload that never came, to be concealed.
    Lost {
        /// Its length in samples per channel.
        samples: usize,
    },
    /// A payload that never came, right before one that did: forward error correction recovers the
    /// lost one from the latter, which is given again as `Frame` afterwards. Where there is none in
    /// it, the same as `Lost`.
    Recover {
        /// The payload that came.
        next: &'a [u8],
        /// The lost one's length in samples per channel.
        samples: usize,
    },
}

/// Turns payloads into PCM.
pub trait Decoder: Send {
    /// Decodes one payload, or makes up for a lost one, and returns the samples written per
    /// channel.
    ///
    /// Shape: `out` has room for [`CodecInfo::max_frame_samples`] per channel or what the input
    /// gives, interleaved. Cost: no allocation.
    ///
    /// # Errors
    /// The payload is malformed, or `out` is too small; decoding goes on with the next payload.
    fn decode(&mut self, input: Input<'_>, out: &mut [i16]) -> Result<usize, CodecError>;
}
