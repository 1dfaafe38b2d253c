//! Tandem: a B2BUA media server and load lab.
#![forbid(unsafe_code)]
mod cli;
mod config;
mod storage;

fn main() {}
