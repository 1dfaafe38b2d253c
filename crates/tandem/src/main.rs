//! Tandem: a B2BUA media server and load lab.

fn main() {}
