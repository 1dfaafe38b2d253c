//! The judgement of one call: its plan held against what both ends saw and heard.
//!
//! Signalling comes first; audio is judged only when the call was answered as planned. Every
//! fault found is listed, with its size.

use std::fmt;
use std::time::Duration;

use crate::analysis::{ToneFound, find_tone, sounding_share};
use crate::capture::Capture;
use crate::follow::{Followed, Speaker, follow};
use crate::hearing::Heard;
use crate::law::Law;
use crate::mark::{MarkKey, Side};
use crate::plan::{DELAY_MARGIN, Expect, TONE_LEVEL_DBM0};
use crate::record::{AnswerRecord, CallRecord, Ending};
use crate::stream::{FRAME_SAMPLES, LegReport};

/// RTP clock and sample rate of G.711.
const RATE: u32 = 8000;

/// Share of an expected tone's sounding blocks that must hold it: the first and last block may
/// be cut by the call's own ends.
const TONE_PURITY: f64 = 0.9;

/// Least share of a sound that must be above silence.
const SOUNDING: f64 = 0.9;

/// Something that is not as planned.
#[derive(Clone, PartialEq, Debug)]
#[non_exhaustive]
pub enum Fault {
    /// The caller's signalling ended otherwise.
    Ended(Ending),
    /// The callee's signalling ended otherwise.
    CalleeEnded(Ending),
    /// It was answered, but a refusal was due.
    Answered,
    /// No leg at this side.
    NoLeg(Side),
    /// Marked frames did not arrive as sent.
    Heard(Side, Box<Heard>),
    /// What one side received is not what the other sent: sent, received.
    Lost(Side, u64, u64),
    /// Sequence numbers with gaps or repeats: missing, behind.
    Sequence(Side, u64, u64),
    /// Datagrams that are no RTP, or RTP of an unexpected payload type.
    Foreign(Side, u64),
    /// Frames came earlier or later than planned: least and most.
    Delayed(Side, Duration, Duration),
    /// The tone is not there as planned.
    Tone(Side, ToneFound),
    /// Too little sound: the share above silence.
    Quiet(Side, f64),
    /// Nothing was heard at all.
    Silence(Side),
    /// What was played back is not what was said.
    Playback(Followed),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(ending) => write!(f, "caller: call ended {ending:?}"),
            Self::CalleeEnded(ending) => write!(f, "callee: call ended {ending:?}"),
            Self::Answered => write!(f, "answered where a refusal was due"),
            Self::NoLeg(side) => write!(f, "{}: no media", name(*side)),
            Self::Heard(side, h) => write!(
                f,
                "{} heard {} frames: {} exact, {} altered, {} unreadable, {} of a wrong party, \
                 {} repeated, {} late, {} missing in {} gaps",
                name(*side),
                h.frames,
                h.exact,
                h.altered,
                h.unreadable,
                h.wrong_party,
                h.repeated,
                h.late,
                h.missing,
                h.gaps,
            ),
            Self::Lost(side, sent, received) => {
                write!(
                    f,
                    "{} received {received} packets of {sent} sent",
                    name(*side)
                )
            }
            Self::Sequence(side, missing, behind) => write!(
                f,
                "{}: {missing} sequence numbers missing, {behind} repeated or late",
                name(*side)
            ),
            Self::Foreign(side, count) => {
                write!(f, "{}: {count} packets that are no audio", name(*side))
            }
            Self::Delayed(side, least, most) => write!(
                f,
                "{}: frames {:.0} to {:.0} ms late",
                name(*side),
                least.as_secs_f64() * 1e3,
                most.as_secs_f64() * 1e3
            ),
            Self::Tone(side, tone) => write!(
                f,
                "{}: tone in {} of {} blocks ({} silent), {:.1} Hz, {:.1} dBm0",
                name(*side),
                tone.with_tone,
                tone.blocks,
                tone.silent,
                tone.hz,
                tone.level_dbm0,
            ),
            Self::Quiet(side, share) => {
                write!(
                    f,
                    "{}: sound in {:.0} % of the time",
                    name(*side),
                    share * 100.0
                )
            }
            Self::Silence(side) => write!(f, "{} heard nothing", name(*side)),
            Self::Playback(found) => write!(
                f,
                "played back: {} frames whole, {} broken, {} not there at the start",
                found.whole, found.broken, found.before
            ),
        }
    }
}

fn name(side: Side) -> &'static str {
    match side {
        Side::Caller => "caller",
        Side::Callee => "callee",
    }
}

/// One call from both ends.
#[derive(Clone, Debug)]
pub struct CallEvidence<'a> {
    /// What the caller saw.
    pub call: &'a CallRecord,
    /// What the caller said and heard.
    pub caller: Option<&'a LegReport>,
    /// What the callee saw.
    pub answer: Option<&'a AnswerRecord>,
    /// What the callee said and heard.
    pub callee: Option<&'a LegReport>,
    /// Frames the caller of an earlier call said, when this one plays them back.
    pub earlier_sent: Option<u64>,
}

/// Judges one call; no fault means that all is as planned.
#[must_use]
pub fn judge(key: MarkKey, evidence: &CallEvidence<'_>) -> Vec<Fault> {
    let CallRecord { plan, ending, .. } = evidence.call;
    if let Expect::Refused(code) = plan.expect {
        return match *ending {
            Ending::Refused(got) if got == code => vec![],
            _ if evidence.call.answered.is_some() => vec![Fault::Answered],
            other => vec![Fault::Ended(other)],
        };
    }
    if evidence.call.answered.is_none() || !ending.is_orderly() {
        return vec![Fault::Ended(*ending)];
    }
    let Some(caller) = evidence.caller else {
        return vec![Fault::NoLeg(Side::Caller)];
    };
    let mut faults = Vec::new();
    stream_faults(Side::Caller, caller, &mut faults);
    match plan.expect {
        Expect::Refused(_) => {}
        Expect::Echo { delay } => {
            marks(Side::Caller, caller, caller.sent, &mut faults);
            delayed(Side::Caller, caller, delay, &mut faults);
        }
        Expect::Peer | Expect::TonePeer { .. } => bridged(evidence, caller, &mut faults),
        Expect::Tone { hz, level_dbm0 } => {
            captured(caller, &mut faults, |pcm, faults| {
                tone(Side::Caller, pcm, hz, level_dbm0, faults);
            });
        }
        Expect::Sound => captured(caller, &mut faults, |pcm, faults| {
            let share = sounding_share(pcm, RATE);
            if share < SOUNDING {
                faults.push(Fault::Quiet(Side::Caller, share));
            }
        }),
        Expect::Prompt { at_least } => captured(caller, &mut faults, |pcm, faults| {
            let sound = sounding_share(pcm, RATE) * pcm.len() as f64 / f64::from(RATE);
            // Blocks are 50 ms, so a prompt of n blocks fills at least n - 1.
            if sound + 0.05 < at_least.as_secs_f64() {
                faults.push(Fault::Quiet(Side::Caller, sounding_share(pcm, RATE)));
            }
        }),
        Expect::Playback { of } => {
            let said = evidence.earlier_sent;
            played_back(key, caller, of, plan.law, said, &mut faults);
        }
    }
    faults
}

/// What must hold for any leg.
fn stream_faults(side: Side, leg: &LegReport, faults: &mut Vec<Fault>) {
    let sequence = leg.sequence;
    if sequence.missing + sequence.behind > 0 {
        faults.push(Fault::Sequence(side, sequence.missing, sequence.behind));
    }
    if leg.junk + leg.other_payload > 0 {
        faults.push(Fault::Foreign(side, leg.junk + leg.other_payload));
    }
}

fn marks(side: Side, leg: &LegReport, sent: u64, faults: &mut Vec<Fault>) {
    lost(side, leg, sent, faults);
    if !leg.heard.is_exact() {
        faults.push(Fault::Heard(side, Box::new(leg.heard.clone())));
    }
}

fn lost(side: Side, leg: &LegReport, sent: u64, faults: &mut Vec<Fault>) {
    if leg.received != sent || sent == 0 {
        faults.push(Fault::Lost(side, sent, leg.received));
    }
}

fn delayed(side: Side, leg: &LegReport, planned: Duration, faults: &mut Vec<Fault>) {
    let Some(delay) = leg.delay else {
        return;
    };
    // A server on a 20 ms clock may hand a frame out up to one tick before its delay is full.
    let early = delay.min + Duration::from_millis(20) < planned;
    if early || delay.max > planned + DELAY_MARGIN {
        faults.push(Fault::Delayed(side, delay.min, delay.max));
    }
}

fn bridged(evidence: &CallEvidence<'_>, caller: &LegReport, faults: &mut Vec<Fault>) {
    match evidence.answer {
        Some(answer) if answer.ending.is_orderly() => {}
        Some(answer) => faults.push(Fault::CalleeEnded(answer.ending)),
        None => {}
    }
    let Some(callee) = evidence.callee else {
        faults.push(Fault::NoLeg(Side::Callee));
        return;
    };
    stream_faults(Side::Callee, callee, faults);
    let Expect::TonePeer {
        caller_hz,
        callee_hz,
    } = evidence.call.plan.expect
    else {
        for (side, leg, peer) in [
            (Side::Caller, caller, callee),
            (Side::Callee, callee, caller),
        ] {
            marks(side, leg, peer.sent, faults);
            delayed(side, leg, Duration::ZERO, faults);
        }
        return;
    };
    for (side, leg, peer, hz) in [
        (Side::Caller, caller, callee, callee_hz),
        (Side::Callee, callee, caller, caller_hz),
    ] {
        lost(side, leg, peer.sent, faults);
        match leg
            .capture
            .as_ref()
            .filter(|capture| !capture.codes().is_empty())
        {
            Some(capture) => {
                tone(side, &capture.pcm(), hz, TONE_LEVEL_DBM0, faults);
            }
            None => faults.push(Fault::Silence(side)),
        }
    }
}

fn captured(leg: &LegReport, faults: &mut Vec<Fault>, check: impl FnOnce(&[i16], &mut Vec<Fault>)) {
    let capture = leg
        .capture
        .as_ref()
        .filter(|capture| !capture.codes().is_empty());
    match capture.map(Capture::pcm) {
        Some(pcm) => check(&pcm, faults),
        None => faults.push(Fault::Silence(leg.side)),
    }
}

/// Within 1 Hz and 1 dB, and nothing else sounds.
fn tone(side: Side, pcm: &[i16], hz: f64, level_dbm0: f64, faults: &mut Vec<Fault>) {
    let found = find_tone(pcm, RATE, hz);
    // A tone that was not found has no frequency, and is near nothing.
    let tuned = (found.hz - hz).abs() <= 1.0;
    let level = (found.level_dbm0 - level_dbm0).abs() <= 1.0;
    let sounding = found.silent * 10 <= found.blocks;
    if !(tuned && level && sounding) || found.purity() < TONE_PURITY {
        faults.push(Fault::Tone(side, found));
    }
}

fn played_back(
    key: MarkKey,
    leg: &LegReport,
    of: u32,
    law: Law,
    said: Option<u64>,
    faults: &mut Vec<Fault>,
) {
    let speaker = Speaker {
        call: of,
        side: Side::Caller,
        law,
        frames: said.unwrap_or(0),
    };
    captured(leg, faults, |pcm, faults| {
        let found = follow(key, pcm, FRAME_SAMPLES, speaker);
        if !is_all_but_prompt(found) {
            faults.push(Fault::Playback(found));
        }
    });
}

/// Whether everything is there from some frame on, and the frames before it can be those that a
/// prompt was played over.
pub(crate) fn is_all_but_prompt(found: Followed) -> bool {
    found.whole > 0 && found.broken == 0 && found.before <= PROMPT_FRAMES
}

/// Frames that a prompt may cover: 600 ms.
const PROMPT_FRAMES: u64 = 30;

#[cfg(test)]
mod tests;
