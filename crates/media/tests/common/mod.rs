//! Sessions, packets and an outbox for the tests of this crate.
#![allow(dead_code, reason = "each test program uses a part of it")]
#![allow(unreachable_pub, reason = "shared by several test programs")]

pub mod codecs;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use audio::Registry;
use audio::clip::Clip;
use media::command::{
    LegSpec, LegStats, MediaEvent, PayloadFormat, PortId, Program, SessionId, SessionSpec, Side,
};
use media::{Outbox, Session};
use rtp::{Fields, HEADER_BYTES, Header};

pub const PCMU: u8 = 0;
pub const PCMA: u8 = 8;
pub const DTMF: u8 = 101;

pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.register(Box::new(g711::Pcma));
    registry.register(Box::new(g711::Pcmu));
    for codec in codecs::all() {
        registry.register(Box::new(codec));
    }
    registry
}

/// The address of a leg's peer.
pub fn peer(side: Side) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 10 + side.index() as u8], 4_000))
}

pub fn port(side: Side) -> PortId {
    PortId(side.index() as u32 + 1)
}

pub fn leg(side: Side, payload_type: u8) -> LegSpec {
    LegSpec {
        port: port(side),
        remote: Some(peer(side)),
        format: PayloadFormat {
            name: if payload_type == PCMU { "PCMU" } else { "PCMA" }.to_owned(),
            clock_rate: 8_000,
            channels: 1,
            payload_type,
            recv_payload_type: payload_type,
            fmtp: None,
            params: Vec::new(),
        },
        also: Vec::new(),
        ptime_ms: 20,
        dtmf_send: Some(DTMF),
        dtmf_recv: Some(DTMF),
        cn_send: None,
        cn_recv: None,
        send: true,
        receive: true,
    }
}

/// A leg in a codec of `codecs`, under a number that is its own.
pub fn leg_in(side: Side, (name, clock_rate, channels): (&str, u32, u8)) -> LegSpec {
    let mut leg = leg(side, number(name));
    leg.format.name = name.to_owned();
    leg.format.clock_rate = clock_rate;
    leg.format.channels = channels;
    leg
}

/// The payload number of a codec here.
pub fn number(name: &str) -> u8 {
    match name {
        "PCMU" => PCMU,
        "PCMA" => PCMA,
        name => 96 + name.as_bytes()[0] % 4,
    }
}

pub fn bridge(a: u8, b: u8) -> SessionSpec {
    let legs = [Some(leg(Side::A, a)), Some(leg(Side::B, b))];
    SessionSpec {
        legs,
        program: Program::Bridge,
    }
}

pub fn single(payload_type: u8, program: Program) -> SessionSpec {
    SessionSpec {
        legs: [Some(leg(Side::A, payload_type)), None],
        program,
    }
}

/// A packet as it left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sent {
    pub at: Duration,
    pub port: PortId,
    pub to: SocketAddr,
    pub fields: Fields,
    pub payload: Vec<u8>,
}

/// A session, its clock, and what it has sent.
pub struct Bench {
    pub session: Session,
    pub epoch: Instant,
    pub now: Instant,
    pub sent: Vec<Sent>,
}

struct Capture<'a> {
    at: Duration,
    sent: &'a mut Vec<Sent>,
}

impl Outbox for Capture<'_> {
    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]) {
        let header = Header::read(packet).expect("what we send is RTP");
        assert_eq!(packet[0], 0x80, "no padding, extension or sources");
        let payload = header.payload(packet).to_vec();
        self.sent.push(Sent {
            at: self.at,
            port,
            to,
            fields: header.fields,
            payload,
        });
    }
}

#[expect(clippy::disallowed_methods, reason = "a test begins now")]
pub fn epoch() -> Instant {
    Instant::now()
}

impl Bench {
    pub fn new(spec: &SessionSpec) -> Self {
        Self::with_clip(spec, None)
    }

    pub fn with_clip(spec: &SessionSpec, clip: Option<Clip>) -> Self {
        let epoch = epoch();
        let session = Session::new(SessionId(7), spec, &registry(), clip, 42, epoch);
        Self {
            session: session.expect("a valid specification"),
            epoch,
            now: epoch,
            sent: vec![],
        }
    }

    pub fn advance(&mut self, ms: u64) {
        self.now += Duration::from_millis(ms);
    }

    pub fn at(&self) -> Duration {
        self.now - self.epoch
    }

    /// A packet comes in now.
    pub fn receive(&mut self, side: Side, packet: &[u8]) {
        self.receive_from(side, peer(side), packet);
    }

    pub fn receive_from(&mut self, side: Side, from: SocketAddr, packet: &[u8]) {
        let at = self.at();
        let mut capture = Capture {
            at,
            sent: &mut self.sent,
        };
        self.session
            .handle_packet(self.now, side, from, &mut packet.to_vec(), &mut capture);
    }

    /// Lets time pass, serving every deadline when it is due.
    pub fn run_for(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while let Some(due) = self.session.poll_timeout().filter(|due| *due <= end) {
            self.now = self.now.max(due);
            self.tick();
        }
        self.now = end;
    }

    /// Serves what is due now.
    pub fn tick(&mut self) {
        let at = self.at();
        let mut capture = Capture {
            at,
            sent: &mut self.sent,
        };
        self.session.handle_timeout(self.now, &mut capture);
    }

    pub fn update(&mut self, spec: &SessionSpec) {
        self.session
            .update(self.now, spec)
            .expect("a valid specification");
    }

    pub fn take(&mut self) -> Vec<Sent> {
        std::mem::take(&mut self.sent)
    }

    pub fn events(&mut self) -> Vec<MediaEvent> {
        std::iter::from_fn(|| self.session.poll_event()).collect()
    }

    pub fn stats(&self, side: Side) -> LegStats {
        self.session.stats()[side.index()]
    }
}

/// A peer's stream.
#[derive(Clone, Debug)]
pub struct Talker {
    pub fields: Fields,
    pub units: u32,
    count: u8,
}

impl Talker {
    pub fn new(payload_type: u8) -> Self {
        let fields = Fields {
            marker: false,
            payload_type,
            sequence: 65_530,
            timestamp: u32::MAX - 500,
            ssrc: 0x1111_2222,
        };
        Self {
            fields,
            units: 160,
            count: 0,
        }
    }

    /// The next packet, its payload different from the one before.
    pub fn next(&mut self) -> Vec<u8> {
        self.count = self.count.wrapping_add(1);
        let payload: Vec<u8> = (0..self.units)
            .map(|n| (n as u8).wrapping_mul(7) ^ self.count)
            .collect();
        let bytes = packet(&self.fields, &payload);
        self.fields.sequence = self.fields.sequence.wrapping_add(1);
        self.fields.timestamp = self.fields.timestamp.wrapping_add(self.units);
        bytes
    }
}

pub fn packet(fields: &Fields, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; HEADER_BYTES];
    fields.write(packet.first_chunk_mut().expect("twelve octets"));
    packet.extend_from_slice(payload);
    packet
}

pub fn payload(packet: &[u8]) -> &[u8] {
    Header::read(packet)
        .expect("a packet of ours")
        .payload(packet)
}

/// One SSRC, one destination, numbers one after the other, timestamps that never go back.
pub fn assert_continuous(sent: &[Sent]) {
    for pair in sent.windows(2) {
        let [before, after] = pair else {
            unreachable!("windows of two")
        };
        assert_eq!(after.fields.ssrc, before.fields.ssrc, "SSRC changed");
        let step = after.fields.sequence.wrapping_sub(before.fields.sequence);
        assert_eq!(
            step, 1,
            "sequence {} to {}",
            before.fields.sequence, after.fields.sequence
        );
        let ahead = rtp::timestamp_delta(after.fields.timestamp, before.fields.timestamp);
        assert!(ahead >= 0, "timestamp went back by {}", -ahead);
    }
}
