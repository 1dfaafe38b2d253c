//! Datagrams chosen by the test: the nth one that matches is dropped, or comes later.

use std::fmt;
use std::time::Duration;

use crate::machine::Datagram;
use crate::world::HostId;

/// Which of the matching datagrams a filter takes, counted from 1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Nth {
    /// This one.
    One(usize),
    /// This many from the first on.
    First(usize),
    /// All of them.
    Every,
}

impl Nth {
    fn takes(self, count: usize) -> bool {
        match self {
            Self::One(n) => count == n,
            Self::First(n) => count <= n,
            Self::Every => true,
        }
    }
}

/// What happens to a datagram that a filter takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Verdict {
    /// It is lost.
    Drop,
    /// It comes this much later than its link alone would have it, out of order.
    Delay(Duration),
    /// It comes twice, the second time this much later.
    Duplicate(Duration),
}

/// Tells whether a datagram is meant.
type Predicate = Box<dyn Fn(&Datagram) -> bool>;

/// A rule for chosen datagrams.
pub struct Filter {
    pub(crate) from: Option<HostId>,
    pub(crate) to: Option<HostId>,
    matches: Predicate,
    nth: Nth,
    pub(crate) verdict: Verdict,
    seen: usize,
    hits: usize,
}

/// A filter of a world, for asking how often it struck.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FilterId(pub(crate) usize);

impl Filter {
    /// Takes every datagram for which `matches` says so, and does with it what `verdict` says.
    pub fn new(verdict: Verdict, matches: impl Fn(&Datagram) -> bool + 'static) -> Self {
        Self {
            from: None,
            to: None,
            matches: Box::new(matches),
            nth: Nth::Every,
            verdict,
            seen: 0,
            hits: 0,
        }
    }

    /// Only those that this host sends.
    #[must_use]
    pub fn from(self, host: HostId) -> Self {
        Self {
            from: Some(host),
            ..self
        }
    }

    /// Only those that go to this host.
    #[must_use]
    pub fn to(self, host: HostId) -> Self {
        Self {
            to: Some(host),
            ..self
        }
    }

    /// Only the nth of them.
    #[must_use]
    pub fn nth(self, nth: Nth) -> Self {
        Self { nth, ..self }
    }

    /// Looks at a datagram; the verdict when it is one to take.
    pub(crate) fn judge(
        &mut self,
        from: HostId,
        to: Option<HostId>,
        datagram: &Datagram,
    ) -> Option<Verdict> {
        let ours = self.from.is_none_or(|host| host == from)
            && self.to.is_none_or(|host| Some(host) == to)
            && (self.matches)(datagram);
        if !ours {
            return None;
        }
        self.seen += 1;
        if !self.nth.takes(self.seen) {
            return None;
        }
        self.hits += 1;
        Some(self.verdict)
    }

    pub(crate) fn hits(&self) -> usize {
        self.hits
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filter")
            .field("from", &self.from)
            .field("to", &self.to)
            .field("nth", &self.nth)
            .field("verdict", &self.verdict)
            .field("seen", &self.seen)
            .field("hits", &self.hits)
            .finish_non_exhaustive()
    }
}
