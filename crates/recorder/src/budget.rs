//! The bytes that all recordings together may hold.
//!
//! One number, counted in an atomic: what lay in the directory at the last survey, and what was
//! written since. When it is spent the directory is surveyed again, at most once a second, so that
//! files removed by hand or by a cron job give their room back.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::directory;

/// Shortest time between two surveys of the directory.
const SURVEY_INTERVAL: Duration = Duration::from_secs(1);

/// A limit in bytes over one directory, shared by all writers.
#[derive(Debug)]
pub(crate) struct Budget {
    directory: PathBuf,
    max_bytes: u64,
    used: AtomicU64,
}

/// When a writer last surveyed the directory; each writer thread has its own.
#[derive(Debug, Default)]
pub(crate) struct LastSurvey(Option<Instant>);

impl Budget {
    pub(crate) fn new(directory: PathBuf, max_bytes: u64, used: u64) -> Self {
        Self {
            directory,
            max_bytes,
            used: AtomicU64::new(used),
        }
    }

    /// Takes `bytes` out of the budget, or nothing when they don't fit.
    pub(crate) fn reserve(&self, bytes: u64, last: &mut LastSurvey, now: Instant) -> bool {
        if self.try_reserve(bytes) {
            return true;
        }
        let fresh = last
            .0
            .is_some_and(|at| now.saturating_duration_since(at) < SURVEY_INTERVAL);
        if fresh {
            return false;
        }
        last.0 = Some(now);
        // Bytes reserved by another writer but not yet written are missed until the next survey:
        // at most one flush of each of its recordings.
        self.used
            .store(directory::survey(&self.directory).bytes, Ordering::Relaxed);
        self.try_reserve(bytes)
    }

    /// Gives bytes back that were reserved and not written.
    pub(crate) fn give_back(&self, bytes: u64) {
        let less = |used: u64| Some(used.saturating_sub(bytes));
        // The closure never declines.
        let _ = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }

    /// Bytes in use, as far as known.
    pub(crate) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    fn try_reserve(&self, bytes: u64) -> bool {
        let more = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.max_bytes);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spent_budget_refuses_until_files_are_gone() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a");
        std::fs::write(&file, [0; 600]).unwrap();
        let budget = Budget::new(dir.path().to_owned(), 1000, 600);
        let (mut last, t0) = (LastSurvey::default(), Instant::now());
        assert!(budget.reserve(400, &mut last, t0));
        budget.give_back(100);
        assert_eq!(budget.used(), 900);
        assert!(!budget.reserve(500, &mut last, t0));
        std::fs::remove_file(&file).unwrap();
        assert!(!budget.reserve(500, &mut last, t0 + Duration::from_millis(999)));
        assert!(budget.reserve(500, &mut last, t0 + Duration::from_secs(1)));
        assert_eq!(budget.used(), 500);
    }

    #[test]
    fn sums_beyond_the_word_are_refused() {
        let budget = Budget::new(PathBuf::from("/proc/none"), u64::MAX, u64::MAX - 1);
        assert!(!budget.try_reserve(2));
    }
}
