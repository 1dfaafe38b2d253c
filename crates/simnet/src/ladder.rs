//! The ladder diagram of a run: a column for each host, a line for each datagram.
//!
//! ```text
//!      seconds  caller                tandem                callee
//!        0.000  |------ INVITE ------>|                     |
//!        0.010  |<---- 100 (INVITE) --|                     |
//!        0.010  |                     |------ INVITE ----x  |        lost
//!        0.510  |                     |------ INVITE ------>|
//!        0.600  |                     * hangs up
//! ```
//! A line stands at the time of sending. Behind it stands what deserves a remark: a loss and who
//! caused it, a copy made by the network, an address that nobody has.

use std::time::Duration;

use crate::machine::{Datagram, Machine};
use crate::trace::{Entry, Fate, Sent};
use crate::world::World;

/// Width of the shortest arrow's shaft on both sides of its label.
const SHAFT: usize = 2;

/// Draws what has happened in a world. `label` names a datagram in a few characters.
///
/// Cost: one string of about a hundred characters for each line of the trace.
#[must_use]
pub fn draw<M: Machine>(world: &World<M>, label: impl Fn(&Datagram) -> String) -> String {
    let names: Vec<&str> = world.hosts().map(|(_, name)| name).collect();
    let lines: Vec<(Duration, &Entry, String)> = world
        .trace()
        .entries()
        .iter()
        .map(|(at, entry)| match entry {
            Entry::Sent(sent) => (*at, entry, label(&sent.datagram)),
            Entry::Note(_, text) => (*at, entry, text.clone()),
        })
        .collect();
    let widest = lines
        .iter()
        .filter(|(_, entry, _)| matches!(entry, Entry::Sent(_)))
        .map(|(.., label)| label.chars().count())
        .chain(names.iter().map(|name| name.chars().count()))
        .max()
        .unwrap_or(0);
    let sheet = Sheet {
        columns: names.len(),
        width: widest + 2 * SHAFT + 4,
    };

    let mut text = sheet.heading(&names);
    for (at, entry, label) in &lines {
        let (drawn, remark) = match entry {
            Entry::Sent(sent) => (sheet.arrow(sent, label), remark(*at, sent)),
            Entry::Note(host, _) => (sheet.note(host.0, label), String::new()),
        };
        let line = format!("{:13.3}  {drawn}{remark}", at.as_secs_f64());
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn remark(at: Duration, sent: &Sent) -> String {
    let what = match sent.fate {
        Fate::Arrives(arrival) if sent.copy => {
            format!("copy, arrives at {:.3}", arrival.as_secs_f64())
        }
        Fate::Arrives(arrival) if arrival > at + REMARKABLE_DELAY => {
            format!("arrives at {:.3}", arrival.as_secs_f64())
        }
        Fate::Arrives(_) => return String::new(),
        Fate::Lost => "lost".to_owned(),
        Fate::Filtered => "dropped by the test".to_owned(),
        Fate::Unreachable => format!("nobody is at {}", sent.datagram.to),
    };
    format!("   {what}")
}

/// A datagram that takes longer than this gets its arrival printed.
const REMARKABLE_DELAY: Duration = Duration::from_millis(100);

/// Where the columns stand.
struct Sheet {
    columns: usize,
    /// From one column's bar to the next one's.
    width: usize,
}

impl Sheet {
    fn heading(&self, names: &[&str]) -> String {
        let mut line = format!("{:>13}  ", "seconds");
        for name in names {
            line.push_str(&format!("{name:<width$}", width = self.width));
        }
        format!("{}\n", line.trim_end())
    }

    /// A line with nothing but the bars of all columns.
    fn empty(&self) -> Vec<char> {
        let end = self.width * self.columns.saturating_sub(1) + 1;
        (0..end)
            .map(|at| if at % self.width == 0 { '|' } else { ' ' })
            .collect()
    }

    fn note(&self, host: usize, text: &str) -> String {
        let mut line = self.empty();
        line.truncate(host * self.width);
        line.extend(format!("* {text}").chars());
        line.into_iter().collect()
    }

    fn arrow(&self, sent: &Sent, label: &str) -> String {
        let from = sent.from.0;
        // To nobody: a short arrow to the right of the sender, or to the left of the last column.
        let beside = if from + 1 < self.columns {
            from + 1
        } else {
            from.saturating_sub(1)
        };
        let to = sent.to.map_or(beside, |host| host.0);
        if from == to {
            return self.note(from, &format!("{label} (to itself)"));
        }
        let mut line = self.empty();
        let (left, right) = (from.min(to) * self.width, from.max(to) * self.width);
        line[left + 1..right].fill('-');
        let rightwards = to > from;
        let arrives = sent.fate.arrives();
        let (head, at) = match (rightwards, arrives) {
            (true, true) => ('>', right - 1),
            (true, false) => ('x', right - 2),
            (false, true) => ('<', left + 1),
            (false, false) => ('x', left + 2),
        };
        line[at] = head;
        if !arrives {
            line[if rightwards { right - 1 } else { left + 1 }] = ' ';
        }
        let label: Vec<char> = format!(" {label} ").chars().collect();
        let shafts = (right - left - 1).saturating_sub(label.len());
        let start = left
            + 1
            + if rightwards {
                shafts / 2
            } else {
                shafts.div_ceil(2)
            };
        line[start..start + label.len()].copy_from_slice(&label);
        line.into_iter().collect()
    }
}
