//! Everything that was sent, with what became of it, and the notes of the test in between.

use std::time::Duration;

use crate::machine::Datagram;
use crate::world::HostId;

/// What became of a datagram.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    /// It arrives then (time since the epoch).
    Arrives(Duration),
    /// The link lost it.
    Lost,
    /// A filter dropped it.
    Filtered,
    /// No host has its destination address.
    Unreachable,
}

impl Fate {
    /// Whether it came, or will come, to its destination.
    #[must_use]
    pub fn arrives(self) -> bool {
        matches!(self, Self::Arrives(_))
    }
}

/// A datagram as sent. One that the network doubles stands twice in the trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sent {
    /// Who sent it.
    pub from: HostId,
    /// Whose address it has as destination.
    pub to: Option<HostId>,
    /// The datagram.
    pub datagram: Datagram,
    /// What became of it.
    pub fate: Fate,
    /// Whether this is the copy that the network made of the one before.
    pub copy: bool,
}

/// One line of the trace.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Entry {
    /// Something was sent.
    Sent(Sent),
    /// The test says something about a host.
    Note(HostId, String),
}

/// The trace of a run, in order of time.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Trace {
    entries: Vec<(Duration, Entry)>,
}

impl Trace {
    pub(crate) fn push(&mut self, at: Duration, entry: Entry) {
        self.entries.push((at, entry));
    }

    /// All lines, each with its time since the epoch.
    #[must_use]
    pub fn entries(&self) -> &[(Duration, Entry)] {
        &self.entries
    }

    /// The datagrams, each with the time it was sent at.
    pub fn sent(&self) -> impl Iterator<Item = (Duration, &Sent)> {
        self.entries.iter().filter_map(|(at, entry)| match entry {
            Entry::Sent(sent) => Some((*at, sent)),
            Entry::Note(..) => None,
        })
    }
}
