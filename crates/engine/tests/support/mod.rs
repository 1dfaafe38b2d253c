//! What the engine's tests share: a network of queues, specifications, packets.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use audio::Registry;
use engine::{EngineCommand, PacketIo};
use media::command::{LegSpec, MediaEvent, PayloadFormat, PortId, Program, SessionId, SessionSpec};

/// A datagram of the fake network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Datagram {
    pub port: PortId,
    pub peer: SocketAddr,
    pub octets: Vec<u8>,
}

/// Everything that a shard sees of the world.
#[derive(Debug, Default)]
pub struct World {
    pub incoming: VecDeque<Datagram>,
    pub sent: Vec<Datagram>,
    pub attached: BTreeSet<u32>,
    /// Ports that can't be attached.
    pub refused: BTreeSet<u32>,
    pub flushes: u64,
}

/// A [`PacketIo`] over a [`World`] that the test looks at.
#[derive(Clone, Default)]
pub struct FakeIo(Arc<Mutex<World>>);

impl FakeIo {
    pub fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    pub fn arrive(&self, port: u32, peer: SocketAddr, octets: Vec<u8>) {
        self.world().incoming.push_back(Datagram {
            port: PortId(port),
            peer,
            octets,
        });
    }

    pub fn take_sent(&self) -> Vec<Datagram> {
        std::mem::take(&mut self.world().sent)
    }
}

impl PacketIo for FakeIo {
    fn attach(&mut self, port: PortId) -> io::Result<()> {
        let mut world = self.world();
        if world.refused.contains(&port.0) {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        assert!(world.attached.insert(port.0), "attached twice: {port:?}");
        Ok(())
    }

    fn detach(&mut self, port: PortId) {
        assert!(
            self.world().attached.remove(&port.0),
            "not attached: {port:?}"
        );
    }

    fn receive(&mut self, sink: &mut dyn FnMut(PortId, SocketAddr, &mut [u8])) {
        let incoming = std::mem::take(&mut self.world().incoming);
        for mut datagram in incoming {
            sink(datagram.port, datagram.peer, &mut datagram.octets);
        }
    }

    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]) {
        self.world().sent.push(Datagram {
            port,
            peer: to,
            octets: packet.to_vec(),
        });
    }

    fn flush(&mut self) {
        self.world().flushes += 1;
    }
}

/// Both laws.
pub fn registry() -> Arc<Registry> {
    let mut registry = Registry::new();
    registry.register(Box::new(g711::Pcma));
    registry.register(Box::new(g711::Pcmu));
    Arc::new(registry)
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Where the peer of a port lives.
pub fn peer(port: u32) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], 20_000 + port as u16))
}

/// A leg on a port; `payload_type` 8 is A-law, 0 is mu-law, 96 is whatever `name` says.
pub fn leg(port: u32, name: &str, payload_type: u8) -> LegSpec {
    LegSpec {
        port: PortId(port),
        remote: Some(peer(port)),
        format: PayloadFormat {
            name: name.to_owned(),
            clock_rate: 8000,
            channels: 1,
            payload_type,
            recv_payload_type: payload_type,
            fmtp: None,
            params: Vec::new(),
        },
        also: Vec::new(),
        ptime_ms: 20,
        dtmf_send: None,
        dtmf_recv: None,
        cn_send: None,
        cn_recv: None,
        send: true,
        receive: true,
    }
}

/// A-law on both ports.
pub fn bridge(a: u32, b: u32) -> SessionSpec {
    SessionSpec {
        legs: [Some(leg(a, "PCMA", 8)), Some(leg(b, "PCMA", 8))],
        program: Program::Bridge,
    }
}

/// A sine to leg A.
pub fn tone(port: u32) -> SessionSpec {
    SessionSpec {
        legs: [Some(leg(port, "PCMA", 8)), None],
        program: Program::Tone {
            hz: 1004.0,
            level_dbm0: 0.0,
        },
    }
}

pub fn start(session: u64, spec: SessionSpec) -> EngineCommand {
    EngineCommand::Start {
        session: SessionId(session),
        spec,
        clip: None,
        tap: None,
    }
}

pub fn stop(session: u64) -> EngineCommand {
    EngineCommand::Stop {
        session: SessionId(session),
    }
}

/// An RTP packet of 160 octets (RFC 3550, 5.1).
pub fn rtp(payload_type: u8, sequence: u16, octet: u8) -> Vec<u8> {
    let mut packet = vec![0x80, payload_type];
    packet.extend(sequence.to_be_bytes());
    packet.extend((u32::from(sequence) * 160).to_be_bytes());
    packet.extend(0x1234_5678_u32.to_be_bytes());
    packet.extend([octet; 160]);
    packet
}

/// One letter per kind of event, and its session.
pub fn summary(event: &MediaEvent) -> (char, u64) {
    match event {
        MediaEvent::Started { session } => ('+', session.0),
        MediaEvent::Stopped { session, .. } => ('-', session.0),
        MediaEvent::Failed { session, .. } => ('!', session.0),
        MediaEvent::SourceLearned { session, .. } => ('s', session.0),
        other => panic!("unexpected: {other:?}"),
    }
}
