//! CANCEL at every stage (RFC 3261, 9).

use sip::{Event, Failure, HeaderField, Name};

use crate::pair::{Pair, Side};
use crate::solo::{Solo, event, kinds, outgoing};
use crate::text::{answer, invite, request, response};

fn reason() -> sip::Fields {
    vec![HeaderField::Known(
        Name::Reason,
        "Q.850;cause=16".to_owned(),
    )]
}

#[test]
fn a_cancel_waits_for_the_first_provisional_response() {
    let mut solo = Solo::new();
    let (usage, invite) = solo.calls();
    solo.endpoint.cancel(solo.now, usage, reason());
    solo.quiet();
    solo.hears(&response(&invite, 100));
    let cancel = solo.one();
    assert_eq!(cancel.kind(), "CANCEL");
    assert_eq!(cancel.header(Name::Reason), Some("Q.850;cause=16"));
    assert_eq!(cancel.request_uri(), invite.request_uri());
    assert_eq!(cancel.cseq().expect("ours").number, 1);
    assert!(cancel.header(Name::Contact).is_none() && cancel.body().is_empty());
    solo.hears(&response(&cancel, 200));
    solo.hears(&response(&invite, 487));
    assert_eq!(solo.one().kind(), "ACK");
    event!(solo, Event::Refused { failure: Failure::Response(487), .. } => ());
    solo.drained();
}

#[test]
fn a_cancel_of_a_dead_callee_ends_with_timer_b() {
    let mut solo = Solo::new();
    let (usage, _) = solo.calls();
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    let sent = solo.advance(32_000);
    assert!(sent.iter().all(|message| message.is("INVITE")));
    event!(solo, Event::Refused { usage: own, failure: Failure::Timeout, .. } => {
        assert_eq!(own, usage);
    });
    solo.drained();
}

#[test]
fn a_cancel_that_brings_no_final_response_ends_after_64_t1() {
    let mut solo = Solo::new();
    let (usage, invite) = solo.calls();
    solo.hears(&response(&invite, 180));
    event!(solo, Event::Provisional { .. } => ());
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    let cancel = solo.one();
    solo.hears(&response(&cancel, 200));
    assert!(solo.advance(31_999).is_empty());
    assert!(solo.events().is_empty());
    solo.advance(1);
    event!(solo, Event::Refused { failure: Failure::Cancelled, .. } => ());
    solo.drained();
}

#[test]
fn a_second_cancel_and_one_after_the_answer_do_nothing() {
    let mut solo = Solo::new();
    let (usage, invite) = solo.calls();
    solo.hears(&response(&invite, 100));
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    assert_eq!(solo.one().kind(), "CANCEL");
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    solo.quiet();
    let (second, invite) = solo.calls();
    solo.hears(&answer(&invite));
    event!(solo, Event::Answered { .. } => ());
    solo.endpoint.cancel(solo.now, second, Vec::new());
    solo.quiet();
    solo.endpoint.bye(solo.now, second, Vec::new());
    assert_eq!(kinds(&solo.sent()), ["ACK", "BYE"]);
    solo.drained();
}

#[test]
fn a_cancel_while_the_name_is_looked_up_sends_nothing() {
    let mut solo = Solo::new();
    let invite = sip::Invite {
        request_uri: "sip:bob@example.com".to_owned(),
        ..outgoing()
    };
    let usage = solo.endpoint.invite(solo.now, invite).expect("possible");
    let resolve = solo.endpoint.poll_resolve().expect("a name");
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    event!(solo, Event::Refused { usage: own, failure: Failure::Cancelled, .. } => {
        assert_eq!(own, usage);
    });
    let found = vec![(sip::Transport::Udp, crate::solo::address("192.0.2.20:5060"))];
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Ok(found));
    solo.quiet();
    solo.drained();
}

#[test]
fn a_cancel_of_nothing_gets_481() {
    let mut solo = Solo::new();
    solo.hears(&request("CANCEL", 1, "none"));
    assert_eq!(solo.one().kind(), "481");
    assert!(solo.events().is_empty());
    solo.drained();
}

#[test]
fn a_cancelled_re_invite_leaves_the_call_up() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.hears(&invite(2, "i2").within(&ok));
    assert_eq!(solo.one().status(), Some(100));
    event!(solo, Event::Reinvite { .. } => ());
    solo.hears(&request("CANCEL", 2, "i2").within(&ok));
    assert_eq!(kinds(&solo.sent()), ["200", "487"]);
    event!(solo, Event::ReinviteCancelled { usage: own } => assert_eq!(own, usage));
    solo.hears(&request("ACK", 2, "i2").within(&ok));
    assert!(
        solo.endpoint
            .respond_reinvite(solo.now, usage, 200, Vec::new(), None)
            .is_err()
    );
    solo.hears(&invite(3, "i3").within(&ok));
    assert_eq!(solo.one().status(), Some(100), "the next one is taken");
    event!(solo, Event::Reinvite { .. } => ());
    solo.hears(&request("BYE", 4, "b4").within(&ok));
    assert_eq!(kinds(&solo.sent()), ["200", "487"]);
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

#[test]
fn a_cancel_crossing_a_refusal_is_answered_by_the_refusal() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    solo.endpoint
        .reject(solo.now, usage, 486, None, Vec::new(), None)
        .expect("open");
    assert_eq!(solo.one().kind(), "486");
    solo.hears(&request("CANCEL", 1, "i1"));
    assert_eq!(solo.one().kind(), "200");
    assert!(solo.events().is_empty());
    solo.drained();
}

#[test]
fn a_cancel_of_a_ringing_call_between_two_endpoints() {
    let mut pair = Pair::new();
    let (a, b) = pair.call();
    pair.ring(b);
    assert!(matches!(
        pair.next(Side::A),
        Event::Provisional { code: 180, .. }
    ));
    let now = pair.now;
    pair.end(Side::A).cancel(now, a, reason());
    match pair.next(Side::B) {
        Event::Cancelled { usage, message } => {
            assert_eq!(usage, b);
            assert_eq!(message.header(Name::Reason), Some("Q.850;cause=16"));
        }
        other => panic!("another event: {other:?}"),
    }
    let refused = pair.next(Side::A);
    assert!(matches!(
        refused,
        Event::Refused {
            failure: Failure::Response(487),
            ..
        }
    ));
    pair.drained();
}
