//! The call detail record: one JSON object per call, written when the call is over.
//!
//! Times are UTC with milliseconds (RFC 3339), derived from the machine's own instants and the
//! epoch captured at its start, so they never run backwards within a call.

use std::time::{Duration, Instant};

use media::command::LegStats;
use serde::{Serialize, Serializer};

use crate::cause::Cause;

/// The pair that ties the monotonic clock to the wall: captured once, at start.
#[derive(Copy, Clone, Debug)]
pub struct Epoch {
    /// A moment on the monotonic clock.
    pub instant: Instant,
    /// The same moment as time since 1970-01-01 00:00 UTC.
    pub unix: Duration,
}

impl Epoch {
    /// Wall time of a later moment.
    #[must_use]
    pub fn wall(&self, at: Instant) -> WallTime {
        WallTime(self.unix + at.saturating_duration_since(self.instant))
    }
}

/// Time since 1970-01-01 00:00 UTC; prints as RFC 3339 with milliseconds.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Ord, PartialOrd)]
pub struct WallTime(pub Duration);

impl std::fmt::Display for WallTime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let seconds = self.0.as_secs();
        let (year, month, day) = civil_from_days(seconds / 86_400);
        let of_day = seconds % 86_400;
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
            of_day / 3_600,
            of_day / 60 % 60,
            of_day % 60,
            self.0.subsec_millis()
        )
    }
}

impl Serialize for WallTime {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The Gregorian date of a day counted from 1970-01-01. Works on years that begin in March, so
/// that the leap day is the last of its year.
fn civil_from_days(days: u64) -> (u64, u64, u64) {
    const DAYS_IN_400_YEARS: u64 = 146_097;
    const MARCH_0000_TO_1970: u64 = 719_468;
    let shifted = days + MARCH_0000_TO_1970;
    let (era, in_era) = (shifted / DAYS_IN_400_YEARS, shifted % DAYS_IN_400_YEARS);
    let year_of_era = (in_era - in_era / 1_460 + in_era / 36_524 - in_era / 146_096) / 365;
    let in_year = in_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * in_year + 2) / 153;
    let day = in_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (era * 400 + year_of_era + u64::from(month <= 2), month, day)
}

/// One call, once it is over.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Cdr {
    /// Our own number of the call, unique while the process lives.
    pub call: String,
    /// Who called: the user of From.
    pub caller: String,
    /// Who was called: the user of the Request-URI.
    pub callee: String,
    /// Where the INVITE came from: `transport:address:port`.
    pub source: String,
    /// Call-ID of leg A.
    pub call_id: String,
    /// Leg B, where one answered or was tried last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leg_b: Option<CdrLeg>,
    /// The dialplan's rule, by name or number.
    pub rule: String,
    /// What the rule said: `echo`, `bridge`, ...
    pub action: &'static str,
    /// The INVITE came.
    pub setup: WallTime,
    /// The caller was told that it rings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ringing: Option<WallTime>,
    /// Our 200 went to the caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<WallTime>,
    /// The call was over.
    pub end: WallTime,
    /// Milliseconds from answer to end; 0 where nobody answered.
    pub talk_ms: u64,
    /// The caller acknowledged our 200 (RFC 3261 section 13.3.1.4). False for a call that was
    /// answered means that the caller never did.
    pub acked: bool,
    /// Why it ended, and who ended it.
    pub cause: Cause,
    /// What media each leg saw; absent where no media passed through us.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub media: Option<[CdrMedia; 2]>,
    /// Recordings made of the call.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub recordings: Vec<String>,
}

/// The callee's side of a bridged call.
#[derive(Clone, Debug, Serialize)]
pub struct CdrLeg {
    /// Its Request-URI.
    pub target: String,
    /// Its Call-ID.
    pub call_id: String,
}

/// One leg's media.
#[derive(Clone, Debug, Default, Serialize)]
pub struct CdrMedia {
    /// The codec on this leg, as `NAME/clock`.
    pub codec: String,
    /// RTP packets taken from this leg.
    pub received: u64,
    /// RTP packets sent to this leg.
    pub sent: u64,
    /// Packets that never came, by sequence number (RFC 3550 section 6.4.1; may be negative when
    /// duplicates outnumber losses).
    pub lost: i64,
}

impl CdrMedia {
    pub(crate) fn new(codec: String, stats: &LegStats) -> Self {
        Self {
            codec,
            received: stats.packets_received,
            sent: stats.packets_sent,
            lost: stats.lost,
        }
    }
}

impl Cdr {
    /// The record as one line of JSON, without line end.
    #[must_use]
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a record holds strings and numbers only")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wall_time_prints_as_rfc_3339() {
        let rows = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_796_083_200_123, "2026-12-01T00:00:00.123Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ];
        for (ms, text) in rows {
            assert_eq!(WallTime(Duration::from_millis(ms)).to_string(), text);
        }
    }
}
