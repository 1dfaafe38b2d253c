//! Calls and legs as tests want them.

use std::time::{Duration, Instant};

use crate::hearing::Heard;
use crate::law::Law;
use crate::mark::{Mark, MarkKey, Side};
use crate::plan::{CallPlan, Expect};
use crate::record::{CallRecord, Ending};
use crate::sequence::SequenceCounts;
use crate::stream::{Delay, FRAME_SAMPLES, LegReport, Speech};

/// A call that began and ended at one instant.
pub(crate) fn call(number: u32, user: &str, expect: Expect, ending: Ending) -> CallRecord {
    let now = Instant::now();
    CallRecord {
        plan: CallPlan {
            number,
            user: user.into(),
            at: Duration::ZERO,
            talk: Duration::from_secs(1),
            linger: Duration::ZERO,
            law: Law::A,
            expect,
        },
        intended: now,
        placed: now,
        ringing: None,
        answered: ending.is_orderly().then_some(now),
        hung_up: None,
        ended: Some(now),
        ending,
        leg: None,
        law: Some(Law::A),
    }
}

/// A leg that sent and received 50 packets, all exact.
pub(crate) fn leg(call: u32, side: Side) -> LegReport {
    LegReport {
        call: Some(call),
        side,
        speech: Speech::Marks,
        sent: 50,
        send_failed: 0,
        received: 50,
        junk: 0,
        other_payload: 0,
        sequence: SequenceCounts::default(),
        heard: Heard {
            frames: 50,
            exact: 50,
            span: Some((0, 49)),
            ..Heard::default()
        },
        delay: Some(Delay {
            min: Duration::from_millis(1),
            max: Duration::from_millis(9),
            sum: Duration::from_millis(250),
            count: 50,
        }),
        capture: None,
    }
}

/// A-law of these frames, none of them marked as the last.
pub(crate) fn speech(
    key: MarkKey,
    call: u32,
    side: Side,
    frames: impl IntoIterator<Item = u32>,
) -> Vec<u8> {
    write(
        key,
        call,
        side,
        frames.into_iter().map(|frame| (frame, false)),
    )
}

/// A-law of a whole speech, the last three frames marked as such.
pub(crate) fn whole_speech(key: MarkKey, call: u32, side: Side, frames: u32) -> Vec<u8> {
    write(key, call, side, (0..frames).map(|n| (n, n + 3 >= frames)))
}

fn write(
    key: MarkKey,
    call: u32,
    side: Side,
    frames: impl Iterator<Item = (u32, bool)>,
) -> Vec<u8> {
    let mut codes = Vec::new();
    for (frame, last) in frames {
        let mut bytes = [0; FRAME_SAMPLES];
        let mark = Mark {
            call,
            side,
            frame,
            last,
            law: Law::A,
        };
        key.write(mark, &mut bytes);
        codes.extend(bytes);
    }
    codes
}
