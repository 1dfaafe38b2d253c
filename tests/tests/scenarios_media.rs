//! Descriptions: early media, forks, offers that come late, holds, glare, direct media, recording.

use media::command::{MediaCommand, Side};
use simnet::Nth;
use tandem_tests::description::sections;
use tandem_tests::scene::Scene;
use tandem_tests::ua::{Script, ScriptedUa, T1};

/// Changes the media of a phone's first call and offers it.
fn offer_at(
    scene: &mut Scene,
    ms: u64,
    host: simnet::HostId,
    change: fn(&mut tandem_tests::description::Media),
) {
    scene.at(ms, host, move |ua, now| {
        change(&mut ua.dialog_mut(0).media);
        ua.reinvite(now, 0);
    });
}

/// Directions of the answers that a phone got to its re-INVITEs, `sendrecv` where none stands.
fn answers(ua: &ScriptedUa) -> Vec<String> {
    let answers = ua
        .log()
        .iter()
        .filter(|entry| entry.incoming && !entry.repeat && entry.sip.to_string() == "200 (INVITE)");
    answers
        .map(|entry| {
            sections(entry.sip.sdp().unwrap())[0]
                .direction
                .unwrap_or("sendrecv")
                .to_owned()
        })
        .collect()
}

/// (send, receive) of both legs, as the media plane was told last.
fn flows(scene: &Scene) -> [(bool, bool); 2] {
    Side::BOTH.map(|side| {
        let leg = scene.tandem().leg(side);
        (leg.send && leg.remote.is_some(), leg.receive)
    })
}

const BOTH_WAYS: [(bool, bool); 2] = [(true, true), (true, true)];

#[test]
fn media_flows_between_the_phones_through_us() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.bye_at(2_000, scene.caller);
    scene.run(1_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    let tandem = scene.tandem();
    let [a, b] = Side::BOTH.map(|side| tandem.leg(side).clone());
    assert_eq!(a.remote, Some("192.0.2.10:40000".parse().unwrap()));
    assert_eq!(b.remote, Some("192.0.2.20:40000".parse().unwrap()));
    // Each phone was told the port of its own leg.
    for (ua, leg) in [(scene.alice(), &a), (scene.bob(), &b)] {
        let told = &sections(ua.dialogs()[0].peer_sdp())[0];
        let ours = tandem.port_address(leg.port);
        assert_eq!((told.port, told.address), (ours.port(), Some("192.0.2.1")));
    }
    scene.finish();
}

#[test]
fn a_server_that_takes_its_time_answers_all_the_same() {
    let mut scene = Scene::lab(1);
    scene.with_server(|server, _| server.shell_delay = tandem_tests::scene::ms(700));
    scene.call("bridge");
    scene.bye_at(5_000, scene.callee);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(200));
}

#[test]
fn early_media_is_passed_on_and_flows() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then_sdp(10, 183).then_sdp(2_000, 200);
    });
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.run(1_000);
    assert!(scene.alice().last("183 (INVITE)").sdp().is_some());
    assert!(scene.tandem().leg(Side::B).receive && scene.tandem().leg(Side::A).send);
    scene.finish();
    let early = scene.alice().last("183 (INVITE)").sdp();
    assert_eq!(
        early,
        scene.alice().last("200 (INVITE)").sdp(),
        "one answer, said twice"
    );
}

#[test]
fn an_answer_in_180_is_early_media_too() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then_sdp(10, 180).then_sdp(500, 200);
    });
    scene.call("bridge");
    scene.bye_at(2_000, scene.caller);
    scene.finish();
    assert!(scene.alice().last("180 (INVITE)").sdp().is_some());
}

#[test]
fn an_answer_may_come_in_183_alone() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then_sdp(10, 183).then(500, 200);
    });
    scene.call("bridge");
    scene.bye_at(2_000, scene.caller);
    scene.finish();
    assert!(scene.alice().last("200 (INVITE)").sdp().is_some());
}

#[test]
fn early_media_then_busy() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default().then_sdp(10, 183).then(2_000, 486);
    });
    scene.call("bridge");
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(486));
}

/// BB-05, and the route set of the answer is kept in every ACK.
#[test]
fn each_repeated_answer_is_acknowledged() {
    let route = "<sip:proxy@192.0.2.20;lr>";
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.record_route = Some(route.to_owned());
    });
    scene.lose(scene.server, scene.callee, "ACK", Nth::First(4));
    scene.call("bridge");
    scene.bye_at(20_000, scene.caller);
    scene.finish();
    let acks: Vec<_> = scene
        .world
        .trace()
        .sent()
        .filter(|(_, sent)| sent.from == scene.server)
        .filter_map(|(_, sent)| tandem_tests::message::Sip::read(&sent.datagram.bytes))
        .filter(|sip| sip.method() == Some("ACK"))
        .collect();
    assert_eq!(acks.len(), 5);
    let invite = scene.bob().last("INVITE").cseq().0;
    assert!(
        acks.iter()
            .all(|ack| ack.cseq().0 == invite && ack.must("route") == route)
    );
}

#[test]
fn a_second_answer_of_a_fork_is_acknowledged_and_ended() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::answer_after(200).then_fork(230, 200, "fork");
    });
    scene.call("bridge");
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    let byes: Vec<_> = scene.bob().all("BYE").collect();
    assert_eq!(byes.len(), 2);
    assert_eq!(
        byes[0].sip.receiver_tag(),
        Some("fork"),
        "the loser is ended first"
    );
    assert!(byes[1].at - byes[0].at > 4 * T1, "the winner lives on");
}

#[test]
fn a_fork_may_answer_after_another_rang() {
    let mut scene = Scene::lab(1);
    scene.with(scene.callee, |ua, _| {
        ua.habits.invite = Script::default()
            .then_sdp(10, 183)
            .then_fork(20, 183, "second")
            .then_fork(500, 200, "third");
    });
    scene.call("bridge");
    scene.run(2_000);
    let third = scene
        .bob()
        .dialogs()
        .iter()
        .find(|d| d.local_tag == "third")
        .unwrap();
    let port = third.media.port;
    assert_eq!(
        scene.tandem().leg(Side::B).remote.map(|to| to.port()),
        Some(port)
    );
    scene.bye_at(5_000, scene.caller);
    scene.may_hang(scene.callee);
    scene.finish();
    assert_eq!(scene.bob().last("BYE").receiver_tag(), Some("third"));
}

/// BB-12, plain: our offer in the 200, the answer in the ACK.
#[test]
fn an_offer_that_comes_late() {
    for user in ["echo", "bridge"] {
        let mut scene = Scene::lab(1);
        scene.with(scene.caller, |ua, _| ua.habits.offers = false);
        scene.call(user);
        scene.bye_at(3_000, scene.caller);
        scene.run(1_000);
        assert!(scene.alice().last("200 (INVITE)").sdp().is_some(), "{user}");
        let leg = scene.tandem().leg(Side::A);
        assert_eq!(
            leg.remote,
            Some("192.0.2.10:40000".parse().unwrap()),
            "{user}"
        );
        assert!(leg.send && leg.receive, "{user}");
        scene.finish();
    }
}

#[test]
fn a_reinvite_without_offer_gets_ours() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.at(2_000, scene.caller, |ua, now| {
        ua.reinvite_without_offer(now, 0);
    });
    scene.at(4_000, scene.callee, |ua, now| {
        ua.reinvite_without_offer(now, 0);
    });
    scene.bye_at(6_000, scene.caller);
    scene.run(5_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    scene.finish();
}

/// BB-01: hold by `sendonly`, resume without any direction line.
#[test]
fn the_callee_holds_and_resumes() {
    let mut scene = Scene::lab(1);
    let callee = scene.callee;
    scene.call("bridge");
    offer_at(&mut scene, 2_000, callee, |media| {
        media.direction = Some("sendonly");
    });
    offer_at(&mut scene, 7_000, callee, |media| media.direction = None);
    scene.bye_at(12_000, callee);
    scene.run(4_000);
    // Bob sends his music and hears nothing; alice hears it.
    assert_eq!(flows(&scene), [(true, false), (false, true)]);
    assert!(["recvonly", "inactive"].contains(&answers(scene.bob())[0].as_str()));
    scene.run(5_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    assert_eq!(answers(scene.bob())[1], "sendrecv");
    scene.finish();
}

#[test]
fn the_callee_answers_one_way() {
    for (said, told, expected) in [
        ("sendonly", "sendonly", [(true, false), (false, true)]),
        ("recvonly", "recvonly", [(false, true), (true, false)]),
        ("inactive", "inactive", [(false, false), (false, false)]),
    ] {
        let mut scene = Scene::lab(1);
        scene.with(scene.callee, |ua, _| ua.media.direction = Some(said));
        scene.call("bridge");
        scene.bye_at(3_000, scene.caller);
        scene.run(2_000);
        assert_eq!(answers(scene.alice()), [told]);
        assert_eq!(flows(&scene), expected, "bob said {said}");
        scene.finish();
    }
}

#[test]
fn the_caller_offers_one_way() {
    for (offered, expected) in [
        ("sendonly", [(false, true), (true, false)]),
        ("recvonly", [(true, false), (false, true)]),
    ] {
        let mut scene = Scene::lab(1);
        scene.with(scene.caller, |ua, _| ua.media.direction = Some(offered));
        scene.call("bridge");
        scene.bye_at(3_000, scene.caller);
        scene.run(2_000);
        assert_eq!(flows(&scene), expected, "alice offered {offered}");
        scene.finish();
    }
}

#[test]
fn the_caller_holds_and_resumes() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.call("bridge");
    offer_at(&mut scene, 2_000, caller, |media| {
        media.direction = Some("inactive");
    });
    offer_at(&mut scene, 7_000, caller, |media| {
        media.direction = Some("sendrecv");
    });
    scene.bye_at(12_000, caller);
    scene.run(4_000);
    assert_eq!(flows(&scene), [(false, false), (false, false)]);
    scene.run(5_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    scene.finish();
}

/// BB-02: the direction stands in the last line, which has no end; the resume has a new address.
#[test]
fn a_hold_whose_last_line_has_no_end() {
    let mut scene = Scene::lab(1);
    let callee = scene.callee;
    scene.call("bridge");
    offer_at(&mut scene, 2_000, callee, |media| {
        (media.direction, media.unfinished) = (Some("sendonly"), true);
    });
    offer_at(&mut scene, 7_000, callee, |media| {
        (media.direction, media.unfinished, media.port) = (None, false, 41_000);
    });
    scene.bye_at(12_000, callee);
    scene.run(4_000);
    assert_eq!(flows(&scene), [(true, false), (false, true)]);
    scene.run(5_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    let leg = scene.tandem().leg(Side::B);
    assert_eq!(leg.remote, Some("192.0.2.20:41000".parse().unwrap()));
    scene.finish();
}

/// BB-02: the old spelling.
#[test]
fn a_hold_by_address_zero() {
    let mut scene = Scene::lab(1);
    let callee = scene.callee;
    scene.call("bridge");
    offer_at(&mut scene, 2_000, callee, |media| {
        media.address = "0.0.0.0".to_owned();
    });
    offer_at(&mut scene, 7_000, callee, |media| {
        media.address = "192.0.2.21".to_owned();
    });
    scene.bye_at(12_000, callee);
    scene.run(4_000);
    assert!(!flows(&scene)[1].0, "nothing is ever sent to address zero");
    scene.run(5_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    let leg = scene.tandem().leg(Side::B);
    assert_eq!(leg.remote, Some("192.0.2.21:40000".parse().unwrap()));
    scene.finish();
}

/// BB-03: a call that we answer alone is held, refreshed by UPDATE, resumed.
#[test]
fn a_call_answered_here_is_held_refreshed_and_resumed() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.call("echo");
    offer_at(&mut scene, 2_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    scene.at(4_000, caller, |ua, now| {
        ua.request_in(now, 0, "UPDATE", &[], None);
    });
    offer_at(&mut scene, 7_000, caller, |media| media.direction = None);
    scene.bye_at(12_000, caller);
    scene.finish();
    assert_eq!(scene.alice().result("UPDATE"), Some(200));
    assert!(["recvonly", "inactive"].contains(&answers(scene.alice())[1].as_str()));
    assert_eq!(answers(scene.alice())[2], "sendrecv");
    let legs: Vec<_> = scene
        .tandem()
        .specs()
        .map(|(_, spec)| spec.leg(Side::A).unwrap())
        .collect();
    assert!(!legs[1].send && legs[legs.len() - 1].send);
}

/// BB-04: both sides ask within 5 ms.
#[test]
fn both_sides_offer_at_once() {
    let mut scene = Scene::lab(1);
    let (caller, callee) = (scene.caller, scene.callee);
    scene.call("bridge");
    offer_at(&mut scene, 3_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    offer_at(&mut scene, 3_005, callee, |media| media.port = 41_000);
    scene.bye_at(20_000, caller);
    scene.finish();
    // Ours to bob met his: 491 each way; we own that Call-ID, so ours comes again after 2.1 to 4 s.
    let reinvites: Vec<_> = scene
        .bob()
        .all("re-INVITE")
        .filter(|entry| !entry.repeat)
        .collect();
    assert_eq!(reinvites.len(), 2, "{:?}", scene.bob().heard());
    let refused = scene
        .bob()
        .log()
        .iter()
        .find(|entry| !entry.incoming && entry.sip.to_string() == "491 (INVITE)");
    let wait = reinvites[1].at - refused.expect("bob said 491").at;
    assert!(
        (2_100..=4_100).contains(&wait.as_millis()),
        "came again after {wait:?}"
    );
    assert_eq!(scene.bob().result("INVITE"), Some(491));
    assert_eq!(scene.alice().result("INVITE"), Some(200));
    assert_eq!(scene.alice().result("BYE"), Some(200), "the call survives");
}

/// BB-04: a second offer before the first one's answer.
#[test]
fn one_side_offers_twice_before_an_answer() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.with(scene.callee, |ua, _| {
        ua.habits
            .reinvites
            .push_back(Script::default().then_sdp(2_000, 200));
    });
    scene.call("bridge");
    offer_at(&mut scene, 3_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    scene.at(3_500, caller, |ua, now| ua.reinvite_without_offer(now, 0));
    scene.bye_at(20_000, caller);
    scene.finish();
    let refused = scene.alice().last("500 (INVITE)");
    let wait: u32 = refused.must("retry-after").parse().expect("Retry-After");
    assert!(wait <= 10);
    let asked = scene
        .bob()
        .all("re-INVITE")
        .filter(|entry| !entry.repeat)
        .count();
    assert_eq!(asked, 1, "bob hears of the first offer alone");
    assert_eq!(scene.alice().result("BYE"), Some(200), "the call survives");
}

#[test]
fn a_hold_that_the_other_side_refuses_changes_nothing() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.with(scene.callee, |ua, _| {
        ua.habits.reinvites.push_back(Script::refuse(488));
    });
    scene.call("bridge");
    offer_at(&mut scene, 2_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    scene.bye_at(12_000, caller);
    scene.run(4_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(488));
    assert_eq!(scene.alice().result("BYE"), Some(200), "the call survives");
}

/// The hold was taken back while the other side was thinking about it; it must not stay on hold.
#[test]
fn a_hold_that_is_taken_back_leaves_nobody_on_hold() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.with(scene.callee, |ua, _| {
        ua.habits
            .reinvites
            .push_back(Script::default().then_sdp(2_000, 200));
    });
    scene.call("bridge");
    offer_at(&mut scene, 3_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    scene.at(4_000, caller, |ua, now| {
        ua.dialog_mut(0).media.direction = None;
        ua.cancel(now, 0);
    });
    scene.bye_at(12_000, caller);
    scene.run(10_000);
    assert_eq!(flows(&scene), BOTH_WAYS);
    scene.finish();
    assert_eq!(scene.alice().result("INVITE"), Some(487));
    let asked: Vec<_> = scene
        .bob()
        .all("re-INVITE")
        .filter(|entry| !entry.repeat)
        .filter_map(|entry| sections(entry.sip.sdp()?)[0].direction.map(str::to_owned))
        .collect();
    assert_eq!(asked, ["sendonly", "sendrecv"]);
    assert_eq!(scene.alice().result("BYE"), Some(200), "the call survives");
}

#[test]
fn messages_of_a_hold_are_lost() {
    let mut scene = Scene::lab(1);
    let (caller, server, callee) = (scene.caller, scene.server, scene.callee);
    scene.call("bridge");
    scene.run(1_000);
    for (a, b) in [(caller, server), (server, callee)] {
        scene.lose(a, b, "re-INVITE", Nth::One(1));
        scene.lose(a, b, "ACK", Nth::One(1));
        scene.lose(b, a, "200 (INVITE)", Nth::One(1));
    }
    offer_at(&mut scene, 2_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    scene.bye_at(20_000, caller);
    scene.run(15_000);
    assert_eq!(flows(&scene), [(false, true), (true, false)]);
    scene.finish();
}

#[test]
fn the_other_side_dies_and_a_hold_finds_out() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.call("bridge");
    scene.dies_at(2_000, scene.callee);
    offer_at(&mut scene, 3_000, caller, |media| {
        media.direction = Some("sendonly");
    });
    scene.finish();
    assert_eq!(
        scene.alice().count("BYE"),
        1,
        "a dialog without answer is over (12.2.1.2)"
    );
}

#[test]
fn a_new_address_is_answered_here() {
    let mut scene = Scene::lab(1);
    let caller = scene.caller;
    scene.call("bridge");
    offer_at(&mut scene, 2_000, caller, |media| media.port = 42_000);
    scene.bye_at(5_000, caller);
    scene.run(3_000);
    let leg = scene.tandem().leg(Side::A);
    assert_eq!(leg.remote, Some("192.0.2.10:42000".parse().unwrap()));
    scene.finish();
    assert_eq!(
        scene.bob().count("re-INVITE"),
        0,
        "nothing that concerns bob"
    );
}

#[test]
fn media_sections_that_we_refuse_keep_their_place() {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, _| {
        ua.media.more = ["m=video 40002 RTP/AVP 31", "m=audio 40004 RTP/AVP 0"]
            .map(str::to_owned)
            .to_vec();
    });
    scene.call("bridge");
    scene.bye_at(2_000, scene.caller);
    scene.finish();
    let answered: Vec<_> = sections(scene.alice().last("200 (INVITE)").sdp().unwrap())
        .iter()
        .map(|section| (section.kind.to_owned(), section.port != 0))
        .collect();
    let expected = [("audio", true), ("video", false), ("audio", false)];
    assert_eq!(
        answered,
        expected.map(|(kind, taken)| (kind.to_owned(), taken))
    );
}

/// BB-19: each leg keeps its own number for events.
#[test]
fn events_have_each_legs_own_number() {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, _| {
        let formats = [(8, "PCMA/8000"), (96, "telephone-event/8000")];
        ua.media.formats = formats
            .map(|(number, name)| (number, name.to_owned()))
            .to_vec();
    });
    scene.call("bridge");
    scene.bye_at(2_000, scene.caller);
    scene.run(1_000);
    let [a, b] = Side::BOTH.map(|side| scene.tandem().leg(side).clone());
    assert_eq!((a.dtmf_send, a.dtmf_recv), (Some(96), Some(96)));
    let offered = sections(scene.bob().dialogs()[0].peer_sdp())[0]
        .formats
        .clone();
    let event = offered
        .iter()
        .find(|(_, name)| name == "telephone-event/8000")
        .unwrap()
        .0;
    assert_eq!((b.dtmf_send, b.dtmf_recv), (Some(event), Some(event)));
    scene.finish();
}

#[test]
fn only_mu_law_is_offered_where_the_plan_says_so() {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, _| {
        ua.media.formats.retain(|(_, name)| name != "PCMU/8000");
    });
    scene.call("pcmu");
    scene.bye_at(2_000, scene.caller);
    scene.run(1_000);
    let [a, b] = Side::BOTH.map(|side| scene.tandem().leg(side).format.name.clone());
    assert_eq!((a.as_str(), b.as_str()), ("PCMA", "PCMU"));
    let offered = sections(scene.bob().dialogs()[0].peer_sdp())[0]
        .formats
        .clone();
    assert!(
        offered.iter().all(|(_, name)| name != "PCMA/8000"),
        "{offered:?}"
    );
    scene.finish();
}

#[test]
fn a_call_is_recorded_from_answer_to_end() {
    for user in ["echo-record", "bridge-record"] {
        let mut scene = Scene::lab(1);
        scene.call(user);
        scene.bye_at(5_000, scene.caller);
        scene.finish();
        let commands: Vec<_> = scene.tandem().commands().iter().map(|(_, c)| c).collect();
        let starts = commands.iter().filter_map(|command| match command {
            MediaCommand::StartRecording { recording, .. } => Some(recording),
            _ => None,
        });
        let recordings: Vec<_> = starts.collect();
        assert_eq!(recordings.len(), 1, "{user}");
        assert!(recordings[0].stereo, "{user}: one leg a side");
        let caller = ("caller".to_owned(), "alice".to_owned());
        assert!(
            recordings[0].fields.contains(&caller),
            "{user}: {:?}",
            recordings[0].fields
        );
    }
}

#[test]
fn direct_media_passes_descriptions_as_they_are() {
    let mut scene = Scene::lab(1);
    scene.call("nomedia");
    let callee = scene.callee;
    offer_at(&mut scene, 2_000, callee, |media| {
        media.direction = Some("sendonly");
    });
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    let (alice, bob) = (&scene.alice().dialogs()[0], &scene.bob().dialogs()[0]);
    assert_eq!(bob.heard[0], scene.alice().log()[0].sip.sdp().unwrap());
    assert_eq!(
        alice.heard.last(),
        Some(bob.said.as_ref().unwrap()),
        "bob's hold"
    );
    assert!(scene.tandem().commands().is_empty(), "no media of ours");
}

/// BB-12 with direct media: bob's offer goes to alice, and his ACK waits for her answer.
#[test]
fn direct_media_with_an_offer_that_comes_late() {
    let mut scene = Scene::lab(1);
    scene.with(scene.caller, |ua, _| ua.habits.offers = false);
    scene.call("nomedia");
    scene.at(2_000, scene.callee, |ua, now| {
        ua.reinvite_without_offer(now, 0);
    });
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    let (alice, bob) = (&scene.alice().dialogs()[0], &scene.bob().dialogs()[0]);
    let answer = scene
        .bob()
        .all("ACK")
        .next()
        .unwrap()
        .sip
        .sdp()
        .map(str::to_owned);
    let said = scene.alice().log().iter().filter(|entry| !entry.incoming);
    let ack = said
        .filter(|entry| entry.sip.to_string() == "ACK")
        .find_map(|e| e.sip.sdp());
    assert_eq!(answer.as_deref(), ack);
    assert!(!alice.heard.is_empty() && !bob.heard.is_empty());
}

#[test]
fn a_clip_that_ends_ends_the_call() {
    let mut scene = Scene::office(1);
    scene.call("9199");
    scene.run(3_000);
    scene.with_server(tandem_tests::server::Server::finish_clips);
    scene.finish();
    assert_eq!(scene.alice().count("BYE"), 1);
}

#[test]
fn media_that_fails_ends_the_call() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.run(3_000);
    scene.with_server(tandem_tests::server::Server::fail_media);
    scene.finish();
    assert_eq!(
        (scene.alice().count("BYE"), scene.bob().count("BYE")),
        (1, 1)
    );
}

#[test]
fn a_message_within_the_call_reaches_the_other_side() {
    let mut scene = Scene::lab(1);
    scene.call("bridge");
    scene.at(2_000, scene.caller, |ua, now| {
        let body = ("application/dtmf-relay", "Signal=5\r\nDuration=160\r\n");
        ua.request_in(now, 0, "INFO", &[], Some(body));
    });
    scene.bye_at(5_000, scene.caller);
    scene.finish();
    assert_eq!(scene.alice().result("INFO"), Some(200));
    assert_eq!(
        scene.bob().last("INFO").body,
        b"Signal=5\r\nDuration=160\r\n"
    );
}
