//! Phones register and are called, on one contact or several.

use simnet::{HostId, Nth};
use tandem_tests::scene::Scene;
use tandem_tests::ua::Script;

fn register(scene: &mut Scene, host: HostId, expires: u32) {
    scene.with(host, |ua, now| ua.register(now, "1000", expires));
    scene.run(100);
    assert_eq!(scene.phone(host).result("REGISTER"), Some(200));
}

fn expires(scene: &Scene, host: HostId) -> Vec<String> {
    scene
        .phone(host)
        .last("200 (REGISTER)")
        .all("contact")
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_registered_phone_is_called() {
    let mut scene = Scene::office(1);
    let bob = scene.callee;
    register(&mut scene, bob, 600);
    assert_eq!(
        expires(&scene, bob),
        ["<sip:bob@192.0.2.20:5060>;expires=600"]
    );
    scene.call("1000");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
    assert_eq!(
        scene.bob().last("INVITE").uri(),
        Some("sip:bob@192.0.2.20:5060")
    );
}

#[test]
fn a_user_without_a_phone_is_unavailable() {
    let mut scene = Scene::office(1);
    scene.call("1001");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(480));
}

#[test]
fn a_registration_ends_when_it_is_not_refreshed() {
    let mut scene = Scene::office(1);
    let bob = scene.callee;
    register(&mut scene, bob, 60);
    scene.run(61_000);
    scene.call("1000");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(480));
    assert_eq!(scene.bob().count("INVITE"), 0);
}

#[test]
fn a_refreshed_registration_lives_on() {
    let mut scene = Scene::office(1);
    let bob = scene.callee;
    register(&mut scene, bob, 60);
    scene.run(50_000);
    register(&mut scene, bob, 60);
    assert_eq!(
        expires(&scene, bob).len(),
        1,
        "the same contact, not another"
    );
    scene.run(50_000);
    scene.call("1000");
    scene.run(2_000);
    scene.with(scene.caller, |ua, now| ua.bye(now, 0));
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
}

#[test]
fn a_phone_takes_itself_off() {
    for line in ["Contact: <sip:bob@192.0.2.20:5060>;expires=0", "Contact: *"] {
        let mut scene = Scene::office(1);
        let bob = scene.callee;
        register(&mut scene, bob, 600);
        let fields = [line.to_owned(), "Expires: 0".to_owned()];
        scene.with(bob, |ua, now| ua.register_with(now, "1000", &fields));
        scene.run(100);
        assert_eq!(scene.bob().result("REGISTER"), Some(200), "{line}");
        assert!(expires(&scene, bob).is_empty(), "{line}");
        scene.call("1000");
        scene.finish();
        assert_eq!(scene.alice().result("INVITE"), Some(480), "{line}");
    }
}

#[test]
fn too_brief_an_interval_is_refused_with_the_least_one() {
    let mut scene = Scene::office(1);
    scene.with(scene.callee, |ua, now| ua.register(now, "1000", 1));
    scene.finish();
    assert_eq!(scene.bob().result("REGISTER"), Some(423));
    let least: u32 = scene
        .bob()
        .last("423 (REGISTER)")
        .must("min-expires")
        .parse()
        .unwrap();
    assert!(least > 1);
}

#[test]
fn lost_registrations_are_said_again() {
    let mut scene = Scene::office(1);
    let (bob, server) = (scene.callee, scene.server);
    scene.lose(bob, server, "REGISTER", Nth::One(1));
    scene.lose(server, bob, "200 (REGISTER)", Nth::One(1));
    scene.with(bob, |ua, now| ua.register(now, "1000", 600));
    scene.finish();
    assert_eq!(scene.bob().result("REGISTER"), Some(200));
    assert_eq!(expires(&scene, bob).len(), 1);
}

/// Bob and carol both are 1000.
fn two_phones(seed: u64, bob: Script, carol: Script) -> (Scene, HostId) {
    let mut scene = Scene::office(seed);
    let (first, second) = (scene.callee, scene.add_phone("carol"));
    register(&mut scene, first, 600);
    register(&mut scene, second, 600);
    assert_eq!(expires(&scene, second).len(), 2);
    scene.with(first, |ua, _| ua.habits.invite = bob);
    scene.with(second, |ua, _| ua.habits.invite = carol);
    (scene, second)
}

#[test]
fn all_phones_of_a_user_ring_and_the_first_answer_wins() {
    let (mut scene, carol) = two_phones(1, Script::ring(), Script::answer_after(1_000));
    scene.call("1000");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(
        scene.bob().heard(),
        ["200 (REGISTER)", "INVITE", "CANCEL", "ACK"]
    );
    let carol = scene.phone(carol).heard();
    assert_eq!(carol, ["200 (REGISTER)", "INVITE", "ACK", "BYE"]);
    assert_eq!(scene.alice().result("INVITE"), Some(200));
}

#[test]
fn two_answers_at_once_make_one_call() {
    let (mut scene, carol) = two_phones(1, Script::answer_after(500), Script::answer_after(500));
    scene.call("1000");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    let heard = [scene.callee, carol].map(|host| {
        (
            scene.phone(host).count("ACK"),
            scene.phone(host).count("BYE"),
        )
    });
    assert_eq!(
        heard,
        [(1, 1), (1, 1)],
        "one is hung up at once, the other by alice"
    );
}

#[test]
fn one_phone_is_busy_and_the_other_answers() {
    let (mut scene, _) = two_phones(1, Script::refuse(486), Script::answer_after(500));
    scene.call("1000");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
}

#[test]
fn the_best_refusal_of_several_is_passed_on() {
    let rows = [
        ((486, 480), 486),
        ((480, 486), 480),
        ((486, 603), 603),
        ((500, 486), 486),
    ];
    for ((bob, carol), expected) in rows {
        let (mut scene, _) = two_phones(1, Script::refuse(bob), Script::refuse(carol));
        scene.call("1000");
        scene.finish();
        assert_eq!(
            scene.alice().result("INVITE"),
            Some(expected),
            "{bob} and {carol}"
        );
    }
}

#[test]
fn a_cancel_stops_every_phone() {
    let (mut scene, carol) = two_phones(1, Script::ring(), Script::ring());
    scene.call("1000");
    scene.cancel_at(3_000);
    scene.finish();
    for host in [scene.callee, carol] {
        assert_eq!(scene.phone(host).heard()[1..], ["INVITE", "CANCEL", "ACK"]);
    }
    assert_eq!(scene.alice().result("INVITE"), Some(487));
}

#[test]
fn one_phone_is_dead_and_the_other_answers() {
    let (mut scene, carol) = two_phones(1, Script::answer_after(500), Script::ring());
    scene.dies_at(500, carol);
    scene.call("1000");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
}
