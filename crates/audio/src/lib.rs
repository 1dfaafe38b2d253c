//! Codec traits, PCM, tones, mixing and the recording tap.
#![forbid(unsafe_code)]
