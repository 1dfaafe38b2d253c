//! The clock of the engine: ticks at absolute deadlines, shards side by side on the pool.
//!
//! ```text
//! deadline n --sleep--> tick: workers on the pool -> account -> deadline n+1 = deadline n + tick
//!     ^                                                              |
//!     +-- missed ones skipped and counted; no session: parked till a command --+
//! ```
//!
//! Runs on a thread of the pool itself, so that with one busy shard nothing is handed between
//! threads. This module and [`crate::Engine`] are the only ones that read the clock.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, TrySendError};
use media::command::MediaEvent;
use rayon::iter::{IntoParallelRefMutIterator as _, ParallelIterator as _};

use crate::shard::{EngineCommand, Shard, Work};
use crate::stats::Counters;

/// What the engine's owner and its ticker share.
pub(crate) struct Control {
    pub(crate) counters: Counters,
    stop: AtomicBool,
    parked: AtomicBool,
    ticker: OnceLock<Thread>,
}

impl Control {
    pub(crate) fn new(counters: Counters) -> Self {
        Self {
            counters,
            stop: AtomicBool::new(false),
            parked: AtomicBool::new(false),
            ticker: OnceLock::new(),
        }
    }

    /// There is a command: wakes the ticker if it sleeps for want of work.
    pub(crate) fn notify(&self) {
        // Either the ticker sees the command when it looks again after having set `parked`, or we
        // see `parked` here: the two fences leave no third case.
        fence(Ordering::SeqCst);
        if self.parked.load(Ordering::Relaxed)
            && let Some(thread) = self.ticker.get()
        {
            thread.unpark();
        }
    }

    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
        self.notify();
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// A shard with its ends of the channels.
pub(crate) struct Worker {
    pub(crate) index: usize,
    pub(crate) shard: Shard,
    pub(crate) commands: Receiver<Box<EngineCommand>>,
    pub(crate) events: Sender<MediaEvent>,
    pub(crate) wake: Arc<dyn Fn() + Send + Sync>,
    /// Commands aren't taken while this many events wait: what a slow reader can pile up is bounded.
    pub(crate) max_backlog: usize,
}

impl Worker {
    fn is_idle(&self) -> bool {
        self.shard.sessions() == 0 && self.shard.backlog() == 0 && self.commands.is_empty()
    }

    fn run(&mut self, control: &Control, now: Instant) {
        let counters = &control.counters.shards[self.index];
        let begun = Instant::now();
        // A panic is a defect of one session's code; it must not silence all the others.
        let work = catch_unwind(AssertUnwindSafe(|| self.serve(now))).unwrap_or_else(|_| {
            let session = self.shard.abandon();
            tracing::error!(
                shard = self.index,
                ?session,
                "panic in a media session; it was ended"
            );
            counters.panicked();
            Work::default()
        });
        self.tell();
        counters.add(work, begun.elapsed());
        counters.set(self.shard.sessions(), self.shard.events_dropped());
    }

    fn serve(&mut self, now: Instant) -> Work {
        while self.shard.backlog() < self.max_backlog
            && let Ok(command) = self.commands.try_recv()
        {
            self.shard.handle_command(now, *command);
        }
        self.shard.tick(now)
    }

    /// Passes events on as far as there is room.
    fn tell(&mut self) {
        let mut told = false;
        while let Some(event) = self.shard.poll_event() {
            match self.events.try_send(event) {
                Ok(()) => told = true,
                Err(TrySendError::Full(event) | TrySendError::Disconnected(event)) => {
                    self.shard.unpoll_event(event);
                    break;
                }
            }
        }
        if told {
            (self.wake)();
        }
    }

    /// Ends all sessions and gives the events that found no room.
    fn close(mut self, now: Instant) -> VecDeque<MediaEvent> {
        while let Ok(command) = self.commands.try_recv() {
            self.shard.handle_command(now, *command);
        }
        self.shard.stop_all(now);
        self.tell();
        std::iter::from_fn(|| self.shard.poll_event()).collect()
    }
}

/// Ticks until told to stop; then ends all sessions and returns the events left over.
pub(crate) fn run(
    mut workers: Vec<Worker>,
    tick: Duration,
    control: &Control,
) -> VecDeque<MediaEvent> {
    // The thread is known before the first look for work, so no notification is lost.
    let _ = control.ticker.set(thread::current());
    let mut deadline = Instant::now();
    while !control.is_stopped() {
        if workers.iter().all(Worker::is_idle) {
            park(&workers, control);
            deadline = Instant::now();
            continue;
        }
        let now = sleep_until(deadline);
        run_all(&mut workers, control, now);
        let done = Instant::now();
        control.counters.ticked(now - deadline, done - now);
        deadline += tick;
        if let Some(behind) = done.checked_duration_since(deadline) {
            // The next tick follows at once; deadlines older than that are given up.
            let missed = u32::try_from(behind.as_nanos() / tick.as_nanos()).unwrap_or(u32::MAX);
            control.counters.skip(u64::from(missed));
            deadline += tick * missed;
        }
    }
    let now = Instant::now();
    workers
        .into_iter()
        .flat_map(|worker| worker.close(now))
        .collect()
}

fn run_all(workers: &mut [Worker], control: &Control, now: Instant) {
    let busy = |worker: &Worker| !worker.is_idle();
    if workers.iter().filter(|worker| busy(worker)).count() > 1 {
        let busy = workers.par_iter_mut().filter(|worker| busy(worker));
        busy.for_each(|worker| worker.run(control, now));
    } else {
        let busy = workers.iter_mut().filter(|worker| busy(worker));
        busy.for_each(|worker| worker.run(control, now));
    }
}

fn park(workers: &[Worker], control: &Control) {
    control.parked.store(true, Ordering::Relaxed);
    fence(Ordering::SeqCst);
    if workers.iter().all(Worker::is_idle) && !control.is_stopped() {
        control.counters.parked();
        thread::park();
    }
    control.parked.store(false, Ordering::Relaxed);
}

/// Sleeps until the deadline, if that is still to come; returns the time.
fn sleep_until(deadline: Instant) -> Instant {
    loop {
        let now = Instant::now();
        match deadline.checked_duration_since(now) {
            Some(rest) if !rest.is_zero() => thread::sleep(rest),
            _ => return now,
        }
    }
}
