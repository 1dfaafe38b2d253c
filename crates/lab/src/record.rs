//! What happened to each call, as each end saw its signalling.

use std::time::{Duration, Instant};

use crate::generator::LegId;
use crate::law::Law;
use crate::plan::CallPlan;

/// How a call ended for the one who placed or answered it.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Ending {
    /// It has not ended.
    Open,
    /// We hung up and the BYE was answered, or given up by the endpoint.
    HungUp,
    /// The other side hung up.
    HungUpByPeer,
    /// A final answer of 300 or above.
    Refused(u16),
    /// No final answer within the transaction's time.
    TimedOut,
    /// The message could not be delivered.
    Undelivered,
    /// Nobody answered and the caller gave up.
    GivenUp,
    /// The caller gave up before it was answered (seen by the callee).
    Cancelled,
    /// Our 2xx was never acknowledged.
    NotAcknowledged,
    /// The session description was missing, unreadable, or had no law of ours.
    NoMedia,
    /// No RTP port was left: the lab's own fault.
    NoPort,
    /// The lab's own endpoint could not take the call: the lab's own fault.
    NotPlaced,
}

impl Ending {
    /// Whether an answered call came to an orderly end.
    #[must_use]
    pub fn is_orderly(self) -> bool {
        matches!(self, Self::HungUp | Self::HungUpByPeer)
    }
}

/// A call as its caller saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct CallRecord {
    /// What was planned.
    pub plan: CallPlan,
    /// When it was to start.
    pub intended: Instant,
    /// When its INVITE was handed to the endpoint.
    pub placed: Instant,
    /// First 180 or 183.
    pub ringing: Option<Instant>,
    /// The 2xx.
    pub answered: Option<Instant>,
    /// Our BYE.
    pub hung_up: Option<Instant>,
    /// Its end.
    pub ended: Option<Instant>,
    /// How it ended.
    pub ending: Ending,
    /// Its media.
    pub leg: Option<LegId>,
    /// The law it spoke.
    pub law: Option<Law>,
}

impl CallRecord {
    /// Set-up time: from the intended start to the 2xx.
    #[must_use]
    pub fn set_up(&self) -> Option<Duration> {
        Some(self.answered?.saturating_duration_since(self.intended))
    }

    /// From the 2xx to the BYE, ours or theirs.
    #[must_use]
    pub fn lasted(&self) -> Option<Duration> {
        let end = self.hung_up.or(self.ended)?;
        Some(end.saturating_duration_since(self.answered?))
    }
}

/// A call as its callee saw it.
#[derive(Clone, PartialEq, Debug)]
pub struct AnswerRecord {
    /// Its number, when the caller's user part told it.
    pub number: Option<u32>,
    /// The INVITE.
    pub arrived: Instant,
    /// The ACK.
    pub acknowledged: Option<Instant>,
    /// Its end.
    pub ended: Option<Instant>,
    /// How it ended.
    pub ending: Ending,
    /// Its media.
    pub leg: Option<LegId>,
    /// The law it spoke.
    pub law: Option<Law>,
}
