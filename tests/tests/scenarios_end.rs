//! How calls end: either side, both at once, sides that are gone, operators.

use simnet::Nth;
use tandem_tests::scene::{Scene, ms};
use tandem_tests::ua::{Script, T1};

#[test]
fn the_callee_hangs_up() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.bye_at(5_000, scene.callee);
    scene.finish();
    assert_eq!(scene.bob().result("BYE"), Some(200));
    assert_eq!(scene.alice().count("BYE"), 1);
    assert_eq!(format!("{:?}", scene.tandem().cdrs()[0].cause.by), "Callee");
}

#[test]
fn the_cause_of_the_hang_up_is_passed_on() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.at(5_000, scene.callee, |ua, now| {
        ua.bye_with(
            now,
            0,
            &["Reason: Q.850;cause=38;text=\"Network out of order\""],
        );
    });
    scene.finish();
    assert_eq!(scene.tandem().cdrs()[0].cause.q850, 38);
    assert!(
        scene
            .alice()
            .last("BYE")
            .must("reason")
            .contains("cause=38")
    );
}

/// BB-09: both hang up 200 ms apart, and one says it again 10 s later.
#[test]
fn both_hang_up_and_one_says_it_again() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.bye_at(5_200, scene.callee);
    scene.bye_at(15_200, scene.caller);
    scene.finish();
    let answers = [scene.caller, scene.callee].map(|host| {
        let outcomes = scene
            .phone(host)
            .outcomes()
            .iter()
            .filter(|o| o.method == "BYE");
        outcomes
            .map(|o| format!("{:?}", o.result))
            .collect::<Vec<_>>()
    });
    assert_eq!(answers[0], ["Final(200)", "Final(481)"]);
    assert_eq!(answers[1].len(), 1);
    assert_ne!(answers[1][0], "TimedOut", "every BYE is answered at once");
}

#[test]
fn both_hang_up_in_the_same_moment() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.bye_at(5_000, scene.callee);
    scene.finish();
    for host in [scene.caller, scene.callee] {
        assert!(
            scene.phone(host).result("BYE").is_some(),
            "200 or 481, but no silence"
        );
    }
}

#[test]
fn the_caller_hangs_up_before_its_ack_has_come() {
    let mut scene = Scene::lab(1);
    scene.lose(scene.caller, scene.server, "ACK", Nth::One(1));
    scene.call("bridge");
    // The 200 is there at 240 ms; its repeat isn't yet.
    scene.bye_at(300, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("BYE"), Some(200));
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK", "BYE"]);
}

/// RFC 3261 section 15: the callee's side of a dialog says no BYE before the ACK.
#[test]
fn the_callee_hangs_up_before_the_callers_ack_has_come() {
    let mut scene = Scene::lab(1);
    scene.lose(scene.caller, scene.server, "ACK", Nth::First(2));
    scene.call("bridge");
    scene.bye_at(300, scene.callee);
    scene.finish();
    let times = |label| {
        scene
            .alice()
            .all(label)
            .map(|entry| entry.at)
            .collect::<Vec<_>>()
    };
    let (answers, byes) = (times("200 (INVITE)"), times("BYE"));
    assert_eq!((answers.len(), byes.len()), (3, 1));
    assert!(byes[0] > answers[2], "BYE waits for the ACK");
}

/// BB-06: no ACK ever.
#[test]
fn a_caller_that_never_acknowledges_is_hung_up() {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, _| ua.habits.acks_2xx = false);
    scene.call("bridge");
    scene.finish();
    let answers: Vec<_> = scene
        .alice()
        .all("200 (INVITE)")
        .map(|entry| entry.at)
        .collect();
    let gaps: Vec<_> = answers
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).as_millis())
        .collect();
    assert_eq!(gaps[..4], [500, 1_000, 2_000, 4_000]);
    assert!(gaps[4..].iter().all(|gap| *gap == 4_000), "{gaps:?}");
    let bye = scene
        .alice()
        .all("BYE")
        .next()
        .expect("the server hangs up")
        .at;
    assert_eq!(bye - answers[0], 64 * T1);
    assert_eq!(scene.bob().count("BYE"), 1);
    let cdr = &scene.tandem().cdrs()[0];
    assert!(cdr.answer.is_some() && !cdr.acked, "{cdr:?}");
}

#[test]
fn the_caller_is_gone_before_the_answer() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::answer_after(2_000);
    });
    scene.call("bridge");
    scene.dies_at(1_000, scene.caller);
    scene.finish();
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK", "BYE"]);
    assert!(!scene.tandem().cdrs()[0].acked);
}

#[test]
fn the_caller_is_gone_in_mid_call() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.dies_at(3_000, scene.caller);
    scene.bye_at(60_000, scene.callee);
    scene.finish();
    assert_eq!(scene.bob().result("BYE"), Some(200));
}

#[test]
fn the_callee_is_gone_in_mid_call() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.dies_at(3_000, scene.callee);
    scene.bye_at(60_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("BYE"), Some(200));
}

#[test]
fn both_are_gone_and_an_operator_hangs_up() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.dies_at(3_000, scene.callee);
    scene.dies_at(3_001, scene.caller);
    scene.operator_at(60_000, |server, now| server.machine().hang_up_all(now));
    scene.finish();
    assert_eq!(format!("{:?}", scene.tandem().cdrs()[0].cause.by), "Server");
}

#[test]
fn a_callee_that_forgot_the_call_answers_481() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.at(3_000, scene.callee, |ua, _| {
        ua.dialog_mut(0).local_tag = "forgotten".to_owned();
    });
    scene.bye_at(5_000, scene.caller);
    scene.may_hang(scene.callee);
    scene.finish();
    assert_eq!(scene.alice().result("BYE"), Some(200));
}

#[test]
fn a_callee_that_never_answers_the_bye_is_given_up() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| ua.habits.ignored = vec!["BYE"]);
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.may_hang(scene.callee);
    scene.finish();
    // Timer E: T1 doubling to T2 until timer F.
    assert_eq!(scene.bob().count("BYE"), 11);
}

#[test]
fn an_operator_hangs_up_at_every_stage() {
    // Before the ports are there, while it rings, before the ACK, and while both talk.
    for at in [15, 60, 245, 3_000] {
        let mut scene = Scene::lab(at);
        scene.with_server(|server, _| server.shell_delay = ms(10));
        scene.call("bridge");
        scene.operator_at(at, |server, now| server.machine().hang_up_all(now));
        scene.finish();
        let cdr = &scene.tandem().cdrs()[0];
        assert_eq!(
            format!("{:?}", cdr.cause.by),
            "Server",
            "at {at} ms: {cdr:?}"
        );
        let answered = cdr.answer.is_some();
        let result = scene.alice().result("INVITE");
        assert_eq!(result, Some(if answered { 200 } else { 480 }), "at {at} ms");
    }
}

#[test]
fn a_draining_server_keeps_its_calls_and_takes_no_new_ones() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.operator_at(1_000, |server, _| server.machine().drain());
    scene.at(2_000, scene.caller, |ua, now| {
        ua.call(now, "bridge");
    });
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("BYE"), Some(200));
    assert_eq!(scene.alice().result("INVITE"), Some(503));
    assert!(
        scene
            .alice()
            .last("503 (INVITE)")
            .header("retry-after")
            .is_some()
    );
}

#[test]
fn a_record_tells_when_and_for_how_long() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.bye_at(10_240, scene.caller);
    scene.finish();
    let cdr = &scene.tandem().cdrs()[0];
    // The INVITE comes after 10 ms, 180 after 40, 200 after 230, the BYE after 10,250.
    let since_setup = |at: b2bua::WallTime| (at.0 - cdr.setup.0).as_millis();
    assert_eq!(cdr.ringing.map(since_setup), Some(30));
    assert_eq!(cdr.answer.map(since_setup), Some(220));
    assert_eq!(since_setup(cdr.end), 10_240);
    assert_eq!(cdr.talk_ms, 10_020);
    assert_eq!(
        (cdr.caller.as_str(), cdr.callee.as_str()),
        ("alice", "bridge")
    );
    let json: serde_json::Value = serde_json::from_str(&cdr.to_json()).unwrap();
    assert_eq!(json["setup"], "2026-12-01T00:00:00.010Z");
    assert_eq!(json["talk_ms"], 10_020);
}
