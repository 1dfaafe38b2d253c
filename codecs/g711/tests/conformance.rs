//! Both laws against the suite of `audio`, with an allocator that counts: an example for every
//! codec crate.
#![allow(missing_docs, reason = "a test")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use audio::conformance::{Options, run};
use g711::{Pcma, Pcmu};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

fn count() {
    // Fails only while the thread is being torn down, when nobody counts any more.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
}

// SAFETY: every call is handed to the system's allocator as it came; counting touches a
// thread-local integer, which needs no allocation because it is initialised by a constant and has
// no destructor.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, and `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `realloc`'s contract, and `at` came from `System`.
        unsafe { System.realloc(at, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn both_laws_conform() {
    let allocations = || ALLOCATIONS.get();
    let options = Options {
        min_snr_db: 37.0,
        max_level_change_db: 0.1,
        max_delay_samples: 0,
        max_spectral_distance_db: 1.0,
        min_segmental_snr_db: Some(30.0),
        allocations: Some(&allocations),
        ..Options::default()
    };
    run(&Pcma, &options);
    run(&Pcmu, &options);
}
