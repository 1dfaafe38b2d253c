//! CANCEL at every stage of a call, and every message of it lost once (RFC 3261 section 9).

use simnet::{HostId, Nth, Verdict};
use tandem_tests::scene::{Scene, ms};
use tandem_tests::ua::{OnCancel, Script};

/// Bob's phone rings for ever.
fn ringing() -> Scene {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::ring());
    scene
}

/// The caller was told that its call is cancelled; so says the record.
fn check_cancelled(scene: &Scene) {
    assert_eq!(scene.alice().result("INVITE"), Some(487));
    assert_eq!(scene.alice().result("CANCEL"), Some(200));
    let cdr = &scene.tandem().cdrs()[0];
    assert_eq!((cdr.cause.sip, cdr.answer), (487, None), "{cdr:?}");
}

#[test]
fn while_it_rings() {
    let mut scene = ringing();
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().heard(), ["INVITE", "CANCEL", "ACK"]);
    let alice = [
        "100 (INVITE)",
        "180 (INVITE)",
        "200 (CANCEL)",
        "487 (INVITE)",
    ];
    assert_eq!(scene.alice().heard(), alice);
}

#[test]
fn before_anything_came_back() {
    let mut scene = ringing();
    scene.call("bridge");
    scene.cancel_at(1);
    scene.finish();
    check_cancelled(&scene);
    // Section 9.1: leg B is cancelled once it has sent a provisional response, not before.
    assert_eq!(scene.bob().heard(), ["INVITE", "CANCEL", "ACK"]);
}

#[test]
fn while_the_callee_has_said_trying_only() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then(2, 100);
    });
    scene.call("bridge");
    scene.cancel_at(1_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().heard(), ["INVITE", "CANCEL", "ACK"]);
}

#[test]
fn while_the_callee_has_said_nothing() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| ua.habits.invite = Script::silence());
    scene.call("bridge");
    scene.cancel_at(1_000);
    scene.may_hang(scene.callee);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(
        scene.bob().heard(),
        ["INVITE"],
        "nothing to cancel without a response (9.1)"
    );
}

#[test]
fn the_callee_answers_late_after_it_said_nothing_at_the_cancel() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then_sdp(3_000, 200);
    });
    scene.call("bridge");
    scene.cancel_at(1_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK", "BYE"]);
}

#[test]
fn during_early_media() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then_sdp(10, 183);
    });
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.alice().count("183 (INVITE)"), 1);
}

#[test]
fn while_the_shell_looks_for_ports() {
    let mut scene = ringing();
    scene.with_server(|server, _| server.shell_delay = ms(500));
    scene.call("bridge");
    scene.cancel_at(200);
    scene.finish();
    check_cancelled(&scene);
    assert!(scene.bob().log().is_empty(), "leg B was never called");
}

#[test]
fn of_a_call_that_the_server_is_about_to_answer() {
    let mut scene = Scene::lab(1);
    scene.with_server(|server, _| server.shell_delay = ms(500));
    scene.call("echo");
    scene.cancel_at(200);
    scene.finish();
    check_cancelled(&scene);
}

/// BB-07: the callee's 200 and our CANCEL pass each other.
#[test]
fn crossing_the_callees_answer() {
    let mut scene = Scene::lab(1);
    let route = "<sip:proxy@192.0.2.20;lr>";
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::ring();
        ua.habits.on_cancel = OnCancel::Answer;
        ua.habits.record_route = Some(route.to_owned());
    });
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().heard(), ["INVITE", "CANCEL", "ACK", "BYE"]);
    assert_eq!(scene.bob().last("BYE").header("route"), Some(route));
}

/// The same on the wire: the answer is on its way to us when the CANCEL comes.
#[test]
fn a_moment_before_the_callees_answer_arrives() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::answer_after(1_000);
    });
    scene.call("bridge");
    // The answer leaves at 1,020 ms and comes to us at 1,030 ms; the CANCEL comes at 1,025 ms.
    scene.cancel_at(1_015);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().heard(), ["INVITE", "CANCEL", "ACK", "BYE"]);
}

/// The answer is on its way to the caller when it cancels: the call is up (9.2), the caller ends it.
#[test]
fn too_late() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::answer_after(1_000);
    });
    scene.call("bridge");
    // Our 200 leaves at 1,030 ms and comes to the caller at 1,040 ms.
    scene.cancel_at(1_035);
    scene.bye_at(2_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
    assert_eq!(scene.alice().result("CANCEL"), Some(200));
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK", "BYE"]);
}

#[test]
fn a_callee_that_ignores_it_is_given_up() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::ring();
        ua.habits.on_cancel = OnCancel::Ignore;
    });
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.may_hang(scene.callee);
    scene.finish();
    check_cancelled(&scene);
    assert!(scene.bob().count("CANCEL") > 5, "repeated by timer E");
}

#[test]
fn a_callee_that_answers_it_but_never_refuses_is_given_up() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::ring();
        ua.habits.on_cancel = OnCancel::Acknowledge;
    });
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.may_hang(scene.callee);
    scene.finish();
    check_cancelled(&scene);
}

#[test]
fn a_caller_that_never_acknowledges_the_487_is_given_up() {
    let mut scene = ringing();
    scene.with(scene.caller, |ua, _| ua.habits.acks_refusals = false);
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    // Timer G: T1 doubling to T2 until timer H, 64 x T1.
    assert_eq!(scene.alice().count("487 (INVITE)"), 11);
}

/// BB-08: the callee repeats its 487 until it hears the ACK.
#[test]
fn a_repeated_487_is_acknowledged_each_time() {
    let mut scene = ringing();
    scene.lose(scene.server, scene.callee, "ACK", Nth::First(4));
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().count("ACK"), 1);
    let sent = scene.world.trace().sent().filter(|(_, sent)| {
        sent.from == scene.server && tandem_tests::message::label(&sent.datagram.bytes) == "ACK"
    });
    assert_eq!(sent.count(), 5, "one ACK for each 487");
}

#[test]
fn of_nothing_is_answered_481() {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, now| {
        ua.request(
            now,
            "CANCEL",
            "sip:bridge@192.0.2.1:5060",
            "sip:bridge@192.0.2.1",
            &[],
        );
    });
    scene.finish();
    assert_eq!(scene.alice().result("CANCEL"), Some(481));
}

#[test]
fn that_comes_twice_is_answered_twice() {
    let mut scene = ringing();
    let verdict = Verdict::Duplicate(ms(30));
    scene.disturb(scene.caller, scene.server, "CANCEL", Nth::One(1), verdict);
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.alice().count("200 (CANCEL)"), 2);
    assert_eq!(scene.bob().count("CANCEL"), 1);
}

/// Loses one message once.
fn lose(from: fn(&Scene) -> HostId, to: fn(&Scene) -> HostId, what: &'static str) {
    let mut scene = ringing();
    let (from, to) = (from(&scene), to(&scene));
    scene.lose(from, to, what, Nth::One(1));
    scene.call("bridge");
    scene.cancel_at(2_000);
    scene.finish();
    check_cancelled(&scene);
    assert_eq!(scene.bob().last("ACK").cseq().1, "ACK");
}

macro_rules! lost_once {
    ($($name:ident: $from:ident to $to:ident, $what:literal;)*) => {$(
        #[test]
        fn $name() {
            lose(|scene| scene.$from, |scene| scene.$to, $what);
        }
    )*};
}

lost_once! {
    cancel_lost_on_leg_a: caller to server, "CANCEL";
    answer_to_cancel_lost_on_leg_a: server to caller, "200 (CANCEL)";
    refusal_lost_on_leg_a: server to caller, "487 (INVITE)";
    ack_of_the_refusal_lost_on_leg_a: caller to server, "ACK";
    cancel_lost_on_leg_b: server to callee, "CANCEL";
    answer_to_cancel_lost_on_leg_b: callee to server, "200 (CANCEL)";
    refusal_lost_on_leg_b: callee to server, "487 (INVITE)";
    ack_of_the_refusal_lost_on_leg_b: server to callee, "ACK";
}
