//! The media plane's threads: shards of sessions, ticked at fixed times on a pool of their own.
//!
//! ```text
//! owner -- try_command --> [bounded] --> shard 0 .. n  (a session stays where it was placed)
//!       <-- poll_event --- [bounded] <--     ^
//!                                            | tick every 5 ms: receive, serve, send
//!                                          ticker, on a rayon pool of named threads
//! ```
//!
//! * No thread per call, and for a packet no lock and no allocation.
//! * A shard never waits: not for a slow reader of events, nor for a full socket.
//! * Overload is a value: [`Engine::load`] says how much of the tick's budget is used.
//! * [`Shard`] alone, without threads or clock, is what a simulation runs.
#![forbid(unsafe_code)]

mod io;
mod ports;
mod shard;
mod stats;
mod ticker;
mod timers;

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use audio::Registry;
use crossbeam_channel::{Receiver, Sender, TrySendError};
use media::command::{FailReason, MediaEvent, SessionId};

pub use crate::io::PacketIo;
pub use crate::shard::{EngineCommand, Shard, Work};
use crate::stats::Counters;
pub use crate::stats::{EngineStats, Load, ShardStats};
use crate::ticker::{Control, Worker};

/// How an [`Engine`] is set up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineConfig {
    /// Shards; at least one.
    pub shards: usize,
    /// Threads of the pool; at least one.
    pub threads: usize,
    /// Time from one tick to the next: what a packet waits at most, half of it on average.
    pub tick: Duration,
    /// Commands that wait per shard, and events that wait altogether, at most.
    pub queue: usize,
    /// From it comes what sessions draw by lot; the owner takes it from the system's entropy.
    pub seed: u64,
}

impl Default for EngineConfig {
    /// One shard and one thread per processor, 5 ms.
    fn default() -> Self {
        let processors = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        Self {
            shards: processors,
            threads: processors,
            tick: Duration::from_millis(5),
            queue: 1024,
            seed: 0,
        }
    }
}

/// Why an engine can't be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The ticker's thread can't be started.
    #[error("media thread: {0}")]
    Thread(#[source] std::io::Error),
    /// The pool's threads can't be started.
    #[error("media thread pool: {0}")]
    Pool(#[source] rayon::ThreadPoolBuildError),
}

type Leftover = VecDeque<MediaEvent>;

/// The engine, as its one owner holds it.
pub struct Engine {
    commands: Vec<Sender<Box<EngineCommand>>>,
    events: Receiver<MediaEvent>,
    control: Arc<Control>,
    /// Where each session was placed.
    places: HashMap<SessionId, usize>,
    /// Sessions placed on each shard.
    loads: Vec<usize>,
    /// Events of our own, and those left over after a shutdown.
    local: VecDeque<MediaEvent>,
    thread: Option<JoinHandle<Leftover>>,
}

impl Engine {
    /// Starts the threads. `make_io` is called once per shard with its number; `wake` is called from
    /// a media thread when there are events to poll, and must not block.
    ///
    /// # Errors
    /// A thread can't be started.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "the engine keeps shares of both"
    )]
    pub fn start(
        config: EngineConfig,
        registry: Arc<Registry>,
        mut make_io: impl FnMut(usize) -> Box<dyn PacketIo>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, StartError> {
        let shards = config.shards.max(1);
        let queue = config.queue.max(1);
        let tick = config.tick.max(Duration::from_micros(100));
        let (event_sender, events) = crossbeam_channel::bounded(queue);
        let mut commands = Vec::with_capacity(shards);
        let mut workers = Vec::with_capacity(shards);
        for index in 0..shards {
            let (sender, receiver) = crossbeam_channel::bounded(queue);
            commands.push(sender);
            workers.push(Worker {
                index,
                shard: Shard::new(make_io(index), Arc::clone(&registry), config.seed),
                commands: receiver,
                events: event_sender.clone(),
                wake: Arc::clone(&wake),
                max_backlog: queue,
            });
        }
        let control = Arc::new(Control::new(Counters::new(tick, shards)));
        let thread = spawn(workers, config.threads.max(1), tick, &control)?;
        Ok(Self {
            commands,
            events,
            control,
            places: HashMap::new(),
            loads: vec![0; shards],
            local: VecDeque::new(),
            thread: Some(thread),
        })
    }

    /// Passes a command to its session's shard; a new session goes to the shard with the fewest.
    ///
    /// # Errors
    /// Gives the command back when the shard's queue is full (try again later), or after a shutdown.
    #[expect(
        clippy::result_large_err,
        reason = "the command is the caller's and goes back whole"
    )]
    pub fn try_command(&mut self, command: EngineCommand) -> Result<(), EngineCommand> {
        let session = command.session();
        let starts = matches!(command, EngineCommand::Start { .. });
        let place = match (self.places.get(&session), starts) {
            (Some(place), false) => *place,
            (None, true) => self.least_loaded(),
            (Some(_), true) | (None, false) => {
                // A tap for no session just closes; everything else is answered.
                if !matches!(command, EngineCommand::SetTap { .. }) {
                    let reason = FailReason::Session;
                    self.local.push_back(MediaEvent::Failed { session, reason });
                }
                return Ok(());
            }
        };
        let stops = matches!(command, EngineCommand::Stop { .. });
        match self
            .commands
            .get(place)
            .map(|sender| sender.try_send(Box::new(command)))
        {
            Some(Ok(())) => {}
            Some(Err(TrySendError::Full(command) | TrySendError::Disconnected(command))) => {
                return Err(*command);
            }
            None => unreachable!("sessions are placed on shards that there are"),
        }
        if starts {
            self.places.insert(session, place);
            self.loads[place] += 1;
        } else if stops {
            self.forget(session);
        }
        self.control.notify();
        Ok(())
    }

    /// The next event, if there is one. Never blocks.
    pub fn poll_event(&mut self) -> Option<MediaEvent> {
        let Ok(event) = self.events.try_recv() else {
            // Our own answers are about commands that were never passed on.
            return self.local.pop_front();
        };
        if let MediaEvent::Failed { session, .. } = event {
            self.forget(session);
        }
        Some(event)
    }

    /// How much of a tick's budget the work takes. Cheap.
    pub fn load(&self) -> Load {
        self.control.counters.load()
    }

    /// All counters.
    pub fn stats(&self) -> EngineStats {
        self.control.counters.read()
    }

    /// Sessions placed and not yet stopped or failed.
    pub fn sessions(&self) -> usize {
        self.places.len()
    }

    /// Ends all sessions and joins all threads. Events can still be polled.
    pub fn shutdown(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.control.stop();
        match thread.join() {
            Ok(left_over) => self.local.extend(left_over),
            Err(_) => tracing::error!("the media ticker has panicked"),
        }
    }

    fn least_loaded(&self) -> usize {
        (0..self.loads.len())
            .min_by_key(|index| self.loads[*index])
            .unwrap_or(0)
    }

    fn forget(&mut self, session: SessionId) {
        if let Some(place) = self.places.remove(&session) {
            self.loads[place] -= 1;
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Starts the thread that owns the pool, and waits until the pool stands.
fn spawn(
    workers: Vec<Worker>,
    threads: usize,
    tick: Duration,
    control: &Arc<Control>,
) -> Result<JoinHandle<Leftover>, StartError> {
    let (ready, started) = crossbeam_channel::bounded(1);
    let control = Arc::clone(control);
    let thread = thread::Builder::new()
        .name("media-owner".to_owned())
        .spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new()
                .num_threads(threads)
                .thread_name(|index| format!("media-{index}"));
            // The scope joins the pool's threads, which dropping a pool would not do.
            let announce = ready.clone();
            let outcome = pool.build_scoped(rayon::ThreadBuilder::run, |pool| {
                pool.install(|| {
                    let _ = announce.send(Ok(()));
                    ticker::run(workers, tick, &control)
                })
            });
            outcome.unwrap_or_else(|error| {
                let _ = ready.send(Err(error));
                Leftover::new()
            })
        })
        .map_err(StartError::Thread)?;
    match started.recv() {
        Ok(Err(error)) => Err(StartError::Pool(error)),
        // A thread that died without a word shows when it is joined.
        Ok(Ok(())) | Err(_) => Ok(thread),
    }
}
