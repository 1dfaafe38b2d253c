//! Sound as the media plane sees it: linear PCM in `i16`, and what turns it into payloads and back.
//!
//! ```text
//!  payload -> Decoder -> PCM -+-> level, mix -> Encoder -> payload
//!                             |
//!  Tone, Clip, melody --------+          TapWriter ~~ ring ~~> TapReader (recorder)
//! ```
//!
//! * [`codec`]: the traits that a codec crate implements, and [`codec::CodecInfo`], its table of
//!   facts
//! * [`registry`]: the codecs built into a binary, as a value
//! * [`settings`], [`fmtp`]: what a codec may be told, by us and by the peer
//! * [`resample`]: from one sample rate to another
//! * [`comfort`]: what is heard while nobody speaks (RFC 3389)
//! * [`tone`], [`clip`], [`melody`]: where sound of our own comes from
//! * [`level`], [`mix`]: measuring and adding
//! * [`tap`]: frames on their way to a recorder, without ever holding up the sender
//! * `conformance` (feature `testing`): what every codec has to pass
//!
//! Units: a sample is an `i16`; a level is in dBm0 or dBov; lengths in samples are per channel.
//! Nothing here reads a clock, opens a file or starts a thread; buffers belong to the caller.
#![forbid(unsafe_code)]

pub mod clip;
pub mod codec;
pub mod comfort;
#[cfg(feature = "testing")]
pub mod conformance;
pub mod fmtp;
pub mod level;
pub mod melody;
pub mod mix;
pub mod registry;
pub mod resample;
pub mod settings;
pub mod tap;
pub mod tone;

pub use codec::{
    Codec, CodecError, CodecInfo, Cost, Decoder, Encoder, Input, NegotiateError, Offered, Params,
};
pub use registry::Registry;
