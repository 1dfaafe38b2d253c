//! Where messages go: Via, listeners, connections, names, and transports that fail
//! (RFC 3261, 18 and 8.1.2; RFC 3581; RFC 3263).

use sip::{
    Config, Event, FailedFlow, Failure, Flow, Host, Invite, Listener, Name, ResolveError, Transport,
};

use crate::solo::{Solo, address, config, event, kinds, outgoing};
use crate::text::{answer, invite, request, response};

#[test]
fn responses_follow_rport_and_sent_by() {
    let rows = [
        // rport asked for: back to where it came from (RFC 3581, 4).
        (
            "SIP/2.0/UDP 192.0.2.20:5060;rport;branch=z9hG4bK1",
            "203.0.113.7:40000",
            "203.0.113.7:40000",
        ),
        // Not asked for: to the source address, but the port of sent-by (18.2.2).
        (
            "SIP/2.0/UDP 192.0.2.20:5062;branch=z9hG4bK2",
            "203.0.113.7:40000",
            "203.0.113.7:5062",
        ),
        (
            "SIP/2.0/UDP 192.0.2.20;branch=z9hG4bK3",
            "192.0.2.20:40000",
            "192.0.2.20:5060",
        ),
        // maddr could aim our responses at anybody: not followed.
        (
            "SIP/2.0/UDP 192.0.2.20;maddr=198.51.100.9;branch=z9hG4bK4",
            "192.0.2.20:5060",
            "192.0.2.20:5060",
        ),
    ];
    for (via, source, expected) in rows {
        let mut solo = Solo::new();
        solo.flow.remote = address(source);
        solo.hears(&request("OPTIONS", 1, "-").via(via));
        let txn = event!(solo, Event::Request { txn, .. } => txn);
        solo.endpoint
            .respond(solo.now, txn, 200, None, Vec::new(), None)
            .expect("open");
        let sent = solo.one();
        assert_eq!(sent.transmit.remote, address(expected), "{via}");
        assert_eq!(
            sent.transmit.local,
            Some(address("192.0.2.1:5060")),
            "{via}"
        );
        let top = sent.top_via().expect("ours");
        let source = address(source);
        match top.host {
            Host::V4(v4) if std::net::IpAddr::V4(v4) == source.ip() => {}
            _ => assert_eq!(top.received(), Some(source.ip()), "{via}"),
        }
        if via.contains(";rport") {
            assert_eq!(top.rport(), Some(Some(source.port())), "{via}");
            assert_eq!(top.received(), Some(source.ip()), "{via}");
        }
        solo.drained();
    }
}

#[test]
fn responses_go_back_by_their_connection() {
    let mut solo = Solo::new();
    solo.flow = Flow {
        transport: Transport::Tcp,
        local: address("192.0.2.1:5060"),
        remote: address("192.0.2.20:49152"),
        connection: 7,
    };
    let via = "SIP/2.0/TCP 192.0.2.20:5062;branch=z9hG4bKt1";
    solo.hears(&request("OPTIONS", 1, "-").via(via));
    let txn = event!(solo, Event::Request { txn, .. } => txn);
    solo.endpoint
        .respond(solo.now, txn, 200, None, Vec::new(), None)
        .expect("open");
    let transmit = solo.one().transmit;
    assert_eq!(
        (transmit.transport, transmit.connection),
        (Transport::Tcp, Some(7))
    );
    // Where that connection is gone: to the port of sent-by (18.2.2).
    assert_eq!(transmit.remote, address("192.0.2.20:5062"));
    solo.drained();
}

#[test]
fn in_dialog_requests_try_the_callers_connection_first() {
    let mut solo = Solo::new();
    solo.flow = Flow {
        transport: Transport::Tcp,
        local: address("192.0.2.1:5060"),
        remote: address("192.0.2.20:49152"),
        connection: 7,
    };
    let tcp = |branch: &str| format!("SIP/2.0/TCP 192.0.2.20;branch=z9hG4bK{branch}");
    let contact = "Contact: <sip:alice@192.0.2.20:5060;transport=tcp>";
    let call = invite(1, "-")
        .without("Contact: <sip:alice@192.0.2.20:5060>")
        .extra(contact)
        .via(&tcp("i1"));
    let usage = solo.rung(&call);
    solo.endpoint
        .accept(solo.now, usage, Vec::new(), None)
        .expect("open");
    let ok = solo.one();
    let ours = ok
        .contacts()
        .next()
        .expect("there")
        .expect("ours")
        .uri
        .to_owned();
    assert_eq!(ours, "sip:1001@192.0.2.1:5060;transport=tcp");
    solo.hears(&request("ACK", 1, "-").via(&tcp("a1")).within(&ok));
    event!(solo, Event::Acked { .. } => ());
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let bye = solo.one();
    assert_eq!(bye.transmit.transport, Transport::Tcp);
    assert_eq!(bye.transmit.connection, Some(7));
    assert_eq!(bye.transmit.remote, address("192.0.2.20:5060"));
    assert_eq!(bye.top_via().expect("ours").transport, "TCP");
    solo.drained();
}

#[test]
fn the_uri_names_transport_and_address() {
    let rows = [
        ("sip:bob@192.0.2.20", Transport::Udp, "192.0.2.20:5060"),
        ("sip:bob@192.0.2.20:5099", Transport::Udp, "192.0.2.20:5099"),
        (
            "sip:bob@192.0.2.20;transport=tcp",
            Transport::Tcp,
            "192.0.2.20:5060",
        ),
        (
            "sip:bob@192.0.2.20:5099;transport=UDP",
            Transport::Udp,
            "192.0.2.20:5099",
        ),
    ];
    for (uri, transport, remote) in rows {
        let mut solo = Solo::new();
        let call = Invite {
            request_uri: uri.to_owned(),
            ..outgoing()
        };
        let (_, sent) = solo.calls_with(call);
        assert_eq!(sent.transmit.transport, transport, "{uri}");
        assert_eq!(sent.transmit.remote, address(remote), "{uri}");
        let via = sent.top_via().expect("ours");
        assert_eq!(via.transport, transport.as_str(), "{uri}");
        assert!(
            via.magic_branch().is_some() && via.rport() == Some(None),
            "{uri}"
        );
        solo.drained();
    }
    for uri in [
        "sip:bob@[2001:db8::2]",
        "sips:bob@192.0.2.20",
        "tel:+15551234",
        "sip:bob@",
    ] {
        let mut solo = Solo::new();
        let call = Invite {
            request_uri: uri.to_owned(),
            ..outgoing()
        };
        assert!(solo.endpoint.invite(solo.now, call).is_err(), "{uri}");
        assert_eq!(solo.endpoint.counts(), sip::Counts::default(), "{uri}");
    }
}

#[test]
fn routes_lead_and_a_next_hop_leads_over_all() {
    let mut solo = Solo::new();
    let route = vec!["<sip:192.0.2.30:5065;lr>".to_owned()];
    let (_, sent) = solo.calls_with(Invite {
        route: route.clone(),
        ..outgoing()
    });
    assert_eq!(sent.transmit.remote, address("192.0.2.30:5065"));
    assert_eq!(sent.header(Name::Route), Some("<sip:192.0.2.30:5065;lr>"));
    assert_eq!(sent.request_uri(), Some("sip:bob@192.0.2.20"));
    let next_hop = Some((Transport::Tcp, address("192.0.2.40:5070")));
    let request_uri = "sip:bob@nowhere.invalid".to_owned();
    let call = Invite {
        route,
        next_hop,
        request_uri,
        ..outgoing()
    };
    let (usage, sent) = solo.calls_with(call);
    assert_eq!(sent.transmit.transport, Transport::Tcp);
    assert_eq!(sent.transmit.remote, address("192.0.2.40:5070"));
    // CANCEL and the ACK of a refusal go the way of the INVITE.
    solo.hears(&response(&sent, 180));
    solo.events();
    solo.endpoint.cancel(solo.now, usage, Vec::new());
    solo.hears(&response(&sent, 487));
    for message in solo.sent() {
        assert_eq!(
            message.transmit.remote,
            address("192.0.2.40:5070"),
            "{message:?}"
        );
        assert_eq!(
            message.header(Name::Route),
            sent.header(Name::Route),
            "{message:?}"
        );
    }
    solo.events();
    solo.drained();
}

#[test]
fn a_strict_first_route_takes_the_request_uri() {
    let mut solo = Solo::new();
    let route = vec![
        "<sip:192.0.2.30:5065>".to_owned(),
        "<sip:192.0.2.31;lr>".to_owned(),
    ];
    let (_, sent) = solo.calls_with(Invite {
        route,
        ..outgoing()
    });
    assert_eq!(sent.request_uri(), Some("sip:192.0.2.30:5065"));
    let routes: Vec<&str> = sent.values(Name::Route).collect();
    assert_eq!(routes, ["<sip:192.0.2.31;lr>", "<sip:bob@192.0.2.20>"]);
    assert_eq!(sent.transmit.remote, address("192.0.2.30:5065"));
    solo.drained();
}

#[test]
fn a_host_name_is_looked_up_first() {
    let mut solo = Solo::new();
    let request_uri = "sip:bob@example.com:5080".to_owned();
    let call = Invite {
        request_uri,
        ..outgoing()
    };
    let usage = solo
        .endpoint
        .invite(solo.now, call.clone())
        .expect("possible");
    solo.quiet();
    let resolve = solo.endpoint.poll_resolve().expect("a name");
    assert_eq!(
        (resolve.host.as_str(), resolve.port),
        ("example.com", Some(5080))
    );
    let found = vec![(Transport::Udp, address("192.0.2.20:5080"))];
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Ok(found.clone()));
    let sent = solo.one();
    assert_eq!(sent.transmit.remote, address("192.0.2.20:5080"));
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Ok(found));
    solo.quiet();
    solo.hears(&answer(&sent));
    solo.endpoint.ack(solo.now, usage, None);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.events();
    solo.sent();
    for outcome in [Err(ResolveError), Ok(Vec::new())] {
        let usage = solo
            .endpoint
            .invite(solo.now, call.clone())
            .expect("possible");
        let resolve = solo.endpoint.poll_resolve().expect("a name");
        solo.endpoint.handle_resolved(solo.now, resolve.id, outcome);
        event!(solo, Event::Refused { usage: own, failure: Failure::Unresolved, .. } => {
            assert_eq!(own, usage);
        });
    }
    solo.drained();
}

#[test]
fn a_contact_with_a_host_name_is_looked_up_once_for_each_request() {
    let mut solo = Solo::new();
    let (usage, call) = solo.calls();
    let ok = response(&call, 200).extra("Contact: <sip:bob@phone.example.com>");
    solo.hears(&ok);
    event!(solo, Event::Answered { .. } => ());
    solo.endpoint.ack(solo.now, usage, None);
    solo.quiet();
    let resolve = solo.endpoint.poll_resolve().expect("for the ACK");
    solo.hears(&ok);
    solo.quiet();
    assert!(
        solo.endpoint.poll_resolve().is_none(),
        "the ACK is under way"
    );
    let found = vec![(Transport::Udp, address("192.0.2.20:5060"))];
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Ok(found));
    let ack = solo.one();
    assert_eq!(
        (ack.kind().as_str(), ack.transmit.remote),
        ("ACK", address("192.0.2.20:5060"))
    );
    solo.hears(&ok);
    assert_eq!(solo.one().transmit.bytes, ack.transmit.bytes);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let resolve = solo.endpoint.poll_resolve().expect("for the BYE");
    solo.endpoint
        .handle_resolved(solo.now, resolve.id, Err(ResolveError));
    event!(solo, Event::Ended { .. } => ());
    solo.drained();
}

#[test]
fn a_transport_that_fails_fails_what_waits_for_it() {
    let mut solo = Solo::new();
    let failed = |port: u16| FailedFlow {
        transport: Transport::Udp,
        remote: address(&format!("192.0.2.20:{port}")),
    };
    let (usage, _) = solo.calls();
    solo.endpoint.handle_flow_failed(solo.now, &failed(5999));
    solo.quiet();
    solo.endpoint.handle_flow_failed(solo.now, &failed(5060));
    event!(solo, Event::Refused { usage: own, failure: Failure::Transport, .. } => {
        assert_eq!(own, usage);
    });
    // A BYE that cannot be delivered ends the call all the same.
    let (usage, _, _) = solo.calls_answered(&[]);
    solo.endpoint.bye(solo.now, usage, Vec::new());
    solo.sent();
    solo.endpoint.handle_flow_failed(solo.now, &failed(5070));
    event!(solo, Event::Ended { usage: own } => assert_eq!(own, usage));
    solo.drained();
}

#[test]
fn we_name_the_listener_that_the_peer_uses() {
    let listener = |local: &str, advertised: Option<(&str, u16)>| Listener {
        transport: Transport::Udp,
        local: address(local),
        advertised: advertised.map(|(host, port)| (host.to_owned(), port)),
    };
    let listeners = vec![
        listener("192.0.2.1:5060", None),
        listener("10.0.0.1:5060", Some(("sip.example.com", 5060))),
        listener("[2001:db8::1]:5060", None),
    ];
    let mut solo = Solo::with(Config {
        listeners,
        ..config()
    });
    solo.flow.local = address("10.0.0.1:5060");
    let (usage, ok) = solo.answered(&invite(1, "i1"));
    assert_eq!(ok.transmit.local, Some(address("10.0.0.1:5060")));
    let contact = ok
        .contacts()
        .next()
        .expect("there")
        .expect("ours")
        .uri
        .to_owned();
    assert_eq!(contact, "sip:1001@sip.example.com:5060");
    solo.endpoint.bye(solo.now, usage, Vec::new());
    let bye = solo.one();
    assert_eq!(bye.transmit.local, Some(address("10.0.0.1:5060")));
    assert_eq!(
        bye.top_via().expect("ours").host,
        Host::Name("sip.example.com")
    );
    let request_uri = "sip:bob@[2001:db8::2]".to_owned();
    let (_, sent) = solo.calls_with(Invite {
        request_uri,
        ..outgoing()
    });
    assert_eq!(sent.transmit.local, Some(address("[2001:db8::1]:5060")));
    let contact = sent
        .contacts()
        .next()
        .expect("there")
        .expect("ours")
        .uri
        .to_owned();
    assert_eq!(contact, "sip:1001@[2001:db8::1]:5060");
    solo.drained();
}

#[test]
fn responses_that_match_nothing_are_dropped() {
    let mut solo = Solo::new();
    let (_, call) = solo.calls();
    let rows = [
        response(&call, 200).via("SIP/2.0/UDP 192.0.2.1:5060;branch=z9hG4bKother"),
        response(&call, 200).cseq("1 BYE"),
        response(&call, 200).via("SIP/2.0/UDP 192.0.2.1:5060"),
    ];
    for row in rows {
        solo.hears(&row.extra("Contact: <sip:bob@192.0.2.20>"));
        solo.quiet();
    }
    solo.hears(&response(&call, 404));
    assert_eq!(kinds(&solo.sent()), ["ACK"]);
    event!(solo, Event::Refused { failure: Failure::Response(404), .. } => ());
    solo.drained();
}
