//! Call detail records: one line of JSON per call, appended to a file of the operator's choice.
//!
//! Without `--cdr FILE` (or `cdr.file`) no file is written; the driver's log line at the end of a
//! call says the essentials. Standard output stays reserved for the `ready` line.
//!
//! Lines are written by a thread of their own behind a bounded queue: a slow disk loses records,
//! which are counted and logged, and never holds up a call.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::thread::JoinHandle;

use anyhow::Context;
use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

/// Lines that may wait for the disk: about a minute's worth at 100 calls a second.
const QUEUE: usize = 8192;

/// Writes records; dropped, it writes what is queued and ends.
#[derive(Debug)]
pub(crate) struct CdrLog {
    lines: Option<Sender<String>>,
    writer: Option<JoinHandle<()>>,
    lost: u64,
}

impl CdrLog {
    /// Opens the file for appending; an empty path is no file.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        if path.as_os_str().is_empty() {
            return Ok(Self {
                lines: None,
                writer: None,
                lost: 0,
            });
        }
        let file = OpenOptions::new().create(true).append(true).open(path);
        let file =
            file.with_context(|| format!("cannot write call records to {}", path.display()))?;
        let (lines, queue) = bounded(QUEUE);
        let writer = std::thread::Builder::new()
            .name("cdr".into())
            .spawn(move || write_all(file, &queue))
            .context("cannot start the thread that writes call records")?;
        Ok(Self {
            lines: Some(lines),
            writer: Some(writer),
            lost: 0,
        })
    }

    /// Queues one record; never waits.
    pub(crate) fn write(&mut self, line: impl FnOnce() -> String) {
        let Some(lines) = &self.lines else { return };
        match lines.try_send(line()) {
            Ok(()) => {}
            Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {
                self.lost += 1;
                tracing::error!(
                    lost = self.lost,
                    "a call record is lost: its file is too slow or failed"
                );
            }
        }
    }
}

impl Drop for CdrLog {
    fn drop(&mut self) {
        self.lines = None;
        if let Some(writer) = self.writer.take() {
            // It only panics if the allocator does; nothing is left to do for us then.
            let _ = writer.join();
        }
    }
}

/// Ends when every sender is gone, or with the first error, after which records count as lost.
fn write_all(file: File, queue: &Receiver<String>) {
    let mut file = BufWriter::new(file);
    while let Ok(first) = queue.recv() {
        if let Err(error) = write_batch(&mut file, first, queue) {
            tracing::error!(%error, "call records can no longer be written");
            return;
        }
    }
}

/// One flush for all that is queued.
fn write_batch(
    file: &mut BufWriter<File>,
    first: String,
    queue: &Receiver<String>,
) -> io::Result<()> {
    for line in std::iter::once(first).chain(queue.try_iter()) {
        file.write_all(line.as_bytes())?;
        file.write_all(b"\n")?;
    }
    file.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_appended_one_a_line() {
        let path = std::env::temp_dir().join(format!("tandem-cdr-{}", std::process::id()));
        for round in ["a", "b"] {
            let mut log = CdrLog::open(&path).expect("a file in the temporary directory");
            log.write(|| format!("{round}1"));
            log.write(|| format!("{round}2"));
        }
        let written = std::fs::read_to_string(&path).expect("written above");
        std::fs::remove_file(&path).expect("written above");
        assert_eq!(written, "a1\na2\nb1\nb2\n");
    }

    #[test]
    fn without_a_file_nothing_is_even_formatted() {
        let mut log = CdrLog::open(Path::new("")).expect("no file to open");
        log.write(|| panic!("formatted"));
    }
}
