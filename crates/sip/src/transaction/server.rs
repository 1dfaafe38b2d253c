//! Server transactions: RFC 3261 sections 17.2.1 (INVITE, with RFC 6026) and 17.2.2 (all others).

use std::time::{Duration, Instant};

use super::{Effect, Repeat, Send, Tell, Timing};

/// A server INVITE transaction. It is made when the INVITE came, and 100 goes out at once.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ServerInvite {
    pub(crate) state: InviteState,
    timing: Timing,
}

/// Where a server INVITE transaction is.
#[derive(Copy, Clone, Debug)]
pub(crate) enum InviteState {
    /// No final response yet: a repeated INVITE gets the last provisional one again.
    Proceeding,
    /// A 2xx went out; repeated INVITEs are absorbed until L (RFC 6026 section 7.1). The user
    /// repeats the 2xx itself.
    Accepted { l: Instant },
    /// A refusal went out: G repeats it, H gives up waiting for the ACK.
    Completed { g: Option<Repeat>, h: Instant },
    /// The ACK came; its repeats are absorbed until I.
    Confirmed { i: Instant },
    /// Over.
    Terminated,
}

impl ServerInvite {
    pub(crate) fn start(timing: Timing) -> Self {
        Self {
            state: InviteState::Proceeding,
            timing,
        }
    }

    /// The INVITE came once more.
    pub(crate) fn handle_repeat(&self) -> Effect {
        match self.state {
            InviteState::Proceeding | InviteState::Completed { .. } => Effect::send(Send::Again),
            _ => Effect::NOTHING,
        }
    }

    /// The user responds; false where the transaction takes no such response any more.
    pub(crate) fn respond(&mut self, now: Instant, code: u16) -> bool {
        use InviteState as S;
        match (self.state, code) {
            (S::Proceeding, 100..=199) | (S::Accepted { .. }, 200..=299) => {}
            (S::Proceeding, 200..=299) => {
                self.state = S::Accepted {
                    l: now + self.timing.give_up(),
                };
            }
            (S::Proceeding, _) => {
                self.state = S::Completed {
                    g: Repeat::first(now, &self.timing),
                    h: now + self.timing.give_up(),
                };
            }
            _ => return false,
        }
        true
    }

    /// The ACK of a refusal came.
    pub(crate) fn handle_ack(&mut self, now: Instant) {
        if let InviteState::Completed { .. } = self.state {
            self.state = match self.timing.wait(self.timing.t4) {
                Duration::ZERO => InviteState::Terminated,
                i => InviteState::Confirmed { i: now + i },
            };
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Effect {
        use InviteState as S;
        let t2 = self.timing.t2;
        match &mut self.state {
            S::Completed { h, .. } if *h <= now => {
                self.state = S::Terminated;
                Effect::tell(Tell::Timeout)
            }
            S::Completed { g: Some(g), .. } if g.at <= now => {
                *g = g.next(now, Some(t2));
                Effect::send(Send::Again)
            }
            S::Accepted { l: at } | S::Confirmed { i: at } if *at <= now => {
                self.state = S::Terminated;
                Effect::NOTHING
            }
            _ => Effect::NOTHING,
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        use InviteState as S;
        match self.state {
            S::Completed { g, h } => Some(g.map_or(h, |g| g.at.min(h))),
            S::Accepted { l: at } | S::Confirmed { i: at } => Some(at),
            S::Proceeding | S::Terminated => None,
        }
    }

    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, InviteState::Terminated)
    }

    /// Whether a refusal went out, so that ACKs belong here.
    pub(crate) fn is_refused(&self) -> bool {
        use InviteState as S;
        matches!(self.state, S::Completed { .. } | S::Confirmed { .. })
    }

    /// Whether no final response went out yet.
    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, InviteState::Proceeding)
    }
}

/// A server transaction of any other method.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ServerOther {
    pub(crate) state: OtherState,
    timing: Timing,
}

/// Where a non-INVITE server transaction is.
#[derive(Copy, Clone, Debug)]
pub(crate) enum OtherState {
    /// Nothing went out yet: a repeated request is absorbed.
    Trying,
    /// A provisional response went out and is repeated on demand.
    Proceeding,
    /// The final response went out and is repeated on demand until J.
    Completed { j: Instant },
    /// Over.
    Terminated,
}

impl ServerOther {
    pub(crate) fn start(timing: Timing) -> Self {
        Self {
            state: OtherState::Trying,
            timing,
        }
    }

    /// The request came once more.
    pub(crate) fn handle_repeat(&self) -> Effect {
        match self.state {
            OtherState::Proceeding | OtherState::Completed { .. } => Effect::send(Send::Again),
            OtherState::Trying | OtherState::Terminated => Effect::NOTHING,
        }
    }

    /// The user responds; false where a final response went out before.
    pub(crate) fn respond(&mut self, now: Instant, code: u16) -> bool {
        use OtherState as S;
        if matches!(self.state, S::Completed { .. } | S::Terminated) {
            return false;
        }
        self.state = if code < 200 {
            S::Proceeding
        } else {
            match self.timing.wait(self.timing.give_up()) {
                Duration::ZERO => S::Terminated,
                j => S::Completed { j: now + j },
            }
        };
        true
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if let OtherState::Completed { j } = self.state
            && j <= now
        {
            self.state = OtherState::Terminated;
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            OtherState::Completed { j } => Some(j),
            _ => None,
        }
    }

    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, OtherState::Terminated)
    }
}
