//! The rules that RFC 5118 exercises, each with a message of our own, named by the RFC's section.

mod common;

use std::net::IpAddr;

use common::{Verdict, altered, datagram, judge};
use sip::{Host, Refusal, Uri};

fn v6(text: &str) -> Host<'static> {
    Host::V6(text.parse().expect("the test's own address"))
}

fn with_uri(uri: &str) -> Vec<u8> {
    altered("sip:desk@tandem.example SIP", &format!("{uri} SIP"))
}

#[test]
fn rfc5118_4_1_ipv6_reference() {
    let bytes = with_uri("sip:[2001:db8::77]");
    assert_eq!(judge(&bytes), Verdict::Taken);
    let message = datagram(&bytes).unwrap();
    let uri = Uri::parse(message.request_uri().unwrap()).unwrap();
    assert_eq!(
        (uri.user(), uri.host(), uri.port()),
        (None, Some(v6("2001:db8::77")), None)
    );
}

#[test]
fn rfc5118_4_2_ipv6_without_brackets() {
    assert_eq!(
        judge(&with_uri("sip:2001:db8::77")),
        Verdict::Refused(Refusal::RequestUri, 400)
    );
    assert_eq!(
        judge(&with_uri("sip:[2001:db8::77")),
        Verdict::Refused(Refusal::RequestUri, 400)
    );
}

#[test]
fn rfc5118_4_3_what_looks_like_a_port_is_address() {
    let uri = Uri::parse("sip:[2001:db8::77:5070]").unwrap();
    assert_eq!(
        (uri.host(), uri.port()),
        (Some(v6("2001:db8::77:5070")), None)
    );
}

#[test]
fn rfc5118_4_4_port_after_the_brackets() {
    let uri = Uri::parse("sip:ann@[2001:db8::77]:5070;lr").unwrap();
    assert_eq!(
        (uri.user(), uri.host(), uri.port(), uri.lr()),
        (Some("ann"), Some(v6("2001:db8::77")), Some(5070), true)
    );
}

#[test]
fn rfc5118_4_5_received_with_and_without_brackets() {
    for received in ["2001:db8::9:ff", "[2001:db8::9:ff]"] {
        let bytes = altered(
            "198.51.100.4:5062",
            &format!("[2001:db8::9:1]:5062;received={received}"),
        );
        assert_eq!(judge(&bytes), Verdict::Taken);
        let message = datagram(&bytes).unwrap();
        let via = message.top_via().unwrap();
        assert_eq!((via.host, via.port), (v6("2001:db8::9:1"), Some(5062)));
        assert_eq!(
            via.received(),
            Some(IpAddr::V6("2001:db8::9:ff".parse().unwrap()))
        );
        assert_eq!(via.magic_branch(), Some("z9hG4bKq7"));
    }
}

#[test]
fn rfc5118_4_6_ipv6_in_sdp_is_body() {
    let body = "v=0\r\no=a 1 1 IN IP6 2001:db8::20\r\nc=IN IP6 2001:db8::20\r\n";
    let mut bytes = altered(
        "Content-Length: 0",
        &format!("c: application/sdp\r\nContent-Length: {}", body.len()),
    );
    bytes.extend_from_slice(body.as_bytes());
    assert_eq!(datagram(&bytes).unwrap().sdp_body(), Some(body.as_bytes()));
}

#[test]
fn rfc5118_4_7_both_families_in_vias() {
    let bytes = altered(
        "From",
        "Via: SIP/2.0/UDP [2001:db8::9:1]:6050;branch=z9hG4bKa, SIP/2.0/TCP [2001:db8::9:2];received=192.0.2.200\r\nFrom",
    );
    let message = datagram(&bytes).unwrap();
    assert_eq!(message.check_request(), Ok(()));
    let hosts: Vec<_> = message
        .vias()
        .map(|v| v.unwrap())
        .map(|v| (v.host, v.port, v.received()))
        .collect();
    let received = Some(IpAddr::from([192, 0, 2, 200]));
    assert_eq!(
        hosts[1..],
        [
            (v6("2001:db8::9:1"), Some(6050), None),
            (v6("2001:db8::9:2"), None, received)
        ]
    );
}

#[test]
fn rfc5118_4_8_both_families_in_sdp_is_body() {
    let body = "v=0\r\nm=audio 1 RTP/AVP 0\r\nc=IN IP4 192.0.2.1\r\nm=video 2 RTP/AVP 107\r\nc=IN IP6 2001:db8::1\r\n";
    let mut bytes = altered("Content-Length: 0", "c: Application/SDP");
    bytes.extend_from_slice(body.as_bytes());
    assert_eq!(datagram(&bytes).unwrap().sdp_body(), Some(body.as_bytes()));
}

#[test]
fn rfc5118_4_9_ipv4_mapped() {
    let bytes = altered("198.51.100.4:5062", "[::ffff:192.0.2.10]:19823");
    let message = datagram(&bytes).unwrap();
    let via = message.top_via().unwrap();
    assert_eq!((via.host, via.port), (v6("::ffff:192.0.2.10"), Some(19823)));
    let source = "192.0.2.10:19823".parse().unwrap();
    assert!(
        !via.stamped(source).contains("received"),
        "mapped and plain are one address"
    );
}

#[test]
fn rfc5118_4_10_three_colons_are_read_as_two() {
    for uri in [
        "sip:ann@[2001:db8:::192.0.2.1]",
        "sip:ann@[2001:db8::192.0.2.1]",
    ] {
        assert_eq!(judge(&with_uri(uri)), Verdict::Taken);
        assert_eq!(
            Uri::parse(uri).unwrap().host(),
            Some(v6("2001:db8::192.0.2.1"))
        );
    }
    assert!(Uri::parse("sip:ann@[2001::::1]").is_err());
    assert!(Uri::parse("sip:ann@[2001:::1:::1]").is_err());
}
