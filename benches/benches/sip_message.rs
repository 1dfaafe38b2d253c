//! What does one SIP message cost: to index, to check as a request, to read what routing needs,
//! and to print? The floor is 0.27 us to index and 0.11 us to print an INVITE of 932 octets
//! (spans by hand); other crates take 2 to 5.5 us.
//!
//! Run: `cargo bench -p tandem-benches --bench sip_message`
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use sip::{Framing, Limits, Message, Name, Writer};

/// An INVITE as SIPp and most phones send it, 932 octets with its description.
fn invite() -> Vec<u8> {
    let description = "v=0\r\no=user1 53655765 2353687637 IN IP4 192.0.2.10\r\ns=-\r\nc=IN IP4 192.0.2.10\r\n\
        t=0 0\r\nm=audio 16384 RTP/AVP 8 0 97 101\r\na=rtpmap:8 PCMA/8000\r\na=rtpmap:0 PCMU/8000\r\n\
        a=rtpmap:97 speex/8000\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\na=ptime:20\r\n\
        a=sendrecv\r\n";
    Writer::request("INVITE", "sip:service@192.0.2.1:5060")
        .header(
            Name::Via,
            "SIP/2.0/UDP 192.0.2.10:5070;rport;branch=z9hG4bK-8121-1-0-7c4f1e2ab99d4d",
        )
        .header(
            Name::Via,
            "SIP/2.0/UDP 192.0.2.11:5060;branch=z9hG4bK-77aa-2",
        )
        .header(
            Name::From,
            "\"Alice Example\" <sip:alice@192.0.2.10:5070>;tag=8121SIPpTag001",
        )
        .header(Name::To, "<sip:service@192.0.2.1:5060>")
        .header(Name::CallId, "1-8121@192.0.2.10")
        .header(Name::CSeq, "1 INVITE")
        .header(Name::Contact, "<sip:alice@192.0.2.10:5070;transport=udp>")
        .header(Name::MaxForwards, 70)
        .header(Name::Allow, "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO")
        .header_named("User-Agent", "bench")
        .body("application/sdp", description.as_bytes())
}

fn bench(c: &mut Criterion) {
    let bytes = invite();
    let limits = Limits::default();
    let mut group = c.benchmark_group("sip_message");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("index", |b| {
        b.iter(|| Message::parse(black_box(bytes.as_slice()), Framing::Datagram, &limits).is_ok());
    });
    let message =
        Message::parse(bytes.as_slice(), Framing::Datagram, &limits).expect("it is valid");
    group.bench_function("check_request", |b| {
        b.iter(|| black_box(&message).check_request().is_ok())
    });
    group.bench_function("read_routing", |b| {
        b.iter(|| {
            let message = black_box(&message);
            let via = message.top_via().is_ok();
            let tags = (message.from().is_ok(), message.to().is_ok());
            (via, tags, message.cseq().is_ok(), message.call_id().is_ok())
        });
    });
    group.bench_function("print", |b| b.iter(|| black_box(invite())));
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
