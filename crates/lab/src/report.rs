//! Figures of a run, one row per kind of call.

use std::time::Duration;

use hdrhistogram::Histogram;

use crate::plan::Expect;
use crate::run::CallOutcome;
use crate::table::{Align, Table};
use crate::verdict::Fault;
use crate::watch::Steady;

/// The longest set-up time told apart, in microseconds; longer ones count as this.
const HOUR: u64 = 3_600_000_000;

/// Set-up times in microseconds, three digits exact.
#[derive(Clone, Debug)]
pub struct SetUpTimes(Histogram<u64>);

impl SetUpTimes {
    /// None yet.
    ///
    /// # Panics
    /// Never: three significant digits are within what a histogram can be asked for.
    #[must_use]
    pub fn new() -> Self {
        Self(Histogram::new_with_max(HOUR, 3).expect("three digits are allowed"))
    }

    /// Adds one.
    pub fn note(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    /// The time that `percent` of the calls did not exceed; `None` without calls.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_micros(self.0.value_at_percentile(percent)))
    }

    /// How many were noted.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.0.len()
    }
}

impl Default for SetUpTimes {
    fn default() -> Self {
        Self::new()
    }
}

/// RTP between caller and callee, or caller and back: all directions that the lab speaks in.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct RtpCounts {
    /// Packets the lab sent and must get back or across; `None` where the server is the source.
    pub sent: Option<u64>,
    /// Packets that arrived.
    pub received: u64,
    /// Of the sent, those that did not; where the server is the source, gaps in its numbers.
    pub lost: u64,
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    /// What was called.
    pub label: String,
    /// Calls.
    pub calls: usize,
    /// Of these, calls with any fault.
    pub failed: usize,
    /// From the intended start to the answer.
    pub set_up: SetUpTimes,
    /// Packets.
    pub rtp: RtpCounts,
    /// Calls whose audio was to be checked, and was right.
    pub verified: usize,
    /// Calls whose audio was to be checked.
    pub to_verify: usize,
    /// Cost, when the server was watched and the window long enough.
    pub steady: Option<Steady>,
}

impl Row {
    /// The row of these calls.
    #[must_use]
    pub fn of<'a>(
        label: &str,
        calls: impl IntoIterator<Item = &'a CallOutcome>,
        steady: Option<Steady>,
    ) -> Self {
        let mut row = Self {
            label: label.to_owned(),
            calls: 0,
            failed: 0,
            set_up: SetUpTimes::new(),
            rtp: RtpCounts::default(),
            verified: 0,
            to_verify: 0,
            steady,
        };
        for outcome in calls {
            row.add(outcome);
        }
        row
    }

    fn add(&mut self, outcome: &CallOutcome) {
        self.calls += 1;
        self.failed += usize::from(!outcome.faults.is_empty());
        if let Some(time) = outcome.call.set_up() {
            self.set_up.note(time);
        }
        if matches!(outcome.call.plan.expect, Expect::Refused(_)) {
            return;
        }
        self.to_verify += 1;
        let signalling = |fault: &Fault| matches!(fault, Fault::CalleeEnded(_));
        self.verified += usize::from(outcome.faults.iter().all(signalling));
        let Some(caller) = &outcome.caller else {
            return;
        };
        let mut add = |sent: u64, received: u64| {
            self.rtp.sent = Some(self.rtp.sent.unwrap_or(0) + sent);
            self.rtp.received += received;
            self.rtp.lost += sent.saturating_sub(received);
        };
        match (&outcome.call.plan.expect, &outcome.callee) {
            (Expect::Echo { .. }, _) => add(caller.sent, caller.received),
            (Expect::Peer | Expect::TonePeer { .. }, Some(callee)) => {
                add(caller.sent, callee.received);
                add(callee.sent, caller.received);
            }
            (Expect::Peer | Expect::TonePeer { .. }, None) => add(caller.sent, 0),
            _ => {
                self.rtp.received += caller.received;
                self.rtp.lost += caller.sequence.missing;
            }
        }
    }

    fn cells(&self) -> [String; 12] {
        let none = || "-".to_owned();
        let ms = |time: Option<Duration>| {
            time.map_or_else(none, |time| format!("{:.1}", time.as_secs_f64() * 1e3))
        };
        let cost = |of: fn(&Steady) -> f64, digits: usize| {
            let steady = self.steady.as_ref();
            steady.map_or_else(none, |steady| format!("{:.digits$}", of(steady)))
        };
        [
            self.label.clone(),
            self.calls.to_string(),
            self.failed.to_string(),
            ms(self.set_up.percentile(50.0)),
            ms(self.set_up.percentile(99.0)),
            self.rtp.sent.map_or_else(none, |sent| sent.to_string()),
            self.rtp.received.to_string(),
            self.rtp.lost.to_string(),
            match self.to_verify {
                0 => none(),
                all => format!("{}/{all}", self.verified),
            },
            cost(|steady| steady.cpu_ms, 3),
            cost(|steady| steady.kb_per_call, 0),
            cost(Steady::calls_per_core, 0),
        ]
    }
}

/// The table of these rows, Markdown that reads as text.
#[must_use]
pub fn table(rows: &[Row]) -> Table {
    let right = |name| (name, Align::Right);
    let mut table = Table::new(&[
        ("called", Align::Left),
        right("calls"),
        right("failed"),
        right("set-up p50 ms"),
        right("p99 ms"),
        right("RTP sent"),
        right("received"),
        right("lost"),
        right("audio right"),
        right("CPU ms/call-s"),
        right("kB/call"),
        right("calls/core"),
    ]);
    for row in rows {
        table.row(row.cells());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_keep_three_digits() {
        let mut times = SetUpTimes::new();
        assert_eq!(times.percentile(50.0), None);
        for ms in 1..=100 {
            times.note(Duration::from_millis(ms));
        }
        assert_eq!(times.count(), 100);
        let near = |percent: f64, ms: f64| {
            let value = times.percentile(percent).expect("calls").as_secs_f64() * 1e3;
            assert!((value - ms).abs() / ms < 0.001, "{value}");
        };
        near(50.0, 50.0);
        near(99.0, 99.0);
        near(100.0, 100.0);
    }

    #[test]
    fn a_row_without_calls_has_no_figures() {
        let text = table(&[Row::of("echo", [], None)]).to_string();
        let last = text.lines().last().expect("a row");
        let cells: Vec<_> = last.split('|').map(str::trim).collect();
        assert_eq!(cells[1..=5], ["echo", "0", "0", "-", "-"]);
        assert_eq!(cells[9..=12], ["-", "-", "-", "-"]);
    }
}
