use super::*;
use crate::analysis::FULL_SCALE_DBM0;
use crate::fixture;
use std::f64::consts::TAU;

const KEY: u64 = 4;

fn call(expect: Expect, ending: Ending) -> CallRecord {
    fixture::call(5, "somebody", expect, ending)
}

fn leg(side: Side) -> LegReport {
    fixture::leg(5, side)
}

fn hears(codes: impl IntoIterator<Item = u8>) -> LegReport {
    let mut capture = Capture::default();
    let codes: Vec<u8> = codes.into_iter().collect();
    for (n, frame) in codes.chunks(160).enumerate() {
        capture.take(Law::A, n as u32 * 160, frame);
    }
    LegReport {
        capture: Some(capture),
        heard: Heard::default(),
        ..leg(Side::Caller)
    }
}

fn sine(hz: f64, amplitude: f64) -> Vec<u8> {
    let codes = Law::A.codes();
    let sample = |n| (amplitude * (TAU * hz * f64::from(n) / 8000.0).sin()) as i16;
    (0..16_000).map(|n| codes.nearest(sample(n))).collect()
}

fn verdict(expect: Expect, caller: &LegReport) -> Vec<Fault> {
    let evidence = CallEvidence {
        call: &call(expect, Ending::HungUp),
        caller: Some(caller),
        answer: None,
        callee: None,
        earlier_sent: Some(40),
    };
    judge(MarkKey::new(KEY), &evidence)
}

const ECHO: Expect = Expect::Echo {
    delay: Duration::ZERO,
};

fn bare(call: &CallRecord) -> Vec<Fault> {
    let evidence = CallEvidence {
        call,
        caller: None,
        answer: None,
        callee: None,
        earlier_sent: None,
    };
    judge(MarkKey::new(KEY), &evidence)
}

#[test]
fn a_refusal_is_judged_by_its_code() {
    let refused = |ending| bare(&call(Expect::Refused(486), ending));
    assert_eq!(refused(Ending::Refused(486)), []);
    let wrong = Ending::Refused(404);
    assert_eq!(refused(wrong), [Fault::Ended(wrong)]);
    assert_eq!(refused(Ending::HungUp), [Fault::Answered]);
    let late = Ending::TimedOut;
    assert_eq!(refused(late), [Fault::Ended(late)]);
}

#[test]
fn a_call_that_fails_has_one_fault() {
    for ending in [Ending::Refused(503), Ending::TimedOut, Ending::NoMedia] {
        assert_eq!(bare(&call(ECHO, ending)), [Fault::Ended(ending)]);
    }
    assert_eq!(
        bare(&call(ECHO, Ending::HungUp)),
        [Fault::NoLeg(Side::Caller)]
    );
}

#[test]
fn an_echo_must_be_whole_and_in_time() {
    assert_eq!(verdict(ECHO, &leg(Side::Caller)), []);
    let mut lossy = leg(Side::Caller);
    lossy.received = 49;
    assert_eq!(verdict(ECHO, &lossy), [Fault::Lost(Side::Caller, 50, 49)]);
    let delayed = Expect::Echo {
        delay: Duration::from_secs(5),
    };
    assert!(matches!(
        verdict(delayed, &leg(Side::Caller))[..],
        [Fault::Delayed(..)]
    ));
    let mut slow = leg(Side::Caller);
    slow.delay.as_mut().expect("there is one").max = Duration::from_millis(600);
    assert!(matches!(verdict(ECHO, &slow)[..], [Fault::Delayed(..)]));
    let mut silent = leg(Side::Caller);
    (silent.received, silent.heard, silent.delay) = (0, Heard::default(), None);
    assert!(matches!(
        verdict(ECHO, &silent)[..],
        [Fault::Lost(..), Fault::Heard(..)]
    ));
}

#[test]
fn a_bridge_is_judged_at_both_ends() {
    let call = call(Expect::Peer, Ending::HungUp);
    let (caller, good) = (leg(Side::Caller), leg(Side::Callee));
    let with = |callee: Option<&LegReport>| {
        let evidence = CallEvidence {
            call: &call,
            caller: Some(&caller),
            answer: None,
            callee,
            earlier_sent: None,
        };
        judge(MarkKey::new(KEY), &evidence)
    };
    assert_eq!(with(Some(&good)), []);
    assert_eq!(with(None), [Fault::NoLeg(Side::Callee)]);
    let mut deaf = good.clone();
    deaf.received = 0;
    deaf.heard = Heard::default();
    assert!(matches!(
        with(Some(&deaf))[..],
        [Fault::Lost(Side::Callee, 50, 0), Fault::Heard(..)]
    ));
    let mut confused = good.clone();
    confused.heard.exact = 49;
    confused.heard.wrong_party = 1;
    assert!(matches!(
        with(Some(&confused))[..],
        [Fault::Heard(Side::Callee, _)]
    ));
}

#[test]
fn a_tone_must_have_its_pitch_and_level_and_no_pauses() {
    // 0 dBm0 is 3.14 dB below a full-scale sine.
    let milliwatt = |hz| sine(hz, 32767.0 * 10f64.powf(-FULL_SCALE_DBM0 / 20.0));
    let tone = Expect::Tone {
        hz: 1004.0,
        level_dbm0: 0.0,
    };
    assert_eq!(verdict(tone.clone(), &hears(milliwatt(1004.0))), []);
    let mut paused = milliwatt(1004.0);
    paused[4000..8000].fill(0xd5);
    for wrong in [
        milliwatt(1007.0),
        sine(1004.0, 8000.0),
        paused,
        vec![0xd5; 8000],
    ] {
        assert!(matches!(
            verdict(tone.clone(), &hears(wrong))[..],
            [Fault::Tone(..)]
        ));
    }
    assert_eq!(verdict(tone, &hears([])), [Fault::Silence(Side::Caller)]);
}

#[test]
fn a_sound_must_go_on_and_a_prompt_may_end() {
    let mut beep = sine(600.0, 8000.0);
    beep[4000..].fill(0xd5);
    let prompt = |ms| Expect::Prompt {
        at_least: Duration::from_millis(ms),
    };
    assert_eq!(verdict(prompt(500), &hears(beep.clone())), []);
    assert!(matches!(
        verdict(prompt(900), &hears(beep.clone()))[..],
        [Fault::Quiet(..)]
    ));
    assert!(matches!(
        verdict(Expect::Sound, &hears(beep))[..],
        [Fault::Quiet(..)]
    ));
    assert_eq!(verdict(Expect::Sound, &hears(sine(600.0, 8000.0))), []);
}

#[test]
fn a_playback_must_be_of_the_call_and_whole() {
    let said = |number, range: std::ops::Range<u32>| {
        let mut codes = vec![0xd5; 99];
        codes.extend(fixture::speech(
            MarkKey::new(KEY),
            number,
            Side::Caller,
            range,
        ));
        hears(codes)
    };
    let playback = || Expect::Playback { of: 2 };
    let found = |leg| match verdict(playback(), &leg)[..] {
        [] => None,
        [Fault::Playback(found)] => Some((found.before, found.whole, found.broken)),
        ref other => panic!("{other:?}"),
    };
    let mut whole = vec![0xd5; 99];
    whole.extend(fixture::whole_speech(
        MarkKey::new(KEY),
        2,
        Side::Caller,
        40,
    ));
    assert_eq!(found(hears(whole)), None);
    // The last three frames of 40 say so and differ; the fixture's do not.
    assert_eq!(found(said(2, 0..40)), Some((0, 37, 3)));
    assert_eq!(found(said(2, 0..35)), Some((0, 35, 5)));
    assert_eq!(found(said(3, 0..40)), Some((40, 0, 0)));
    assert_eq!(
        verdict(playback(), &hears([])),
        [Fault::Silence(Side::Caller)]
    );
}

#[test]
fn broken_numbers_and_foreign_packets_are_faults_of_any_call() {
    let mut leg = leg(Side::Caller);
    leg.sequence.missing = 2;
    leg.junk = 1;
    assert_eq!(
        verdict(ECHO, &leg),
        [
            Fault::Sequence(Side::Caller, 2, 0),
            Fault::Foreign(Side::Caller, 1)
        ]
    );
}

#[test]
fn every_fault_reads_as_a_sentence() {
    let faults = [
        Fault::Lost(Side::Callee, 50, 49),
        Fault::Heard(Side::Caller, Box::default()),
        Fault::Tone(Side::Caller, find_tone(&[], RATE, 1004.0)),
    ];
    assert_eq!(
        faults[0].to_string(),
        "callee received 49 packets of 50 sent"
    );
    assert!(faults.iter().all(|fault| !fault.to_string().is_empty()));
}
