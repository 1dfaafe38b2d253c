//! One leg: what comes from its peer is checked and counted here, what goes to it is numbered and
//! sent here.
//!
//! ```text
//!  datagram -> RTP? -> payload number known? -> from the peer? -> fits its stream? -> taken?
//!               |not_rtp    |discarded           |strangers        |duplicates, late  |discarded
//! ```

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rtp::event::key;
use rtp::{
    Arrival, Event, EventTracker, ExtSeqNo, Fields, Header, Kind, Press, Reception, classify,
};

use crate::Outbox;
use crate::command::{LegSpec, LegStats, Side};
use crate::latch::{Latch, Verdict};
use crate::stream::OutStream;

/// After so long without a packet of an event, its end is taken as lost. Gaps of a second between
/// updates occur.
const EVENT_PATIENCE: Duration = Duration::from_secs(3);

/// Something to tell the call logic.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Notice {
    PlayFinished,
    Digit {
        side: Side,
        digit: char,
        duration_ms: u32,
    },
    Learned {
        side: Side,
        from: SocketAddr,
    },
}

/// Notices that wait to be fetched. What does not fit is left out: a peer that floods us must not
/// fill our memory.
#[derive(Debug)]
pub(crate) struct Notices(VecDeque<Notice>);

impl Notices {
    const CAPACITY: usize = 16;

    pub(crate) fn new() -> Self {
        Self(VecDeque::with_capacity(Self::CAPACITY))
    }

    pub(crate) fn push(&mut self, notice: Notice) {
        if self.0.len() < Self::CAPACITY {
            self.0.push_back(notice);
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Notice> {
        self.0.pop_front()
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    /// In the codec of the leg, or another that the peer may send.
    Audio,
    /// A description of comfort noise (RFC 3389).
    Comfort,
    Event,
    /// A number that was not negotiated: passed on to nobody.
    Unknown,
}

/// A packet of the peer's that may be used.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Inbound {
    pub(crate) header: Header,
    pub(crate) payload: Payload,
    pub(crate) number: ExtSeqNo,
    /// Newer than all before.
    pub(crate) newest: bool,
    /// The first of a stream.
    pub(crate) start: bool,
}

#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) side: Side,
    pub(crate) spec: LegSpec,
    pub(crate) out: OutStream,
    pub(crate) stats: LegStats,
    latch: Latch,
    reception: Reception,
    events: EventTracker,
    event_deadline: Option<Instant>,
    /// In units of the clock.
    jitter_max: u32,
}

impl Leg {
    pub(crate) fn new(side: Side, spec: LegSpec, mut out: OutStream) -> Self {
        out.set_format(spec.format.clock_rate, spec.ptime_ms);
        Self {
            side,
            latch: Latch::new(spec.remote),
            out,
            spec,
            stats: LegStats::default(),
            reception: Reception::new(),
            events: EventTracker::default(),
            event_deadline: None,
            jitter_max: 0,
        }
    }

    pub(crate) fn update(&mut self, spec: LegSpec) {
        self.latch.renegotiate(spec.remote);
        if spec.format.clock_rate != self.spec.format.clock_rate {
            self.reception.restart_timing();
        }
        self.out.set_format(spec.format.clock_rate, spec.ptime_ms);
        self.spec = spec;
    }

    /// Takes part in nothing until the next update; what was counted stays.
    pub(crate) fn park(&mut self) {
        self.spec.send = false;
        self.spec.receive = false;
    }

    /// Checks and counts one datagram. `None`: it is of no further use.
    pub(crate) fn handle_packet(
        &mut self,
        now: Instant,
        epoch: Instant,
        from: SocketAddr,
        packet: &[u8],
        notices: &mut Notices,
    ) -> Option<Inbound> {
        let (Kind::Rtp, Ok(header)) = (classify(packet), Header::read(packet)) else {
            self.stats.not_rtp += 1;
            return None;
        };
        let payload = self.payload(&header);
        if !self.is_peer(now, from, payload, notices) {
            self.stats.strangers += 1;
            return None;
        }
        let arrival = self.reception.handle_packet(&header.fields);
        let is_current = self.reception.ssrc() == Some(header.fields.ssrc);
        match arrival {
            Arrival::Duplicate => self.stats.duplicates += 1,
            Arrival::Jump => self.stats.discarded += 1,
            Arrival::Late if !is_current => self.stats.late += 1,
            _ => {
                self.stats.packets_received += 1;
                self.stats.bytes_received += header.payload_len() as u64;
                return self.take(now, epoch, header, payload, arrival, packet, notices);
            }
        }
        None
    }

    #[expect(clippy::too_many_arguments, reason = "the second half of one function")]
    fn take(
        &mut self,
        now: Instant,
        epoch: Instant,
        header: Header,
        payload: Payload,
        arrival: Arrival,
        packet: &[u8],
        notices: &mut Notices,
    ) -> Option<Inbound> {
        let fields = &header.fields;
        match payload {
            Payload::Audio => {
                let arrived = now.saturating_duration_since(epoch);
                let clock_rate = self.spec.format.clock_rate;
                // Timestamps of another clock tell nothing about the delay of these.
                if self.spec.clock_rate_of(fields.payload_type) == clock_rate {
                    self.reception
                        .handle_timing(fields.timestamp, arrived, clock_rate);
                    self.jitter_max = self.jitter_max.max(self.reception.jitter());
                }
            }
            Payload::Event => self.handle_event(now, &header, packet, notices),
            Payload::Comfort => {}
            Payload::Unknown => self.stats.discarded += 1,
        }
        if !self.spec.receive {
            self.stats.discarded += u64::from(payload != Payload::Unknown);
            return None;
        }
        Some(Inbound {
            header,
            payload,
            number: self.reception.extend(fields.sequence),
            newest: arrival.is_newest(),
            start: arrival.is_start(),
        })
    }

    /// What a payload number means. An empty payload, with which some keep a NAT open, is no audio.
    fn payload(&self, header: &Header) -> Payload {
        let number = header.fields.payload_type;
        if header.payload_len() == 0 {
            Payload::Unknown
        } else if self.spec.received(number).is_some() {
            Payload::Audio
        } else if Some(number) == self.spec.dtmf_recv {
            Payload::Event
        } else if Some(number) == self.spec.cn_recv {
            Payload::Comfort
        } else {
            Payload::Unknown
        }
    }

    /// Whether the packet is the peer's. Only a payload number that was negotiated makes a source
    /// known.
    fn is_peer(
        &mut self,
        now: Instant,
        from: SocketAddr,
        payload: Payload,
        notices: &mut Notices,
    ) -> bool {
        if payload == Payload::Unknown {
            return self.latch.is_source(from);
        }
        match self.latch.check(now, from) {
            Verdict::Known => true,
            Verdict::Learned => {
                if !self.latch.is_as_negotiated() {
                    notices.push(Notice::Learned {
                        side: self.side,
                        from,
                    });
                }
                true
            }
            Verdict::Stranger => false,
        }
    }

    fn handle_event(
        &mut self,
        now: Instant,
        header: &Header,
        packet: &[u8],
        notices: &mut Notices,
    ) {
        let Some(event) = Event::read(header.payload(packet)) else {
            return;
        };
        for press in self
            .events
            .handle(header.fields.timestamp, event)
            .into_iter()
            .flatten()
        {
            self.report(press, notices);
        }
        self.event_deadline = self.events.is_on().then_some(now + EVENT_PATIENCE);
    }

    fn report(&self, press: Press, notices: &mut Notices) {
        let clock_rate = u64::from(self.spec.format.clock_rate.max(1));
        let duration_ms = (u64::from(press.duration) * 1_000 / clock_rate) as u32;
        if let Some(digit) = key(press.code) {
            notices.push(Notice::Digit {
                side: self.side,
                digit,
                duration_ms,
            });
        }
    }

    /// Reports an event whose end was lost.
    pub(crate) fn handle_timeout(&mut self, now: Instant, notices: &mut Notices) {
        if self.event_deadline.is_some_and(|deadline| deadline <= now) {
            self.event_deadline = None;
            if let Some(press) = self.events.flush() {
                self.report(press, notices);
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.event_deadline
    }

    /// Where packets go, if we send any.
    pub(crate) fn destination(&self) -> Option<SocketAddr> {
        self.latch.destination().filter(|_| self.spec.send)
    }

    /// Sends a packet that was numbered for this leg. Returns whether there was anywhere to send
    /// it.
    pub(crate) fn transmit(
        &mut self,
        now: Instant,
        fields: &Fields,
        packet: &[u8],
        out: &mut dyn Outbox,
    ) -> bool {
        let sent = self.dispatch(packet, out);
        if sent {
            self.out.record(now, fields);
        }
        sent
    }

    /// Sends a packet that was numbered and recorded before.
    pub(crate) fn dispatch(&mut self, packet: &[u8], out: &mut dyn Outbox) -> bool {
        let Some(to) = self.destination() else {
            return false;
        };
        self.stats.packets_sent += 1;
        self.stats.bytes_sent += packet.len().saturating_sub(rtp::HEADER_BYTES) as u64;
        out.send(self.spec.port, to, packet);
        true
    }

    pub(crate) fn stats(&self) -> LegStats {
        let clock_rate = self.spec.format.clock_rate;
        LegStats {
            lost: self.reception.lost(),
            jitter: units_to_duration(self.reception.jitter(), clock_rate),
            jitter_max: units_to_duration(self.jitter_max, clock_rate),
            streams: self.reception.streams(),
            ssrc_received: self.reception.ssrc(),
            ssrc_sent: self.out.ssrc,
            source: self.latch.source(),
            ..self.stats
        }
    }
}

fn units_to_duration(units: u32, clock_rate: u32) -> Duration {
    Duration::from_nanos(u64::from(units) * 1_000_000_000 / u64::from(clock_rate.max(1)))
}
