//! Where a peer's RTP comes from, and so where ours goes (symmetric RTP, RFC 4961).
//!
//! ```text
//!  negotiated --- first valid packet, from anywhere ---> learned
//!     learned --- from the negotiated address ---------> learned (that one, always)
//!             --- from elsewhere, after 2 s of silence -> learned (the new one)
//!             --- from elsewhere, sooner --------------> stranger: counted, dropped
//!  a new negotiated address: forget what was learned
//! ```
//!
//! Nothing is ever sent to an address that was neither negotiated nor learned. Taking the first
//! source is what lets a phone behind a NAT be heard; that the negotiated source always wins puts
//! an end to a stranger who was quicker.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// How long the learned source has to be silent before another may take its place.
pub(crate) const RELEARN_AFTER: Duration = Duration::from_secs(2);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The source that we know.
    Known,
    /// A source that we know from now on.
    Learned,
    /// Another.
    Stranger,
}

#[derive(Copy, Clone, Debug)]
pub(crate) struct Latch {
    negotiated: Option<SocketAddr>,
    learned: Option<(SocketAddr, Instant)>,
}

impl Latch {
    pub(crate) fn new(negotiated: Option<SocketAddr>) -> Self {
        Self {
            negotiated,
            learned: None,
        }
    }

    /// Takes what a new description states.
    pub(crate) fn renegotiate(&mut self, negotiated: Option<SocketAddr>) {
        if negotiated != self.negotiated {
            *self = Self::new(negotiated);
        }
    }

    /// Judges the source of a valid packet.
    pub(crate) fn check(&mut self, now: Instant, from: SocketAddr) -> Verdict {
        let verdict = match self.learned {
            Some((learned, _)) if learned == from => Verdict::Known,
            Some((_, heard))
                if self.negotiated != Some(from)
                    && now.saturating_duration_since(heard) < RELEARN_AFTER =>
            {
                return Verdict::Stranger;
            }
            _ => Verdict::Learned,
        };
        self.learned = Some((from, now));
        verdict
    }

    /// Whether packets come from here.
    pub(crate) fn is_source(&self, from: SocketAddr) -> bool {
        self.learned.is_some_and(|(learned, _)| learned == from)
    }

    /// Whether the source is the one that was negotiated, as far as one is known.
    pub(crate) fn is_as_negotiated(&self) -> bool {
        self.source()
            .is_none_or(|source| Some(source) == self.negotiated)
    }

    /// Where packets come from.
    pub(crate) fn source(&self) -> Option<SocketAddr> {
        self.learned.map(|(learned, _)| learned)
    }

    /// Where packets go.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        self.source().or(self.negotiated)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests begin now")]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn the_first_source_is_learned_and_strangers_are_not() {
        let now = Instant::now();
        let mut latch = Latch::new(Some(address(1)));
        assert_eq!(latch.destination(), Some(address(1)));
        assert_eq!(latch.check(now, address(2)), Verdict::Learned);
        assert_eq!(latch.destination(), Some(address(2)));
        assert_eq!(latch.check(now, address(3)), Verdict::Stranger);
        assert_eq!(latch.check(now, address(2)), Verdict::Known);
        assert!(!latch.is_as_negotiated());
    }

    #[test]
    fn the_negotiated_source_wins_at_any_time_and_then_stays() {
        let now = Instant::now();
        let mut latch = Latch::new(Some(address(1)));
        latch.check(now, address(2));
        assert_eq!(latch.check(now, address(1)), Verdict::Learned);
        assert_eq!(latch.check(now, address(2)), Verdict::Stranger);
        assert!(latch.is_as_negotiated());
    }

    #[test]
    fn another_source_is_learned_once_the_old_one_is_silent() {
        let now = Instant::now();
        let mut latch = Latch::new(None);
        assert_eq!(latch.destination(), None);
        latch.check(now, address(2));
        let sooner = now + RELEARN_AFTER - Duration::from_millis(1);
        assert_eq!(latch.check(sooner, address(3)), Verdict::Stranger);
        assert_eq!(
            latch.check(now + RELEARN_AFTER, address(3)),
            Verdict::Learned
        );
        assert_eq!(latch.destination(), Some(address(3)));
    }

    #[test]
    fn a_new_description_forgets_what_was_learned_and_the_same_one_does_not() {
        let now = Instant::now();
        let mut latch = Latch::new(Some(address(1)));
        latch.check(now, address(2));
        latch.renegotiate(Some(address(1)));
        assert_eq!(latch.destination(), Some(address(2)));
        latch.renegotiate(Some(address(9)));
        assert_eq!(latch.destination(), Some(address(9)));
        latch.check(now, address(4));
        latch.renegotiate(None);
        assert_eq!(latch.destination(), None);
    }
}
