//! Other programs run by tests: watched line by line, never left behind.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// A running program. It is killed when this value is dropped.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    lines: Receiver<String>,
    seen: Vec<String>,
}

/// How a program ended.
#[derive(Debug)]
pub struct Finished {
    /// Its exit status.
    pub status: ExitStatus,
    /// Every line of its standard output and standard error, as they came.
    pub lines: Vec<String>,
}

impl Finished {
    /// Insists that it went well.
    ///
    /// # Panics
    /// When it didn't.
    #[must_use]
    pub fn well(self) -> Self {
        assert!(
            self.status.success(),
            "{}:\n{}",
            self.status,
            self.lines.join("\n")
        );
        self
    }
}

impl Process {
    /// Starts a program.
    ///
    /// # Panics
    /// When it can't be started.
    #[must_use]
    pub fn start(command: &mut Command) -> Self {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{name} can't be run: {error}"));
        let (sender, lines) = channel();
        if let Some(stdout) = child.stdout.take() {
            read_lines(stdout, sender.clone());
        }
        if let Some(stderr) = child.stderr.take() {
            read_lines(stderr, sender);
        }
        Self {
            name,
            child,
            lines,
            seen: Vec::new(),
        }
    }

    /// Its process id.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has printed so far.
    #[must_use]
    pub fn seen(&self) -> &[String] {
        &self.seen
    }

    /// Waits for a line that it prints.
    ///
    /// # Panics
    /// When it ends, or the time is over, before it prints one.
    pub fn line(&mut self, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let end = Instant::now() + limit;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => {
                    self.seen.push(line.clone());
                    if wanted(&line) {
                        return line;
                    }
                }
                Err(_) => self.give_up("didn't print what was waited for", limit),
            }
        }
    }

    /// Sends it a signal, named as `kill` does: `TERM`, `INT`.
    ///
    /// # Panics
    /// When there is no such process.
    pub fn signal(&self, signal: &str) {
        let id = self.id().to_string();
        let status = Command::new("kill").args(["-s", signal, &id]).status();
        assert!(
            status.is_ok_and(|status| status.success()),
            "{}: kill failed",
            self.name
        );
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When it doesn't end in this time.
    pub fn finish(mut self, limit: Duration) -> Finished {
        let end = Instant::now() + limit;
        // Both pipes are closed when it ends: then, and then alone, the channel is.
        loop {
            let left = end.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) => self.seen.push(line),
                Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => break,
                Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {
                    self.give_up("didn't end", limit);
                }
            }
        }
        let status = self
            .child
            .wait()
            .unwrap_or_else(|error| panic!("{}: {error}", self.name));
        Finished {
            status,
            lines: std::mem::take(&mut self.seen),
        }
    }

    fn give_up(&self, what: &str, limit: Duration) -> ! {
        panic!(
            "{} {what} within {limit:?}; it printed\n{}",
            self.name,
            self.seen.join("\n")
        )
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(stream: impl Read + Send + 'static, sender: Sender<String>) {
    std::thread::spawn(move || {
        let mut reader = BufReader::new(stream);
        let mut line = Vec::new();
        while matches!(reader.read_until(b'\n', &mut line), Ok(n) if n > 0) {
            let text = String::from_utf8_lossy(&line).trim_end().to_owned();
            line.clear();
            if sender.send(text).is_err() {
                return;
            }
        }
    });
}

/// A program of the machine.
///
/// # Panics
/// When it isn't installed: a test with real peers never passes without them.
#[must_use]
pub fn tool(name: &str) -> Command {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directories = std::env::split_paths(&path).chain(SYSTEM.iter().map(PathBuf::from));
    let found = directories
        .map(|directory| directory.join(name))
        .find(|path| path.is_file());
    let found = found.unwrap_or_else(|| panic!("{name} isn't installed; run scripts/setup"));
    Command::new(found)
}

/// Where daemons live, often outside a user's PATH.
const SYSTEM: [&str; 2] = ["/usr/sbin", "/usr/local/sbin"];

/// Runs a program to its end and gives what it prints on standard output.
///
/// # Panics
/// When it fails.
#[must_use]
pub fn output(command: &mut Command) -> Vec<u8> {
    let name = command.get_program().to_string_lossy().into_owned();
    let arguments: Vec<_> = command.get_args().map(OsStr::to_owned).collect();
    let output = command
        .output()
        .unwrap_or_else(|error| panic!("{name} can't be run: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{name} {arguments:?}: {}\n{errors}",
        output.status
    );
    output.stdout
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(10);

    fn shell(script: &str) -> Process {
        Process::start(tool("sh").args(["-c", script]))
    }

    #[test]
    fn lines_are_waited_for_and_kept() {
        let mut process = shell("echo one; echo two >&2; echo ready port=7");
        assert_eq!(
            process.line(LIMIT, |line| line.starts_with("ready")),
            "ready port=7"
        );
        let finished = process.finish(LIMIT).well();
        assert_eq!(finished.lines.len(), 3);
    }

    #[test]
    #[should_panic(expected = "didn't print what was waited for")]
    fn a_program_that_ends_early_is_told_from_one_that_is_ready() {
        shell("echo no; exit 1").line(LIMIT, |line| line == "ready");
    }

    #[test]
    #[should_panic(expected = "isn't installed; run scripts/setup")]
    fn a_missing_program_fails_the_test() {
        let _ = tool("no-such-program-anywhere");
    }

    #[test]
    fn a_dropped_process_is_gone() {
        let process = shell("exec sleep 1000");
        let proc = PathBuf::from(format!("/proc/{}", process.id()));
        assert!(proc.exists());
        drop(process);
        assert!(!proc.exists());
    }

    #[test]
    fn a_signal_ends_it() {
        let process = shell("exec sleep 1000");
        process.signal("TERM");
        assert!(!process.finish(LIMIT).status.success());
    }
}
