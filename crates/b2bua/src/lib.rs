//! All signalling of the server as one sans-IO machine: the SIP endpoint below, the calls with
//! their two legs above, a registrar beside them.
//!
//! ```text
//!      caller -- leg A --+                      +-- leg B -- callee
//!                        v                      ^
//!                  sip::Endpoint  <-->  calls: table (state, input) -> (state, actions)
//!                                         |          |            |
//!                                   dialplan::Plan  sdp      MediaCommand --> the media plane
//! ```
//! [`table`] holds what a call does in which state; [`B2bua`] turns events into its inputs and
//! carries out its actions. What needs a socket, a port, a name server or a file is an
//! [`Output`] for the shell. Time is an argument; randomness comes from the seed given at the
//! making. Sources: RFC 3261, RFC 3264, RFC 3398 (causes), RFC 3326 (Reason), RFC 7092 (this is a
//! media-terminating, or with `nomedia` a signalling-only, B2BUA).
#![forbid(unsafe_code)]

mod actions;
mod call;
pub mod cause;
mod cdr;
mod config;
mod headers;
mod incoming;
mod machine;
mod negotiate;
mod output;
pub mod registrar;
mod renegotiate;
mod requests;
mod setup;
pub mod table;

pub use cdr::{Cdr, CdrLeg, CdrMedia, Epoch, WallTime};
pub use config::Config;
pub use machine::{B2bua, Counts};
pub use output::{CallId, Output, Prepare, PrepareError, Prepared};
