//! The real binary on loopback, and the real peers that the end-to-end tests run against it.
//!
//! Every test takes loopback addresses and ports of its own, so that tests run side by side, and
//! ends what it started when it ends, by process.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use lab::server::Server;

use crate::binary;

/// Keeps the tests with real time and real load from running beside each other, in this process
/// or another: they measure, and a machine that does two things at once measures neither.
///
/// # Panics
/// Where the lock file cannot be made.
#[must_use]
pub fn alone() -> std::fs::File {
    let path = std::env::temp_dir().join("tandem-live-tests.lock");
    let file = std::fs::File::create(path).expect("a lock file");
    file.lock().expect("a lock");
    file
}

/// A directory of one test, in memory where there is a RAM file system; gone when dropped.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory.
    #[must_use]
    pub fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let memory = Path::new("/dev/shm");
        let parent = if memory.is_dir() {
            memory.to_owned()
        } else {
            std::env::temp_dir()
        };
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = parent.join(format!("tandem-test-{}-{number}", std::process::id()));
        std::fs::create_dir_all(path.join("recordings")).expect("a scratch directory");
        Self(path)
    }

    /// A path in it.
    #[must_use]
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// The records of calls that ended so far, oldest first.
    #[must_use]
    pub fn records(&self) -> Vec<serde_json::Value> {
        std::fs::read_to_string(self.path("cdr.jsonl"))
            .unwrap_or_default()
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect()
    }

    /// Waits until so many calls have their record.
    ///
    /// # Panics
    /// Where they do not come in 10 s.
    #[must_use]
    pub fn wait_for_records(&self, count: usize) -> Vec<serde_json::Value> {
        let records = until(Duration::from_secs(10), || {
            Some(self.records()).filter(|records| records.len() >= count)
        });
        records.unwrap_or_else(|| panic!("{count} records: {:?}", self.records()))
    }

    /// Files in `recordings` that end in `.wav`.
    #[must_use]
    pub fn recordings(&self) -> Vec<PathBuf> {
        let mut found: Vec<PathBuf> = std::fs::read_dir(self.path("recordings"))
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|extension| extension == "wav"))
            .collect();
        found.sort();
        found
    }
}

impl Default for Scratch {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A test that failed leaves what it saw.
        if !std::thread::panicking() {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

/// Starts `tandem serve` on a free port of `address`, recording and keeping records in `scratch`.
///
/// # Panics
/// Where it does not get ready; with what it said.
#[must_use]
pub fn serve(scratch: &Scratch, address: IpAddr, more: &[&str]) -> Server {
    let text = |path: PathBuf| path.to_str().expect("scratch paths are plain").to_owned();
    let sip = SocketAddr::new(address, 0);
    let mut args: Vec<String> = vec!["serve".into(), "--sip".into(), format!("udp:{sip}")];
    args.extend(["--sip".into(), format!("tcp:{sip}")]);
    args.extend(["--media-address".into(), address.to_string()]);
    args.extend(["--recordings".into(), text(scratch.path("recordings"))]);
    args.extend(["--cdr".into(), text(scratch.path("cdr.jsonl"))]);
    args.extend(more.iter().map(|arg| (*arg).to_owned()));
    Server::start(&binary::tandem(), &args, &scratch.path("server.log"))
        .expect("the server gets ready")
}

/// A port that is free now, for UDP and TCP, outside the range that the kernel gives away and
/// below our RTP ports.
///
/// # Panics
/// Where there is none.
#[must_use]
pub fn free_port(address: IpAddr) -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const FIRST: u32 = 6_000;
    const COUNT: u32 = 10_000;
    let begin = std::process::id().wrapping_mul(17);
    (0..COUNT)
        .map(|_| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST)
        .filter_map(|port| u16::try_from(port).ok())
        .find(|port| {
            let at = SocketAddr::new(address, *port);
            UdpSocket::bind(at).is_ok() && TcpListener::bind(at).is_ok()
        })
        .expect("one port in ten thousand is free")
}

/// A peer that runs beside the test; ended when dropped.
#[derive(Debug)]
pub struct Peer {
    child: Child,
    log: PathBuf,
}

impl Peer {
    /// Starts a program; what it prints goes to `log`.
    ///
    /// # Panics
    /// Where it is not installed: `scripts/setup` does that.
    #[must_use]
    pub fn start(command: &mut Command, log: PathBuf) -> Self {
        let file = std::fs::File::create(&log).expect("a log in the scratch directory");
        let second = file.try_clone().expect("a second handle");
        let child = command
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(second)
            .spawn();
        let child = child.unwrap_or_else(|error| {
            panic!(
                "{:?}: {error}; scripts/setup installs it",
                command.get_program()
            )
        });
        Self { child, log }
    }

    /// Waits until its log holds `text`.
    ///
    /// # Panics
    /// Where that takes more than 20 s.
    pub fn wait_for(&self, text: &str) {
        let found = until(Duration::from_secs(20), || {
            self.said().contains(text).then_some(())
        });
        assert!(found.is_some(), "no {text:?} in: {}", self.said());
    }

    /// What it has printed so far.
    #[must_use]
    pub fn said(&self) -> String {
        let bytes = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Sends it SIGINT and waits for its end.
    ///
    /// # Panics
    /// Where it does not end in 20 s.
    pub fn interrupt(mut self) {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.expect("a process has a number above zero");
        rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("it is our child");
        let ended = until(Duration::from_secs(20), || {
            self.child.try_wait().expect("it is our child")
        });
        assert!(ended.is_some(), "still running: {}", self.said());
    }

    /// Waits for its end; true where it exited with 0.
    ///
    /// # Panics
    /// Where it outlasts `limit`.
    #[must_use]
    pub fn finish(mut self, limit: Duration) -> bool {
        let ended = until(limit, || self.child.try_wait().expect("it is our child"));
        ended
            .unwrap_or_else(|| panic!("still running: {}", self.said()))
            .success()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program to its end.
///
/// # Panics
/// Where it is not installed or fails.
#[must_use]
pub fn run(command: &mut Command) -> Output {
    let output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| {
            panic!(
                "{:?}: {error}; scripts/setup installs it",
                command.get_program()
            )
        });
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    output
}

/// Speech of some seconds as 16-bit mono at 8 kHz.
///
/// # Panics
/// Where espeak-ng or sox are missing.
pub fn speech(scratch: &Scratch, wav: &Path) {
    const TEXT: &str = "The quick brown fox jumps over the lazy dog. Pack my box with five dozen \
        liquor jugs. How vexingly quick daft zebras jump.";
    let raw = scratch.path("espeak.wav");
    let _ = run(Command::new("espeak-ng").arg("-w").arg(&raw).arg(TEXT));
    let _ = run(Command::new("sox")
        .arg(&raw)
        .args(["-r", "8000", "-c", "1", "-b", "16"])
        .arg(wav));
}

/// One channel of a WAV file.
///
/// # Panics
/// Where it cannot be read as 16-bit PCM.
#[must_use]
pub fn samples(wav: &Path, channel: usize) -> Vec<i16> {
    let mut reader = hound::WavReader::open(wav).expect("a WAV file");
    let channels = usize::from(reader.spec().channels);
    let all: Vec<i16> = reader
        .samples::<i16>()
        .map(|sample| sample.expect("PCM"))
        .collect();
    all.into_iter().skip(channel).step_by(channels).collect()
}

/// The best normalised correlation of `part`, loud throughout, anywhere within `whole`, and where.
///
/// Costs the product of both lengths: keep `part` to a second or so.
#[must_use]
pub fn correlation(part: &[i16], whole: &[i16]) -> (f64, usize) {
    let last = whole.len().saturating_sub(part.len());
    let at = |lag: usize| {
        let pairs = part.iter().zip(&whole[lag..]);
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in pairs {
            let (x, y) = (f64::from(*x), f64::from(*y));
            xy += x * y;
            xx += x * x;
            yy += y * y;
        }
        if xx == 0.0 || yy == 0.0 {
            0.0
        } else {
            xy / (xx * yy).sqrt()
        }
    };
    (0..=last)
        .map(|lag| (at(lag), lag))
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .unwrap_or((0.0, 0))
}

/// Asks until there is an answer, or time is up.
pub fn until<T>(limit: Duration, mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let deadline = Instant::now() + limit;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= deadline {
            return None;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_found_where_it_is() {
        let whole: Vec<i16> = (0..2_000_i32)
            .map(|n| i16::try_from((n * n * 7 + n * 13) % 8_191 - 4_095).expect("in range"))
            .collect();
        let (best, lag) = correlation(&whole[300..900], &whole);
        assert!(best > 0.999 && lag == 300, "{best} at {lag}");
        assert_eq!(correlation(&[0; 10], &whole).0, 0.0);
    }
}
