//! What does one packet of 20 ms cost in a media session, sockets apart: relayed as it is, through
//! the table of G.711 from law to law, and repacketised through a decoder and an encoder?
//!
//! Run: `cargo bench -p tandem-benches --bench media_path`
#![allow(missing_docs, reason = "criterion's macros make undocumented items")]

use std::hint::black_box;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use media::command::{LegSpec, PayloadFormat, PortId, Program, SessionId, SessionSpec, Side};
use media::{Outbox, Session};

/// Counts what is sent, so that nothing is optimised away.
#[derive(Default)]
struct Sink(u64);

impl Outbox for Sink {
    fn send(&mut self, _port: PortId, _to: SocketAddr, packet: &[u8]) {
        self.0 += black_box(packet).len() as u64;
    }
}

fn leg(port: u32, name: &str, payload_type: u8, ptime_ms: u32) -> LegSpec {
    LegSpec {
        port: PortId(port),
        remote: Some(peer(port)),
        format: PayloadFormat {
            name: name.to_owned(),
            clock_rate: 8_000,
            channels: 1,
            payload_type,
            recv_payload_type: payload_type,
            fmtp: None,
            params: Vec::new(),
        },
        also: Vec::new(),
        ptime_ms,
        dtmf_send: Some(101),
        dtmf_recv: Some(101),
        cn_send: None,
        cn_recv: None,
        send: true,
        receive: true,
    }
}

fn peer(port: u32) -> SocketAddr {
    SocketAddr::from((
        [192, 0, 2, 1],
        20_000 + u16::try_from(port).expect("a small number") * 2,
    ))
}

/// One direction of a bridged call; each call of the returned function is the next packet.
fn caller_speaks(callee: LegSpec) -> impl FnMut() -> u64 {
    let mut registry = audio::Registry::new();
    registry.register(Box::new(g711::Pcma));
    registry.register(Box::new(g711::Pcmu));
    let start = Instant::now();
    let spec = SessionSpec {
        legs: [Some(leg(0, "PCMA", 8, 20)), Some(callee)],
        program: Program::Bridge,
    };
    let mut session = Session::new(SessionId(1), &spec, &registry, None, 1, start)
        .expect("both codecs are there");
    let (mut sink, mut sequence, mut now) = (Sink::default(), 0_u16, start);
    let mut packet = [0xd5_u8; 172];
    move || {
        sequence = sequence.wrapping_add(1);
        now += Duration::from_millis(20);
        packet[0] = 0x80;
        packet[1] = 8;
        packet[2..4].copy_from_slice(&sequence.to_be_bytes());
        packet[4..8].copy_from_slice(&(u32::from(sequence) * 160).to_be_bytes());
        packet[8..12].copy_from_slice(&7_u32.to_be_bytes());
        session.handle_packet(now, Side::A, peer(0), &mut packet, &mut sink);
        if session.poll_timeout().is_some_and(|due| due <= now) {
            session.handle_timeout(now, &mut sink);
        }
        sink.0
    }
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("media_path");
    group.throughput(Throughput::Elements(1));
    let paths = [
        ("relay", leg(1, "PCMA", 8, 20)),
        ("law_table", leg(1, "PCMU", 0, 20)),
        ("transcode_20_to_10_ms", leg(1, "PCMU", 0, 10)),
    ];
    for (name, callee) in paths {
        let mut next = caller_speaks(callee);
        group.bench_function(name, |b| b.iter(&mut next));
        assert!(next() > 0, "{name}: nothing was sent");
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
