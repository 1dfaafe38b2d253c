//! One call's media: two legs, relay or transcode path, taps; sans-IO.
#![forbid(unsafe_code)]

pub mod command;
mod session;

pub use session::{Outbox, Session, SessionError};
