//! Client transactions: RFC 3261 sections 17.1.1 (INVITE) and 17.1.2 (all others).

use std::time::{Duration, Instant};

use super::{Effect, Repeat, Send, Tell, Timing};

/// Timer D: how long repeats of a refusal are acknowledged on an unreliable transport (at least
/// 32 s, section 17.1.1.2).
const TIMER_D: Duration = Duration::from_secs(32);

/// A client INVITE transaction.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ClientInvite {
    pub(crate) state: InviteState,
    timing: Timing,
    /// When it is over without a final response, where nobody waits for one.
    abandoned: Option<Instant>,
}

/// Where a client INVITE transaction is; each state holds the timers that run in it.
#[derive(Copy, Clone, Debug)]
pub(crate) enum InviteState {
    /// Nothing came yet: A repeats, B gives up.
    Calling { a: Option<Repeat>, b: Instant },
    /// A provisional response came; how long to wait is the user's decision.
    Proceeding,
    /// A 2xx came; further ones (repeats, forks) are passed up until M (RFC 6026 section 8.4).
    Accepted { m: Instant },
    /// A refusal came and was acknowledged; its repeats are until D.
    Completed { d: Instant },
    /// Over.
    Terminated,
}

impl ClientInvite {
    pub(crate) fn start(now: Instant, timing: Timing) -> Self {
        let state = InviteState::Calling {
            a: Repeat::first(now, &timing),
            b: now + timing.give_up(),
        };
        Self {
            state,
            timing,
            abandoned: None,
        }
    }

    /// Nobody waits for the outcome any more: where no final response comes in 64 x T1 either, it is
    /// over, as section 9.1 has it for a cancelled INVITE.
    pub(crate) fn abandon(&mut self, now: Instant) {
        self.abandoned = Some(now + self.timing.give_up());
    }

    pub(crate) fn handle_response(&mut self, now: Instant, code: u16) -> Effect {
        use InviteState as S;
        match (self.state, code) {
            (S::Calling { .. } | S::Proceeding, 100..=199) => {
                self.state = S::Proceeding;
                Effect::tell(Tell::Response)
            }
            (S::Calling { .. } | S::Proceeding, 200..=299) => {
                self.state = S::Accepted {
                    m: now + self.timing.give_up(),
                };
                Effect::tell(Tell::Response)
            }
            (S::Calling { .. } | S::Proceeding, _) => {
                self.state = match self.timing.wait(TIMER_D) {
                    Duration::ZERO => S::Terminated,
                    d => S::Completed { d: now + d },
                };
                Effect {
                    send: Some(Send::Ack),
                    tell: Some(Tell::Response),
                }
            }
            (S::Accepted { .. }, 200..=299) => Effect::tell(Tell::Response),
            (S::Completed { .. }, 300..) => Effect::send(Send::Ack),
            _ => Effect::NOTHING,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Effect {
        use InviteState as S;
        match &mut self.state {
            S::Calling { b, .. } if *b <= now => {
                self.state = S::Terminated;
                Effect::tell(Tell::Timeout)
            }
            S::Calling { a: Some(a), .. } if a.at <= now => {
                *a = a.next(now, None);
                Effect::send(Send::Again)
            }
            S::Accepted { m: at } | S::Completed { d: at } if *at <= now => {
                self.state = S::Terminated;
                Effect::NOTHING
            }
            S::Proceeding if self.abandoned.is_some_and(|at| at <= now) => {
                self.state = S::Terminated;
                Effect::NOTHING
            }
            _ => Effect::NOTHING,
        }
    }

    pub(crate) fn handle_transport_error(&mut self) -> Effect {
        use InviteState as S;
        match self.state {
            S::Calling { .. } | S::Proceeding => {
                self.state = S::Terminated;
                Effect::tell(Tell::Transport)
            }
            S::Completed { .. } => {
                self.state = S::Terminated;
                Effect::NOTHING
            }
            S::Accepted { .. } | S::Terminated => Effect::NOTHING,
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        use InviteState as S;
        match self.state {
            S::Calling { a, b } => Some(a.map_or(b, |a| a.at.min(b))),
            S::Accepted { m: at } | S::Completed { d: at } => Some(at),
            S::Proceeding => self.abandoned,
            S::Terminated => None,
        }
    }

    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, InviteState::Terminated)
    }

    /// Whether repeats of a refusal are still to be acknowledged.
    pub(crate) fn is_refused(&self) -> bool {
        matches!(self.state, InviteState::Completed { .. })
    }
}

/// A client transaction of any other method.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ClientOther {
    pub(crate) state: OtherState,
    timing: Timing,
}

/// Where a non-INVITE client transaction is.
#[derive(Copy, Clone, Debug)]
pub(crate) enum OtherState {
    /// Nothing came yet: E repeats, F gives up.
    Trying { e: Option<Repeat>, f: Instant },
    /// A provisional response came: E goes on at T2, F still gives up.
    Proceeding { e: Option<Repeat>, f: Instant },
    /// A final response came; its repeats are absorbed until K.
    Completed { k: Instant },
    /// Over.
    Terminated,
}

impl ClientOther {
    pub(crate) fn start(now: Instant, timing: Timing) -> Self {
        let state = OtherState::Trying {
            e: Repeat::first(now, &timing),
            f: now + timing.give_up(),
        };
        Self { state, timing }
    }

    pub(crate) fn handle_response(&mut self, now: Instant, code: u16) -> Effect {
        use OtherState as S;
        match (self.state, code) {
            (S::Trying { e, f } | S::Proceeding { e, f }, 100..=199) => {
                let t2 = self.timing.t2;
                let e = e.map(|e| Repeat {
                    at: e.at,
                    interval: t2,
                });
                self.state = S::Proceeding { e, f };
                Effect::tell(Tell::Response)
            }
            (S::Trying { .. } | S::Proceeding { .. }, _) => {
                self.state = match self.timing.wait(self.timing.t4) {
                    Duration::ZERO => S::Terminated,
                    k => S::Completed { k: now + k },
                };
                Effect::tell(Tell::Response)
            }
            (S::Completed { .. } | S::Terminated, _) => Effect::NOTHING,
        }
    }

    pub(crate) fn handle_timeout(&mut self, now: Instant) -> Effect {
        use OtherState as S;
        let t2 = self.timing.t2;
        match &mut self.state {
            S::Trying { f, .. } | S::Proceeding { f, .. } if *f <= now => {
                self.state = S::Terminated;
                Effect::tell(Tell::Timeout)
            }
            S::Trying { e: Some(e), .. } | S::Proceeding { e: Some(e), .. } if e.at <= now => {
                *e = e.next(now, Some(t2));
                Effect::send(Send::Again)
            }
            S::Completed { k } if *k <= now => {
                self.state = S::Terminated;
                Effect::NOTHING
            }
            _ => Effect::NOTHING,
        }
    }

    pub(crate) fn handle_transport_error(&mut self) -> Effect {
        use OtherState as S;
        match self.state {
            S::Trying { .. } | S::Proceeding { .. } => {
                self.state = S::Terminated;
                Effect::tell(Tell::Transport)
            }
            S::Completed { .. } | S::Terminated => Effect::NOTHING,
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        use OtherState as S;
        match self.state {
            S::Trying { e, f } | S::Proceeding { e, f } => Some(e.map_or(f, |e| e.at.min(f))),
            S::Completed { k } => Some(k),
            S::Terminated => None,
        }
    }

    pub(crate) fn is_terminated(&self) -> bool {
        matches!(self.state, OtherState::Terminated)
    }
}
