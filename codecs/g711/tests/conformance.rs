//! Both laws against the suite of `audio`, with an allocator that counts: an example for every
//! codec crate.
#![allow(missing_docs, reason = "a test")]

use audio::conformance::{Options, run};
use g711::{Pcma, Pcmu};

#[path = "../../../crates/audio/tests/counting/mod.rs"]
mod counting;

#[test]
fn both_laws_conform() {
    let options = Options {
        min_snr_db: 37.0,
        max_level_change_db: 0.1,
        max_delay_samples: 0,
        max_spectral_distance_db: 1.0,
        min_segmental_snr_db: Some(30.0),
        allocations: Some(&counting::allocations),
        ..Options::default()
    };
    run(&Pcma, &options);
    run(&Pcmu, &options);
}
