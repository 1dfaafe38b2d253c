//! What is going to happen, in order of time; at one moment, in the order of planning.

use std::collections::BTreeMap;
use std::time::Duration;

/// A priority queue whose ties are broken by insertion, so that a run can be repeated.
#[derive(Debug)]
pub(crate) struct Queue<T> {
    items: BTreeMap<(Duration, u64), T>,
    next: u64,
}

impl<T> Queue<T> {
    pub(crate) fn new() -> Self {
        Self {
            items: BTreeMap::new(),
            next: 0,
        }
    }

    pub(crate) fn push(&mut self, at: Duration, item: T) {
        self.items.insert((at, self.next), item);
        self.next += 1;
    }

    pub(crate) fn peek(&self) -> Option<Duration> {
        self.items.first_key_value().map(|((at, _), _)| *at)
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        self.items.pop_first().map(|(_, item)| item)
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }
}
