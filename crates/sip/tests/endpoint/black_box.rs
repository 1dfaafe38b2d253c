//! Faults that products of this field really had, by the number of their case.

use sip::{Event, Failure, Name};

use crate::pair::{Pair, Side};
use crate::solo::{Solo, event, kinds, sdp};
use crate::text::{answer, invite, request, response};

/// RFC 3261, 14.2; RFC 3311, 5.2: a hold, then an UPDATE without a body.
#[test]
fn bb_03_hold_then_update_are_both_passed_up_and_answered() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.hears(&invite(2, "i2").within(&ok));
    assert_eq!(solo.one().status(), Some(100));
    event!(solo, Event::Reinvite { usage: own, .. } => assert_eq!(own, usage));
    solo.endpoint
        .respond_reinvite(solo.now, usage, 200, Vec::new(), Some(sdp()))
        .expect("open");
    assert_eq!(solo.one().kind(), "200");
    solo.hears(&request("ACK", 2, "a2").within(&ok));
    event!(solo, Event::Acked { .. } => ());

    let update = request("UPDATE", 3, "u3")
        .within(&ok)
        .extra("Session-Expires: 90");
    solo.hears(&update);
    let txn = event!(solo, Event::Request { txn, usage: Some(own), .. } => {
        assert_eq!(own, usage);
        txn
    });
    let timer = sip::HeaderField::Other("Session-Expires".to_owned(), "90".to_owned());
    solo.endpoint
        .respond(solo.now, txn, 200, None, vec![timer], None)
        .expect("open");
    let answer = solo.one();
    assert_eq!(
        (
            answer.kind().as_str(),
            answer.header_named("session-expires")
        ),
        ("200", Some("90"))
    );
    assert!(
        answer.header(Name::Contact).is_some(),
        "a target refresh says where we are"
    );
    solo.hears(&request("BYE", 4, "b4").within(&ok));
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

/// RFC 3261, 14.1 and 14.2: two re-INVITEs that cross are both refused and both tried again.
#[test]
fn bb_04_glare_is_refused_with_491_and_tried_again() {
    let mut pair = Pair::new();
    let (a, b) = pair.established();
    let now = pair.now;
    pair.end(Side::A)
        .reinvite(now, a, Vec::new(), Some(sdp()))
        .expect("confirmed");
    pair.run_for(5);
    let later = pair.now;
    pair.end(Side::B)
        .reinvite(later, b, Vec::new(), Some(sdp()))
        .expect("confirmed");
    let mut answered = [false; 2];
    while answered != [true; 2] {
        pair.run_for(1);
        for (side, usage) in [(Side::A, a), (Side::B, b)] {
            for event in pair.events(side) {
                let now = pair.now;
                match event {
                    Event::Reinvite { .. } => {
                        let body = Some(sdp());
                        let end = pair.end(side);
                        end.respond_reinvite(now, usage, 200, Vec::new(), body)
                            .expect("open");
                    }
                    Event::ReinviteAnswered { .. } => {
                        pair.end(side).ack(now, usage, None);
                        answered[side as usize] = true;
                    }
                    Event::Acked { .. } => {}
                    other => panic!("{side:?}: another event: {other:?}"),
                }
            }
        }
    }
    assert_eq!(
        (
            pair.sent(Side::A, "491 INVITE"),
            pair.sent(Side::B, "491 INVITE")
        ),
        (1, 1)
    );
    let begun = pair.ms(now);
    let again = |side, skip| {
        let mut all = pair
            .log
            .iter()
            .filter(|(_, s, kind)| *s == side && kind == "INVITE");
        all.nth(skip).expect("tried again").0 - begun
    };
    // A made the Call-ID: 2.1 to 4 s; B did not: 0 to 2 s; each after its 491 came, 20 ms later.
    assert!(
        (2_120..=4_020).contains(&again(Side::A, 2)),
        "{:#?}",
        pair.log
    );
    assert!((25..=2_025).contains(&again(Side::B, 1)), "{:#?}", pair.log);
    pair.run_for(100);
    assert!(matches!(
        pair.events(Side::A)[..],
        [] | [Event::Acked { .. }]
    ));
    assert!(matches!(
        pair.events(Side::B)[..],
        [] | [Event::Acked { .. }]
    ));
    pair.bye(Side::A, a);
    assert!(matches!(pair.next(Side::B), Event::Bye { .. }));
    pair.drained();
}

/// RFC 3261, 14.2: one that overtakes the peer's own first one.
#[test]
fn bb_04_a_second_re_invite_before_our_answer_gets_500_and_retry_after() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.hears(&invite(2, "i2").within(&ok));
    assert_eq!(solo.one().status(), Some(100));
    event!(solo, Event::Reinvite { .. } => ());
    solo.hears(&invite(3, "i3").within(&ok));
    let refusal = solo.one();
    assert_eq!(refusal.kind(), "500");
    let seconds = refusal
        .seconds(Name::RetryAfter)
        .expect("well-formed")
        .expect("there");
    assert!(seconds <= 10);
    solo.hears(&request("ACK", 3, "i3").within(&ok));
    solo.quiet();
    solo.endpoint
        .respond_reinvite(solo.now, usage, 200, Vec::new(), Some(sdp()))
        .expect("open");
    assert_eq!(solo.one().cseq().expect("ours").number, 2);
    solo.hears(&request("ACK", 2, "a2").within(&ok));
    event!(solo, Event::Acked { .. } => ());
    solo.hears(&request("BYE", 4, "b4").within(&ok));
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

/// RFC 3261, 14.2: ours is open, so theirs is refused; ours goes on.
#[test]
fn bb_04_491_while_our_re_invite_is_open() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.endpoint
        .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("confirmed");
    let ours = solo.one();
    solo.hears(&invite(2, "i2").within(&ok));
    assert_eq!(solo.one().kind(), "491");
    solo.hears(&request("ACK", 2, "i2").within(&ok));
    solo.hears(&answer(&ours));
    event!(solo, Event::ReinviteAnswered { .. } => ());
    solo.endpoint.ack(solo.now, usage, None);
    assert_eq!(solo.one().kind(), "ACK");
    solo.endpoint.bye(solo.now, usage, Vec::new());
    assert_eq!(solo.one().kind(), "BYE");
    solo.drained();
}

/// RFC 3261, 13.2.2.4: one ACK for each 200, with the same CSeq and along the route set.
#[test]
fn bb_05_every_repeated_200_is_acknowledged() {
    let mut solo = Solo::new();
    let (usage, invite) = solo.calls();
    let ok = answer(&invite)
        .extra("Record-Route: <sip:p2.example.com;lr>, <sip:192.0.2.31:5066;lr>")
        .extra("Record-Route: <sip:192.0.2.30:5065;lr>");
    solo.hears(&ok);
    event!(solo, Event::Answered { usage: own, code: 200, .. } => assert_eq!(own, usage));
    solo.endpoint.ack(solo.now, usage, None);
    let first = solo.one();
    assert_eq!(first.request_uri(), Some("sip:bob@192.0.2.20:5070"));
    let routes: Vec<&str> = first.values(Name::Route).collect();
    assert_eq!(
        routes,
        [
            "<sip:192.0.2.30:5065;lr>",
            "<sip:192.0.2.31:5066;lr>",
            "<sip:p2.example.com;lr>"
        ]
    );
    assert_eq!(first.transmit.remote.to_string(), "192.0.2.30:5065");
    assert_ne!(
        first.top_via().expect("ours").branch(),
        invite.top_via().expect("ours").branch()
    );
    for _ in 0..4 {
        assert!(solo.advance(1_000).is_empty());
        solo.hears(&ok);
        let again = solo.one();
        assert_eq!(
            again.cseq().expect("ours").number,
            invite.cseq().expect("ours").number
        );
        assert_eq!(again.transmit.bytes, first.transmit.bytes);
        assert_eq!(again.transmit.remote, first.transmit.remote);
    }
    assert!(solo.events().is_empty(), "the user hears of the first only");
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}

/// The repeat that comes when the call is over already: the ACK is still owed, another BYE is not.
#[test]
fn bb_05_a_repeated_200_after_the_bye_is_acknowledged_too() {
    let mut solo = Solo::new();
    let (usage, invite, ack) = solo.calls_answered(&[]);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let bye = solo.one();
    solo.hears(&response(&bye, 200));
    event!(solo, Event::Ended { .. } => ());
    solo.hears(&answer(&invite));
    assert_eq!(solo.one().transmit.bytes, ack.transmit.bytes);
    solo.drained();
}

/// RFC 3261, 13.3.1.4.
#[test]
fn bb_06_a_200_without_ack_is_repeated_then_the_call_ends() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    let begin = solo.now;
    solo.endpoint
        .accept(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("open");
    let first = solo.one();
    let sent = solo.advance(31_999);
    let times: Vec<u64> = sent.iter().map(|message| message.at).collect();
    assert_eq!(
        times,
        [
            500, 1_500, 3_500, 7_500, 11_500, 15_500, 19_500, 23_500, 27_500, 31_500
        ]
    );
    assert!(
        sent.iter()
            .all(|message| message.transmit.bytes == first.transmit.bytes)
    );
    let bye = solo.advance(1);
    assert_eq!(kinds(&bye), ["BYE"]);
    assert_eq!((solo.now - begin).as_millis(), 32_000);
    event!(solo, Event::AckMissing { usage: own } => assert_eq!(own, usage));
    solo.hears(&response(&bye[0], 200));
    event!(solo, Event::Ended { usage: own } => assert_eq!(own, usage));
    solo.drained();
}

/// RFC 3261, 15: a callee may not send BYE before its 200 is acknowledged, or given up.
#[test]
fn bb_06_our_bye_waits_for_the_ack() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    solo.endpoint
        .accept(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("open");
    let ok = solo.one();
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.quiet();
    assert_eq!(kinds(&solo.advance(700)), ["200"]);
    solo.hears(&request("ACK", 1, "a1").within(&ok));
    let bye = solo.one();
    assert_eq!(bye.kind(), "BYE");
    solo.hears(&response(&bye, 200));
    event!(solo, Event::Ended { .. } => ());
    solo.drained();
}

/// RFC 3261, 9.1, 13.2.2.4 and 15: the callee's side of a 200 that crosses our CANCEL.
#[test]
fn bb_07_a_200_that_crosses_our_cancel_gets_ack_and_bye() {
    let mut solo = Solo::new();
    let (usage, invite) = solo.calls();
    solo.hears(&response(&invite, 180));
    event!(solo, Event::Provisional { code: 180, .. } => ());
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    let cancel = solo.one();
    assert_eq!(cancel.kind(), "CANCEL");
    assert_eq!(
        cancel.top_via().expect("ours"),
        invite.top_via().expect("ours")
    );
    let ok = answer(&invite).extra("Record-Route: <sip:192.0.2.30:5065;lr>");
    solo.hears(&ok);
    let sent = solo.sent();
    assert_eq!(kinds(&sent), ["ACK", "BYE"]);
    for message in &sent {
        assert_eq!(message.request_uri(), Some("sip:bob@192.0.2.20:5070"));
        assert_eq!(
            message.header(Name::Route),
            Some("<sip:192.0.2.30:5065;lr>")
        );
        assert_eq!(message.transmit.remote.to_string(), "192.0.2.30:5065");
        assert_eq!(message.to().expect("ours").tag(), Some("bob1"));
    }
    assert_eq!(sent[0].cseq().expect("ours").number, 1);
    assert_eq!(sent[1].cseq().expect("ours").number, 2);
    event!(solo, Event::Refused { usage: own, failure: Failure::Cancelled, .. } => {
        assert_eq!(own, usage);
    });
    // The 200 once more: an ACK, no second BYE.
    solo.hears(&ok);
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    solo.hears(&response(&cancel, 200));
    solo.hears(&response(&sent[1], 200));
    solo.quiet();
    solo.drained();
}

/// RFC 3261, 9.2: the caller's side.
#[test]
fn bb_07_a_cancel_before_our_answer_gets_200_and_487() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    solo.endpoint
        .provisional(solo.now, usage, 180, None, Vec::new(), None)
        .expect("open");
    let ringing = solo.one();
    solo.hears(&request("CANCEL", 1, "i1"));
    let sent = solo.sent();
    assert_eq!(kinds(&sent), ["200", "487"]);
    assert_eq!(sent[0].cseq().expect("ours").method, sip::Method::Cancel);
    assert_eq!(sent[1].cseq().expect("ours").method, sip::Method::Invite);
    for message in &sent {
        assert_eq!(
            message.header(Name::To),
            ringing.header(Name::To),
            "one To tag"
        );
    }
    event!(solo, Event::Cancelled { usage: own, .. } => assert_eq!(own, usage));
    assert!(
        solo.endpoint
            .accept(solo.now, usage, Vec::new(), None)
            .is_err()
    );
    solo.hears(&request("ACK", 1, "i1").within(&sent[1]));
    solo.quiet();
    solo.drained();
}

/// RFC 3261, 9.2: a CANCEL that comes after our 200 changes nothing.
#[test]
fn bb_07_a_cancel_after_our_answer_is_answered_and_ignored() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    solo.endpoint
        .accept(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("open");
    let ok = solo.one();
    solo.hears(&request("CANCEL", 1, "i1"));
    let answer = solo.one();
    assert_eq!(
        (answer.kind().as_str(), answer.cseq().expect("ours").method),
        ("200", sip::Method::Cancel)
    );
    assert!(solo.events().is_empty());
    solo.hears(&request("ACK", 1, "a1").within(&ok));
    event!(solo, Event::Acked { .. } => ());
    solo.hears(&request("BYE", 2, "b2").within(&ok));
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

/// RFC 3261, 17.1.1.3.
#[test]
fn bb_08_every_487_is_acknowledged_in_the_transaction() {
    let mut solo = Solo::new();
    let (usage, invite) = solo.calls();
    solo.hears(&response(&invite, 180).extra("Contact: <sip:bob@192.0.2.99:5070>"));
    event!(solo, Event::Provisional { .. } => ());
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    let cancel = solo.one();
    solo.hears(&response(&cancel, 200));
    let refusal = response(&invite, 487);
    for repeat in 0..4 {
        solo.hears(&refusal);
        let ack = solo.one();
        assert_eq!(ack.kind(), "ACK");
        assert_eq!(
            ack.top_via().expect("ours"),
            invite.top_via().expect("ours")
        );
        assert_eq!(ack.request_uri(), invite.request_uri());
        assert_eq!(ack.transmit.remote, invite.transmit.remote);
        assert_eq!(ack.to().expect("ours").tag(), Some("bob1"));
        assert_eq!(ack.cseq().expect("ours").number, 1);
        match repeat {
            0 => event!(solo, Event::Refused { failure: Failure::Response(487), .. } => ()),
            _ => assert!(solo.events().is_empty()),
        }
        assert!(solo.advance(1_000).is_empty());
    }
    solo.drained();
}

/// RFC 3261, 12.2.2 and 15.1.2: two BYEs that cross, and a third that comes much later.
#[test]
fn bb_09_every_bye_is_answered_at_once() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let ours = solo.one();
    assert_eq!(ours.kind(), "BYE");
    assert!(solo.advance(200).is_empty());
    let theirs = request("BYE", 2, "b2").within(&ok);
    solo.hears(&theirs);
    assert_eq!(solo.one().kind(), "200");
    event!(solo, Event::Ended { usage: own } => assert_eq!(own, usage));
    solo.hears(&response(&ours, 481));
    solo.quiet();
    solo.advance(10_000);
    solo.hears(&theirs);
    assert_eq!(solo.one().kind(), "200", "a repeat gets the same answer");
    solo.hears(&request("BYE", 3, "b3").within(&ok));
    assert_eq!(solo.one().kind(), "481", "a new one finds no dialog");
    assert!(solo.events().is_empty());
    solo.drained();
}

/// RFC 3261, 8.2.2.3.
#[test]
fn bb_25e_unknown_require_gets_420_and_the_list() {
    let mut solo = Solo::new();
    solo.hears(
        &invite(1, "i1")
            .extra("Require: nosuch, 100rel")
            .extra("Require: other"),
    );
    let refusal = solo.one();
    assert_eq!(refusal.kind(), "420");
    let listed: Vec<&str> = refusal.values(Name::Unsupported).collect();
    assert_eq!(listed, ["nosuch", "100rel", "other"]);
    assert!(solo.events().is_empty());
    solo.hears(&request("ACK", 1, "i1").within(&refusal));
    solo.drained();
}

/// RFC 3261, 8.2.2.3: Require is not looked at in CANCEL, and ACK is never answered.
#[test]
fn bb_25e_require_in_cancel_is_ignored() {
    let mut solo = Solo::new();
    solo.rung(&invite(1, "i1"));
    solo.hears(&request("CANCEL", 1, "i1").extra("Require: nosuch"));
    assert_eq!(kinds(&solo.sent()), ["200", "487"]);
    event!(solo, Event::Cancelled { .. } => ());
    solo.drained();
}

#[test]
fn bb_25g_a_thousand_multipart_invites_leave_nothing() {
    let mut solo = Solo::new();
    let body = "--b\r\nContent-Type: application/sdp\r\n\r\nv=0\r\n--b\r\n\
                Content-Type: text/plain\r\n\r\nhello\r\n--b--\r\n";
    for call in 0..1_000 {
        let invite = request("INVITE", 1, &format!("m{call}"))
            .extra("Contact: <sip:alice@192.0.2.20>")
            .call_id(&format!("m{call}"))
            .body("multipart/mixed;boundary=b", body);
        let usage = solo.rung(&invite);
        solo.endpoint
            .reject(solo.now, usage, 488, None, Vec::new(), None)
            .expect("open");
        let refusal = solo.one();
        solo.hears(
            &request("ACK", 1, &format!("m{call}"))
                .call_id(&format!("m{call}"))
                .within(&refusal),
        );
    }
    assert_eq!(solo.endpoint.counts().usages, 0);
    solo.drained();
}

#[test]
fn bb_25g_a_thousand_200s_without_via_leave_nothing() {
    let mut solo = Solo::new();
    let (_, invite) = solo.calls();
    let before = solo.endpoint.counts();
    for _ in 0..1_000 {
        solo.hears(&answer(&invite).no_via());
    }
    solo.quiet();
    assert_eq!(solo.endpoint.counts(), before);
    solo.drained();
}
