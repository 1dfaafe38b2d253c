//! Benchmarks. Each file under `benches/` states in its header the question that it answers; what
//! several of them need is here.
//!
//! * [`compare`]: two things measured in turn, window by window
//! * [`codecs`]: the codecs of the program, by the text of a dialplan
//! * [`speech`]: half a minute of espeak-ng
//! * [`machine`]: what the figures belong to
#![forbid(unsafe_code)]

pub mod codecs;
pub mod compare;
pub mod machine;
pub mod speech;
