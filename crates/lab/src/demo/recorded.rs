//! The demo's recordings, read back: right party on the right side, whole, as long as the call.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::analysis::find_tone;
use crate::law::Law;
use crate::mark::{MarkKey, Side};
use crate::plan::{Expect, caller_user};
use crate::recordings::Recording;
use crate::run::{CallOutcome, RunOutcome};
use crate::stream::LegReport;

/// How far a recording's length may be from the call's: the lab's clock is read a scheduling
/// delay and a network trip after the server's.
const LENGTH_MARGIN: Duration = Duration::from_millis(60);

/// What was found.
#[derive(Clone, Default, Debug)]
pub(super) struct Kept {
    pub(super) faults: Vec<String>,
    pub(super) paths: Vec<PathBuf>,
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
                kept.paths.extend(good.then(|| path.clone()));
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

/// A file is named after its caller and callee.
fn find<'a>(files: &'a [PathBuf], call: &CallOutcome) -> Option<&'a PathBuf> {
    let plan = &call.call.plan;
    let parties = format!("-{}-{}-", caller_user(plan), plan.user);
    let named = |path: &&PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy());
        name.is_some_and(|name| name.contains(&parties))
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
    let sides = [
        (0, Side::Caller, call.caller.as_ref(), call.call.law),
        (
            1,
            Side::Callee,
            call.callee.as_ref(),
            call.answer.as_ref().and_then(|a| a.law),
        ),
    ];
    let sides = if call.call.plan.user == "record" {
        &sides[..1]
    } else {
        &sides[..]
    };
    for &(channel, side, leg, law) in sides {
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
    let right = whole == sent && found.is_only(call.call.plan.number, side);
    (!right).then(|| {
        format!(
            "channel {channel}: {whole} of {sent} frames whole, {} altered, {} misplaced, parties {:?}",
            found.altered,
            found.misplaced,
            found.exact.keys().collect::<Vec<_>>()
        )
    })
}
