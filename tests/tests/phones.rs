//! The scripted phones against each other: the witnesses are examined before they testify.

use std::time::{Duration, Instant};

use simnet::{Filter, HostId, LinkModel, Nth, Stop, Verdict, World, ladder};
use tandem_tests::message::{Sip, label};
use tandem_tests::ua::{DialogState, OnCancel, Script, ScriptedUa};

fn pair() -> (World<ScriptedUa>, HostId, HostId) {
    let [a, b] = ["192.0.2.10:5060", "192.0.2.20:5060"].map(|text| text.parse().unwrap());
    let mut world = World::new(Instant::now(), 1);
    world.set_default_link(LinkModel::with_delay(Duration::from_millis(1)));
    let caller = world.add("caller", ScriptedUa::new("alice", a, b), [a]);
    let callee = world.add("callee", ScriptedUa::new("bob", b, a), [b]);
    (world, caller, callee)
}

fn lose(world: &mut World<ScriptedUa>, from: HostId, what: &'static str) -> simnet::FilterId {
    let matches = move |d: &simnet::Datagram| label(&d.bytes) == what;
    world.filter(
        Filter::new(Verdict::Drop, matches)
            .from(from)
            .nth(Nth::One(1)),
    )
}

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Runs to the end; both phones have finished, none complains.
fn finish(world: &mut World<ScriptedUa>) {
    let stop = world.run_to_idle(Duration::from_secs(300));
    let drawn = ladder::draw(world, |d| label(&d.bytes));
    assert_eq!(stop, Stop::Idle, "\n{drawn}");
    let hosts: Vec<_> = world.hosts().map(|(id, _)| id).collect();
    for host in hosts {
        let phone = world.host(host);
        assert!(
            phone.complaints().is_empty(),
            "{:#?}\n{drawn}",
            phone.complaints()
        );
        let over = phone.dialogs().iter().all(|d| d.state == DialogState::Over);
        assert!(over, "{:#?}\n{drawn}", phone.dialogs());
    }
}

#[test]
fn a_call_is_made_answered_and_ended() {
    let (mut world, caller, callee) = pair();
    world.with(caller, |ua, now| ua.call(now, "bob"));
    world.at(ms(1_000), caller, |ua, now| ua.bye(now, 0));
    finish(&mut world);
    assert_eq!(
        world.host(caller).heard(),
        ["180 (INVITE)", "200 (INVITE)", "200 (BYE)"]
    );
    assert_eq!(world.host(callee).heard(), ["INVITE", "ACK", "BYE"]);
    assert!(world.host(callee).log().iter().all(|entry| !entry.repeat));
}

#[test]
fn every_message_may_be_lost_once() {
    for what in [
        "INVITE",
        "180 (INVITE)",
        "200 (INVITE)",
        "ACK",
        "BYE",
        "200 (BYE)",
    ] {
        let (mut world, caller, callee) = pair();
        let response = what.ends_with(')');
        let lost = lose(&mut world, if response { callee } else { caller }, what);
        world.with(caller, |ua, now| ua.call(now, "bob"));
        world.at(ms(5_000), caller, |ua, now| ua.bye(now, 0));
        finish(&mut world);
        assert_eq!(world.filter_hits(lost), 1, "{what}");
        assert_eq!(world.host(caller).result("BYE"), Some(200), "{what}");
    }
}

#[test]
fn a_ringing_call_is_cancelled() {
    let (mut world, caller, callee) = pair();
    world.with(callee, |ua, _| ua.habits.invite = Script::ring());
    world.with(caller, |ua, now| ua.call(now, "bob"));
    world.at(ms(500), caller, |ua, now| ua.cancel(now, 0));
    finish(&mut world);
    assert_eq!(
        world.host(caller).heard(),
        ["180 (INVITE)", "200 (CANCEL)", "487 (INVITE)"]
    );
    assert_eq!(world.host(callee).heard(), ["INVITE", "CANCEL", "ACK"]);
}

#[test]
fn an_answer_may_cross_the_cancel() {
    let (mut world, caller, callee) = pair();
    world.with(callee, |ua, _| {
        (ua.habits.invite, ua.habits.on_cancel) = (Script::ring(), OnCancel::Answer);
    });
    world.with(caller, |ua, now| ua.call(now, "bob"));
    world.at(ms(500), caller, |ua, now| ua.cancel(now, 0));
    world.at(ms(700), caller, |ua, now| ua.bye(now, 0));
    finish(&mut world);
    assert_eq!(world.host(caller).result("INVITE"), Some(200));
}

#[test]
fn an_unacknowledged_answer_is_repeated_and_ends_in_bye() {
    let (mut world, caller, callee) = pair();
    world.with(caller, |ua, now| {
        ua.habits.acks_2xx = false;
        ua.call(now, "bob")
    });
    finish(&mut world);
    // T1 doubling to T2 within 64 x T1: 0.5, 1.5, 3.5, 7.5, 11.5, ... 31.5 s after the first.
    assert_eq!(world.host(caller).count("200 (INVITE)"), 11);
    assert_eq!(world.host(callee).result("BYE"), Some(200));
}

#[test]
fn nobody_there_times_out_after_64_t1() {
    let (mut world, caller, callee) = pair();
    world.set_up(callee, false);
    world.with(caller, |ua, now| ua.call(now, "bob"));
    finish(&mut world);
    // Timer A doubles from T1 on until timer B.
    let log = world.host(caller).log();
    let sent: Vec<_> = log.iter().map(|entry| entry.at - log[0].at).collect();
    assert_eq!(sent, [0, 500, 1_500, 3_500, 7_500, 15_500, 31_500].map(ms));
    assert_eq!(world.host(caller).result("INVITE"), None);
}

#[test]
fn a_call_without_offer_gets_its_answer_in_the_ack() {
    let (mut world, caller, callee) = pair();
    world.with(caller, |ua, now| {
        ua.habits.offers = false;
        ua.call(now, "bob")
    });
    world.at(ms(1_000), callee, |ua, now| ua.bye(now, 0));
    finish(&mut world);
    assert!(world.host(callee).last("ACK").sdp().is_some());
}

#[test]
fn holds_are_answered_and_versions_counted() {
    let (mut world, caller, callee) = pair();
    world.with(caller, |ua, now| ua.call(now, "bob"));
    world.at(ms(1_000), callee, |ua, now| {
        ua.dialog_mut(0).media.direction = Some("sendonly");
        ua.reinvite(now, 0);
    });
    world.at(ms(2_000), callee, |ua, now| {
        ua.dialog_mut(0).media.direction = None;
        ua.reinvite(now, 0);
    });
    world.at(ms(3_000), callee, |ua, now| ua.bye(now, 0));
    finish(&mut world);
    let answers: Vec<_> = world.host(callee).all("200 (INVITE)").collect();
    assert!(answers[0].sip.sdp().unwrap().contains("a=recvonly"));
    assert!(!answers[1].sip.sdp().unwrap().contains("only"));
}

#[test]
fn a_fork_is_a_dialog_of_its_own() {
    let (mut world, caller, callee) = pair();
    world.with(callee, |ua, _| {
        ua.habits.invite = Script::answer_after(50).then_fork(60, 200, "fork");
    });
    world.with(caller, |ua, now| ua.call(now, "bob"));
    world.at(ms(1_000), caller, |ua, now| ua.bye(now, 0));
    let _ = world.run_to_idle(Duration::from_secs(300));
    // A phone takes a second To tag for a fault, since the server never forks towards it.
    assert_eq!(world.host(caller).complaints().len(), 11);
    assert_eq!(world.host(callee).dialogs().len(), 2);
}

#[test]
fn faults_are_complained_about() {
    let (mut world, caller, callee) = pair();
    world.with(caller, |ua, now| ua.call(now, "bob"));
    world.at(ms(1_000), caller, |ua, now| {
        ua.dialog_mut(0).local_cseq = 0;
        ua.dialog_mut(0).target = "sip:somebody@192.0.2.20".to_owned();
        ua.bye(now, 0);
    });
    let _ = world.run_to_idle(Duration::from_secs(300));
    assert_eq!(
        world.host(callee).complaints().len(),
        2,
        "{:?}",
        world.host(callee).complaints()
    );
    let bye = world.host(callee).last("BYE");
    assert_eq!(Sip::method(bye), Some("BYE"));
}
