//! Support for the scenario and end-to-end tests: scripted phones and the server on a simulated
//! network, independent readers of what the server says, real peers and the real binary.
//!
//! ```text
//!   scenarios    Scene: caller -- simnet -- Server(b2bua::B2bua) -- simnet -- callee
//!                ScriptedUa: own reader, own timers, own idea of SDP; complains
//!                outside:   rsip reads everything again
//!   end to end   binary: finds `tandem`; live: starts it, and SIPp, baresip, tshark, sox beside it
//!                phone: calls with payloads of other people's codecs; ogg, sound: hold them apart
//! ```
#![forbid(unsafe_code)]

pub mod baresip;
pub mod binary;
pub mod description;
pub mod live;
pub mod message;
pub mod ogg;
pub mod outside;
pub mod phone;
pub mod scene;
pub mod server;
pub mod sound;
pub mod source;
pub mod ua;
pub mod workspace;
