//! The thread that turns taps into files.
//!
//! ```text
//! jobs (bounded) -> open -> [ every 100 ms: tap -> Timeline; every `flush`: Timeline -> WavFile ] -> event
//! ```
//!
//! One thread serves many recordings. Nothing here is waited for by a call: a tap that isn't read
//! in time drops frames and counts them. A recording that fails is let go of at once, with one event.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use audio::Registry;
use audio::tap::{TapEvent, TapMark, TapReader};
use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, TrySendError};

use crate::budget::LastSurvey;
use crate::timeline::{Scratch, Settings, Timeline};
use crate::wav::{HEADER_BYTES, WavFile};
use crate::{FailReason, RecorderEvent, Shared};

/// How often taps are read: well below what a tap holds.
const POLL: Duration = Duration::from_millis(100);

/// Most samples per channel written at once.
const BLOCK_SAMPLES: usize = 8192;

/// A recording isn't begun when the budget has less room than this.
const LEAST_ROOM_BYTES: u64 = 64 * 1024;

/// A recording to be opened.
pub(crate) struct Job {
    pub(crate) id: u64,
    pub(crate) reader: TapReader,
    /// Relative to the recordings directory.
    pub(crate) name: PathBuf,
    pub(crate) user: Option<String>,
    pub(crate) settings: Settings,
}

struct Recording {
    id: u64,
    reader: TapReader,
    timeline: Timeline,
    file: WavFile,
    user: Option<String>,
    clock: SessionClock,
    written: Instant,
    ended: bool,
}

/// Follows a session's time from the stamps on its tap: never ahead, and behind by no more than the
/// quickest event took to get here.
#[derive(Default)]
struct SessionClock(Option<(Instant, Duration)>);

impl SessionClock {
    fn observe(&mut self, now: Instant, at: Duration) {
        if self.read(now).is_none_or(|estimate| at > estimate) {
            self.0 = Some((now, at));
        }
    }

    fn read(&self, now: Instant) -> Option<Duration> {
        self.0
            .map(|(seen, at)| at + now.saturating_duration_since(seen))
    }
}

/// One writer thread.
pub(crate) struct Writer {
    pub(crate) index: usize,
    pub(crate) jobs: Receiver<Job>,
    pub(crate) events: Sender<RecorderEvent>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) flush: Duration,
}

impl Writer {
    /// Runs until the senders of `jobs` are gone and every recording is closed. Returns the events
    /// that nobody has taken yet.
    pub(crate) fn run(self) -> VecDeque<RecorderEvent> {
        let mut state = State {
            writer: self,
            active: Vec::new(),
            pending: VecDeque::new(),
            scratch: Scratch::default(),
            block: Vec::new(),
            survey: LastSurvey::default(),
        };
        while state.wait_for_jobs() {
            state.cycle(Instant::now(), false);
        }
        state.cycle(Instant::now(), true);
        state.pending
    }
}

struct State {
    writer: Writer,
    active: Vec<Recording>,
    /// Events that the channel had no room for. Bounded by the recordings that are open or whose
    /// last event wasn't taken, which `Recorder::open` limits.
    pending: VecDeque<RecorderEvent>,
    scratch: Scratch,
    block: Vec<i16>,
    survey: LastSurvey,
}

impl State {
    /// Opens what is asked for; sleeps when there is nothing else to do. False at the end.
    fn wait_for_jobs(&mut self) -> bool {
        let idle = self.active.is_empty() && self.pending.is_empty();
        let first = if idle {
            self.writer
                .jobs
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected)
        } else {
            self.writer.jobs.recv_timeout(POLL)
        };
        match first {
            Ok(job) => self.open(Instant::now(), job),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return false,
        }
        while let Ok(job) = self.writer.jobs.try_recv() {
            self.open(Instant::now(), job);
        }
        true
    }

    fn open(&mut self, now: Instant, job: Job) {
        let Job {
            id,
            reader,
            name,
            user,
            settings,
        } = job;
        let shared = Arc::clone(&self.writer.shared);
        let channels = settings.layout.channels();
        let opened = if shared
            .budget
            .reserve(LEAST_ROOM_BYTES, &mut self.survey, now)
        {
            shared.budget.give_back(LEAST_ROOM_BYTES - HEADER_BYTES);
            WavFile::create(&shared.directory, &name, channels, settings.sample_rate).map_err(
                |source| {
                    shared.budget.give_back(HEADER_BYTES);
                    FailReason::Create(source)
                },
            )
        } else {
            Err(FailReason::BudgetSpent)
        };
        match opened {
            Ok(file) => {
                let path = file.path().to_owned();
                tracing::debug!(id, path = %path.display(), "recording begins");
                self.tell(RecorderEvent::Started { id, path });
                self.active.push(Recording {
                    id,
                    reader,
                    timeline: Timeline::new(settings),
                    file,
                    user,
                    clock: SessionClock::default(),
                    written: now,
                    ended: false,
                });
            }
            Err(reason) => {
                let path = shared.directory.join(name);
                self.writer.shared.threads[self.writer.index].less();
                self.tell(RecorderEvent::Failed { id, path, reason });
            }
        }
    }

    /// Reads all taps, writes what is due, and hands out events. `last` closes everything.
    fn cycle(&mut self, now: Instant, last: bool) {
        let mut index = 0;
        while index < self.active.len() {
            let outcome = self.serve(index, now, last);
            if let Some(event) = outcome {
                self.active.swap_remove(index);
                self.writer.shared.threads[self.writer.index].less();
                self.tell(event);
            } else {
                index += 1;
            }
        }
        self.hand_out();
    }

    /// One recording's turn; gives its last event when it is over.
    fn serve(&mut self, index: usize, now: Instant, last: bool) -> Option<RecorderEvent> {
        let recording = &mut self.active[index];
        recording.read(now, last, &self.writer.shared.registry, &mut self.scratch);
        let due = now.saturating_duration_since(recording.written) >= self.writer.flush;
        if !recording.ended && !due {
            return None;
        }
        recording.written = now;
        let written = recording.write(&mut self.block, &self.writer.shared, &mut self.survey, now);
        match written {
            Ok(()) if recording.ended => Some(recording.finish(&self.writer.shared)),
            Ok(()) => None,
            Err(reason) => Some(recording.fail(reason)),
        }
    }

    fn tell(&mut self, event: RecorderEvent) {
        self.pending.push_back(event);
        self.hand_out();
    }

    fn hand_out(&mut self) {
        let mut told = false;
        while let Some(event) = self.pending.pop_front() {
            match self.writer.events.try_send(event) {
                Ok(()) => told = true,
                Err(TrySendError::Full(event) | TrySendError::Disconnected(event)) => {
                    self.pending.push_front(event);
                    break;
                }
            }
        }
        if told {
            (self.writer.shared.wake)();
        }
    }
}

impl Recording {
    /// Tap to timeline.
    fn read(&mut self, now: Instant, last: bool, registry: &Registry, scratch: &mut Scratch) {
        // Asked before the tap is emptied, so that nothing written before the close is missed.
        let closed = self.reader.is_closed();
        let Self {
            reader,
            timeline,
            clock,
            ended,
            ..
        } = self;
        reader.pop(|event| {
            clock.observe(now, time_of(&event));
            *ended |= matches!(event, TapEvent::Mark(TapMark::Stop { .. }));
            timeline.handle_event(event, registry, scratch);
        });
        if let Some(now) = clock.read(now) {
            timeline.handle_timeout(now, scratch);
        }
        if closed || last {
            timeline.handle_closed(scratch);
            *ended = true;
        }
    }

    /// Timeline to file.
    fn write(
        &mut self,
        block: &mut Vec<i16>,
        shared: &Shared,
        survey: &mut LastSurvey,
        now: Instant,
    ) -> Result<(), FailReason> {
        while self.timeline.due() > 0 {
            block.clear();
            self.timeline.drain(BLOCK_SAMPLES, block);
            let bytes = block.len() as u64 * 2;
            if !self.file.has_room_for(bytes) {
                return Err(FailReason::TooLong);
            }
            if !shared.budget.reserve(bytes, survey, now) {
                return Err(FailReason::BudgetSpent);
            }
            self.file.append(block).map_err(|source| {
                shared.budget.give_back(bytes);
                FailReason::Write(source)
            })?;
        }
        Ok(())
    }

    fn finish(&self, shared: &Shared) -> RecorderEvent {
        let path = self.file.path();
        if let Err(source) = path.symlink_metadata() {
            // Removed, or its directory replaced, while we wrote to it.
            return self.fail(FailReason::Write(source));
        }
        if let Some(user) = &self.user {
            shared.latest().insert(user, path);
        }
        let samples = self.file.samples();
        let rate = u64::from(self.timeline.sample_rate());
        RecorderEvent::Finished {
            id: self.id,
            path: path.to_owned(),
            duration: Duration::from_nanos(samples * 1_000_000_000 / rate),
            samples,
            dropped: self.reader.dropped(),
            legs: self.timeline.stats(),
        }
    }

    fn fail(&self, reason: FailReason) -> RecorderEvent {
        RecorderEvent::Failed {
            id: self.id,
            path: self.file.path().to_owned(),
            reason,
        }
    }
}

fn time_of(event: &TapEvent<'_>) -> Duration {
    match *event {
        TapEvent::Frame(frame) => frame.at,
        TapEvent::Mark(
            TapMark::Start { at } | TapMark::Stop { at } | TapMark::Codec { at, .. },
        ) => at,
        TapEvent::Mark(_) => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests;
