//! Why a call ended: SIP status, Q.850 cause, and the side that caused it.
//!
//! Status to cause follows RFC 3398 section 8.2.6.1; Reason headers follow RFC 3326. Codes that
//! mean something only between us and leg B are mapped before leg A sees them
//! ([`towards_caller`]).

use serde::Serialize;
use sip::Failure;

/// Who ended the call, or kept it from being.
#[derive(Copy, Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Party {
    /// Leg A.
    Caller,
    /// Leg B.
    Callee,
    /// This server: the dialplan, a limit, a timer, an operator, or a fault.
    Server,
}

/// One end of one call, as its CDR tells it.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Cause {
    /// Who.
    pub by: Party,
    /// The final SIP status of leg A's INVITE (200 for a call that was answered).
    pub sip: u16,
    /// ITU-T Q.850 cause value.
    pub q850: u8,
    /// One or two words for a person: `hangup`, `cancelled`, `no answer`, `refused`, ...
    pub why: &'static str,
}

impl Cause {
    /// A cause with the Q.850 value that belongs to the status.
    #[must_use]
    pub fn from_status(by: Party, sip: u16, why: &'static str) -> Self {
        Self {
            by,
            sip,
            q850: q850(sip),
            why,
        }
    }

    /// A call that was answered and then ended.
    #[must_use]
    pub fn after_answer(by: Party, q850: u8, why: &'static str) -> Self {
        Self {
            by,
            sip: 200,
            q850,
            why,
        }
    }

    /// The value of a Reason header that carries this cause (RFC 3326).
    #[must_use]
    pub fn reason_header(&self) -> String {
        format!("Q.850;cause={};text=\"{}\"", self.q850, self.why)
    }
}

/// Normal call clearing.
pub const NORMAL_CLEARING: u8 = 16;
/// No answer from the user (alerted).
pub const NO_ANSWER: u8 = 19;
/// Recovery on timer expiry.
pub const TIMER_EXPIRY: u8 = 102;

/// The Q.850 cause that a SIP status stands for (RFC 3398 section 8.2.6.1). Statuses that the
/// table leaves out take the cause of their class.
#[must_use]
pub fn q850(status: u16) -> u8 {
    match status {
        200..=299 | 487 => NORMAL_CLEARING,
        401..=403 | 407 | 603 => 21,
        404 | 485 | 604 => 1,
        405 => 63,
        406 | 415 | 501 => 79,
        408 | 504 => TIMER_EXPIRY,
        410 => 22,
        480 => 18,
        482 | 483 => 25,
        484 => 28,
        486 | 600 => 17,
        488 | 606 => 88,
        502 => 38,
        413 | 414 | 416 | 420 | 421 | 423 | 505 | 513 => 127,
        400 | 481 | 500 | 503 => 41,
        300..=399 => 23,
        _ if status >= 600 => 21,
        _ => 31,
    }
}

/// The Q.850 value of a Reason header, where it has one (RFC 3326 section 2).
#[must_use]
pub fn q850_of_reason(value: &str) -> Option<u8> {
    let (protocol, parameters) = value.split_once(';')?;
    if !protocol.trim().eq_ignore_ascii_case("Q.850") {
        return None;
    }
    parameters.split(';').find_map(|parameter| {
        let (name, value) = parameter.split_once('=')?;
        name.trim()
            .eq_ignore_ascii_case("cause")
            .then(|| value.trim().parse().ok())?
    })
}

/// The status that leg A gets for a failure of leg B. A challenge is ours to meet, not the
/// caller's (403); 503 would make the caller avoid us rather than leg B (RFC 3261 section 16.7,
/// step 6: 500); a name that does not resolve is a bad gateway.
#[must_use]
pub fn towards_caller(failure: Failure) -> u16 {
    match failure {
        Failure::Response(401 | 407) => 403,
        Failure::Response(503) => 500,
        Failure::Response(code @ 300..=699) => code,
        Failure::Timeout => 408,
        Failure::Unresolved => 502,
        _ => 500,
    }
}

/// The better of two refusals to pass on when several targets rang: any 6xx, else the lowest
/// class, else the one that came first (RFC 3261 section 16.7, step 6).
#[must_use]
pub fn better(kept: u16, next: u16) -> u16 {
    let rank = |code: u16| if code >= 600 { 0 } else { code / 100 };
    if rank(next) < rank(kept) { next } else { kept }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn q850_follows_rfc_3398() {
        // RFC 3398 section 8.2.6.1, in its order.
        let table = [
            (400, 41),
            (401, 21),
            (402, 21),
            (403, 21),
            (404, 1),
            (405, 63),
            (406, 79),
            (407, 21),
            (408, 102),
            (410, 22),
            (413, 127),
            (414, 127),
            (415, 79),
            (416, 127),
            (420, 127),
            (421, 127),
            (423, 127),
            (480, 18),
            (481, 41),
            (482, 25),
            (483, 25),
            (484, 28),
            (485, 1),
            (486, 17),
            (500, 41),
            (501, 79),
            (502, 38),
            (503, 41),
            (504, 102),
            (505, 127),
            (513, 127),
            (600, 17),
            (603, 21),
            (604, 1),
        ];
        for (status, cause) in table {
            assert_eq!(q850(status), cause, "{status}");
        }
    }

    #[test]
    fn a_reason_header_is_read_back() {
        let cause = Cause::after_answer(Party::Callee, 16, "hangup");
        assert_eq!(q850_of_reason(&cause.reason_header()), Some(16));
        assert_eq!(
            q850_of_reason("SIP;cause=200;text=\"Call completed elsewhere\""),
            None
        );
        assert_eq!(q850_of_reason("q.850 ; cause = 17"), Some(17));
        assert_eq!(q850_of_reason("Q.850;cause=999"), None);
    }

    #[test]
    fn challenges_and_overload_of_leg_b_stay_ours() {
        assert_eq!(towards_caller(Failure::Response(407)), 403);
        assert_eq!(towards_caller(Failure::Response(503)), 500);
        assert_eq!(towards_caller(Failure::Response(486)), 486);
        assert_eq!(towards_caller(Failure::Timeout), 408);
    }

    #[test]
    fn the_best_refusal_wins() {
        assert_eq!([486, 302].into_iter().reduce(better), Some(302));
        assert_eq!([486, 404].into_iter().reduce(better), Some(486));
        assert_eq!([302, 603].into_iter().reduce(better), Some(603));
        assert_eq!([500, 480].into_iter().reduce(better), Some(480));
    }
}
