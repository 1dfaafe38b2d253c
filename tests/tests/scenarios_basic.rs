//! A basic call, and every message of it lost once, on either leg.

use simnet::Nth;
use tandem_tests::scene::Scene;
use tandem_tests::ua::{Script, T1};

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
fn check_talked(scene: &Scene, hung_up_by: simnet::HostId) {
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
