//! The writer on a clock of the test's own: no thread, no waiting, real files.

use std::fs;
use std::path::Path;
use std::sync::Mutex;

use audio::tap::{TapFrame, TapWriter, tap};
use rustix::mount::{MountFlags, UnmountFlags};
use tempfile::TempDir;

use super::*;
use crate::budget::Budget;
use crate::latest::Latest;
use crate::timeline::Layout;
use crate::{Load, RecorderEvent};

struct Bench {
    state: State,
    events: Receiver<RecorderEvent>,
    now: Instant,
}

impl Bench {
    fn new(directory: &Path, max_bytes: u64) -> Self {
        Self::with_queue(directory, max_bytes, 64)
    }

    fn with_queue(directory: &Path, max_bytes: u64, queue: usize) -> Self {
        let (sender, events) = crossbeam_channel::bounded(queue);
        let (_, jobs) = crossbeam_channel::bounded(1);
        let mut registry = Registry::new();
        registry.register(Box::new(g711::Pcma));
        let shared = Shared {
            directory: directory.to_owned(),
            budget: Budget::new(directory.to_owned(), max_bytes, 0),
            registry: Arc::new(registry),
            wake: Arc::new(|| {}),
            threads: vec![Load::default()],
            latest: Mutex::new(Latest::default()),
        };
        let writer = Writer {
            index: 0,
            jobs,
            events: sender,
            shared: Arc::new(shared),
            flush: Duration::from_millis(500),
        };
        let state = State {
            writer,
            active: Vec::new(),
            pending: VecDeque::new(),
            scratch: Scratch::default(),
            block: Vec::new(),
            survey: LastSurvey::default(),
        };
        Self {
            state,
            events,
            now: Instant::now(),
        }
    }

    /// Opens a stereo recording whose session began just now.
    fn open(&mut self, id: u64) -> TapWriter {
        let (mut writer, reader) = tap(16);
        writer.mark(&TapMark::Start { at: Duration::ZERO });
        let settings = Settings {
            layout: Layout::Stereo,
            ..Settings::default()
        };
        self.state.writer.shared.threads[0].more();
        let name = PathBuf::from("call.wav");
        self.state.open(
            self.now,
            Job {
                id,
                reader,
                name,
                user: Some("1000".to_owned()),
                settings,
            },
        );
        self.state.cycle(self.now, false);
        writer
    }

    /// Lets time pass in steps of a tenth of a second.
    fn run(&mut self, duration: Duration) {
        for _ in 0..duration.as_millis() / 100 {
            self.now += Duration::from_millis(100);
            self.state.cycle(self.now, false);
        }
    }

    fn started(&self) -> PathBuf {
        match self.events.try_recv() {
            Ok(RecorderEvent::Started { path, .. }) => path,
            other => panic!("not started: {other:?}"),
        }
    }

    fn failed(&self) -> FailReason {
        match self.events.try_recv() {
            Ok(RecorderEvent::Failed { reason, .. }) => reason,
            other => panic!("not failed: {other:?}"),
        }
    }

    fn no_event(&self) {
        assert!(self.events.try_recv().is_err());
    }
}

/// Samples per channel by the header, which has to agree with the length of the file.
fn samples_in(bytes: &[u8]) -> u64 {
    let reader = hound::WavReader::new(bytes).unwrap();
    let samples = u64::from(reader.duration());
    let channels = u64::from(reader.spec().channels);
    assert_eq!(bytes.len() as u64, HEADER_BYTES + samples * channels * 2);
    samples
}

#[test]
fn file_is_right_all_along_and_never_a_second_behind() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(dir.path(), 1 << 30);
    let mut tap = bench.open(1);
    let path = bench.started();
    for tenth in 1..=100 {
        bench.run(Duration::from_millis(100));
        // What would be left if the process was killed now.
        let left = samples_in(&fs::read(&path).unwrap());
        assert!(left + 8000 >= tenth * 800, "{left} of {}", tenth * 800);
    }
    tap.mark(&TapMark::Stop {
        at: Duration::from_millis(10_003),
    });
    bench.run(Duration::from_millis(100));
    let Ok(RecorderEvent::Finished {
        id,
        samples,
        duration,
        dropped,
        legs,
        ..
    }) = bench.events.try_recv()
    else {
        panic!("not finished");
    };
    assert_eq!((id, samples, dropped), (1, 80_024, 0));
    assert_eq!(duration, Duration::from_millis(10_003));
    assert_eq!(legs[0].silence, 80_024);
    assert_eq!(samples_in(&fs::read(&path).unwrap()), 80_024);
    assert!(tap.is_abandoned());
    assert_eq!(
        bench.state.writer.shared.latest().get("1000"),
        Some(path.as_path())
    );
    assert_eq!(
        bench.state.writer.shared.budget.used(),
        HEADER_BYTES + 80_024 * 4
    );
}

#[test]
fn tap_that_is_dropped_ends_the_recording() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(dir.path(), 1 << 30);
    let tap = bench.open(1);
    let path = bench.started();
    bench.run(Duration::from_secs(2));
    drop(tap);
    bench.run(Duration::from_millis(100));
    assert!(matches!(
        bench.events.try_recv(),
        Ok(RecorderEvent::Finished { .. })
    ));
    assert_eq!(samples_in(&fs::read(&path).unwrap()), 16_800);
    assert_eq!(bench.state.writer.shared.threads[0].read(), 0);
}

#[test]
fn writer_that_stalls_loses_frames_and_no_time() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(dir.path(), 1 << 30);
    let mut tap = bench.open(1);
    let path = bench.started();
    let codec = TapMark::Codec {
        at: Duration::ZERO,
        side: 0,
        payload_type: 8,
        name: "PCMA",
        clock_rate: 8000,
        channels: 1,
        sample_rate: 0,
        fmtp: "",
    };
    assert!(tap.mark(&codec));
    let mut refused = 0;
    for index in 0..1000_u32 {
        let at = Duration::from_millis(20 * u64::from(index));
        let frame = TapFrame {
            side: 0,
            at,
            ssrc: 1,
            sequence: index as u16,
            timestamp: index * 160,
            payload_type: 8,
            payload: &[0xaa; 160],
        };
        refused += u64::from(!tap.push(&frame));
        bench.now += Duration::from_millis(20);
        // From 5 s to 15 s the writer doesn't come round.
        if index % 5 == 4 && !(250..750).contains(&index) {
            bench.state.cycle(bench.now, false);
        }
    }
    tap.mark(&TapMark::Stop {
        at: Duration::from_secs(20),
    });
    bench.state.cycle(bench.now, false);
    let Ok(RecorderEvent::Finished {
        samples,
        dropped,
        legs,
        ..
    }) = bench.events.try_recv()
    else {
        panic!("not finished");
    };
    assert_eq!((samples, dropped), (160_000, refused));
    assert!((450..500).contains(&refused), "{refused}");
    assert_eq!(legs[0].silence, refused * 160);
    let wav = hound::WavReader::open(&path).unwrap();
    let left: Vec<i16> = wav.into_samples().step_by(2).map(Result::unwrap).collect();
    let loud = |from: usize, to: usize| left[from..to].iter().all(|sample| *sample > 30_000);
    assert!(loud(0, 40_000) && loud(120_800, 160_000));
    assert!(left[60_000..119_840].iter().all(|sample| *sample == 0));
}

#[test]
fn shutdown_closes_what_is_open() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(dir.path(), 1 << 30);
    let _tap = bench.open(1);
    let path = bench.started();
    bench.run(Duration::from_secs(1));
    bench.state.cycle(bench.now, true);
    assert!(matches!(
        bench.events.try_recv(),
        Ok(RecorderEvent::Finished { .. })
    ));
    assert_eq!(samples_in(&fs::read(&path).unwrap()), 8000);
}

#[test]
fn spent_budget_ends_a_recording_once_and_refuses_the_next() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(dir.path(), 200_000);
    let tap = bench.open(1);
    let path = bench.started();
    bench.run(Duration::from_secs(20));
    assert!(matches!(bench.failed(), FailReason::BudgetSpent));
    bench.no_event();
    assert!(tap.is_abandoned());
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.len() <= 200_000 && samples_in(&bytes) > 40_000);
    let _second = bench.open(2);
    assert!(matches!(bench.failed(), FailReason::BudgetSpent));
    // Room that is made by hand is found.
    fs::remove_file(&path).unwrap();
    bench.run(Duration::from_secs(1));
    let _third = bench.open(3);
    bench.started();
}

#[test]
fn missing_directory_costs_one_event() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(&dir.path().join("gone"), 1 << 30);
    let tap = bench.open(1);
    assert!(matches!(
        bench.failed(),
        FailReason::Create(error) if error.kind() == std::io::ErrorKind::NotFound
    ));
    bench.run(Duration::from_secs(1));
    bench.no_event();
    assert!(tap.is_abandoned());
    assert_eq!(bench.state.writer.shared.budget.used(), 0);
}

#[test]
fn directory_removed_meanwhile_is_told_at_the_end() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::new(dir.path(), 1 << 30);
    let mut tap = bench.open(1);
    bench.started();
    bench.run(Duration::from_secs(1));
    fs::remove_dir_all(dir.path()).unwrap();
    bench.run(Duration::from_secs(1));
    bench.no_event();
    tap.mark(&TapMark::Stop {
        at: Duration::from_secs(2),
    });
    bench.run(Duration::from_millis(100));
    assert!(matches!(bench.failed(), FailReason::Write(_)));
    assert!(bench.state.writer.shared.latest().get("1000").is_none());
}

#[test]
fn events_wait_for_a_slow_reader() {
    let dir = TempDir::new().unwrap();
    let mut bench = Bench::with_queue(dir.path(), 1 << 30, 1);
    for id in 0..5 {
        drop(bench.open(id));
    }
    bench.run(Duration::from_millis(100));
    let mut finished = 0;
    for _ in 0..20 {
        finished += u32::from(matches!(
            bench.events.try_recv(),
            Ok(RecorderEvent::Finished { .. })
        ));
        bench.run(Duration::from_millis(100));
    }
    assert_eq!(finished, 5);
    assert!(bench.state.pending.is_empty());
}

/// A tmpfs of the test's own, if this user may mount one.
struct Mounted(TempDir);

impl Mounted {
    fn new(options: &std::ffi::CStr, flags: MountFlags) -> Option<Self> {
        let dir = TempDir::new().unwrap();
        match rustix::mount::mount("tmpfs", dir.path(), "tmpfs", flags, Some(options)) {
            Ok(()) => Some(Self(dir)),
            Err(error) => {
                eprintln!("SKIPPED: mounting a tmpfs isn't permitted here ({error})");
                None
            }
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(self.0.path(), UnmountFlags::DETACH);
    }
}

#[test]
fn full_tmpfs_costs_one_event_and_leaves_a_right_file() {
    let Some(mounted) = Mounted::new(c"size=256k", MountFlags::empty()) else {
        return;
    };
    let mut bench = Bench::new(mounted.0.path(), 1 << 30);
    let mut tap = bench.open(1);
    let path = bench.started();
    bench.run(Duration::from_secs(20));
    assert!(matches!(
        bench.failed(),
        FailReason::Write(error) if error.kind() == std::io::ErrorKind::StorageFull
    ));
    assert!(samples_in(&fs::read(&path).unwrap()) > 50_000);
    // The call's side neither waits nor fails.
    for at in 20..40 {
        tap.mark(&TapMark::Stop {
            at: Duration::from_secs(at),
        });
    }
    bench.run(Duration::from_secs(1));
    bench.no_event();
    assert!(matches!(
        crate::directory::FileSystem::of(mounted.0.path()),
        Ok(crate::directory::FileSystem::Tmpfs {
            size_bytes: Some(262_144)
        })
    ));
}

#[test]
fn directory_that_cannot_be_written_costs_one_event() {
    use std::os::unix::fs::PermissionsExt as _;
    let plain;
    let mounted;
    let directory = if rustix::process::geteuid().is_root() {
        // Permissions don't hold root back; a read-only file system does.
        let Some(made) = Mounted::new(c"size=256k", MountFlags::RDONLY) else {
            return;
        };
        mounted = made;
        mounted.0.path()
    } else {
        plain = TempDir::new().unwrap();
        fs::set_permissions(plain.path(), fs::Permissions::from_mode(0o555)).unwrap();
        plain.path()
    };
    let mut bench = Bench::new(directory, 1 << 30);
    let _tap = bench.open(1);
    assert!(matches!(bench.failed(), FailReason::Create(_)));
    bench.run(Duration::from_secs(1));
    bench.no_event();
}
