//! What calls are to hear: files read once off the loop, the melody, callers' own recordings.
//!
//! ```text
//! prepare(call) --known--> Ready(clip)                 held until the call's ports come back
//!     | first time                                       ^
//!     +--> blocking thread reads the WAV --> loaded() ---+
//! ```
//!
//! A file is read again when its size or time of change differs. WAV files are 16-bit PCM, one
//! channel or several (mixed down); at most [`MAX_SAMPLES`] samples. The media plane resamples.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use audio::clip::Clip;
use audio::melody::melody;
use b2bua::CallId;
use hound::{SampleFormat, WavReader};
use tokio::task::JoinSet;

/// Longest clip: ten minutes at 48 kHz, 58 MB.
const MAX_SAMPLES: u32 = 10 * 60 * 48_000;
/// Samples per second of the melody; what phones take without resampling.
const MELODY_RATE: u32 = 8000;
/// Files kept in memory; the cache starts anew when it is full.
const MAX_CACHED: usize = 64;

/// Clips by file, and those that calls hold.
#[derive(Debug, Default)]
pub(crate) struct Clips {
    cache: HashMap<PathBuf, (Version, Clip)>,
    music: Option<Clip>,
    held: BTreeMap<CallId, Clip>,
    loading: JoinSet<Loaded>,
}

/// Tells whether a file is still the one that was read.
type Version = (u64, Option<SystemTime>);

#[derive(Debug)]
struct Loaded {
    call: CallId,
    path: PathBuf,
    result: Result<(Version, Clip), ClipError>,
}

/// Why a clip can't be played.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClipError {
    #[error("{0}")]
    Read(#[from] hound::Error),
    #[error("{bits}-bit {format:?} samples; only 16-bit PCM is read")]
    Format { bits: u16, format: SampleFormat },
    #[error("{samples} samples; at most {MAX_SAMPLES} are taken")]
    TooLong { samples: u32 },
}

/// What a request for a clip could do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// The clip is held for the call.
    Ready,
    /// [`Clips::loaded`] will name the call.
    Loading,
}

impl Clips {
    /// Holds the melody for a call.
    pub(crate) fn request_music(&mut self, call: CallId) -> Request {
        let music = self
            .music
            .get_or_insert_with(|| melody(MELODY_RATE))
            .clone();
        self.held.insert(call, music);
        Request::Ready
    }

    /// Holds a file's audio for a call, or starts to read it.
    pub(crate) fn request_file(&mut self, call: CallId, path: &Path) -> Request {
        let current = version(path);
        match self.cache.get(path) {
            Some((cached, clip)) if Some(cached) == current.as_ref() => {
                self.held.insert(call, clip.clone());
                Request::Ready
            }
            _ => {
                let path = path.to_owned();
                self.loading.spawn_blocking(move || {
                    let result = read(&path);
                    Loaded { call, path, result }
                });
                Request::Loading
            }
        }
    }

    /// The next call whose file was read, and whether it can be played; waits for ever while
    /// nothing is being read. Dropping the future loses nothing.
    pub(crate) async fn loaded(&mut self) -> (CallId, Result<(), ClipError>) {
        loop {
            match self.loading.join_next().await {
                Some(Ok(Loaded { call, path, result })) => {
                    return (call, result.map(|read| self.keep(call, path, read)));
                }
                // A reader ends without a word only with the runtime.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// The clip held for a call.
    pub(crate) fn held(&self, call: CallId) -> Option<Clip> {
        self.held.get(&call).cloned()
    }

    /// Lets go of a call's clip.
    pub(crate) fn release(&mut self, call: CallId) {
        self.held.remove(&call);
    }

    fn keep(&mut self, call: CallId, path: PathBuf, (version, clip): (Version, Clip)) {
        if self.cache.len() >= MAX_CACHED {
            self.cache.clear();
        }
        self.held.insert(call, clip.clone());
        self.cache.insert(path, (version, clip));
    }
}

fn version(path: &Path) -> Option<Version> {
    let metadata = path.metadata().ok()?;
    Some((metadata.len(), metadata.modified().ok()))
}

fn read(path: &Path) -> Result<(Version, Clip), ClipError> {
    // Taken first: a file that changes while it is read then differs at the next request.
    let version = version(path).unwrap_or_default();
    let reader = WavReader::open(path)?;
    let spec = reader.spec();
    if (spec.bits_per_sample, spec.sample_format) != (16, SampleFormat::Int) {
        return Err(ClipError::Format {
            bits: spec.bits_per_sample,
            format: spec.sample_format,
        });
    }
    let samples = reader.duration();
    if samples > MAX_SAMPLES {
        return Err(ClipError::TooLong { samples });
    }
    let channels = usize::from(spec.channels.max(1));
    let all = reader
        .into_samples::<i16>()
        .collect::<Result<Vec<_>, _>>()?;
    let mono = all.chunks_exact(channels).map(mean).collect();
    Ok((
        version,
        Clip {
            sample_rate: spec.sample_rate,
            samples: mono,
        },
    ))
}

fn mean(frame: &[i16]) -> i16 {
    let sum: i32 = frame.iter().copied().map(i32::from).sum();
    (sum / frame.len() as i32) as i16
}
