//! Digest as client (RFC 3261, 22; RFC 7616; RFC 8760).

use md5::{Digest, Md5};
use sip::{Credentials, Event, Failure, Invite, Name, Request};

use crate::solo::{Sent, Solo, event, kinds, outgoing};
use crate::text::{answer, response};

fn credentials() -> Option<Credentials> {
    Some(Credentials {
        username: "1001".to_owned(),
        password: "secret".to_owned(),
    })
}

fn with_credentials() -> Invite {
    Invite {
        credentials: credentials(),
        ..outgoing()
    }
}

const CHALLENGE: &str = "WWW-Authenticate: Digest realm=\"example.com\", nonce=\"n1\", qop=\"auth,auth-int\", opaque=\"o\"";

fn hex(text: &str) -> String {
    Md5::digest(text.as_bytes())
        .iter()
        .map(|octet| format!("{octet:02x}"))
        .collect()
}

/// The parameter of an Authorization header, unquoted.
fn param(header: &str, name: &str) -> String {
    let list = header.strip_prefix("Digest ").expect("a Digest");
    let mut params = list
        .split(',')
        .filter_map(|param| param.trim().split_once('='));
    let (_, value) = params.find(|(own, _)| *own == name).expect(name);
    value.trim_matches('"').to_owned()
}

#[test]
fn a_challenged_invite_goes_out_again_with_the_right_digest() {
    let mut solo = Solo::new();
    let (usage, first) = solo.calls_with(with_credentials());
    solo.hears(&response(&first, 401).extra(CHALLENGE));
    let sent = solo.sent();
    assert_eq!(kinds(&sent), ["ACK", "INVITE"]);
    assert!(solo.events().is_empty());
    let second = &sent[1];
    assert_eq!(second.cseq().expect("ours").number, 2);
    assert_eq!(second.call_id(), first.call_id());
    assert_eq!(second.header(Name::From), first.header(Name::From));
    assert_eq!(
        second.header(Name::To),
        first.header(Name::To),
        "still no tag"
    );
    assert_ne!(second.top_via(), first.top_via());
    let header = second.header(Name::Authorization).expect("credentials");
    assert_eq!(param(header, "username"), "1001");
    assert_eq!(param(header, "opaque"), "o");
    assert_eq!(param(header, "nc"), "00000001");
    assert_eq!(param(header, "uri"), "sip:bob@192.0.2.20");
    // RFC 7616, 3.4.1, computed apart from our own code.
    let a1 = hex("1001:example.com:secret");
    let a2 = hex("INVITE:sip:bob@192.0.2.20");
    let cnonce = param(header, "cnonce");
    assert_eq!(
        param(header, "response"),
        hex(&format!("{a1}:n1:00000001:{cnonce}:auth:{a2}"))
    );
    solo.hears(&answer(second));
    event!(solo, Event::Answered { usage: own, .. } => assert_eq!(own, usage));
    solo.endpoint.ack(solo.now, usage, None);
    assert_eq!(solo.one().cseq().expect("ours").number, 2);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let bye = solo.one();
    assert_eq!(bye.cseq().expect("ours").number, 3);
    solo.hears(&response(&bye, 407).extra(&CHALLENGE.replace("WWW-", "Proxy-")));
    let again = solo.one();
    assert_eq!(
        (again.kind().as_str(), again.cseq().expect("ours").number),
        ("BYE", 4)
    );
    assert!(again.header(Name::ProxyAuthorization).is_some());
    solo.hears(&response(&again, 200));
    event!(solo, Event::Ended { .. } => ());
    solo.drained();
}

#[test]
fn a_second_challenge_is_passed_up() {
    let mut solo = Solo::new();
    let (_, first) = solo.calls_with(with_credentials());
    solo.hears(&response(&first, 401).extra(CHALLENGE));
    let second = solo.sent().remove(1);
    solo.hears(&response(&second, 401).extra(CHALLENGE));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    event!(solo, Event::Refused { failure: Failure::Response(401), message: Some(_), .. } => ());
    solo.drained();
}

#[test]
fn a_stale_nonce_is_renewed_once() {
    let mut solo = Solo::new();
    let (_, first) = solo.calls_with(with_credentials());
    solo.hears(&response(&first, 401).extra(CHALLENGE));
    let second = solo.sent().remove(1);
    let stale = format!("{}, stale=TRUE", CHALLENGE.replace("n1", "n2"));
    solo.hears(&response(&second, 401).extra(&stale));
    let third: Sent = solo.sent().remove(1);
    assert_eq!(
        param(third.header(Name::Authorization).expect("there"), "nonce"),
        "n2"
    );
    assert_eq!(
        third.headers(Name::Authorization).count(),
        1,
        "the old one is gone"
    );
    solo.hears(&response(&third, 401).extra(&stale));
    event!(solo, Event::Refused { failure: Failure::Response(401), .. } => ());
    solo.drained();
}

#[test]
fn the_strongest_algorithm_is_taken_and_unknown_ones_are_passed_over() {
    let mut solo = Solo::new();
    let (_, first) = solo.calls_with(with_credentials());
    let text = ["SHA-512-256", "MD5", "SHA-256"]
        .iter()
        .fold(response(&first, 401), |text, name| {
            text.extra(&format!("{CHALLENGE}, algorithm={name}"))
        });
    solo.hears(&text);
    let second = solo.sent().remove(1);
    let header = second.header(Name::Authorization).expect("there");
    assert_eq!(param(header, "algorithm"), "SHA-256");
    assert_eq!(param(header, "response").len(), 64);
    solo.drained();
}

#[test]
fn without_credentials_or_a_challenge_we_can_answer_the_refusal_is_passed_up() {
    let mut solo = Solo::new();
    let (_, first) = solo.calls();
    solo.hears(&response(&first, 407).extra("Proxy-Authenticate: Digest realm=\"a\", nonce=\"b\""));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    event!(solo, Event::Refused { failure: Failure::Response(407), .. } => ());
    let (_, first) = solo.calls_with(with_credentials());
    solo.hears(&response(&first, 401).extra("WWW-Authenticate: Basic realm=\"a\""));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    event!(solo, Event::Refused { failure: Failure::Response(401), .. } => ());
    solo.drained();
}

#[test]
fn the_user_hears_of_a_challenged_request_under_its_own_id() {
    let mut solo = Solo::new();
    let register = Request {
        method: "REGISTER".to_owned(),
        request_uri: "sip:192.0.2.20".to_owned(),
        from: "<sip:1001@192.0.2.20>".to_owned(),
        to: "<sip:1001@192.0.2.20>".to_owned(),
        credentials: credentials(),
        ..Request::default()
    };
    let id = solo.endpoint.request(solo.now, register).expect("possible");
    let first = solo.one();
    solo.hears(&response(&first, 401).extra(CHALLENGE));
    let second = solo.one();
    assert_eq!(second.cseq().expect("ours").number, 2);
    solo.hears(&response(&second, 200));
    event!(solo, Event::Response { txn, outcome: Ok(message), .. } => {
        assert_eq!((txn, message.status()), (id, Some(200)));
    });
    solo.drained();
}

#[test]
fn a_cancelled_call_is_not_tried_again() {
    let mut solo = Solo::new();
    let (usage, first) = solo.calls_with(with_credentials());
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    solo.hears(&response(&first, 401).extra(CHALLENGE));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    event!(solo, Event::Refused { failure: Failure::Response(401), .. } => ());
    solo.drained();
}

#[test]
fn a_cancel_after_the_challenge_cancels_the_second_invite() {
    let mut solo = Solo::new();
    let (usage, first) = solo.calls_with(with_credentials());
    solo.hears(&response(&first, 100));
    solo.hears(&response(&first, 401).extra(CHALLENGE));
    let second = solo.sent().remove(1);
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    solo.quiet();
    solo.hears(&response(&second, 100));
    let cancel = solo.one();
    assert_eq!(cancel.kind(), "CANCEL");
    assert_eq!(cancel.top_via(), second.top_via());
    assert_eq!(cancel.cseq().expect("ours").number, 2);
    solo.drained();
}
