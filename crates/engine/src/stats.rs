//! What the engine counts, in atomics: written by its threads, read by anyone at any time.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::shard::Work;

/// Weight of the newest tick in the running mean of the load: 1 / 64, so about 0.3 s at 5 ms.
const MEAN_SHIFT: u32 = 6;

/// Counters of one shard.
#[derive(Debug, Default)]
pub(crate) struct ShardCounters {
    sessions: AtomicUsize,
    busy_nanos: AtomicU64,
    received: AtomicU64,
    unowned: AtomicU64,
    sent: AtomicU64,
    timeouts: AtomicU64,
    events_dropped: AtomicU64,
    panics: AtomicU64,
}

impl ShardCounters {
    pub(crate) fn add(&self, work: Work, busy: Duration) {
        add(&self.busy_nanos, nanos(busy));
        add(&self.received, work.received);
        add(&self.unowned, work.unowned);
        add(&self.sent, work.sent);
        add(&self.timeouts, work.timeouts);
    }

    pub(crate) fn set(&self, sessions: usize, events_dropped: u64) {
        self.sessions.store(sessions, Ordering::Relaxed);
        self.events_dropped.store(events_dropped, Ordering::Relaxed);
    }

    pub(crate) fn panicked(&self) {
        add(&self.panics, 1);
    }

    fn read(&self) -> ShardStats {
        ShardStats {
            sessions: self.sessions.load(Ordering::Relaxed),
            busy: Duration::from_nanos(read(&self.busy_nanos)),
            received: read(&self.received),
            unowned: read(&self.unowned),
            sent: read(&self.sent),
            timeouts: read(&self.timeouts),
            events_dropped: read(&self.events_dropped),
            panics: read(&self.panics),
        }
    }
}

/// Counters of the ticker and all shards.
#[derive(Debug)]
pub(crate) struct Counters {
    pub(crate) budget: Duration,
    ticks: AtomicU64,
    late: AtomicU64,
    skipped: AtomicU64,
    overruns: AtomicU64,
    last_nanos: AtomicU64,
    peak_nanos: AtomicU64,
    mean_nanos: AtomicU64,
    parks: AtomicU64,
    pub(crate) shards: Vec<ShardCounters>,
}

impl Counters {
    pub(crate) fn new(budget: Duration, shards: usize) -> Self {
        Self {
            budget,
            ticks: AtomicU64::new(0),
            late: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
            overruns: AtomicU64::new(0),
            last_nanos: AtomicU64::new(0),
            peak_nanos: AtomicU64::new(0),
            mean_nanos: AtomicU64::new(0),
            parks: AtomicU64::new(0),
            shards: (0..shards).map(|_| ShardCounters::default()).collect(),
        }
    }

    /// A tick came `lateness` after its deadline and took `elapsed`. Called by the ticker alone.
    pub(crate) fn ticked(&self, lateness: Duration, elapsed: Duration) {
        add(&self.ticks, 1);
        add(&self.late, u64::from(lateness > self.budget));
        add(&self.overruns, u64::from(elapsed > self.budget));
        let elapsed = nanos(elapsed);
        self.last_nanos.store(elapsed, Ordering::Relaxed);
        self.peak_nanos.fetch_max(elapsed, Ordering::Relaxed);
        let mean = read(&self.mean_nanos);
        let next = mean - (mean >> MEAN_SHIFT) + (elapsed >> MEAN_SHIFT);
        self.mean_nanos.store(next, Ordering::Relaxed);
    }

    pub(crate) fn skip(&self, ticks: u64) {
        add(&self.skipped, ticks);
    }

    /// Nothing to do: the load is nil until the next tick.
    pub(crate) fn parked(&self) {
        self.last_nanos.store(0, Ordering::Relaxed);
        self.mean_nanos.store(0, Ordering::Relaxed);
        add(&self.parks, 1);
    }

    pub(crate) fn load(&self) -> Load {
        Load {
            budget: self.budget,
            elapsed: Duration::from_nanos(read(&self.last_nanos)),
            mean: Duration::from_nanos(read(&self.mean_nanos)),
        }
    }

    pub(crate) fn read(&self) -> EngineStats {
        EngineStats {
            load: self.load(),
            ticks: read(&self.ticks),
            late: read(&self.late),
            skipped: read(&self.skipped),
            overruns: read(&self.overruns),
            peak: Duration::from_nanos(read(&self.peak_nanos)),
            parks: read(&self.parks),
            shards: self.shards.iter().map(ShardCounters::read).collect(),
        }
    }
}

/// How much of the time between two ticks the work takes: what admission reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Load {
    /// Time from one tick to the next.
    pub budget: Duration,
    /// What the last tick took.
    pub elapsed: Duration,
    /// Running mean of that over about 64 ticks.
    pub mean: Duration,
}

impl Load {
    /// The mean as a part of the budget: 0 is idle, 1 is all of it.
    pub fn ratio(&self) -> f64 {
        self.mean.as_secs_f64() / self.budget.as_secs_f64()
    }
}

/// The engine's counters at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EngineStats {
    /// Budget and use of it.
    pub load: Load,
    /// Ticks so far.
    pub ticks: u64,
    /// Ticks that began more than a tick after their deadline.
    pub late: u64,
    /// Deadlines that passed without a tick because the one before took too long.
    pub skipped: u64,
    /// Ticks that took longer than the budget.
    pub overruns: u64,
    /// The longest tick.
    pub peak: Duration,
    /// Times the ticker went to sleep for want of sessions.
    pub parks: u64,
    /// Each shard.
    pub shards: Vec<ShardStats>,
}

impl EngineStats {
    /// Sessions of all shards.
    pub fn sessions(&self) -> usize {
        self.shards.iter().map(|shard| shard.sessions).sum()
    }
}

/// One shard's counters at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ShardStats {
    /// Sessions.
    pub sessions: usize,
    /// Time spent in ticks.
    pub busy: Duration,
    /// Datagrams that came in for a session.
    pub received: u64,
    /// Datagrams that came in for a port without one.
    pub unowned: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Deadlines served.
    pub timeouts: u64,
    /// Events of little consequence that were dropped because nobody polled.
    pub events_dropped: u64,
    /// Panics contained, each of which cost one session.
    pub panics: u64,
}

fn add(counter: &AtomicU64, amount: u64) {
    counter.fetch_add(amount, Ordering::Relaxed);
}

fn read(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
