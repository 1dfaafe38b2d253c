//! Real peers: what others built talks to the server, or listens to what it said.
//!
//! SIPp makes and takes calls in numbers, baresip is a phone with a voice, tshark reads the wire,
//! sox reads recordings. Each helper takes the program from the machine and fails the test when it
//! isn't there.

pub mod baresip;
pub mod sipp;
pub mod sound;
pub mod wire;
