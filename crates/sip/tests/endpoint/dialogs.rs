//! Dialogs: forks, route sets, sequence numbers, targets, and what matches nothing (RFC 3261, 12).

use sip::{Event, Name};

use crate::solo::{Solo, event, kinds, sdp};
use crate::text::{answer, invite, request, response};

#[test]
fn a_second_fork_that_answers_gets_ack_and_bye() {
    let mut solo = Solo::new();
    let (usage, call) = solo.calls();
    for tag in ["one", "two"] {
        solo.hears(
            &response(&call, 180)
                .fork(tag)
                .extra("Contact: <sip:192.0.2.41:5071>"),
        );
        event!(solo, Event::Provisional { code: 180, .. } => ());
    }
    solo.hears(&answer(&call).fork("two"));
    event!(solo, Event::Answered { message, .. } => {
        assert_eq!(message.to().expect("there").tag(), Some("two"));
    });
    solo.endpoint.ack(solo.now, usage, None);
    assert_eq!(solo.one().to().expect("ours").tag(), Some("two"));
    let late = response(&call, 200)
        .fork("one")
        .extra("Contact: <sip:192.0.2.41:5071>")
        .extra("Record-Route: <sip:192.0.2.30;lr>");
    solo.hears(&late);
    let sent = solo.sent();
    assert_eq!(kinds(&sent), ["ACK", "BYE"]);
    for message in &sent {
        assert_eq!(message.to().expect("ours").tag(), Some("one"));
        assert_eq!(message.request_uri(), Some("sip:192.0.2.41:5071"));
        assert_eq!(message.transmit.remote.to_string(), "192.0.2.30:5060");
    }
    solo.hears(&late);
    assert_eq!(
        kinds(&solo.sent()),
        ["ACK"],
        "its repeat gets an ACK, no second BYE"
    );
    assert!(solo.events().is_empty());
    assert_eq!(solo.endpoint.tags(usage).expect("up").1, Some("two"));
    solo.endpoint.bye(solo.now, usage, Vec::new());
    assert_eq!(solo.one().to().expect("ours").tag(), Some("two"));
    solo.drained();
}

#[test]
fn made_up_forks_are_bounded() {
    let mut solo = Solo::new();
    let (usage, call) = solo.calls();
    solo.hears(&answer(&call));
    event!(solo, Event::Answered { .. } => ());
    for fork in 0..1_000 {
        solo.hears(&answer(&call).fork(&format!("f{fork}")));
    }
    assert!(solo.endpoint.counts().client_transactions < 40);
    solo.sent();
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}

#[test]
fn requests_of_an_early_dialog_are_passed_up_fork_by_fork() {
    let mut solo = Solo::new();
    let (usage, call) = solo.calls();
    for tag in ["one", "two"] {
        solo.hears(
            &response(&call, 183)
                .fork(tag)
                .extra("Contact: <sip:192.0.2.41:5071>"),
        );
        event!(solo, Event::Provisional { .. } => ());
    }
    let us = call.header(Name::From).expect("ours").to_owned();
    let call_id = call.call_id().expect("ours").to_owned();
    let info = |tag: &str, cseq: u32| {
        request("INFO", cseq, &format!("{tag}{cseq}"))
            .from(&format!("<sip:bob@192.0.2.20>;tag={tag}"))
            .to(&us)
            .call_id(&call_id)
    };
    for (tag, cseq) in [("one", 50), ("two", 7)] {
        solo.hears(&info(tag, cseq));
        let txn = event!(solo, Event::Request { txn, usage: Some(own), .. } => {
            assert_eq!(own, usage);
            txn
        });
        solo.endpoint
            .respond(solo.now, txn, 200, None, Vec::new(), None)
            .expect("open");
        assert_eq!(solo.one().kind(), "200");
    }
    solo.hears(&info("three", 1));
    assert_eq!(solo.one().kind(), "481", "no such fork");
    solo.hears(&info("one", 49));
    assert_eq!(solo.one().kind(), "500", "each fork counts for itself");
    solo.hears(&answer(&call).fork("two"));
    event!(solo, Event::Answered { .. } => ());
    solo.endpoint.ack(solo.now, usage, None);
    solo.sent();
    solo.hears(&info("two", 6));
    assert_eq!(
        solo.one().kind(),
        "500",
        "the count of the early dialog goes on"
    );
    solo.hears(&info("one", 51));
    assert_eq!(solo.one().kind(), "481", "the other fork's dialog is over");
    solo.hears(
        &request("BYE", 8, "b8")
            .from("<sip:bob@192.0.2.20>;tag=two")
            .to(&us)
            .call_id(&call_id),
    );
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

#[test]
fn the_callee_keeps_the_route_set_in_the_order_of_the_request() {
    let mut solo = Solo::new();
    let call = invite(1, "i1")
        .extra("Record-Route: <sip:192.0.2.30:5065;lr>, <sip:192.0.2.31;lr>")
        .extra("Record-Route: <sip:192.0.2.32;lr>");
    let (usage, ok) = solo.answered(&call);
    let echoed: Vec<&str> = ok.values(Name::RecordRoute).collect();
    assert_eq!(
        echoed,
        [
            "<sip:192.0.2.30:5065;lr>",
            "<sip:192.0.2.31;lr>",
            "<sip:192.0.2.32;lr>"
        ]
    );
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let bye = solo.one();
    let routes: Vec<&str> = bye.values(Name::Route).collect();
    assert_eq!(routes, echoed);
    assert_eq!(bye.request_uri(), Some("sip:alice@192.0.2.20:5060"));
    assert_eq!(bye.transmit.remote.to_string(), "192.0.2.30:5065");
    solo.drained();
}

#[test]
fn a_strict_router_takes_the_request_uri() {
    let mut solo = Solo::new();
    let (usage, _, ack) =
        solo.calls_answered(&["<sip:192.0.2.31;lr>", "<sip:192.0.2.30:5065;x=y>"]);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    for message in [ack, solo.one()] {
        assert_eq!(message.request_uri(), Some("sip:192.0.2.30:5065;x=y"));
        let routes: Vec<&str> = message.values(Name::Route).collect();
        assert_eq!(routes, ["<sip:192.0.2.31;lr>", "<sip:bob@192.0.2.20:5070>"]);
        assert_eq!(message.transmit.remote.to_string(), "192.0.2.30:5065");
    }
    solo.drained();
}

#[test]
fn a_re_invite_moves_the_remote_target_either_way() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    assert_eq!(
        solo.endpoint.remote_target(usage),
        Some("sip:alice@192.0.2.20:5060")
    );
    let moved = invite(2, "i2")
        .without("Contact: <sip:alice@192.0.2.20:5060>")
        .extra("Contact: <sip:alice@192.0.2.77:5099>")
        .within(&ok);
    solo.hears(&moved);
    solo.sent();
    solo.endpoint
        .respond_reinvite(solo.now, usage, 200, Vec::new(), Some(sdp()))
        .expect("open");
    solo.sent();
    solo.hears(&request("ACK", 2, "a2").within(&ok));
    assert_eq!(
        solo.endpoint.remote_target(usage),
        Some("sip:alice@192.0.2.77:5099")
    );
    solo.endpoint
        .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("free");
    let ours = solo.one();
    assert_eq!(ours.transmit.remote.to_string(), "192.0.2.77:5099");
    solo.hears(&response(&ours, 200).extra("Contact: <sip:alice@192.0.2.78:5098>"));
    solo.endpoint.ack(solo.now, usage, None);
    assert_eq!(solo.one().transmit.remote.to_string(), "192.0.2.78:5098");
    solo.endpoint.bye(solo.now, usage, Vec::new());
    assert_eq!(solo.one().request_uri(), Some("sip:alice@192.0.2.78:5098"));
    solo.events();
    solo.drained();
}

#[test]
fn a_refused_re_invite_does_not_move_the_remote_target() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    let moved = invite(2, "i2")
        .without("Contact: <sip:alice@192.0.2.20:5060>")
        .extra("Contact: <sip:alice@192.0.2.77:5099>")
        .within(&ok);
    solo.hears(&moved);
    solo.sent();
    solo.endpoint
        .respond_reinvite(solo.now, usage, 488, Vec::new(), None)
        .expect("open");
    solo.sent();
    assert_eq!(
        solo.endpoint.remote_target(usage),
        Some("sip:alice@192.0.2.20:5060")
    );
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.events();
    solo.drained();
}

#[test]
fn in_dialog_requests_match_whatever_their_request_uri() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    for (cseq, uri) in [
        (2, "sip:nobody@elsewhere.example"),
        (3, "tel:+15551234"),
        (4, "sips:x"),
    ] {
        solo.hears(
            &request("INFO", cseq, &format!("u{cseq}"))
                .uri(uri)
                .within(&ok),
        );
        let txn = event!(solo, Event::Request { txn, usage: Some(own), .. } => {
            assert_eq!(own, usage);
            txn
        });
        solo.endpoint
            .respond(solo.now, txn, 200, None, Vec::new(), None)
            .expect("open");
    }
    solo.hears(
        &request("BYE", 5, "b5")
            .uri("sip:other@203.0.113.9")
            .within(&ok),
    );
    event!(solo, Event::Bye { usage: own, .. } => assert_eq!(own, usage));
    assert_eq!(kinds(&solo.sent()), ["200"; 4]);
    solo.drained();
}

#[test]
fn wrong_tags_and_call_ids_match_nothing() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    let rows = [
        request("BYE", 9, "w1")
            .within(&ok)
            .call_id("other@192.0.2.20"),
        request("BYE", 9, "w2")
            .within(&ok)
            .from("<sip:alice@192.0.2.20>;tag=mallory"),
        request("BYE", 9, "w3")
            .within(&ok)
            .from("<sip:alice@192.0.2.20>"),
        request("BYE", 9, "w4").to("<sip:1001@192.0.2.1>;tag=guess"),
        request("BYE", 9, "w5"),
        request("INFO", 9, "w6").to("<sip:1001@192.0.2.1>;tag=guess"),
        invite(9, "w7").to("<sip:1001@192.0.2.1>;tag=guess"),
    ];
    for row in rows {
        solo.hears(&row);
        assert_eq!(solo.one().kind(), "481", "{row:?}");
        assert!(solo.events().is_empty(), "{row:?}");
    }
    solo.hears(&request("ACK", 9, "w8").to("<sip:1001@192.0.2.1>;tag=guess"));
    solo.quiet();
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}

#[test]
fn an_old_sequence_number_gets_500_and_a_gap_is_no_fault() {
    let mut solo = Solo::new();
    let (_, ok) = solo.answered(&invite(100, "i1"));
    solo.hears(&request("INFO", 99, "old").within(&ok));
    assert_eq!(solo.one().kind(), "500");
    assert!(solo.events().is_empty());
    solo.hears(&request("BYE", 7_000, "new").within(&ok));
    assert_eq!(solo.one().kind(), "200");
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

#[test]
fn a_peer_of_rfc_2543_without_tags_can_hang_up() {
    let mut solo = Solo::new();
    let untagged = "<sip:alice@192.0.2.20>";
    let call = invite(1, "i1").from(untagged);
    let usage = solo.rung(&call);
    solo.endpoint
        .accept(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("open");
    let ok = solo.one();
    solo.hears(&request("ACK", 1, "a1").from(untagged).within(&ok));
    event!(solo, Event::Acked { .. } => ());
    solo.hears(&request("BYE", 2, "b2").from(untagged).within(&ok));
    event!(solo, Event::Bye { .. } => ());
    assert_eq!(solo.one().kind(), "200");
    // And as callee: no To tag in its responses.
    let (usage, call) = solo.calls();
    let bare = call.header(Name::To).expect("ours").to_owned();
    solo.hears(&answer(&call).to(&bare));
    event!(solo, Event::Answered { .. } => ());
    solo.endpoint.ack(solo.now, usage, None);
    solo.sent();
    let bye = request("BYE", 1, "b3")
        .from(&bare)
        .to(call.header(Name::From).expect("ours"))
        .call_id(call.call_id().expect("ours"));
    solo.hears(&bye);
    assert_eq!(solo.one().kind(), "200");
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

#[test]
fn a_bye_of_the_caller_before_our_answer_ends_the_call() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    solo.endpoint
        .provisional(solo.now, usage, 180, None, Vec::new(), None)
        .expect("open");
    let ringing = solo.one();
    solo.hears(&request("BYE", 2, "b2").within(&ringing));
    assert_eq!(kinds(&solo.sent()), ["200", "487"]);
    event!(solo, Event::Cancelled { usage: own, .. } => assert_eq!(own, usage));
    solo.drained();
}

#[test]
fn a_200_without_contact_is_still_acknowledged() {
    let mut solo = Solo::new();
    let (usage, call) = solo.calls();
    solo.hears(&response(&call, 200).sdp());
    event!(solo, Event::Answered { .. } => ());
    solo.endpoint.ack(solo.now, usage, None);
    assert_eq!(solo.one().request_uri(), Some("sip:bob@192.0.2.20"));
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}

#[test]
fn a_late_offer_is_answered_in_the_ack() {
    let mut solo = Solo::new();
    let (usage, call) = solo.calls_with(sip::Invite {
        body: None,
        ..crate::solo::outgoing()
    });
    assert!(call.body().is_empty());
    solo.hears(&answer(&call));
    event!(solo, Event::Answered { .. } => ());
    solo.hears(&answer(&call));
    solo.quiet();
    solo.endpoint.ack(solo.now, usage, Some(sdp()));
    assert!(solo.one().sdp_body().is_some());
    solo.hears(&answer(&call));
    assert!(solo.one().sdp_body().is_some(), "repeated with its body");
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}

#[test]
fn a_re_invite_is_acknowledged_again_when_its_200_repeats() {
    let mut solo = Solo::new();
    let (usage, _, _) = solo.calls_answered(&[]);
    solo.endpoint
        .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("free");
    let again = solo.one();
    let ok = answer(&again);
    solo.hears(&ok);
    event!(solo, Event::ReinviteAnswered { .. } => ());
    assert!(
        solo.endpoint
            .reinvite(solo.now, usage, Vec::new(), None)
            .is_err(),
        "an ACK is owed"
    );
    solo.endpoint.ack(solo.now, usage, None);
    let ack = solo.one();
    assert_eq!(ack.cseq().expect("ours").number, 2);
    solo.hears(&ok);
    assert_eq!(solo.one().transmit.bytes, ack.transmit.bytes);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}
