//! The four transaction machines of RFC 3261 section 17, with the Accepted state of RFC 6026.
//!
//! ```text
//!   client INVITE   Calling --1xx--> Proceeding        server INVITE   Proceeding --2xx--> Accepted
//!      A, B            |2xx  \300+       |                  |300+                            L
//!                      v      v          v                  v
//!                  Accepted M   Completed D             Completed G, H --ACK--> Confirmed I
//!   client other    Trying E, F --1xx--> Proceeding E, F --final--> Completed K
//!   server other    Trying --1xx--> Proceeding --final--> Completed J
//! ```
//! Each machine knows its state and its deadlines, nothing of messages: an input gives an
//! [`Effect`], and the endpoint, which holds the octets, carries it out. Deadlines are absolute;
//! reliable transports skip the timers that resend, and their wait states last no time.

mod client;
mod server;
#[cfg(test)]
#[rustfmt::skip] // A row a line.
mod table;

use std::time::{Duration, Instant};

pub(crate) use client::{ClientInvite, ClientOther};
pub(crate) use server::{ServerInvite, ServerOther};

/// The base intervals (RFC 3261 section 17.1.1.1 and table 4).
#[derive(Copy, Clone, Debug)]
pub(crate) struct Timing {
    /// Round-trip estimate, 500 ms.
    pub(crate) t1: Duration,
    /// Longest interval between repeats, 4 s.
    pub(crate) t2: Duration,
    /// How long a message may live in the network, 5 s.
    pub(crate) t4: Duration,
    /// Whether the transport repeats lost octets itself.
    pub(crate) reliable: bool,
}

impl Timing {
    /// 64 x T1: timers B, F, H, J, L and M.
    pub(crate) fn give_up(&self) -> Duration {
        self.t1 * 64
    }

    /// The interval of a wait state: nothing where the transport is reliable.
    fn wait(&self, interval: Duration) -> Duration {
        if self.reliable {
            Duration::ZERO
        } else {
            interval
        }
    }

    /// The first moment to repeat at, where repeating is ours to do.
    fn repeat(&self, now: Instant) -> Option<Instant> {
        (!self.reliable).then_some(now + self.t1)
    }
}

/// What the endpoint has to do for a transaction.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Effect {
    pub(crate) send: Option<Send>,
    pub(crate) tell: Option<Tell>,
}

/// What goes on the wire.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Send {
    /// The request, or the last response, once more.
    Again,
    /// An ACK to a final response other than 2xx (section 17.1.1.3).
    Ack,
}

/// What the transaction user hears.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Tell {
    /// The response at hand.
    Response,
    /// Nothing came in time.
    Timeout,
    /// The transport could not deliver.
    Transport,
}

impl Effect {
    pub(crate) const NOTHING: Self = Self {
        send: None,
        tell: None,
    };

    fn send(send: Send) -> Self {
        Self {
            send: Some(send),
            tell: None,
        }
    }

    fn tell(tell: Tell) -> Self {
        Self {
            send: None,
            tell: Some(tell),
        }
    }
}

/// A repeat timer: doubles its interval each time it fires.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Repeat {
    at: Instant,
    interval: Duration,
}

impl Repeat {
    fn first(now: Instant, timing: &Timing) -> Option<Self> {
        timing.repeat(now).map(|at| Self {
            at,
            interval: timing.t1,
        })
    }

    /// The repeat after this one; `cap` is T2 where the timer has one.
    fn next(self, now: Instant, cap: Option<Duration>) -> Self {
        let doubled = self.interval * 2;
        let interval = cap.map_or(doubled, |cap| doubled.min(cap));
        Self {
            at: now + interval,
            interval,
        }
    }
}
