//! Whole calls between two endpoints: the plain one, and with every message lost or doubled once.

use sip::{Event, Failure, Transport};

use crate::pair::{Fate, Pair, Side};
use crate::solo::sdp;

#[test]
fn a_call_is_answered_and_ended_by_the_caller() {
    let mut pair = Pair::new();
    let (a, b) = pair.established();
    pair.bye(Side::A, a);
    assert!(matches!(pair.next(Side::B), Event::Bye { usage, .. } if usage == b));
    assert!(matches!(pair.next(Side::A), Event::Ended { usage } if usage == a));
    let kinds: Vec<&str> = pair.log.iter().map(|(_, _, kind)| kind.as_str()).collect();
    let plain = [
        "INVITE",
        "100 INVITE",
        "180 INVITE",
        "200 INVITE",
        "ACK",
        "BYE",
        "200 BYE",
    ];
    assert_eq!(kinds, plain, "no message more than a call needs");
    pair.drained();
}

#[test]
fn a_call_is_ended_by_the_callee() {
    let mut pair = Pair::new();
    let (a, b) = pair.established();
    pair.bye(Side::B, b);
    assert!(matches!(pair.next(Side::A), Event::Bye { usage, .. } if usage == a));
    assert!(matches!(pair.next(Side::B), Event::Ended { usage } if usage == b));
    pair.drained();
}

#[test]
fn over_tcp_nothing_is_repeated_and_transactions_end_at_once() {
    let mut pair = Pair::over(Transport::Tcp);
    let (a, _) = pair.established();
    pair.bye(Side::A, a);
    assert!(matches!(pair.next(Side::A), Event::Ended { .. }));
    assert_eq!(pair.log.len(), 7);
    // Only what RFC 6026 keeps for 64 x T1 is left: the two INVITE transactions.
    for side in [Side::A, Side::B] {
        let counts = pair.end(side).counts();
        assert_eq!(
            counts.client_transactions + counts.server_transactions,
            1,
            "{side:?}"
        );
        assert_eq!(counts.usages, 0);
    }
    pair.drained();
}

#[test]
fn a_refusal_reaches_the_caller() {
    let mut pair = Pair::new();
    let (a, b) = pair.call();
    let now = pair.now;
    let fields = vec![sip::HeaderField::Known(
        sip::Name::RetryAfter,
        "17".to_owned(),
    )];
    pair.end(Side::B)
        .reject(now, b, 486, Some("Not now"), fields, None)
        .expect("open");
    match pair.next(Side::A) {
        Event::Refused {
            usage,
            failure,
            message: Some(message),
        } => {
            assert_eq!((usage, failure), (a, Failure::Response(486)));
            assert_eq!(message.reason_phrase(), Some("Not now"));
            assert_eq!(message.header(sip::Name::RetryAfter), Some("17"));
        }
        other => panic!("another event: {other:?}"),
    }
    pair.drained();
    assert_eq!(
        (pair.sent(Side::B, "486 INVITE"), pair.sent(Side::A, "ACK")),
        (1, 1)
    );
}

#[test]
fn a_callee_that_is_dead_is_given_up_after_64_t1() {
    let mut pair = Pair::new().wire(|side, _, _| match side {
        Side::A => Fate::Lose,
        Side::B => Fate::Pass,
    });
    let now = pair.now;
    let a = pair
        .end(Side::A)
        .invite(now, crate::solo::outgoing())
        .expect("possible");
    let event = pair.next(Side::A);
    assert!(matches!(event, Event::Refused { usage, failure: Failure::Timeout, .. } if usage == a));
    assert_eq!((pair.now - now).as_millis(), 32_000, "timer B");
    assert_eq!(pair.sent(Side::A, "INVITE"), 7);
    pair.drained();
}

/// Each message of a call, and who sends it.
const MESSAGES: [(Side, &str); 7] = [
    (Side::A, "INVITE"),
    (Side::B, "100 INVITE"),
    (Side::B, "180 INVITE"),
    (Side::B, "200 INVITE"),
    (Side::A, "ACK"),
    (Side::A, "BYE"),
    (Side::B, "200 BYE"),
];

fn call_through(fate: Fate, sender: Side, message: &'static str) -> Pair {
    let mut pair = Pair::new().wire(move |side, kind, before| {
        let hit = (side, kind, before) == (sender, message, 0);
        if hit { fate } else { Fate::Pass }
    });
    let (a, b) = pair.call();
    pair.ring(b);
    pair.run_for(1_000);
    pair.accept(b);
    loop {
        match pair.next(Side::A) {
            Event::Provisional { .. } => {}
            Event::Answered { usage, .. } if usage == a => break,
            other => panic!("{message}: another event: {other:?}"),
        }
    }
    let now = pair.now;
    pair.end(Side::A).ack(now, a, None);
    let acked = pair.next(Side::B);
    assert!(
        matches!(acked, Event::Acked { usage, .. } if usage == b),
        "{message}: {acked:?}"
    );
    pair.bye(Side::A, a);
    let bye = pair.next(Side::B);
    assert!(
        matches!(bye, Event::Bye { usage, .. } if usage == b),
        "{message}: {bye:?}"
    );
    let ended = pair.next(Side::A);
    assert!(
        matches!(ended, Event::Ended { usage } if usage == a),
        "{message}: {ended:?}"
    );
    assert!(
        pair.events(Side::A).is_empty() && pair.events(Side::B).is_empty(),
        "{message}"
    );
    pair.drained();
    pair
}

#[test]
fn any_message_may_be_lost_once() {
    for (sender, message) in MESSAGES {
        let pair = call_through(Fate::Lose, sender, message);
        let twice = match message {
            // What comes after them covers for these.
            "100 INVITE" | "180 INVITE" => 1,
            _ => 2,
        };
        assert_eq!(pair.sent(sender, message), twice, "{message}");
    }
}

#[test]
fn any_message_may_come_twice() {
    for (sender, message) in MESSAGES {
        call_through(Fate::Double, sender, message);
    }
}

#[test]
fn a_lost_refusal_is_repeated_until_its_ack() {
    let mut pair = Pair::new().wire(|_, kind, before| match (kind, before) {
        ("486 INVITE" | "ACK", 0) => Fate::Lose,
        _ => Fate::Pass,
    });
    let (a, b) = pair.call();
    let now = pair.now;
    pair.end(Side::B)
        .reject(now, b, 486, None, Vec::new(), None)
        .expect("open");
    let event = pair.next(Side::A);
    assert!(
        matches!(event, Event::Refused { usage, failure: Failure::Response(486), .. } if usage == a)
    );
    pair.drained();
    assert_eq!(
        (pair.sent(Side::B, "486 INVITE"), pair.sent(Side::A, "ACK")),
        (3, 2)
    );
}

#[test]
fn a_caller_that_vanishes_after_the_200_costs_one_bye() {
    let mut pair = Pair::new().wire(|side, kind, _| match (side, kind) {
        (Side::A, "ACK" | "200 BYE" | "481 BYE") => Fate::Lose,
        _ => Fate::Pass,
    });
    let (_, b) = pair.call();
    pair.accept(b);
    assert!(matches!(pair.next(Side::B), Event::AckMissing { usage } if usage == b));
    // Its BYE is lost in silence too: timer F ends it.
    assert!(matches!(pair.next(Side::B), Event::Ended { usage } if usage == b));
    pair.drained();
}

#[test]
fn a_re_invite_changes_the_session() {
    let mut pair = Pair::new();
    let (a, b) = pair.established();
    let now = pair.now;
    pair.end(Side::A)
        .reinvite(now, a, Vec::new(), Some(sdp()))
        .expect("confirmed");
    assert!(matches!(pair.next(Side::B), Event::Reinvite { usage, .. } if usage == b));
    let now = pair.now;
    pair.end(Side::B)
        .respond_reinvite(now, b, 200, Vec::new(), Some(sdp()))
        .expect("open");
    match pair.next(Side::A) {
        Event::ReinviteAnswered { usage, message } => {
            assert_eq!(usage, a);
            assert!(message.sdp_body().is_some());
        }
        other => panic!("another event: {other:?}"),
    }
    let now = pair.now;
    pair.end(Side::A).ack(now, a, None);
    assert!(matches!(pair.next(Side::B), Event::Acked { usage, .. } if usage == b));
    pair.bye(Side::B, b);
    assert!(matches!(pair.next(Side::A), Event::Bye { .. }));
    pair.drained();
}

#[test]
fn a_re_invite_that_is_refused_leaves_the_call_up() {
    let mut pair = Pair::new();
    let (a, b) = pair.established();
    let now = pair.now;
    pair.end(Side::B)
        .reinvite(now, b, Vec::new(), Some(sdp()))
        .expect("confirmed");
    assert!(matches!(pair.next(Side::A), Event::Reinvite { usage, .. } if usage == a));
    let now = pair.now;
    pair.end(Side::A)
        .respond_reinvite(now, a, 488, Vec::new(), None)
        .expect("open");
    match pair.next(Side::B) {
        Event::ReinviteRefused { usage, failure, .. } => {
            assert_eq!((usage, failure), (b, Failure::Response(488)));
        }
        other => panic!("another event: {other:?}"),
    }
    pair.bye(Side::A, a);
    assert!(matches!(pair.next(Side::B), Event::Bye { .. }));
    pair.drained();
}

#[test]
fn an_info_crosses_the_call_both_ways() {
    let mut pair = Pair::new();
    let (a, b) = pair.established();
    for (from, usage, to) in [(Side::A, a, Side::B), (Side::B, b, Side::A)] {
        let now = pair.now;
        let sent = pair
            .end(from)
            .request_in(now, usage, "INFO", Vec::new(), None)
            .expect("confirmed");
        let txn = match pair.next(to) {
            Event::Request {
                txn,
                usage: Some(_),
                message,
                ..
            } => {
                assert_eq!(message.method(), Some(sip::Method::Info));
                txn
            }
            other => panic!("another event: {other:?}"),
        };
        let now = pair.now;
        pair.end(to)
            .respond(now, txn, 200, None, Vec::new(), None)
            .expect("open");
        match pair.next(from) {
            Event::Response {
                txn,
                usage: Some(own),
                outcome: Ok(message),
            } => {
                assert_eq!((txn, own, message.status()), (sent, usage, Some(200)));
            }
            other => panic!("another event: {other:?}"),
        }
    }
    pair.bye(Side::A, a);
    pair.drained();
}

#[test]
fn a_request_outside_any_dialog_is_answered_or_given_up() {
    let mut pair = Pair::new().wire(|_, kind, _| match kind {
        "MESSAGE" => Fate::Lose,
        _ => Fate::Pass,
    });
    let ask = |method: &str| sip::Request {
        method: method.to_owned(),
        request_uri: "sip:192.0.2.20".to_owned(),
        from: "<sip:us@192.0.2.1>".to_owned(),
        to: "<sip:192.0.2.20>".to_owned(),
        ..sip::Request::default()
    };
    let now = pair.now;
    let options = pair
        .end(Side::A)
        .request(now, ask("OPTIONS"))
        .expect("possible");
    let txn = match pair.next(Side::B) {
        Event::Request {
            txn, usage: None, ..
        } => txn,
        other => panic!("another event: {other:?}"),
    };
    let now = pair.now;
    pair.end(Side::B)
        .respond(now, txn, 200, None, Vec::new(), None)
        .expect("open");
    assert!(matches!(
        pair.next(Side::A),
        Event::Response { txn, usage: None, outcome: Ok(_) } if txn == options
    ));
    let now = pair.now;
    let message = pair
        .end(Side::A)
        .request(now, ask("MESSAGE"))
        .expect("possible");
    assert!(matches!(
        pair.next(Side::A),
        Event::Response { txn, outcome: Err(Failure::Timeout), .. } if txn == message
    ));
    assert_eq!((pair.now - now).as_millis(), 32_000, "timer F");
    assert_eq!(pair.sent(Side::A, "MESSAGE"), 11);
    pair.drained();
}
