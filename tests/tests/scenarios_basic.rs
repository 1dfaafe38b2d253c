//! A basic call, and every message of it lost once, on either leg.

use simnet::{HostId, Nth};
use tandem_tests::scene::{Scene, second_address};
use tandem_tests::ua::Script;

/// A bridged call: bob's phone says 100, 180 and answers after 200 ms.
fn bridged() -> Scene {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default()
            .then(2, 100)
            .then(10, 180)
            .then_sdp(200, 200);
    });
    scene
}

/// Both sides talked, and whoever hung up was told that it worked.
fn check_talked(scene: &Scene, hung_up_by: HostId) {
    assert_eq!(scene.alice().result("INVITE"), Some(200));
    assert_eq!(scene.phone(hung_up_by).result("BYE"), Some(200));
    assert!(scene.bob().count("ACK") >= 1);
    let cdr = &scene.tandem().cdrs()[0];
    assert!(cdr.answer.is_some() && cdr.acked, "{cdr:?}");
    assert_eq!(cdr.cause.sip, 200);
}

#[test]
fn a_call_is_bridged() {
    let mut scene = bridged();
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    check_talked(&scene, scene.caller);
    let alice = ["100 (INVITE)", "180 (INVITE)", "200 (INVITE)", "200 (BYE)"];
    assert_eq!(scene.alice().heard(), alice);
    assert_eq!(scene.bob().heard(), ["INVITE", "ACK", "BYE"]);
    let repeated = [scene.caller, scene.callee].map(|host| {
        scene
            .phone(host)
            .log()
            .iter()
            .filter(|entry| entry.repeat)
            .count()
    });
    assert_eq!(repeated, [0, 0], "nothing was lost, so nothing is repeated");
}

#[test]
fn a_call_is_answered_by_the_server() {
    let mut scene = Scene::lab(2);
    scene.call("echo");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(
        scene.alice().heard(),
        ["100 (INVITE)", "200 (INVITE)", "200 (BYE)"]
    );
    assert!(scene.bob().log().is_empty());
    assert!(scene.tandem().cdrs()[0].acked);
}

/// Loses one message once; the call must be as good as any.
fn lose(from: fn(&Scene) -> HostId, to: fn(&Scene) -> HostId, what: &'static str, ends: Side) {
    let mut scene = bridged();
    let (from, to) = (from(&scene), to(&scene));
    let hangs_up = match ends {
        Side::Caller => scene.caller,
        Side::Callee => scene.callee,
    };
    scene.lose(from, to, what, Nth::One(1));
    scene.call("bridge");
    scene.bye_at(10_000, hangs_up);
    scene.finish();
    check_talked(&scene, hangs_up);
    let answered = scene.tandem().cdrs()[0].talk_ms;
    assert!(
        (5_000..11_000).contains(&answered),
        "talked for {answered} ms"
    );
}

/// Who hangs up.
#[derive(Clone, Copy)]
enum Side {
    Caller,
    Callee,
}

macro_rules! lost_once {
    ($($name:ident: $from:ident to $to:ident, $what:literal, $ends:ident;)*) => {$(
        #[test]
        fn $name() {
            lose(|scene| scene.$from, |scene| scene.$to, $what, Side::$ends);
        }
    )*};
}

lost_once! {
    invite_lost_on_leg_a: caller to server, "INVITE", Caller;
    trying_lost_on_leg_a: server to caller, "100 (INVITE)", Caller;
    ringing_lost_on_leg_a: server to caller, "180 (INVITE)", Caller;
    answer_lost_on_leg_a: server to caller, "200 (INVITE)", Caller;
    ack_lost_on_leg_a: caller to server, "ACK", Caller;
    bye_of_the_caller_lost_on_leg_a: caller to server, "BYE", Caller;
    answer_to_bye_lost_on_leg_a: server to caller, "200 (BYE)", Caller;
    bye_of_the_server_lost_on_leg_a: server to caller, "BYE", Callee;
    answer_to_the_servers_bye_lost_on_leg_a: caller to server, "200 (BYE)", Callee;

    invite_lost_on_leg_b: server to callee, "INVITE", Caller;
    trying_lost_on_leg_b: callee to server, "100 (INVITE)", Caller;
    ringing_lost_on_leg_b: callee to server, "180 (INVITE)", Caller;
    answer_lost_on_leg_b: callee to server, "200 (INVITE)", Caller;
    ack_lost_on_leg_b: server to callee, "ACK", Caller;
    bye_of_the_server_lost_on_leg_b: server to callee, "BYE", Caller;
    answer_to_the_servers_bye_lost_on_leg_b: callee to server, "200 (BYE)", Caller;
    bye_of_the_callee_lost_on_leg_b: callee to server, "BYE", Callee;
    answer_to_bye_lost_on_leg_b: server to callee, "200 (BYE)", Callee;
}

#[test]
fn everything_is_lost_once_on_both_legs() {
    let mut scene = bridged();
    let (caller, server, callee) = (scene.caller, scene.server, scene.callee);
    for (a, b) in [(caller, server), (server, callee)] {
        for what in ["INVITE", "ACK", "BYE"] {
            scene.lose(a, b, what, Nth::One(1));
        }
        for what in ["200 (INVITE)", "200 (BYE)"] {
            scene.lose(b, a, what, Nth::One(1));
        }
    }
    scene.call("bridge");
    scene.bye_at(30_000, caller);
    scene.finish();
    check_talked(&scene, caller);
}

#[test]
fn the_same_seed_gives_the_same_run_to_the_byte() {
    let run = |seed| {
        let mut scene = Scene::lab(seed);
        scene.call("bridge-record");
        scene.bye_at(5_000, scene.callee);
        scene.finish();
        scene.world.trace().clone()
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7), run(8), "tags and branches come from the seed");
}

#[test]
fn leg_b_is_told_who_calls_and_nothing_of_leg_a() {
    let mut scene = bridged();
    scene.with(scene.caller, |ua, _| {
        ua.habits.invite_fields = vec!["Subject: lunch".to_owned(), "X-Private: 1".to_owned()];
    });
    scene.call("bridge");
    scene.bye_at(1_000, scene.caller);
    scene.finish();
    let invite = scene.bob().last("INVITE");
    assert!(
        invite.must("from").contains("alice"),
        "{}",
        invite.must("from")
    );
    assert_eq!(invite.header("subject"), Some("lunch"));
    assert_eq!(invite.header("x-private"), None);
    assert_eq!(invite.must("max-forwards"), "69");
    let [call_a, call_b] = [scene.alice(), scene.bob()].map(|ua| ua.dialogs()[0].call_id.clone());
    assert_ne!(call_a, call_b);
    let text = format!("{invite:?}");
    assert!(
        !text.contains("192.0.2.10") && !text.contains(&call_a),
        "leg A shows: {text}"
    );
}

/// RFC 3261 section 12.2.1.1: ACK and BYE go to the Contact of the 2xx.
#[test]
fn requests_follow_the_contact_of_each_side() {
    let mut scene = bridged();
    for host in [scene.caller, scene.callee] {
        scene.with(host, |ua, _| {
            ua.habits.contact = Some(second_address(ua.address()));
        });
    }
    scene.call("bridge");
    scene.bye_at(1_000, scene.callee);
    scene.at(3_000, scene.caller, |ua, now| {
        ua.call(now, "bridge");
    });
    scene.at(4_000, scene.caller, |ua, now| ua.bye(now, 1));
    scene.finish();
    assert_eq!(
        (scene.alice().count("BYE"), scene.bob().count("BYE")),
        (1, 1)
    );
}

/// Section 12.2.1.2: a re-INVITE moves the target.
#[test]
fn requests_follow_a_contact_that_moves() {
    let mut scene = bridged();
    scene.call("bridge");
    scene.at(1_000, scene.callee, |ua, now| {
        ua.habits.contact = Some(second_address(ua.address()));
        ua.reinvite(now, 0);
    });
    scene.bye_at(3_000, scene.caller);
    scene.finish();
    assert_eq!(scene.bob().count("BYE"), 1);
}

#[test]
fn every_ring_is_passed_on() {
    let mut scene = bridged();
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default()
            .then(10, 180)
            .then(500, 181)
            .then(900, 180)
            .then_sdp(1_500, 200);
    });
    scene.call("bridge");
    scene.bye_at(3_000, scene.caller);
    scene.finish();
    assert_eq!(
        (
            scene.alice().count("180 (INVITE)"),
            scene.alice().count("181 (INVITE)")
        ),
        (2, 1)
    );
}

#[test]
fn ten_calls_at_once_keep_apart() {
    let mut scene = Scene::lab(3);
    for n in 0..10_u64 {
        scene.at(n * 20, scene.caller, |ua, now| {
            ua.call(now, "bridge");
        });
        scene.at(3_000 + n * 35, scene.caller, move |ua, now| {
            ua.bye(now, usize::try_from(n).unwrap());
        });
    }
    scene.finish();
    assert_eq!(scene.tandem().cdrs().len(), 10);
    assert!(
        scene
            .tandem()
            .cdrs()
            .iter()
            .all(|cdr| cdr.acked && cdr.cause.sip == 200)
    );
    let mut ports: Vec<_> = scene
        .bob()
        .dialogs()
        .iter()
        .map(|dialog| port(dialog.peer_sdp()))
        .collect();
    ports.sort_unstable();
    ports.dedup();
    assert_eq!(ports.len(), 10, "each call has its own port");
}

fn port(sdp: &str) -> u16 {
    tandem_tests::description::sections(sdp)[0].port
}
