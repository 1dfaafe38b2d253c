//! The demo's recordings, read back: right party on the right side, whole, as long as the call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::analysis::find_tone;
use crate::follow::{Speaker, follow};
use crate::law::Law;
use crate::mark::{MarkKey, Side};
use crate::plan::{Expect, caller_user};
use crate::recordings::Recording;
use crate::run::{CallOutcome, RunOutcome};
use crate::scan::Scan;
use crate::stream::{FRAME_SAMPLES, LegReport};
use crate::verdict::is_all_but_prompt;

/// How far a recording's length may be from the call's: the lab's clock is read a scheduling
/// delay and a network trip after the server's.
const LENGTH_MARGIN: Duration = Duration::from_millis(60);

/// What was found.
#[derive(Clone, Default, Debug)]
pub(super) struct Kept {
    pub(super) faults: Vec<String>,
    /// Recordings that are whole and right: those with tones first, then those with marks, which
    /// sound like noise.
    pub(super) tones: Vec<PathBuf>,
    pub(super) marks: Vec<PathBuf>,
}

/// Checks the recording of every call of `outcome` that has one, in `directory`.
pub(super) fn check(outcome: &RunOutcome, directory: &Path) -> Kept {
    let mut kept = Kept::default();
    let files = wav_files(directory);
    for call in outcome.calls.iter().filter(|call| is_recorded(call)) {
        let plan = &call.call.plan;
        let name = format!("call {} to {}", plan.number, plan.user);
        let Some(path) = find(&files, call) else {
            kept.faults.push(format!("{name}: no recording"));
            continue;
        };
        match Recording::read(path) {
            Ok(recording) => {
                let faults = faults(outcome.key, call, &recording);
                let good = faults.is_empty();
                kept.faults.extend(
                    faults
                        .iter()
                        .map(|fault| format!("{name}: recording {fault}")),
                );
                let list = match plan.expect {
                    Expect::TonePeer { .. } => &mut kept.tones,
                    _ => &mut kept.marks,
                };
                list.extend(good.then(|| path.clone()));
            }
            Err(error) => kept.faults.push(format!("{name}: {error}")),
        }
    }
    kept
}

fn is_recorded(call: &CallOutcome) -> bool {
    let user = &call.call.plan.user;
    call.call.answered.is_some() && (user == "record" || user.ends_with("-record"))
}

fn wav_files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let wav = |path: &PathBuf| path.extension().is_some_and(|ext| ext == "wav");
    entries.map(|entry| entry.path()).filter(wav).collect()
}

/// A file is named after its caller, among other things.
fn find<'a>(files: &'a [PathBuf], call: &CallOutcome) -> Option<&'a PathBuf> {
    let caller = format!("-{}-", caller_user(&call.call.plan));
    let named = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.contains(&caller))
    };
    files.iter().find(named)
}

fn faults(key: MarkKey, call: &CallOutcome, recording: &Recording) -> Vec<String> {
    let mut faults = Vec::new();
    let lasted = call.call.lasted().unwrap_or_default();
    if recording.duration().abs_diff(lasted) > LENGTH_MARGIN {
        faults.push(format!(
            "lasts {:.3} s, the call {:.3} s",
            recording.duration().as_secs_f64(),
            lasted.as_secs_f64()
        ));
    }
    if recording.channels.len() == 1 {
        faults.extend(mixed(key, call, recording));
        return faults;
    }
    let sides = [
        (0, Side::Caller, call.caller.as_ref(), call.call.law),
        (
            1,
            Side::Callee,
            call.callee.as_ref(),
            call.answer.as_ref().and_then(|a| a.law),
        ),
    ];
    for (channel, side, leg, law) in sides {
        let fault = match call.call.plan.expect {
            Expect::TonePeer {
                caller_hz,
                callee_hz,
            } => tone(
                recording,
                channel,
                if channel == 0 { caller_hz } else { callee_hz },
            ),
            _ => marks(
                key,
                call,
                recording,
                channel,
                side,
                leg,
                law.unwrap_or(Law::A),
            ),
        };
        faults.extend(fault);
    }
    faults
}

/// One channel for all: the caller must be there from the end of the prompt on.
fn mixed(key: MarkKey, call: &CallOutcome, recording: &Recording) -> Option<String> {
    let speaker = Speaker {
        call: call.call.plan.number,
        side: Side::Caller,
        law: call.call.law.unwrap_or(Law::A),
        frames: call.caller.as_ref().map_or(0, |leg| leg.sent),
    };
    let found = follow(key, &recording.channels[0], FRAME_SAMPLES, speaker);
    (!is_all_but_prompt(found)).then(|| {
        format!(
            "{} of {} frames whole, {} broken, {} not there at the start",
            found.whole, speaker.frames, found.broken, found.before
        )
    })
}

fn tone(recording: &Recording, channel: usize, hz: f64) -> Option<String> {
    let samples = recording
        .channels
        .get(channel)
        .map_or(&[][..], Vec::as_slice);
    let found = find_tone(samples, recording.rate, hz);
    let right = found.purity() > 0.9 && (found.hz - hz).abs() <= 1.0;
    (!right).then(|| format!("channel {channel}: {hz} Hz expected, found {found:?}"))
}

fn marks(
    key: MarkKey,
    call: &CallOutcome,
    recording: &Recording,
    channel: usize,
    side: Side,
    leg: Option<&LegReport>,
    law: Law,
) -> Option<String> {
    let found = recording.scan(key, channel, law);
    let sent = leg.map_or(0, |leg| leg.sent);
    let whole = found.frames_of(call.call.plan.number, side) as u64;
    let right = whole + cut(&found, sent) == sent && found.is_only(call.call.plan.number, side);
    (!right).then(|| {
        format!(
            "channel {channel}: {whole} of {sent} frames whole, {} altered, {} misplaced, parties {:?}",
            found.altered,
            found.misplaced,
            found.exact.keys().collect::<Vec<_>>()
        )
    })
}

/// Frames that the recording's ends cut through: it begins and ends with the call, not with a
/// frame.
fn cut(found: &Scan, sent: u64) -> u64 {
    let (Some((start, first)), Some((end, last))) = (found.first, found.last) else {
        return 0;
    };
    let at_start = first == 1 && start < FRAME_SAMPLES;
    let left = found.samples - (end + FRAME_SAMPLES);
    let at_end = u64::from(last) + 2 == sent && left < FRAME_SAMPLES;
    u64::from(at_start) + u64::from(at_end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::record::Ending;

    fn key() -> MarkKey {
        MarkKey::new(8)
    }

    /// A call of one second, both sides of which said 50 frames.
    fn recorded_call() -> CallOutcome {
        let mut call = fixture::call(3, "bridge-record", Expect::Peer, Ending::HungUp);
        call.ended = call.answered.map(|at| at + Duration::from_secs(1));
        CallOutcome {
            call,
            caller: Some(fixture::leg(3, Side::Caller)),
            answer: None,
            callee: Some(fixture::leg(3, Side::Callee)),
            faults: vec![],
        }
    }

    fn side(side: Side) -> Vec<i16> {
        let codes = fixture::speech(key(), 3, side, 0..50);
        codes.into_iter().map(|code| Law::A.expand(code)).collect()
    }

    fn found(channels: Vec<Vec<i16>>) -> Vec<String> {
        let recording = Recording {
            path: PathBuf::new(),
            rate: 8000,
            channels,
        };
        faults(key(), &recorded_call(), &recording)
    }

    #[test]
    fn a_whole_recording_has_no_fault() {
        assert_eq!(
            found(vec![side(Side::Caller), side(Side::Callee)]),
            [] as [&str; 0]
        );
    }

    #[test]
    fn a_frame_cut_by_the_start_is_no_fault_and_one_missing_is() {
        let late = |of| {
            let mut samples = side(of)[9..].to_vec();
            samples.extend([0; 9]);
            samples
        };
        assert_eq!(
            found(vec![late(Side::Caller), late(Side::Callee)]),
            [] as [&str; 0]
        );
        let mut holed = side(Side::Caller);
        holed[3200..3360].fill(0);
        assert_eq!(found(vec![holed, side(Side::Callee)]).len(), 1);
    }

    #[test]
    fn swapped_sides_are_a_fault_of_each_channel() {
        assert_eq!(found(vec![side(Side::Callee), side(Side::Caller)]).len(), 2);
    }

    #[test]
    fn a_silent_side_is_a_fault() {
        let faults = found(vec![side(Side::Caller), vec![0; 8000]]);
        assert!(
            faults[0].starts_with("channel 1: 0 of 50 frames whole"),
            "{faults:?}"
        );
    }

    #[test]
    fn a_recording_that_stops_early_is_too_short_and_not_whole() {
        let cut = |of| side(of)[..6000].to_vec();
        let faults = found(vec![cut(Side::Caller), cut(Side::Callee)]);
        assert!(
            faults[0].starts_with("lasts 0.750 s, the call 1.000 s"),
            "{faults:?}"
        );
        assert_eq!(faults.len(), 3);
    }

    #[test]
    fn a_file_is_found_by_its_caller() {
        let files = [
            "20261201-030000-lab.30-x-a.wav",
            "20261201-030000-lab.3-bridge_record-a.wav",
        ];
        let files = files.map(PathBuf::from);
        assert_eq!(find(&files, &recorded_call()), Some(&files[1]));
        assert_eq!(find(&files[..1], &recorded_call()), None);
    }
}
