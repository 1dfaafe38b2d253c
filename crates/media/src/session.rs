//! A session: its legs, what feeds what, and the vocabulary to drive it.

use std::net::SocketAddr;
use std::time::Instant;

use audio::Registry;
use audio::clip::Clip;
use audio::tap::TapWriter;
use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;
use rtp::{Fields, HEADER_BYTES, Header};
use thiserror::Error;

use crate::command::{
    FailReason, LegSpec, LegStats, MediaEvent, PortId, Program, SessionId, SessionSpec, Side,
};
use crate::delay::DelayLine;
use crate::generator::Generator;
use crate::leg::{Inbound, Leg, Notice, Notices, Payload};
use crate::plan::{Feed, Path};
use crate::relay::{relay, scale_event};
use crate::stream::{OutStream, Run};
use crate::tapping::Tapping;
use crate::transcode::{Target, Transcoder, Unused};

/// Where a session puts what it sends.
pub trait Outbox {
    /// Takes one datagram, from one of the session's ports to an address.
    fn send(&mut self, port: PortId, to: SocketAddr, packet: &[u8]);
}

/// Why a session cannot do what its specification says.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SessionError {
    /// No codec of that name and clock is built in, or it refuses the parameters.
    #[error("no codec for leg {side:?}")]
    Codec {
        /// On which leg.
        side: Side,
    },
    /// No way leads from the sample rate or channels of one codec to those of the other.
    #[error("no way from the sample rate or channels of one leg to those of the other")]
    SampleRates,
    /// The specification lacks what its program needs: a leg, or a clip.
    #[error("a leg or a clip is missing")]
    Incomplete,
}

impl From<SessionError> for FailReason {
    fn from(error: SessionError) -> Self {
        match error {
            SessionError::Codec { side } => Self::Codec { side },
            SessionError::SampleRates => Self::SampleRates,
            SessionError::Incomplete => Self::Incomplete,
        }
    }
}

/// One call's media.
#[derive(Debug)]
pub struct Session {
    id: SessionId,
    pub(crate) program: Program,
    pub(crate) legs: [Option<Leg>; 2],
    /// The streams of legs that there are not yet.
    streams: [OutStream; 2],
    /// By the leg that packets come in on.
    feeds: [Feed; 2],
    generator: Option<Generator>,
    delay: Option<DelayLine>,
    tapping: Tapping,
    notices: Notices,
    pub(crate) registry: Registry,
    pub(crate) clip: Option<Clip>,
    epoch: Instant,
}

impl Session {
    /// Makes a session. `seed` decides its SSRCs and first numbers; `epoch` is when it begins.
    ///
    /// # Errors
    /// A codec is not built in, or the specification lacks something.
    pub fn new(
        id: SessionId,
        spec: &SessionSpec,
        registry: &Registry,
        clip: Option<Clip>,
        seed: u64,
        epoch: Instant,
    ) -> Result<Self, SessionError> {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut session = Self {
            id,
            program: Program::Bridge,
            legs: [None, None],
            streams: [OutStream::new(&mut random), OutStream::new(&mut random)],
            feeds: [Feed::held(), Feed::held()],
            generator: None,
            delay: None,
            tapping: Tapping::new(epoch),
            notices: Notices::new(),
            registry: registry.clone(),
            clip,
            epoch,
        };
        session.update(epoch, spec)?;
        Ok(session)
    }

    /// Its number.
    #[must_use]
    pub fn id(&self) -> SessionId {
        self.id
    }

    /// Changes what the session does. What stays the same goes on without a break; each leg's
    /// stream goes on in any case. Cost: allocates, when a path changes.
    ///
    /// # Errors
    /// As in [`Self::new`]; the session then goes on as before.
    pub fn update(&mut self, now: Instant, spec: &SessionSpec) -> Result<(), SessionError> {
        let changes = self.prepare(now, spec)?;
        for side in Side::BOTH {
            self.update_leg(now, side, spec.leg(side));
        }
        for (feed, change) in self.feeds.iter_mut().zip(changes.feeds) {
            *feed = change.unwrap_or_else(|| std::mem::replace(feed, Feed::held()));
        }
        if let Some(mut generator) = changes.generator {
            if let (Some(new), Some(old)) = (&mut generator, self.generator.take())
                && self.program == spec.program
            {
                new.take_over(old);
            }
            self.generator = generator;
        }
        if let Some(delay) = changes.delay {
            self.delay = delay;
        }
        let sends = spec.leg(Side::A).is_some_and(|leg| leg.send);
        if let Some(generator) = &mut self.generator {
            generator.set_running(now, sends);
        }
        let had_one_leg = self.program != Program::Bridge;
        self.program = spec.program.clone();
        if had_one_leg != (self.program != Program::Bridge) {
            self.mark_codecs(now);
        }
        Ok(())
    }

    /// Hands in the clip for a later update to `Program::Play`.
    pub fn set_clip(&mut self, clip: Option<Clip>) {
        self.clip = clip;
    }

    /// Sets the tap, or takes it off. It never changes a path.
    pub fn set_tap(&mut self, now: Instant, tap: Option<TapWriter>) {
        self.tapping.set(now, tap);
        self.mark_codecs(now);
    }

    /// Takes one datagram that came in on a leg's port. The session may change it.
    ///
    /// Cost: no allocation, no lock. What is sent at once is handed to `out` before this returns.
    pub fn handle_packet(
        &mut self,
        now: Instant,
        side: Side,
        from: SocketAddr,
        packet: &mut [u8],
        out: &mut dyn Outbox,
    ) {
        let Some(leg) = &mut self.legs[side.index()] else {
            return;
        };
        let inbound = leg.handle_packet(now, self.epoch, from, packet, &mut self.notices);
        let Some(inbound) = inbound else { return };
        if inbound.payload == Payload::Audio {
            let payload = inbound.header.payload(packet);
            self.tapping
                .push(now, side, &inbound.header.fields, payload);
        }
        let payload_type = inbound.header.fields.payload_type;
        if inbound.payload == Payload::Audio && !self.feeds[side.index()].is_current(payload_type) {
            self.turn_to(now, side, &inbound, out);
        }
        match (&self.program, side) {
            (Program::Bridge, _) => self.bridge(now, side, &inbound, packet, out),
            (Program::Echo { .. }, Side::A) => self.echo(now, &inbound, packet, out),
            _ => {}
        }
    }

    /// Does what is due; nothing, when nothing is.
    pub fn handle_timeout(&mut self, now: Instant, out: &mut dyn Outbox) {
        for leg in self.legs.iter_mut().flatten() {
            leg.handle_timeout(now, &mut self.notices);
        }
        for side in Side::BOTH {
            let (way, run) = self.feeds[side.index()].current();
            if let Path::Transcode(transcoder) = &mut way.path
                && let Some(to) = &mut self.legs[side.other().index()]
            {
                transcoder.handle_timeout(run, &mut Target { now, to, out });
            }
        }
        let Some(leg) = &mut self.legs[0] else { return };
        if let Some(generator) = &mut self.generator {
            generator.handle_timeout(now, leg, &mut self.tapping, &mut self.notices, out);
        }
        while let Some(packet) = self.delay.as_mut().and_then(|delay| delay.pop(now)) {
            if leg.dispatch(packet, out)
                && let Ok(header) = Header::read(packet)
                && header.fields.payload_type == leg.spec.format.payload_type
            {
                self.tapping
                    .push(now, Side::B, &header.fields, &packet[HEADER_BYTES..]);
            }
        }
    }

    /// The earliest deadline.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let legs = self.legs.iter().flatten().filter_map(Leg::poll_timeout);
        let feeds = self.feeds.iter().filter_map(|feed| match feed.path() {
            Path::Transcode(transcoder) => transcoder.poll_timeout(),
            Path::Held | Path::Relay(_) => None,
        });
        let own = [
            self.generator.as_ref().and_then(Generator::poll_timeout),
            self.delay.as_ref().and_then(DelayLine::poll_timeout),
        ];
        legs.chain(feeds).chain(own.into_iter().flatten()).min()
    }

    /// The next event.
    pub fn poll_event(&mut self) -> Option<MediaEvent> {
        let session = self.id;
        Some(match self.notices.pop()? {
            Notice::PlayFinished => MediaEvent::PlayFinished { session },
            Notice::Digit {
                side,
                digit,
                duration_ms,
            } => MediaEvent::Digit {
                session,
                side,
                digit,
                duration_ms,
            },
            Notice::Learned { side, from } => MediaEvent::SourceLearned {
                session,
                side,
                from,
            },
        })
    }

    /// What each leg saw; that of a leg that there never was holds zeros.
    #[must_use]
    pub fn stats(&self) -> [LegStats; 2] {
        [0, 1].map(|index: usize| {
            self.legs[index]
                .as_ref()
                .map(Leg::stats)
                .unwrap_or_default()
        })
    }

    /// The peer sends another of its codecs from now on. What is left of the one before goes out;
    /// a late packet turns nothing back.
    ///
    /// Cost: allocates at the first packet of a codec.
    fn turn_to(&mut self, now: Instant, side: Side, inbound: &Inbound, out: &mut dyn Outbox) {
        let target = if self.program == Program::Bridge {
            side.other()
        } else {
            side
        };
        let feed = &mut self.feeds[side.index()];
        if !inbound.newest {
            return;
        }
        let (way, run) = feed.current();
        if let (Path::Transcode(transcoder), Some(to)) =
            (&mut way.path, &mut self.legs[target.index()])
        {
            transcoder.pause(run, &mut Target { now, to, out });
        }
        let payload_type = inbound.header.fields.payload_type;
        if feed.turn_to(payload_type) {
            return;
        }
        let [from, to] = [side, target].map(|side| self.legs[side.index()].as_ref());
        let (Some(from), Some(to)) = (from, to) else {
            return;
        };
        let Some(format) = from.spec.received(payload_type) else {
            return;
        };
        let from = LegSpec {
            format: format.clone(),
            ..from.spec.clone()
        };
        // A codec that cannot be converted after all is heard by nobody.
        let path = self
            .path(now, (side, &from), &to.spec)
            .unwrap_or(Path::Held);
        let feed = &mut self.feeds[side.index()];
        feed.add(payload_type, from.format.clock_rate, path);
        feed.turn_to(payload_type);
    }

    fn bridge(
        &mut self,
        now: Instant,
        side: Side,
        inbound: &Inbound,
        packet: &mut [u8],
        out: &mut dyn Outbox,
    ) {
        let [a, b] = &mut self.legs;
        let (from, to) = if side == Side::A { (a, b) } else { (b, a) };
        let (Some(from), Some(to)) = (from, to) else {
            return;
        };
        let (way, run) = self.feeds[side.index()].current();
        match &mut way.path {
            Path::Held => {
                from.stats.discarded += u64::from(inbound.payload != Payload::Unknown);
            }
            Path::Relay(table) => {
                match relay(now, inbound, packet, *table, way.clock_rate, run, to) {
                    Some((fields, packet)) => {
                        to.transmit(now, &fields, packet, out);
                    }
                    None => from.stats.late += u64::from(!inbound.newest),
                }
            }
            Path::Transcode(transcoder) => {
                let mut target = Target { now, to, out };
                match transcode(transcoder, run, inbound, packet, &mut target) {
                    Ok(()) => {}
                    Err(Unused::Late) => from.stats.late += 1,
                    Err(Unused::Undecodable) => from.stats.discarded += 1,
                }
            }
        }
    }

    fn echo(&mut self, now: Instant, inbound: &Inbound, packet: &mut [u8], out: &mut dyn Outbox) {
        let Some(leg) = &mut self.legs[0] else { return };
        let (way, run) = self.feeds[0].current();
        if !matches!(way.path, Path::Relay(_)) {
            leg.stats.discarded += 1;
            return;
        }
        let clock_rate = way.clock_rate;
        let Some((fields, packet)) = relay(now, inbound, packet, None, clock_rate, run, leg) else {
            leg.stats.late += u64::from(!inbound.newest);
            return;
        };
        match &mut self.delay {
            None => {
                leg.transmit(now, &fields, packet, out);
                if inbound.payload == Payload::Audio {
                    self.tapping
                        .push(now, Side::B, &fields, &packet[HEADER_BYTES..]);
                }
            }
            Some(delay) => {
                leg.out.record(now, &fields);
                leg.stats.discarded += u64::from(!delay.push(now, packet));
            }
        }
    }

    fn update_leg(&mut self, now: Instant, side: Side, spec: Option<&LegSpec>) {
        let slot = &mut self.legs[side.index()];
        let before = slot.as_ref().map(|leg| leg.spec.format.clone());
        match (slot.as_mut(), spec) {
            (Some(leg), Some(spec)) => leg.update(spec.clone()),
            (Some(leg), None) => leg.park(),
            (None, Some(spec)) => {
                let stream = self.streams[side.index()].clone();
                *slot = Some(Leg::new(side, spec.clone(), stream));
            }
            (None, None) => {}
        }
        if before.as_ref() != slot.as_ref().map(|leg| &leg.spec.format) {
            self.mark_codecs(now);
        }
    }

    /// Tells the tap what payload numbers mean: side B is the other leg, or what leg A is sent.
    fn mark_codecs(&mut self, now: Instant) {
        let is_bridge = self.program == Program::Bridge;
        for side in Side::BOTH {
            let Some(leg) = &self.legs[side.index()] else {
                continue;
            };
            let other = self.legs[side.other().index()]
                .as_ref()
                .filter(|_| is_bridge);
            let other = other.map(|leg| &leg.spec.format);
            for format in std::iter::once(&leg.spec.format).chain(&leg.spec.also) {
                let rate = self.recorded_rate(format, other);
                let number = format.recv_payload_type;
                if is_bridge || side == Side::A {
                    self.tapping.mark_codec(now, side, number, format, rate);
                }
            }
            if !is_bridge && side == Side::A {
                let format = &leg.spec.format;
                let rate = self.recorded_rate(format, other);
                let number = format.payload_type;
                self.tapping.mark_codec(now, Side::B, number, format, rate);
            }
        }
    }
}

/// Takes a packet through a transcoder: audio is decoded, events pass by.
fn transcode(
    transcoder: &mut Transcoder,
    run: &mut Option<Run>,
    inbound: &Inbound,
    packet: &mut [u8],
    target: &mut Target<'_>,
) -> Result<(), Unused> {
    if inbound.start {
        transcoder.handle_start(run, target);
    }
    let payload = inbound.header.payload(packet);
    match inbound.payload {
        Payload::Audio => return transcoder.handle_audio(inbound, payload, run, target),
        Payload::Comfort => return transcoder.handle_comfort(inbound, payload, run, target),
        Payload::Event | Payload::Unknown => {}
    }
    if !inbound.newest {
        return Err(Unused::Late);
    }
    transcoder.handle_other(inbound.number);
    let (Payload::Event, Some(payload_type)) = (inbound.payload, target.to.spec.dtmf_send) else {
        return Ok(());
    };
    let came = inbound.header.fields;
    let run = transcoder.handle_event(inbound, run, target);
    let to = &mut *target.to;
    let fields = Fields {
        marker: came.marker,
        payload_type,
        sequence: to.out.next_sequence(),
        timestamp: run.timestamp(came.timestamp),
        ssrc: to.out.ssrc,
    };
    if run.clocks_differ() {
        scale_event(inbound.header.payload_mut(packet), run);
    }
    let packet = inbound.header.rewrite(packet, &fields);
    to.transmit(target.now, &fields, packet, target.out);
    Ok(())
}
