//! Session descriptions (RFC 8866) and offer/answer (RFC 3264) as pure functions.
//!
//! ```text
//!   bytes --Session::parse--> Session --Session::audio--> Audio (one RTP audio stream, as its writer sees it)
//!
//!   we offer:    offer / reoffer ----Session---->  peer          peer offers:  Session --answer--> Session + Agreed
//!                accept(offer, answer) --> Agreed
//! ```
//!
//! The line grammar is the crate sdp-types; what peers get wrong and calls survive is put right in
//! front of it ([`Session::parse`]). One audio stream is agreed on; every other m= line is kept in
//! its place and answered with port 0 (RFC 3264, 6). An answer names one codec, so that nobody
//! changes it in mid-call, and the telephone-event on its clock.
//!
//! Left out: multicast sessions, host names in `c=` (no look-up here), media-level bundling,
//! rtcp-mux in our own descriptions, and the secure profiles: [`Profile`] tells them apart and
//! [`answer`] refuses them.
//!
//! Nothing here keeps state or time: a leg's owner keeps the last description of either side and
//! hands it in again. Packet lengths are in milliseconds.
#![forbid(unsafe_code)]

mod describe;
mod error;
mod format;
mod negotiate;
mod session;
mod tolerate;
mod types;

pub use error::{AcceptError, AnswerError, SdpError};
pub use negotiate::{Answer, accept, answer, offer, reoffer};
pub use session::{Audio, Profile, Session};
pub use types::{Agreed, Direction, Format, LocalMedia, Origin};
