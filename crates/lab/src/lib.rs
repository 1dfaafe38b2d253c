//! The load lab: callers, callees, audio checks, measurement; an independent witness.
//!
//! ```text
//!   caller ---SIP---> the server under test ---SIP---> callee
//!     |                                                  |
//!     +-- streams: marked frames out, every frame in held against its mark --+
//!                                   |
//!   watch (/proc of the server) --> run: legs joined --> report
//! ```
//!
//! The lab shares the wire formats with the server (`sip`, `sdp`, `net`, `g711`) and nothing of
//! its call or media logic; RTP is built and read by an outside crate.
#![forbid(unsafe_code)]

pub mod agent;
pub mod analysis;
pub mod callee;
pub mod caller;
pub mod capture;
pub mod codec_cost;
pub mod counters;
pub mod demo;
mod description;
#[cfg(test)]
mod direct;
pub mod driver;
pub mod drops;
#[cfg(test)]
mod fixture;
pub mod follow;
mod framing;
pub mod generator;
pub mod hearing;
pub mod law;
pub mod load;
pub mod machine;
pub mod mark;
pub mod place;
pub mod plan;
pub mod progress;
pub mod record;
pub mod recordings;
pub mod report;
pub mod run;
pub mod scan;
pub mod sequence;
pub mod server;
pub mod stream;
pub mod streams;
pub mod table;
pub mod verdict;
pub mod watch;
