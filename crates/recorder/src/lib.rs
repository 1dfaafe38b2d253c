//! Recordings: frames from a tap become a WAV file in RAM, and no call ever waits for it.
//!
//! ```text
//! call -> tap (bounded, drops and counts) -> writer thread -> Timeline -> WavFile -> directory
//!                                                |
//!                                  Started, Finished, Failed -> poll_event
//! ```
//!
//! * [`Timeline`] is the pure part: it lays both legs on one time, as long as the span recorded.
//! * [`directory`] chooses where files land and how much they may hold; [`template`] names them.
//! * [`Recorder`] owns the threads, few for all calls, and the budget in bytes.
//!
//! A file is right up to its last flush, whatever ends the process. What goes wrong with one
//! recording (no directory, no room, no budget) ends that recording with one event.
#![forbid(unsafe_code)]

mod budget;
pub mod directory;
mod latest;
mod reorder;
pub mod template;
mod timeline;
mod track;
mod wav;
mod writer;

use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use audio::Registry;
use audio::tap::TapReader;
use crossbeam_channel::{Receiver, Sender, TrySendError};

use crate::budget::Budget;
use crate::latest::Latest;
pub use crate::template::{DEFAULT_TEMPLATE, TemplateError, render_template};
pub use crate::timeline::{Layout, Scratch, Settings, Timeline};
pub use crate::track::TrackStats;
use crate::writer::{Job, Writer};

/// Jobs and events that wait at most, per channel.
const QUEUE: usize = 1024;

/// How a [`Recorder`] is set up.
#[derive(Debug, Clone)]
pub struct RecorderConfig {
    /// Where files land; made when missing.
    pub directory: PathBuf,
    /// Bytes that the directory may hold, what lies there already included.
    pub max_bytes: u64,
    /// Time between two writes of a recording, each of which leaves the header right. Half a second
    /// keeps what a crash takes, this and [`Timeline::lag`] together, below a second.
    pub flush: Duration,
    /// Writer threads.
    pub threads: usize,
    /// Recordings open, or over but with their last event not taken, at most.
    pub max_recordings: usize,
}

impl Default for RecorderConfig {
    /// The default directory and a budget to match it.
    fn default() -> Self {
        let directory = directory::default_directory();
        Self {
            max_bytes: directory::default_budget(&directory),
            directory,
            flush: Duration::from_millis(500),
            threads: 1,
            max_recordings: 10_000,
        }
    }
}

/// A recording to be made.
#[derive(Debug)]
pub struct RecordingRequest {
    /// Its number, for the events about it.
    pub id: u64,
    /// The frames.
    pub reader: TapReader,
    /// Template of the file name; [`DEFAULT_TEMPLATE`] when `None`.
    pub template: Option<String>,
    /// Values for the template. `user`, or else `caller`, says whose latest recording it becomes.
    pub fields: Vec<(String, String)>,
    /// One leg a side, instead of both mixed.
    pub stereo: bool,
    /// Samples per second and channel.
    pub sample_rate: u32,
    /// When the recording begins, for its name.
    pub started: SystemTime,
}

/// What became of a recording. After `Finished` or `Failed` nothing follows.
#[derive(Debug)]
#[non_exhaustive]
pub enum RecorderEvent {
    /// The file is there and has a header.
    Started {
        /// Which recording.
        id: u64,
        /// The file.
        path: PathBuf,
    },
    /// The recording is complete.
    Finished {
        /// Which recording.
        id: u64,
        /// The file.
        path: PathBuf,
        /// Its length.
        duration: Duration,
        /// Its length in samples per channel.
        samples: u64,
        /// Frames and marks that the tap had no room for.
        dropped: u64,
        /// Leg A and leg B: gaps, late frames, drift.
        legs: [TrackStats; 2],
    },
    /// The recording ended early, or never began. What was written before stays, with a right header.
    Failed {
        /// Which recording.
        id: u64,
        /// The file, which may not exist.
        path: PathBuf,
        /// Why.
        reason: FailReason,
    },
}

/// Why a recording failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FailReason {
    /// The file can't be created: directory missing, not writable, full.
    #[error("cannot create the file: {0}")]
    Create(#[source] io::Error),
    /// A write failed: file system full or gone; or the file was removed while it was written.
    #[error("cannot write the file: {0}")]
    Write(#[source] io::Error),
    /// All recordings together hold [`RecorderConfig::max_bytes`].
    #[error("the budget for recordings is spent")]
    BudgetSpent,
    /// The file reached the 4 GiB that the lengths in a WAV header can state.
    #[error("the file has reached the length limit of its format")]
    TooLong,
}

/// Why a recording isn't taken on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The template can't be used.
    #[error("file name template: {0}")]
    Template(#[from] TemplateError),
    /// Too many recordings are open or wait to be opened.
    #[error("too many recordings at once")]
    Busy,
    /// The recorder was shut down.
    #[error("the recorder is shut down")]
    Closed,
}

/// Why a recorder can't be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The directory can't be made, or no file can be made in it.
    #[error("recordings directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A thread can't be started.
    #[error("writer thread: {0}")]
    Thread(#[source] io::Error),
}

/// Numbers about all recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecorderStats {
    /// Recordings being written or waiting to be opened.
    pub open: usize,
    /// Bytes of the budget in use.
    pub used_bytes: u64,
    /// The budget.
    pub max_bytes: u64,
}

/// What the recorder and its threads share.
pub(crate) struct Shared {
    directory: PathBuf,
    budget: Budget,
    registry: Arc<Registry>,
    wake: Arc<dyn Fn() + Send + Sync>,
    threads: Vec<Load>,
    /// A lock because a lookup by the call side and a finish by a writer may meet; held for one
    /// map operation, and no other lock is taken meanwhile.
    latest: Mutex<Latest>,
}

impl Shared {
    fn latest(&self) -> MutexGuard<'_, Latest> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Recordings of one thread, those still in its queue included.
#[derive(Debug, Default)]
pub(crate) struct Load(AtomicUsize);

impl Load {
    fn more(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    fn less(&self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }

    fn read(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// The recorder: threads, budget, events.
pub struct Recorder {
    shared: Arc<Shared>,
    max_bytes: u64,
    max_recordings: usize,
    /// Taken on, and last event not polled yet.
    unsettled: usize,
    jobs: Vec<Sender<Job>>,
    events: Receiver<RecorderEvent>,
    threads: Vec<JoinHandle<VecDeque<RecorderEvent>>>,
    left_over: VecDeque<RecorderEvent>,
}

impl Recorder {
    /// Makes the directory, looks at what lies there, and starts the threads. `wake` is called, from
    /// a writer thread, when there are events to poll.
    ///
    /// # Errors
    /// The directory can't be written to, or a thread can't be started.
    pub fn start(
        config: RecorderConfig,
        registry: Arc<Registry>,
        wake: Arc<dyn Fn() + Send + Sync>,
    ) -> Result<Self, StartError> {
        let RecorderConfig {
            directory,
            max_bytes,
            flush,
            threads,
            max_recordings,
        } = config;
        probe(&directory).map_err(|source| StartError::Directory {
            path: directory.clone(),
            source,
        })?;
        let survey = directory::survey(&directory);
        let mut known = survey.callers;
        known.sort_unstable_by_key(|(.., changed)| *changed);
        let mut latest = Latest::default();
        for (caller, path, _) in &known {
            latest.insert(caller, path);
        }
        let threads = threads.max(1);
        let shared = Arc::new(Shared {
            budget: Budget::new(directory.clone(), max_bytes, survey.bytes),
            directory,
            registry,
            wake,
            threads: (0..threads).map(|_| Load::default()).collect(),
            latest: Mutex::new(latest),
        });
        let (event_sender, events) = crossbeam_channel::bounded(QUEUE);
        let mut recorder = Self {
            shared,
            max_bytes,
            max_recordings,
            unsettled: 0,
            jobs: Vec::with_capacity(threads),
            events,
            threads: Vec::with_capacity(threads),
            left_over: VecDeque::new(),
        };
        for index in 0..threads {
            let (sender, jobs) = crossbeam_channel::bounded(QUEUE);
            let writer = Writer {
                index,
                jobs,
                events: event_sender.clone(),
                shared: Arc::clone(&recorder.shared),
                flush,
            };
            let thread = std::thread::Builder::new()
                .name(format!("recorder-{index}"))
                .spawn(move || writer.run())
                .map_err(StartError::Thread)?;
            recorder.jobs.push(sender);
            recorder.threads.push(thread);
        }
        Ok(recorder)
    }

    /// Takes a recording on and returns where its file will be, unless a file of that name is found
    /// there: [`RecorderEvent::Started`] says where it is. Never waits for the file system.
    ///
    /// # Errors
    /// The template is bad, there are too many recordings, or the recorder was shut down. What the
    /// file system or the budget have against it comes as [`RecorderEvent::Failed`].
    pub fn open(&mut self, request: RecordingRequest) -> Result<PathBuf, RecordError> {
        let RecordingRequest {
            id,
            reader,
            template,
            fields,
            stereo,
            sample_rate,
            started,
        } = request;
        let template = template.as_deref().unwrap_or(DEFAULT_TEMPLATE);
        let name = render_template(template, &fields, started)?;
        let path = self.shared.directory.join(&name);
        if self.unsettled >= self.max_recordings {
            return Err(RecordError::Busy);
        }
        let field = |name: &str| fields.iter().find(|(key, _)| key == name);
        let user = field("user")
            .or_else(|| field("caller"))
            .map(|(_, user)| user.clone());
        let layout = if stereo { Layout::Stereo } else { Layout::Mono };
        let settings = Settings {
            sample_rate: sample_rate.max(1),
            layout,
            ..Settings::default()
        };
        let loads = &self.shared.threads;
        let index = (0..self.jobs.len())
            .min_by_key(|index| loads[*index].read())
            .ok_or(RecordError::Closed)?;
        loads[index].more();
        match self.jobs[index].try_send(Job {
            id,
            reader,
            name,
            user,
            settings,
        }) {
            Ok(()) => {
                self.unsettled += 1;
                Ok(path)
            }
            Err(error) => {
                loads[index].less();
                Err(match error {
                    TrySendError::Full(_) => RecordError::Busy,
                    TrySendError::Disconnected(_) => RecordError::Closed,
                })
            }
        }
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<RecorderEvent> {
        let event = self
            .events
            .try_recv()
            .ok()
            .or_else(|| self.left_over.pop_front())?;
        if !matches!(event, RecorderEvent::Started { .. }) {
            self.unsettled -= 1;
        }
        Some(event)
    }

    /// The latest finished recording of a user: of this run, or, when its name was made by
    /// [`DEFAULT_TEMPLATE`], of an earlier one. The file may have been removed since.
    pub fn latest(&self, user: &str) -> Option<PathBuf> {
        self.shared.latest().get(user).map(Path::to_owned)
    }

    /// How things stand.
    pub fn stats(&self) -> RecorderStats {
        RecorderStats {
            open: self.shared.threads.iter().map(Load::read).sum(),
            used_bytes: self.shared.budget.used(),
            max_bytes: self.max_bytes,
        }
    }

    /// Ends every recording at its present length and joins the threads. Events can still be polled.
    pub fn shutdown(&mut self) {
        self.jobs.clear();
        for thread in self.threads.drain(..) {
            match thread.join() {
                Ok(events) => self.left_over.extend(events),
                Err(_) => tracing::error!("a recorder thread has panicked"),
            }
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.shutdown();
    }
}

/// Makes the directory when missing and shows that a file can be made in it.
fn probe(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let path = directory.join(format!(".probe-{}", std::process::id()));
    let file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .open(&path);
    file.and_then(|_| fs::remove_file(&path))
}
