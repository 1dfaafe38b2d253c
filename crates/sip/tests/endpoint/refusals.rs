//! What the endpoint refuses by itself, and what it keeps of it: nothing (RFC 3261, 8.2).

use sip::{Config, Counts, Event, Name};

use crate::solo::{Solo, config, event, kinds};
use crate::text::{Text, invite, request};

#[test]
fn a_merged_request_gets_482() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "path1"));
    solo.hears(&invite(1, "path2"));
    let refusal = solo.one();
    assert_eq!(refusal.kind(), "482");
    assert_eq!(
        refusal.top_via().expect("ours").branch(),
        Some("z9hG4bKpath2")
    );
    assert!(solo.events().is_empty());
    solo.endpoint
        .reject(solo.now, usage, 486, None, Vec::new(), None)
        .expect("open");
    solo.sent();
    solo.drained();
    // When the first is over it is a new request.
    solo.rung(&invite(1, "path3"));
}

#[test]
fn a_request_that_may_go_no_further_gets_483() {
    let mut solo = Solo::new();
    let spent = |text: Text| text.without("Max-Forwards: 70").extra("Max-Forwards: 0");
    solo.hears(&spent(invite(1, "i1")));
    assert_eq!(solo.one().kind(), "483");
    assert!(solo.events().is_empty());
    // RFC 3261, 11: one that ends here may be answered; and a call must be able to end.
    solo.hears(&spent(request("OPTIONS", 1, "o1")));
    let txn = event!(solo, Event::Request { txn, .. } => txn);
    solo.endpoint
        .respond(solo.now, txn, 200, None, Vec::new(), None)
        .expect("open");
    solo.sent();
    let (_, ok) = solo.answered(&invite(5, "i5").call_id("call2"));
    solo.hears(&spent(request("BYE", 6, "b6")).call_id("call2").within(&ok));
    assert_eq!(solo.one().kind(), "200");
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

/// What can be told from the request alone is answered without keeping anything.
#[test]
fn malformed_requests_are_refused_without_state() {
    let text = |from: &str, to: &str| {
        let text = String::from_utf8(invite(1, "i1").build()).expect("ASCII");
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    let rows = [
        (
            "no Call-ID",
            text("Call-ID: call1@192.0.2.20\r\n", ""),
            "400",
        ),
        (
            "CSeq of another method",
            text("1 INVITE", "1 OPTIONS"),
            "400",
        ),
        (
            "a version of the future",
            text(" SIP/2.0\r\nVia", " SIP/3.0\r\nVia"),
            "505",
        ),
        (
            "an unknown scheme",
            text("sip:1001@192.0.2.1 SIP", "soap:1001 SIP"),
            "416",
        ),
        (
            "body cut off",
            text("Content-Length: ", "Content-Length: 9"),
            "400",
        ),
        (
            "two Content-Lengths",
            text("Content-Type", "Content-Length: 0\r\nContent-Type"),
            "400",
        ),
    ];
    for (what, text, status) in rows {
        let mut solo = Solo::new();
        solo.hears_bytes(text.as_bytes());
        let refusal = solo.one();
        assert_eq!(refusal.kind(), status, "{what}");
        assert!(refusal.to().expect("ours").tag().is_some(), "{what}");
        assert_eq!(refusal.transmit.remote, solo.flow.remote, "{what}");
        assert!(solo.events().is_empty(), "{what}");
        assert_eq!(solo.endpoint.counts(), Counts::default(), "{what}");
    }
}

#[test]
fn what_cannot_be_answered_is_met_with_silence() {
    let mut solo = Solo::new();
    let rows: [&[u8]; 6] = [
        b"",
        b"\r\n\r\n",
        b"\0\0\0\0",
        b"hello",
        b"SIP/2.0 200 OK\r\n\r\n",
        b"ACK sip:x SIP/2.0\r\nVia: SIP/2.0/UDP 192.0.2.20;branch=z9hG4bKx\r\n\r\n",
    ];
    for row in rows {
        solo.hears_bytes(row);
        solo.quiet();
    }
    solo.hears(&request("ACK", 1, "lost"));
    solo.quiet();
    assert_eq!(solo.endpoint.counts(), Counts::default());
}

#[test]
fn above_the_most_usages_calls_get_503_without_state() {
    let mut solo = Solo::with(Config {
        max_usages: 1,
        ..config()
    });
    let (_, ok) = solo.answered(&invite(1, "i1"));
    let before = solo.endpoint.counts();
    solo.hears(&invite(1, "i2").call_id("call2"));
    let refusal = solo.one();
    assert_eq!(refusal.kind(), "503");
    let after = refusal
        .seconds(Name::RetryAfter)
        .expect("well-formed")
        .expect("there");
    assert!(after > 0);
    assert_eq!(solo.endpoint.counts(), before);
    solo.hears(&request("ACK", 1, "i2").call_id("call2").within(&refusal));
    solo.quiet();
    assert!(
        solo.endpoint
            .invite(solo.now, crate::solo::outgoing())
            .is_err()
    );
    solo.hears(&request("BYE", 2, "b2").within(&ok));
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

#[test]
fn above_the_most_transactions_only_calls_that_stand_are_served() {
    let mut solo = Solo::with(Config {
        max_transactions: 3,
        ..config()
    });
    let (_, ok) = solo.answered(&invite(1, "i1"));
    for message in 0..2 {
        let text = request("OPTIONS", 1, &format!("o{message}")).call_id(&format!("o{message}"));
        solo.hears(&text);
        event!(solo, Event::Request { .. } => ());
    }
    let before = solo.endpoint.counts();
    assert_eq!(before.server_transactions, 3);
    for (method, call) in [("OPTIONS", "x1"), ("INVITE", "x2"), ("CANCEL", "x3")] {
        solo.hears(&request(method, 1, call).call_id(call));
        let refusal = solo.one();
        assert_eq!(refusal.kind(), "503", "{method}");
        assert!(refusal.header(Name::RetryAfter).is_some(), "{method}");
        assert!(solo.events().is_empty(), "{method}");
        assert_eq!(solo.endpoint.counts(), before, "{method}");
    }
    // What frees memory is let in.
    solo.hears(&request("BYE", 2, "b2").within(&ok));
    assert_eq!(solo.one().kind(), "200");
    event!(solo, Event::Bye { .. } => ());
}

#[test]
fn pending_requests_of_a_call_that_ends_get_487() {
    let mut solo = Solo::new();
    let (_, ok) = solo.answered(&invite(1, "i1"));
    solo.hears(&request("INFO", 2, "f2").within(&ok));
    let txn = event!(solo, Event::Request { txn, .. } => txn);
    solo.hears(&request("BYE", 3, "b3").within(&ok));
    assert_eq!(kinds(&solo.sent()), ["200", "487"]);
    event!(solo, Event::Bye { .. } => ());
    assert!(
        solo.endpoint
            .respond(solo.now, txn, 200, None, Vec::new(), None)
            .is_err()
    );
    solo.quiet();
    solo.drained();
}

#[test]
fn a_repeated_request_gets_the_last_response_again() {
    let mut solo = Solo::new();
    solo.hears(&request("OPTIONS", 1, "o1"));
    let txn = event!(solo, Event::Request { txn, .. } => txn);
    solo.hears(&request("OPTIONS", 1, "o1"));
    solo.quiet();
    solo.endpoint
        .respond(solo.now, txn, 200, None, Vec::new(), None)
        .expect("open");
    let first = solo.one();
    solo.hears(&request("OPTIONS", 1, "o1"));
    assert_eq!(solo.one().transmit.bytes, first.transmit.bytes);
    assert!(
        solo.endpoint
            .respond(solo.now, txn, 200, None, Vec::new(), None)
            .is_err()
    );
    solo.drained();
}

#[test]
fn transactions_of_rfc_2543_are_told_apart_without_a_branch() {
    let mut solo = Solo::new();
    let old = |text: Text| text.via("SIP/2.0/UDP 192.0.2.20:5060");
    solo.hears(&old(invite(1, "-")));
    assert_eq!(solo.one().status(), Some(100));
    let usage = event!(solo, Event::Invite { usage, .. } => usage);
    solo.hears(&old(invite(1, "-")));
    assert_eq!(solo.one().status(), Some(100), "a repeat");
    assert!(solo.events().is_empty());
    solo.endpoint
        .reject(solo.now, usage, 486, None, Vec::new(), None)
        .expect("open");
    let refusal = solo.one();
    // Its ACK carries the To tag of our response (17.2.3).
    solo.hears(&old(request("ACK", 1, "-")).within(&refusal));
    assert!(solo.advance(4_000).is_empty(), "acknowledged");
    solo.hears(&old(request("CANCEL", 2, "-")));
    assert_eq!(solo.one().kind(), "481", "another sequence number");
    solo.drained();
}

#[test]
fn two_transactions_of_one_branch_from_two_senders_are_two() {
    let mut solo = Solo::new();
    solo.rung(&invite(1, "same"));
    solo.rung(
        &invite(1, "same")
            .via("SIP/2.0/UDP 192.0.2.55:5060;branch=z9hG4bKsame")
            .call_id("c2"),
    );
}
