//! Peers, resolvers and moments that do not behave: nothing is left, nothing is sent in vain.

use sip::{Config, Counts, Event, Failure, Name, Transport};

use crate::solo::{Solo, address, config, event, kinds, outgoing, sdp};
use crate::text::{answer, invite, request, response};

/// RFC 3261, 14.1: a peer that answers our re-INVITE with 100 only, and then hangs up.
#[test]
fn a_re_invite_without_final_response_does_not_outlive_the_peers_bye() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.endpoint
        .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("confirmed");
    let ours = solo.one();
    solo.hears(&response(&ours, 100));
    solo.hears(&request("BYE", 2, "b2").within(&ok));
    event!(solo, Event::Bye { .. } => ());
    solo.drained();
}

#[test]
fn a_re_invite_without_final_response_does_not_outlive_our_bye() {
    let mut solo = Solo::new();
    let (usage, _) = solo.answered(&invite(1, "i1"));
    solo.endpoint
        .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("confirmed");
    let ours = solo.one();
    solo.hears(&response(&ours, 100));
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let bye = solo.one();
    solo.hears(&response(&bye, 200));
    event!(solo, Event::Ended { .. } => ());
    // Late, but still acknowledged.
    solo.hears(&response(&ours, 487));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    solo.drained();
}

/// RFC 3261, 22.2: nobody wants a second INVITE of a call that is over.
#[test]
fn a_challenge_to_a_re_invite_is_not_answered_once_the_call_ends() {
    for ours in [true, false] {
        let mut solo = Solo::new();
        let credentials = Some(sip::Credentials {
            username: "u".to_owned(),
            password: "p".to_owned(),
        });
        let (usage, sent) = solo.calls_with(sip::Invite {
            credentials,
            ..outgoing()
        });
        solo.hears(&answer(&sent));
        event!(solo, Event::Answered { .. } => ());
        solo.endpoint.ack(solo.now, usage, None);
        solo.endpoint
            .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
            .expect("confirmed");
        let again = solo.sent().pop().expect("the re-INVITE");
        if ours {
            solo.endpoint.bye(solo.now, usage, Vec::new());
            assert_eq!(kinds(&solo.sent()), ["BYE"]);
        } else {
            let from = again.header(Name::To).expect("ours").to_owned();
            let to = again.header(Name::From).expect("ours").to_owned();
            let call_id = again.call_id().expect("ours").to_owned();
            solo.hears(
                &request("BYE", 1, "b1")
                    .from(&from)
                    .to(&to)
                    .call_id(&call_id),
            );
            assert_eq!(kinds(&solo.sent()), ["200"]);
        }
        let challenge = "WWW-Authenticate: Digest realm=\"a\",nonce=\"b\"";
        solo.hears(&response(&again, 401).extra(challenge));
        assert_eq!(kinds(&solo.sent()), ["ACK"], "ours: {ours}");
        solo.drained();
    }
}

/// RFC 3261, 13.2.2.4 and 22.1: the ACK shows the credentials of its INVITE.
#[test]
fn acks_carry_the_credentials_of_their_invite() {
    for code in [200, 486] {
        let mut solo = Solo::new();
        let credentials = Some(sip::Credentials {
            username: "u".to_owned(),
            password: "p".to_owned(),
        });
        let (usage, first) = solo.calls_with(sip::Invite {
            credentials,
            ..outgoing()
        });
        let challenge = "Proxy-Authenticate: Digest realm=\"a\",nonce=\"b\"";
        solo.hears(&response(&first, 407).extra(challenge));
        let second = solo.sent().pop().expect("the second INVITE");
        let shown = second.header(Name::ProxyAuthorization);
        assert!(shown.is_some());
        match code {
            200 => {
                solo.hears(&answer(&second));
                solo.endpoint.ack(solo.now, usage, None);
            }
            _ => solo.hears(&response(&second, code)),
        }
        let ack = solo.one();
        assert_eq!(ack.header(Name::ProxyAuthorization), shown, "{code}");
        solo.events();
        solo.endpoint.bye(solo.now, usage, Vec::new());
        solo.drained();
    }
}

/// RFC 3261, 8.2.6.1.
#[test]
fn a_100_copies_the_timestamp() {
    let mut solo = Solo::new();
    solo.hears(&invite(1, "i1").extra("Timestamp: 54.2"));
    let trying = solo.one();
    assert_eq!(trying.header(Name::Timestamp), Some("54.2"));
    let usage = event!(solo, Event::Invite { usage, .. } => usage);
    solo.endpoint
        .reject(solo.now, usage, 486, None, Vec::new(), None)
        .expect("open");
    assert_eq!(solo.one().header(Name::Timestamp), None);
    solo.drained();
}

/// What ends a call is let in above the limit, but only what ends it.
#[test]
fn byes_that_end_nothing_do_not_pass_the_limit() {
    let mut solo = Solo::with(Config {
        max_transactions: 2,
        ..config()
    });
    let (_, ok) = solo.answered(&invite(5, "i1"));
    solo.hears(&request("OPTIONS", 1, "o1").call_id("other"));
    let held = solo.endpoint.counts().server_transactions;
    assert_eq!(held, 2);
    solo.sent();
    for n in 0..100 {
        solo.hears(&request("BYE", 4, &format!("old{n}")).within(&ok));
        assert_eq!(solo.one().kind(), "503");
    }
    let (_, calling) = solo.calls();
    let ringing = response(&calling, 180);
    solo.hears(&ringing);
    let to = calling.header(Name::From).expect("ours").to_owned();
    let call_id = calling.call_id().expect("ours").to_owned();
    for n in 0..100 {
        let early = request("BYE", n, &format!("early{n}"))
            .from("<sip:bob@192.0.2.20>;tag=bob1")
            .to(&to)
            .call_id(&call_id);
        solo.hears(&early);
        assert_eq!(solo.one().kind(), "503");
    }
    assert_eq!(solo.endpoint.counts().server_transactions, held);
    solo.hears(&request("BYE", 6, "b6").within(&ok));
    assert_eq!(solo.one().kind(), "200");
}

/// A full house is no reason to leave a call hanging.
#[test]
fn ack_cancel_and_bye_go_out_above_the_limit() {
    let mut solo = Solo::with(Config {
        max_transactions: 2,
        ..config()
    });
    let (one, first) = solo.calls();
    let (two, second) = solo.calls();
    assert!(solo.endpoint.invite(solo.now, outgoing()).is_err(), "full");
    solo.hears(&answer(&first));
    solo.endpoint.ack(solo.now, one, None);
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    solo.hears(&response(&second, 180));
    solo.endpoint.cancel(solo.now, two, Vec::new());
    assert_eq!(kinds(&solo.sent()), ["CANCEL"]);
    solo.endpoint.bye(solo.now, one, Vec::new());
    assert_eq!(kinds(&solo.sent()), ["BYE"]);
    solo.drained();
}

/// RFC 3263, 4.2: an address that we have no listener for is passed over.
#[test]
fn the_first_address_that_we_can_reach_is_taken() {
    let mut solo = Solo::new();
    let request_uri = "sip:bob@example.com".to_owned();
    let call = sip::Invite {
        request_uri,
        ..outgoing()
    };
    solo.endpoint.invite(solo.now, call).expect("possible");
    let resolve = solo.endpoint.poll_resolve().expect("a name");
    let found = vec![
        (Transport::Udp, address("[2001:db8::2]:5060")),
        (Transport::Udp, address("192.0.2.20:5060")),
    ];
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Ok(found));
    assert_eq!(solo.one().transmit.remote, address("192.0.2.20:5060"));
    solo.drained();
}

#[test]
fn a_resolver_that_never_answers_is_given_up_after_64_t1() {
    let mut solo = Solo::new();
    let request_uri = "sip:bob@example.com".to_owned();
    let call = sip::Invite {
        request_uri,
        ..outgoing()
    };
    solo.endpoint.invite(solo.now, call).expect("possible");
    let resolve = solo.endpoint.poll_resolve().expect("a name");
    assert!(solo.advance(31_999).is_empty() && solo.events().is_empty());
    solo.advance(1);
    event!(solo, Event::Refused { failure: Failure::Unresolved, .. } => ());
    assert_eq!(solo.endpoint.counts(), Counts::default());
    let found = vec![(Transport::Udp, address("192.0.2.20:5060"))];
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Ok(found));
    solo.quiet();
}

/// RFC 3261, 14.1: no INVITE while another is open; the wait after a 491 goes on until it is over.
#[test]
fn a_re_invite_waits_until_the_peers_is_over() {
    let mut solo = Solo::new();
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    solo.endpoint
        .reinvite(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("confirmed");
    let ours = solo.one();
    solo.hears(&response(&ours, 491));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    solo.hears(&invite(2, "i2").within(&ok));
    event!(solo, Event::Reinvite { .. } => ());
    let sent = solo.advance(2_500);
    assert_eq!(kinds(&sent), ["100"], "the peer's is open");
    solo.endpoint
        .respond_reinvite(solo.now, usage, 200, Vec::new(), Some(sdp()))
        .expect("open");
    let sent = solo.advance(2_500);
    assert!(sent.iter().all(|sent| sent.kind() == "200"), "no ACK yet");
    solo.hears(&request("ACK", 2, "a2").within(&ok));
    event!(solo, Event::Acked { .. } => ());
    let sent = solo.advance(2_500);
    assert_eq!(kinds(&sent[..1]), ["INVITE"]);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.drained();
}

/// RFC 3261, 15: a peer that never acknowledges cannot put our BYE off by re-INVITEs.
#[test]
fn a_re_invite_while_our_bye_waits_gets_481() {
    let mut solo = Solo::new();
    let usage = solo.rung(&invite(1, "i1"));
    solo.endpoint
        .accept(solo.now, usage, Vec::new(), Some(sdp()))
        .expect("open");
    let ok = solo.one();
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.hears(&invite(2, "i2").within(&ok));
    assert_eq!(kinds(&solo.sent()), ["481"]);
    solo.hears(&request("ACK", 1, "a1").within(&ok));
    assert_eq!(kinds(&solo.sent()), ["BYE"]);
    solo.drained();
}

/// Whatever a peer calls itself, what we send can be read; [`Solo::sent`] checks.
#[test]
fn targets_that_cannot_be_written_are_not_written() {
    let contacts = [
        "<sip:alice@192.0.2.20 SIP/2.0 X>",
        "<sip:alice@192.0.2.20\r\n Evil: 1>",
        "<sip:al>ice@192.0.2.20>",
        "<sip:alice@>",
        "<>",
        "<tel:+1555>",
        "<sip:alice@192.0.2.20;transport=carrier-pigeon>",
        "<sip:alice@192.0.2.20:99999>",
        "\"unclosed <sip:alice@192.0.2.20>",
    ];
    for contact in contacts {
        let mut solo = Solo::new();
        let call = request("INVITE", 1, "i1")
            .extra(&format!("Contact: {contact}"))
            .sdp();
        solo.hears(&call);
        let usages: Vec<_> = solo
            .events()
            .into_iter()
            .map(|event| match event {
                Event::Invite { usage, .. } => usage,
                other => panic!("{contact}: {other:?}"),
            })
            .collect();
        let sent = solo.sent();
        let Some(&usage) = usages.first() else {
            assert_eq!(kinds(&sent), ["400"], "{contact}");
            continue;
        };
        solo.endpoint
            .accept(solo.now, usage, Vec::new(), None)
            .expect("open");
        let ok = solo.one();
        solo.hears(&request("ACK", 1, "a1").within(&ok));
        solo.endpoint.bye(solo.now, usage, Vec::new());
        for sent in solo.sent() {
            let uri = sent.request_uri().expect("a BYE");
            assert!(sip::Uri::parse(uri).is_ok(), "{contact}: {uri}");
        }
        solo.drained();
    }
    for user in ["a>b", "a b", "\"", "a%0d%0ab"] {
        let mut solo = Solo::new();
        solo.hears(&invite(1, "i1").uri(&format!("sip:{user}@192.0.2.1")));
        for sent in solo.sent() {
            assert!(matches!(sent.status(), Some(100 | 400)), "{user}");
        }
        for event in solo.events() {
            let Event::Invite { usage, .. } = event else {
                panic!("{user}: {event:?}");
            };
            solo.endpoint
                .accept(solo.now, usage, Vec::new(), None)
                .expect("open");
            let ok = solo.one();
            let contact = ok.contacts().next().expect("there").expect("readable");
            assert!(contact.uri().is_ok(), "{user}: {contact:?}");
            assert_eq!(ok.contacts().count(), 1, "{user}");
        }
    }
}
