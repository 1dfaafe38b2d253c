//! Watching a process from outside: processor time, memory and descriptors, from /proc by pid.
//!
//! ```text
//!   every 250 ms: (instant, user + system time, PSS, sockets, calls up now)
//!   calls up  ____/^^^^^^^^^^^^^^\____     the steady window is where at least nine tenths
//!                  |<-- steady -->|        of the most calls are up; figures are taken there
//! ```
//!
//! Processor time is utime + stime of /proc/PID/stat, in clock ticks of 10 ms; memory is the
//! proportional set size of /proc/PID/smaps_rollup. Any process can be watched, ours or another.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Clock ticks a second in /proc/PID/stat: USER_HZ, 100 on every Linux port of Rust.
const TICKS_PER_SECOND: u32 = 100;

/// Time between two samples of a [`Watch`].
pub const INTERVAL: Duration = Duration::from_millis(250);

/// One look at a process.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct ProcessSample {
    /// When.
    pub at: Instant,
    /// Processor time in user mode since the process started.
    pub user: Duration,
    /// Processor time in the kernel since the process started.
    pub system: Duration,
    /// Proportional set size in kB.
    pub pss_kb: u64,
    /// Open descriptors.
    pub descriptors: usize,
    /// Of these, sockets.
    pub sockets: usize,
    /// Threads.
    pub threads: u32,
}

impl ProcessSample {
    /// Looks at process `pid`.
    ///
    /// # Errors
    /// When the process is gone or may not be looked at.
    pub fn take(pid: u32) -> io::Result<Self> {
        let proc = PathBuf::from(format!("/proc/{pid}"));
        let stat = fs::read_to_string(proc.join("stat"))?;
        let at = Instant::now();
        let malformed = || io::Error::from(io::ErrorKind::InvalidData);
        let (user, system, threads) = parse_stat(&stat).ok_or_else(malformed)?;
        let rollup = fs::read_to_string(proc.join("smaps_rollup"))?;
        let pss_kb = parse_pss(&rollup).ok_or_else(malformed)?;
        let (mut descriptors, mut sockets) = (0, 0);
        for entry in fs::read_dir(proc.join("fd"))?.flatten() {
            descriptors += 1;
            let link = fs::read_link(entry.path());
            sockets +=
                usize::from(link.is_ok_and(|to| to.to_string_lossy().starts_with("socket:")));
        }
        Ok(Self {
            at,
            user,
            system,
            pss_kb,
            descriptors,
            sockets,
            threads,
        })
    }

    /// User and system time together.
    #[must_use]
    pub fn cpu(&self) -> Duration {
        self.user + self.system
    }
}

/// utime, stime and num_threads: fields 14, 15 and 20 of proc_pid_stat(5).
fn parse_stat(stat: &str) -> Option<(Duration, Duration, u32)> {
    // The command in field 2 may itself hold blanks and parentheses.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    let user: u64 = fields.next()?.parse().ok()?;
    let system: u64 = fields.next()?.parse().ok()?;
    let threads = fields.nth(4)?.parse().ok()?;
    let time = |ticks: u64| Duration::from_millis(ticks * 1000 / u64::from(TICKS_PER_SECOND));
    Some((time(user), time(system), threads))
}

fn parse_pss(rollup: &str) -> Option<u64> {
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
    line.split_ascii_whitespace().next()?.parse().ok()
}

/// A sample and how many calls were up.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct LoadSample {
    /// The process.
    pub process: ProcessSample,
    /// Calls up at that moment.
    pub calls: u64,
}

/// A thread that samples a process until it is stopped.
#[derive(Debug)]
pub struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<Vec<LoadSample>>,
}

impl Watch {
    /// Starts to watch `pid`; `calls` is the number of calls up, kept by the caller.
    ///
    /// # Errors
    /// When the process cannot be looked at or no thread can be had.
    pub fn start(pid: u32, calls: Arc<AtomicU64>) -> io::Result<Self> {
        let first = LoadSample {
            process: ProcessSample::take(pid)?,
            calls: calls.load(Ordering::Relaxed),
        };
        let (stop, stopped) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("lab-watch".into())
            .spawn(move || {
                let mut samples = vec![first];
                while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    let calls = calls.load(Ordering::Relaxed);
                    let Ok(process) = ProcessSample::take(pid) else {
                        break;
                    };
                    samples.push(LoadSample { process, calls });
                }
                samples
            })?;
        Ok(Self { stop, thread })
    }

    /// Stops and hands over the samples, oldest first.
    #[must_use]
    pub fn stop(self) -> Vec<LoadSample> {
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

/// Figures of the steady window.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct Steady {
    /// Its length.
    pub length: Duration,
    /// Call-seconds in it: calls up, integrated over time.
    pub call_seconds: f64,
    /// Processor time of the process per call-second, in milliseconds.
    pub cpu_ms: f64,
    /// Of this, in user mode.
    pub user_ms: f64,
    /// Memory per call, in kB: the most in the window less that of the first sample, per call.
    pub kb_per_call: f64,
    /// Most calls up at once.
    pub calls: u64,
}

impl Steady {
    /// Finds the steady window; `None` when it holds fewer than three samples.
    #[must_use]
    pub fn find(samples: &[LoadSample]) -> Option<Self> {
        let calls = samples.iter().map(|sample| sample.calls).max()?;
        let enough = |sample: &LoadSample| calls > 0 && sample.calls * 10 >= calls * 9;
        let from = samples.iter().position(enough)?;
        let to = from + samples[from..].iter().take_while(|s| enough(s)).count();
        let window = &samples[from..to];
        let [first, _, .., last] = window else {
            return None;
        };
        let call_seconds: f64 = window
            .windows(2)
            .map(|pair| {
                let seconds = (pair[1].process.at - pair[0].process.at).as_secs_f64();
                seconds * (pair[0].calls + pair[1].calls) as f64 / 2.0
            })
            .sum();
        let per_call_second = |of: fn(&ProcessSample) -> Duration| {
            (of(&last.process) - of(&first.process)).as_secs_f64() * 1000.0 / call_seconds
        };
        let most = window.iter().map(|s| s.process.pss_kb).max()?;
        let idle = samples.first()?.process.pss_kb;
        Some(Self {
            length: last.process.at - first.process.at,
            call_seconds,
            cpu_ms: per_call_second(ProcessSample::cpu),
            user_ms: per_call_second(|sample| sample.user),
            kb_per_call: (most as f64 - idle as f64) / calls as f64,
            calls,
        })
    }

    /// Calls that one core would carry at this cost.
    #[must_use]
    pub fn calls_per_core(&self) -> f64 {
        1000.0 / self.cpu_ms
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(start: Instant, ms: u64, cpu_ms: u64, pss_kb: u64, calls: u64) -> LoadSample {
        LoadSample {
            process: ProcessSample {
                at: start + Duration::from_millis(ms),
                user: Duration::from_millis(cpu_ms / 2),
                system: Duration::from_millis(cpu_ms - cpu_ms / 2),
                pss_kb,
                descriptors: 10,
                sockets: 2,
                threads: 3,
            },
            calls,
        }
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback binds");
        let sample = ProcessSample::take(std::process::id()).expect("ourselves");
        assert!(sample.pss_kb > 100 && sample.threads >= 1);
        assert!(sample.sockets >= 1 && sample.descriptors > sample.sockets);
        drop(socket);
        assert!(ProcessSample::take(u32::MAX).is_err());
    }

    #[test]
    fn stat_is_read_past_a_name_with_parentheses() {
        let stat = "42 (a) R (b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 7 0 99 1 2";
        let seconds = Duration::from_millis;
        assert_eq!(parse_stat(stat), Some((seconds(1500), seconds(500), 7)));
        assert_eq!(parse_stat("nothing"), None);
        assert_eq!(parse_pss("x\nPss:   332 kB\nPss_Dirty: 1 kB\n"), Some(332));
    }

    #[test]
    fn figures_come_from_the_steady_window_alone() {
        let start = Instant::now();
        let samples = [
            sample(start, 0, 1000, 5000, 0),
            sample(start, 1000, 1900, 6000, 50),
            sample(start, 2000, 2000, 9000, 100),
            sample(start, 3000, 2050, 9000, 100),
            sample(start, 4000, 2100, 9000, 100),
            sample(start, 5000, 2900, 9000, 20),
        ];
        let steady = Steady::find(&samples).expect("three samples are steady");
        assert_eq!((steady.length, steady.calls), (Duration::from_secs(2), 100));
        assert!((steady.call_seconds - 200.0).abs() < 1e-9);
        assert!((steady.cpu_ms - 0.5).abs() < 1e-9);
        assert!((steady.kb_per_call - 40.0).abs() < 1e-9);
        assert!((steady.calls_per_core() - 2000.0).abs() < 1e-6);
    }

    #[test]
    fn no_figure_without_a_steady_window() {
        let start = Instant::now();
        assert_eq!(Steady::find(&[]), None);
        assert_eq!(Steady::find(&[sample(start, 0, 0, 0, 0); 5]), None);
        assert_eq!(
            Steady::find(&[sample(start, 0, 0, 0, 5), sample(start, 9, 9, 9, 5)]),
            None
        );
    }
}
