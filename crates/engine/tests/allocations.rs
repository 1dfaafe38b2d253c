//! A tick in which packets pass allocates nothing: counted by the allocator.

mod support;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use audio::tap::tap;
use engine::{EngineCommand, PacketIo, Shard};
use media::command::{PortId, Program, SessionId, SessionSpec};
use support::*;

/// Peers that each send one packet every fourth tick, without an allocation of their own.
struct Steady {
    streams: Vec<(PortId, SocketAddr, Vec<u8>)>,
    tick: u64,
    sent: Arc<AtomicU64>,
}

impl PacketIo for Steady {
    fn attach(&mut self, _: PortId) -> io::Result<()> {
        Ok(())
    }

    fn detach(&mut self, _: PortId) {}

    fn receive(&mut self, sink: &mut dyn FnMut(PortId, SocketAddr, &mut [u8])) {
        self.tick += 1;
        let mut packet = [0; 172];
        for (index, (port, peer, model)) in self.streams.iter().enumerate() {
            if index as u64 % 4 == self.tick % 4 {
                let sequence = (self.tick / 4) as u16;
                packet.copy_from_slice(model);
                packet[2..4].copy_from_slice(&sequence.to_be_bytes());
                packet[4..8].copy_from_slice(&(u32::from(sequence) * 160).to_be_bytes());
                sink(*port, *peer, &mut packet);
            }
        }
    }

    fn send(&mut self, _: PortId, _: SocketAddr, packet: &[u8]) {
        assert_eq!(packet.len(), 172);
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    fn flush(&mut self) {}
}

#[test]
fn steady_ticks_allocate_nothing() {
    const SESSIONS: u32 = 60;
    let sent = Arc::new(AtomicU64::new(0));
    let specs: Vec<SessionSpec> = (0..SESSIONS)
        .map(|id| {
            let (a, b) = (2 * id, 2 * id + 1);
            match id % 6 {
                // Relayed, converted by table, echoed at once and later, made by ourselves.
                0 | 1 => bridge(a, b),
                2 => SessionSpec {
                    legs: [Some(leg(a, "PCMA", 8)), Some(leg(b, "PCMU", 0))],
                    program: Program::Bridge,
                },
                3 => single(a, Program::Echo { delay: ms(0) }),
                4 => single(a, Program::Echo { delay: ms(500) }),
                _ => tone(a),
            }
        })
        .collect();
    let streams = specs
        .iter()
        .flat_map(|spec| spec.legs.iter().flatten())
        .map(|leg| {
            let model = rtp(leg.format.payload_type, 0, 0x55);
            (leg.port, peer(leg.port.0), model)
        })
        .collect();
    let io = Steady {
        streams,
        tick: 0,
        sent: Arc::clone(&sent),
    };
    let mut shard = Shard::new(Box::new(io), registry(), 1);
    let begin = Instant::now();
    let mut readers = Vec::new();
    for (id, spec) in (0..).zip(specs) {
        // Every other session is being recorded.
        let (writer, reader) = tap(64);
        readers.push(reader);
        let tap = (id % 2 == 0).then_some(writer);
        let session = SessionId(id);
        shard.handle_command(
            begin,
            EngineCommand::Start {
                session,
                spec,
                clip: None,
                tap,
            },
        );
    }
    let mut now = begin;
    let mut run = |ticks| {
        let before = sent.load(Ordering::Relaxed);
        for _ in 0..ticks {
            now += ms(5);
            shard.tick(now);
            for reader in &mut readers {
                reader.pop(|_| {});
            }
        }
        sent.load(Ordering::Relaxed) - before
    };
    // Two seconds to grow to the usual size, ten to be counted.
    run(400);
    let known = allocation_counter::measure(|| drop(std::hint::black_box(vec![0; 9])));
    assert_eq!(known.count_total, 1, "the counter counts");
    let mut packets = 0;
    let counted = allocation_counter::measure(|| packets = run(2000));
    assert!(packets > 30_000, "{packets} packets");
    assert_eq!(
        counted.count_total, 0,
        "allocations during {packets} packets"
    );
    while shard.poll_event().is_some() {}
}

fn single(port: u32, program: Program) -> SessionSpec {
    SessionSpec {
        legs: [Some(leg(port, "PCMA", 8)), None],
        program,
    }
}
