//! What a run is to do: which calls, when, to whom, and what must be heard.
//!
//! Arrivals are open loop: a call's start is fixed before the run, and set-up times count from
//! there, so a slow server cannot hide by slowing the lab down.

use std::time::Duration;

use crate::law::Law;
use crate::mark::Side;
use crate::stream::{Listen, Speech};

/// One call to be placed.
#[derive(Clone, PartialEq, Debug)]
pub struct CallPlan {
    /// Number within the run; unique, at most [`crate::mark::MAX_CALL`].
    pub number: u32,
    /// User part to call.
    pub user: String,
    /// When, from the run's start.
    pub at: Duration,
    /// For how long the caller speaks.
    pub talk: Duration,
    /// Time from its last frame to its BYE: what is under way arrives.
    pub linger: Duration,
    /// The law it offers.
    pub law: Law,
    /// What must come of it.
    pub expect: Expect,
}

/// What must come of a call.
#[derive(Clone, PartialEq, Debug)]
pub enum Expect {
    /// A final answer of this code.
    Refused(u16),
    /// Its own marked frames, this much later and at most [`DELAY_MARGIN`] more.
    Echo {
        /// The delay the server puts in.
        delay: Duration,
    },
    /// The callee's marked frames, and the callee its own.
    Peer,
    /// Two tones that people can listen to: the caller says one and hears the other.
    TonePeer {
        /// Frequency the caller says.
        caller_hz: f64,
        /// Frequency the callee says.
        callee_hz: f64,
    },
    /// A tone from the server.
    Tone {
        /// Its frequency.
        hz: f64,
        /// Its level.
        level_dbm0: f64,
    },
    /// Sound without a pause, and no single tone.
    Sound,
    /// A prompt tone, then the server listens.
    Prompt {
        /// Shortest prompt that counts.
        at_least: Duration,
    },
    /// What the caller said in an earlier call, played back.
    Playback {
        /// Number of that call.
        of: u32,
    },
}

/// How much later than it was due a frame may be heard, on top of what the server puts in: more
/// than a busy machine stalls a process for, less than a second of anything else.
pub const DELAY_MARGIN: Duration = Duration::from_millis(500);

/// Level of the tones said for people to listen to.
pub const TONE_LEVEL_DBM0: f64 = -16.0;

impl Expect {
    /// What the caller says.
    #[must_use]
    pub fn caller_speech(&self) -> Speech {
        match *self {
            Self::TonePeer { caller_hz, .. } => Speech::Tone {
                hz: caller_hz,
                level_dbm0: TONE_LEVEL_DBM0,
            },
            Self::Playback { .. } => Speech::Nothing,
            _ => Speech::Marks,
        }
    }

    /// What the caller does with what it hears.
    #[must_use]
    pub fn caller_listens(&self) -> Listen {
        match self {
            Self::Echo { .. } => Listen::Marks(Side::Caller),
            Self::Peer | Self::Refused(_) => Listen::Marks(Side::Callee),
            _ => Listen::Capture,
        }
    }

    /// Whether a callee of the lab takes part.
    #[must_use]
    pub fn has_callee(&self) -> bool {
        matches!(self, Self::Peer | Self::TonePeer { .. })
    }
}

/// The user part by which a callee of the lab knows what to say: number, and frequency for a
/// tone (`lab.17`, `lab.17.660`). A call that plays back an earlier one comes from its caller.
/// Dots survive in the names of recordings, where dashes stand between fields.
#[must_use]
pub fn caller_user(plan: &CallPlan) -> String {
    match plan.expect {
        Expect::TonePeer { callee_hz, .. } => format!("lab.{}.{callee_hz:.0}", plan.number),
        Expect::Playback { of } => format!("lab.{of}"),
        _ => format!("lab.{}", plan.number),
    }
}

/// Reads [`caller_user`] back: number and tone.
#[must_use]
pub fn parse_caller_user(user: &str) -> Option<(u32, Option<f64>)> {
    let rest = user.strip_prefix("lab.")?;
    match rest.split_once('.') {
        None => Some((rest.parse().ok()?, None)),
        Some((number, hz)) => Some((number.parse().ok()?, Some(hz.parse().ok()?))),
    }
}

/// Start of the nth call at a constant `rate` of calls a second.
///
/// # Panics
/// When `rate` is not above zero.
#[must_use]
pub fn constant_rate(rate: f64, n: u32) -> Duration {
    assert!(rate > 0.0, "a rate is above zero");
    Duration::from_secs_f64(f64::from(n) / rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caller_s_user_part_is_read_back() {
        let mut plan = CallPlan {
            number: 17,
            user: "bridge".into(),
            at: Duration::ZERO,
            talk: Duration::ZERO,
            linger: Duration::ZERO,
            law: Law::A,
            expect: Expect::Peer,
        };
        assert_eq!(parse_caller_user(&caller_user(&plan)), Some((17, None)));
        plan.expect = Expect::TonePeer {
            caller_hz: 440.0,
            callee_hz: 660.0,
        };
        assert_eq!(
            parse_caller_user(&caller_user(&plan)),
            Some((17, Some(660.0)))
        );
        assert_eq!(parse_caller_user("alice"), None);
        assert_eq!(parse_caller_user("lab.x"), None);
    }

    #[test]
    fn calls_start_on_an_absolute_grid() {
        assert_eq!(constant_rate(50.0, 0), Duration::ZERO);
        assert_eq!(constant_rate(50.0, 1), Duration::from_millis(20));
        assert_eq!(constant_rate(50.0, 10_000), Duration::from_secs(200));
    }
}
