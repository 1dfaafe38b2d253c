//! Deadlines of sessions: a heap of which only what is due is looked at.
//!
//! A relayed call has no deadline and costs nothing here. Entries aren't taken out when a deadline
//! moves; the owner compares what comes out with what it armed last.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Instant;

/// A deadline, the session's key in the slab, and the serial number that tells a reused key.
pub(crate) type Deadline = (Instant, u32, u64);

/// Deadlines, earliest first.
#[derive(Debug, Default)]
pub(crate) struct Timers(BinaryHeap<Reverse<Deadline>>);

impl Timers {
    pub(crate) fn arm(&mut self, deadline: Deadline) {
        self.0.push(Reverse(deadline));
    }

    /// The earliest deadline that has come.
    pub(crate) fn pop_due(&mut self, now: Instant) -> Option<Deadline> {
        let due = self.0.peek().is_some_and(|Reverse((at, ..))| *at <= now);
        due.then(|| self.0.pop().map(|Reverse(deadline)| deadline))
            .flatten()
    }

    /// The earliest deadline, which may be stale.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.0.peek().map(|Reverse((at, ..))| *at)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
