//! One call's media: two legs and what happens between them. Sans-IO: packets and time go in,
//! packets come out.
//!
//! ```text
//!  packet -> Leg: RTP? known? the peer's? new? -+-> relay: header, law table in place --+-> Leg -> out
//!                                               +-> Transcoder: decode, conceal, encode +
//!                                               +-> echo, delay line -------------------+
//!                                               +-> tap          Generator, each 20 ms -+
//! ```
//!
//! * [`command`]: what the call logic asks and hears; needs no codec
//! * [`Session`]: a call's media; driven by packets and, where something sounds on its own, by
//!   `poll_timeout` and `handle_timeout`
//!
//! The path is chosen when a session's specification is set, never per packet. Per packet there is
//! no allocation, no lock and no clock read. Each leg is sent one stream, with an SSRC of its own
//! and numbers without a jump, whatever feeds it (RFC 3550 section 5.1). Units: timestamps in the
//! clock of a leg's codec; time is an argument.
#![forbid(unsafe_code)]

pub mod command;
mod delay;
mod generator;
mod latch;
mod leg;
mod plan;
mod relay;
mod session;
mod stream;
mod tapping;
mod transcode;

pub use session::{Outbox, Session, SessionError};
