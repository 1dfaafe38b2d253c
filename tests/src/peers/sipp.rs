//! SIPp, one process: a caller or a callee with one of its own scenarios or a file's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::process::{Finished, Process, tool};

/// A running SIPp.
#[derive(Debug)]
pub struct Sipp {
    process: Process,
    statistics: PathBuf,
}

/// What a SIPp counted, by the names of its statistics file: `SuccessfulCall`, `FailedCall`,
/// `Retransmissions`, ...
#[derive(Clone, Debug, Default)]
pub struct Counts(BTreeMap<String, u64>);

impl Counts {
    /// One cumulative counter.
    ///
    /// # Panics
    /// When SIPp has no such counter.
    #[must_use]
    pub fn get(&self, name: &str) -> u64 {
        let value = self.0.get(&format!("{name}(C)"));
        *value.unwrap_or_else(|| panic!("SIPp counts no {name}: {:?}", self.0.keys()))
    }
}

impl Sipp {
    /// Starts SIPp in a directory, where its files go. `name` keeps several apart.
    #[must_use]
    pub fn start(directory: &Path, name: &str, arguments: &[&str]) -> Self {
        let statistics = directory.join(format!("{name}.csv"));
        let mut command = tool("sipp");
        command
            .current_dir(directory)
            .args([
                "-i",
                "127.0.0.1",
                "-nostdin",
                "-trace_stat",
                "-fd",
                "1",
                "-stf",
            ])
            .arg(&statistics)
            .args(["-trace_err", "-error_file"])
            .arg(directory.join(format!("{name}.errors")))
            .args(arguments);
        Self {
            process: Process::start(&mut command),
            statistics,
        }
    }

    /// Waits for its end; what it counted. Exit code 0 says that no call failed.
    ///
    /// # Panics
    /// When it doesn't end in time, or counted nothing.
    pub fn finish(self, limit: Duration) -> (Finished, Counts) {
        let finished = self.process.finish(limit);
        let text = std::fs::read_to_string(&self.statistics).unwrap_or_default();
        let counts = parse(&text)
            .unwrap_or_else(|| panic!("SIPp counted nothing:\n{}", finished.lines.join("\n")));
        (finished, counts)
    }

    /// Asks a callee to end when its calls have, and waits.
    ///
    /// # Panics
    /// When it doesn't end in time.
    pub fn stop(self, limit: Duration) -> (Finished, Counts) {
        self.process.signal("USR1");
        self.finish(limit)
    }
}

/// The last line of a statistics file, by its heading.
fn parse(text: &str) -> Option<Counts> {
    let mut lines = text.lines();
    let names = lines.next()?.split(';');
    let values = lines.last()?.split(';');
    let counted = names
        .zip(values)
        .filter_map(|(name, value)| Some((name.to_owned(), value.parse().ok()?)));
    Some(Counts(counted.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_counts() {
        let text = "StartTime;FailedCall(P);FailedCall(C);\nx;1;1;\ny;2;3;\n";
        assert_eq!(parse(text).unwrap().get("FailedCall"), 3);
        assert!(parse("StartTime;\n").is_none());
    }
}
