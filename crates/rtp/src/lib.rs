//! RTP on the wire (RFC 3550, RFC 4733), without owning a byte of it.
//!
//! ```text
//!  datagram -> classify -> Header::read -> Reception (sequence, loss, jitter) -> payload | Event
//!                                \-> Header::rewrite -> datagram, in place
//! ```
//!
//! * [`header`]: the fixed header read, checked and rewritten in place; RTCP, STUN and DTLS told
//!   apart
//! * [`sequence`]: sequence numbers and timestamps that wrap
//! * [`reception`]: what RFC 3550 appendix A keeps of a source: restarts, loss, jitter
//! * [`event`]: telephone-event payloads, and keys pressed out of them
//!
//! Units: timestamps and jitter in units of the stream's clock, payload lengths in octets. Nothing
//! allocates, nothing reads a clock, and no input panics. RTCP and the jitter buffer are not here
//! yet.
#![forbid(unsafe_code)]

pub mod event;
pub mod header;
pub mod reception;
pub mod sequence;

pub use event::{Event, EventTracker, Press};
pub use header::{Fields, HEADER_BYTES, Header, HeaderError, Kind, classify};
pub use reception::{Arrival, Reception};
pub use sequence::{ExtSeqNo, clock_units, is_newer_sequence, is_newer_timestamp, timestamp_delta};
