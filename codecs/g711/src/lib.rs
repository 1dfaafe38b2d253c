//! ITU-T G.711: A-law and mu-law, bit-exact, as tables made when this crate is compiled.
//!
//! ```text
//!  PCM -- encode --> octets -- decode --> PCM          law: one table each way and law
//!            A-law octets <-- convert --> mu-law octets     tables 3 and 4, without PCM in between
//! ```
//!
//! * [`law`]: samples to octets and back
//! * [`convert`]: one law to the other
//! * [`Pcma`], [`Pcmu`]: the codecs for RTP (RFC 3551 section 4.5.14), payload numbers 8 and 0
//!
//! A sample is 16 bits wide; A-law uses the upper 13 of them, mu-law the upper 14 (section 3.6).
//! Lost frames are made up for by repeating the last pitch period under a fade; appendix I's
//! overlaps, voice activity detection and comfort noise (appendix II, RFC 3389) are not here.
#![forbid(unsafe_code)]

mod codec;
mod conceal;
pub mod convert;
pub mod law;

pub use codec::{Pcma, Pcmu};
