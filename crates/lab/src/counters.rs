//! Counters of a run that others look at while it lasts: the watch and the progress line.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// What the caller has done so far; clones share it.
#[derive(Clone, Default, Debug)]
pub struct Counters(Arc<Inner>);

#[derive(Default, Debug)]
struct Inner {
    placed: AtomicU64,
    up: Arc<AtomicU64>,
    ended: AtomicU64,
    failed: AtomicU64,
}

impl Counters {
    /// Calls whose INVITE was sent.
    #[must_use]
    pub fn placed(&self) -> u64 {
        self.0.placed.load(Ordering::Relaxed)
    }

    /// Calls that are up now.
    #[must_use]
    pub fn up(&self) -> u64 {
        self.0.up.load(Ordering::Relaxed)
    }

    /// The same, for [`crate::watch::Watch`].
    #[must_use]
    pub fn up_shared(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.0.up)
    }

    /// Calls that are over, in whatever way.
    #[must_use]
    pub fn ended(&self) -> u64 {
        self.0.ended.load(Ordering::Relaxed)
    }

    /// Of these, calls whose signalling failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.0.failed.load(Ordering::Relaxed)
    }

    pub(crate) fn note_placed(&self) {
        self.0.placed.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_up(&self) {
        self.0.up.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_ended(&self, was_up: bool, failed: bool) {
        if was_up {
            self.0.up.fetch_sub(1, Ordering::Relaxed);
        }
        self.0.ended.fetch_add(1, Ordering::Relaxed);
        self.0
            .failed
            .fetch_add(u64::from(failed), Ordering::Relaxed);
    }
}
