//! A server run as a child process, for demos and tests.
//!
//! ```text
//!   start: spawn --> first line on stdout: ready sip=udp:127.0.0.1:40000 api=... pid=4711
//!   stop:  SIGTERM --> it drains and ends; SIGKILL when it does not
//! ```

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use anyhow::Context as _;

/// How long a server may take to be ready.
const START: Duration = Duration::from_secs(15);

/// How long it may take to end.
const END: Duration = Duration::from_secs(10);

/// A server that is up.
#[derive(Debug)]
pub struct Server {
    child: Child,
    sip: SocketAddr,
    log: PathBuf,
}

impl Server {
    /// Runs `binary` with `args` and waits until it says that it is ready. What it logs goes to
    /// `log`.
    ///
    /// # Errors
    /// When it cannot be run, ends at once, or is not ready in time.
    pub fn start(binary: &Path, args: &[String], log: &Path) -> anyhow::Result<Self> {
        let stderr = File::create(log)
            .with_context(|| format!("the server's log {} cannot be made", log.display()))?;
        let mut child = Command::new(binary)
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .spawn()
            .with_context(|| format!("{} cannot be run", binary.display()))?;
        let stdout = child
            .stdout
            .take()
            .context("the server's output is piped")?;
        let ready = wait_for_ready(stdout)
            .and_then(|line| sip_address(&line).with_context(|| format!("not understood: {line}")));
        match ready {
            Ok(sip) => Ok(Self {
                child,
                sip,
                log: log.to_owned(),
            }),
            Err(error) => {
                // It may have ended by itself already.
                let _ = child.kill();
                let _ = child.wait();
                let said = std::fs::read_to_string(log).unwrap_or_default();
                Err(error.context(format!("the server did not get ready; it said:\n{said}")))
            }
        }
    }

    /// Its SIP address over UDP.
    #[must_use]
    pub fn sip(&self) -> SocketAddr {
        self.sip
    }

    /// Its process.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Its log.
    #[must_use]
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Asks it to end and waits for it.
    ///
    /// # Errors
    /// When it had ended before, or does not end in time and has to be killed.
    pub fn stop(mut self) -> anyhow::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            anyhow::bail!("the server had ended by itself: {status}");
        }
        self.terminate()?;
        let deadline = Instant::now() + END;
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        anyhow::bail!(
            "the server did not end within {} s of SIGTERM",
            END.as_secs()
        )
    }

    fn terminate(&self) -> anyhow::Result<()> {
        let pid = i32::try_from(self.child.id())
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        let pid = pid.context("a process has a number above zero")?;
        rustix::process::kill_process(pid, rustix::process::Signal::TERM)?;
        Ok(())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` it is gone, and both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for the ready line; afterwards the output is read and dropped, so that it never blocks.
fn wait_for_ready(stdout: ChildStdout) -> anyhow::Result<String> {
    let (lines, line) = mpsc::channel();
    std::thread::Builder::new()
        .name("lab-server-output".into())
        .spawn(move || {
            for text in BufReader::new(stdout).lines().map_while(Result::ok) {
                if text.starts_with("ready ") {
                    let _ = lines.send(text);
                }
            }
        })?;
    line.recv_timeout(START).context("no ready line")
}

/// The first UDP address of `ready sip=udp:127.0.0.1:5060,tcp:127.0.0.1:5060 ...`.
fn sip_address(line: &str) -> Option<SocketAddr> {
    let list = line
        .split_ascii_whitespace()
        .find_map(|word| word.strip_prefix("sip="))?;
    let udp = list
        .split(',')
        .find_map(|listener| listener.strip_prefix("udp:"))?;
    udp.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("lab-{}-{name}.log", std::process::id()))
    }

    fn shell(script: &str, name: &str) -> anyhow::Result<Server> {
        let args = ["-c".to_owned(), script.to_owned()];
        Server::start(Path::new("/bin/sh"), &args, &log(name))
    }

    #[test]
    fn the_ready_line_is_read() {
        let line = "ready sip=tcp:127.0.0.1:1,udp:127.0.0.1:5062 api=127.0.0.1:8080 pid=1";
        assert_eq!(sip_address(line), "127.0.0.1:5062".parse().ok());
        assert_eq!(sip_address("ready sip=tcp:127.0.0.1:1 pid=2"), None);
        assert_eq!(sip_address("ready"), None);
    }

    #[test]
    fn a_server_is_started_and_ended() {
        let script =
            "echo hello; echo ready sip=udp:127.0.0.1:5062 pid=$$; exec cat /dev/zero >/dev/null";
        let server = shell(script, "good").expect("ready");
        assert_eq!(server.sip().port(), 5062);
        assert!(!server.stop().expect("it ends on SIGTERM").success());
        std::fs::remove_file(log("good")).expect("a log");
    }

    #[test]
    fn a_server_that_fails_is_quoted() {
        let error = shell("echo port in use >&2; exit 1", "bad").expect_err("it fails");
        assert!(format!("{error:#}").contains("port in use"), "{error:#}");
        std::fs::remove_file(log("bad")).expect("a log");
        assert!(Server::start(Path::new("/nonexistent"), &[], &log("none")).is_err());
        std::fs::remove_file(log("none")).expect("a log");
    }

    #[test]
    fn a_server_that_died_is_found_out() {
        let script = "echo ready sip=udp:127.0.0.1:5062; exec >&-; exit 3";
        let mut server = shell(script, "died").expect("ready");
        server.child.wait().expect("it ends");
        assert!(server.stop().is_err());
        std::fs::remove_file(log("died")).expect("a log");
    }
}
