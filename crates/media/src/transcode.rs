//! From the codec of one leg to the codec of the other, or from one packet time to another.
//!
//! ```text
//!  payload -> Chain -> Queue of PCM -> Encoder -> packet, stamped with the time of its
//!  lost ------^                            |      first sample
//!                           at once, or paced: one packet each packet time
//! ```
//!
//! Driven by packets as they come, while packets come and go in the same lengths. A gap of up to
//! three frames is concealed before the next frame, the last of them from that frame's own
//! redundancy where it has some; a longer one, and a pause of the sender's, stays a gap. A frame
//! older than the last decoded is dropped; one that cannot be decoded counts as lost. Where lengths
//! differ, packets leave evenly: the first when enough is there to go on without a hole, the others
//! each one packet time later, until the queue runs dry.
//!
//! An encoder may say that a frame need not be sent: time goes on without a packet, and the next
//! one begins a talkspurt (RFC 3551 section 4.1). Comfort noise is passed on to a leg that has a
//! number for it, and made into sound for one that has not (RFC 3389).
//!
//! Where a table leads from law to law, it is used before decoding, so that what a listener gets is
//! octet by octet what the table says, in packets of any length.

mod chain;
mod noise;
mod pace;
mod queue;

use std::time::Instant;

use audio::{Codec, Encoder, Offered};
use rtp::{ExtSeqNo, Fields, HEADER_BYTES, timestamp_delta};

use self::chain::{Chain, Made};
pub(crate) use self::chain::{at_rate, matched};
use self::noise::Noise;
pub(crate) use self::pace::duration;
use self::pace::{Pace, start_delay};
use self::queue::Queue;
use crate::Outbox;
use crate::command::{LegSpec, Side};
use crate::leg::{Inbound, Leg, Payload};
use crate::session::SessionError;
use crate::stream::Run;

/// Lost frames that are made up for.
const MAX_CONCEALED: u32 = 3;
/// Sound that may wait beyond what packet lengths ask for, in milliseconds: a sender whose clock
/// runs faster than ours, or one that catches up, must not let the queue grow without end.
const SLACK_MS: u32 = 60;

pub(crate) struct Transcoder {
    chain: Chain,
    encoder: Box<dyn Encoder>,
    /// What a packet that leaves moves the feeding stream's clock by.
    frame_units: u32,
    queue: Queue,
    /// The newest packet of the feeding stream.
    newest: Option<ExtSeqNo>,
    tail: Option<Tail>,
    pace: Pace,
    /// Whether packets leave paced; from the first one on that has another length than ours.
    paced: bool,
    noise: Noise,
    marker: bool,
    /// Whether comfort noise means the same on both legs: it describes a spectrum up to half the
    /// sample rate.
    same_band: bool,
    packet: Box<[u8]>,
}

/// The last audio of the feeding stream.
#[derive(Copy, Clone, Debug)]
struct Tail {
    /// Timestamp after it, and the units of its packet.
    end: u32,
    units: u32,
}

/// Why a packet was not used.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Unused {
    /// What comes after it has been decoded already.
    Late,
    /// The decoder refuses it.
    Undecodable,
}

/// Where a transcoder puts what it makes.
pub(crate) struct Target<'a> {
    pub(crate) now: Instant,
    pub(crate) to: &'a mut Leg,
    pub(crate) out: &'a mut dyn Outbox,
}

impl Transcoder {
    /// Sets up the way from one leg to the other.
    pub(crate) fn new(
        now: Instant,
        (from_side, from): (Side, &LegSpec),
        (to_side, to): (Side, &LegSpec),
        from_codec: &dyn Codec,
        to_codec: &dyn Codec,
    ) -> Result<Self, SessionError> {
        let behind = [to_codec, from_codec].map(|codec| codec.info().sample_rate);
        let map = from_codec.octet_map(to_codec.info());
        let decoded = if map.is_some() { to_codec } else { from_codec };
        let (decoded, encoded) = matched(decoded, to_codec);
        let encoded = encoded.ok_or(SessionError::SampleRates)?;
        let info = encoded.info();
        let rates = (info.sample_rate, behind[0]);
        let chain = Chain::new(decoded, (from_side, from), map, rates)?;
        let encoder = negotiated(encoded, to, behind[1])
            .and_then(|params| encoded.encoder(&params).ok())
            .ok_or(SessionError::Codec { side: to_side })?;
        let frame = encoder.frame_samples();
        let units = frame as u64 * u64::from(chain.clock_rate()) / u64::from(info.sample_rate);
        let slack = (info.sample_rate / 1_000 * SLACK_MS) as usize;
        let room = 2 * chain.most_samples() + 2 * frame + slack;
        Ok(Self {
            encoder,
            frame_units: units as u32,
            queue: Queue::new(room),
            newest: None,
            tail: None,
            pace: Pace::new(duration(frame, info.sample_rate)),
            paced: from.ptime_ms != to.ptime_ms,
            noise: Noise::new(now, units),
            marker: false,
            same_band: behind[0] == behind[1],
            packet: vec![0; HEADER_BYTES + info.max_payload_bytes].into(),
            chain,
        })
    }

    /// A stream of the sender's begins: what is left of the one before goes out.
    pub(crate) fn handle_start(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        self.pause(run, target);
        self.newest = None;
        self.tail = None;
        *run = None;
    }

    /// Takes an audio packet.
    pub(crate) fn handle_audio(
        &mut self,
        inbound: &Inbound,
        payload: &[u8],
        run: &mut Option<Run>,
        target: &mut Target<'_>,
    ) -> Result<(), Unused> {
        let fields = &inbound.header.fields;
        if self.newest.is_some_and(|newest| inbound.number <= newest) {
            return Err(Unused::Late);
        }
        if !self.conceal(inbound, payload, run, target) {
            self.pause(run, target);
            self.settle(inbound, run, target);
        }
        let made = self.chain.decode(payload, self.queue.free());
        let made = made.ok_or(Unused::Undecodable)?;
        self.queue.grow(made.samples);
        self.newest = Some(inbound.number);
        self.tail = Some(Tail {
            end: fields.timestamp.wrapping_add(made.units),
            units: made.units,
        });
        self.release(made, run, target);
        Ok(())
    }

    /// Takes a description of comfort noise.
    pub(crate) fn handle_comfort(
        &mut self,
        inbound: &Inbound,
        payload: &[u8],
        run: &mut Option<Run>,
        target: &mut Target<'_>,
    ) -> Result<(), Unused> {
        if self.newest.is_some_and(|newest| inbound.number <= newest) {
            return Err(Unused::Late);
        }
        self.newest = Some(inbound.number);
        self.tail = None;
        if let Some(payload_type) = target.to.spec.cn_send {
            self.pause(run, target);
            self.settle(inbound, run, target);
            // Coefficients say nothing to a leg of another band; the level does.
            let most = if self.same_band { payload.len() } else { 1 };
            let len = most
                .min(payload.len())
                .min(self.packet.len() - HEADER_BYTES);
            self.packet[HEADER_BYTES..][..len].copy_from_slice(&payload[..len]);
            self.marker = false;
            self.send(payload_type, len, run, target);
            self.marker = true;
            return Ok(());
        }
        if !self.noise.is_on() {
            self.pause(run, target);
            self.settle(inbound, run, target);
        }
        // A packet time later than the clock: audio that resumes finds its place not yet taken.
        let delay = self.period() * 2;
        self.noise.describe(target.now, payload, delay);
        Ok(())
    }

    /// Takes note of the newest packet, a telephone-event, which passes by the codecs. Returns what
    /// numbers it.
    pub(crate) fn handle_event<'r>(
        &mut self,
        inbound: &Inbound,
        run: &'r mut Option<Run>,
        target: &mut Target<'_>,
    ) -> &'r mut Run {
        let timestamp = inbound.header.fields.timestamp;
        let fits = |run: &Run, to: &Leg| run.fits(target.now, timestamp, Payload::Event, &to.out);
        if run.as_ref().is_some_and(|run| !fits(run, target.to)) {
            // Its clock has jumped: audio that waits keeps its own timestamps and goes first.
            self.pause(run, target);
            self.newest = None;
            self.tail = None;
        }
        let run = self.begin(inbound, run, target);
        run.settle_timestamp(target.now, timestamp, Payload::Event, &target.to.out);
        run
    }

    /// Takes note of a packet of the same stream that is not audio.
    pub(crate) fn handle_other(&mut self, number: ExtSeqNo) {
        if let Some(newest) = &mut self.newest {
            *newest = number.max(*newest);
        }
    }

    /// Sends what is due.
    pub(crate) fn handle_timeout(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        while self.pace.tick(target.now) {
            if self.has_frame() {
                self.emit(run, target);
            } else {
                self.pace.stop();
            }
        }
        let (frame, period) = (self.encoder.frame_samples(), self.period());
        while self.noise.tick(target.now, period) {
            let made = self
                .chain
                .noise(&mut self.noise.sound, frame, self.queue.free());
            self.queue.grow(made.map_or(0, |made| made.samples));
            self.queue.fill_up(frame);
            self.emit(run, target);
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let both = [self.pace.poll_timeout(), self.noise.poll_timeout()];
        both.into_iter().flatten().min()
    }

    /// The sender has paused: what is left goes out now, its last frame filled up with silence.
    pub(crate) fn pause(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        while self.has_frame() {
            self.emit(run, target);
        }
        if self.queue.len() > 0 {
            self.queue.fill_up(self.encoder.frame_samples());
            self.emit(run, target);
        }
        self.pace.stop();
        self.noise.stop();
    }

    /// The run that is on, or one that begins with this packet.
    fn begin<'r>(
        &self,
        inbound: &Inbound,
        run: &'r mut Option<Run>,
        target: &Target<'_>,
    ) -> &'r mut Run {
        let timestamp = inbound.header.fields.timestamp;
        let (number, clock_rate) = (inbound.number, self.chain.clock_rate());
        run.get_or_insert_with(|| {
            Run::begin(target.now, number, timestamp, clock_rate, &target.to.out)
        })
    }

    /// Time goes on at this packet, the first of a talkspurt.
    fn settle(&mut self, inbound: &Inbound, run: &mut Option<Run>, target: &Target<'_>) {
        let fields = &inbound.header.fields;
        let is_new = run.is_none();
        let run = self.begin(inbound, run, target);
        let (now, out) = (target.now, &target.to.out);
        let jumped = run.settle_timestamp(now, fields.timestamp, Payload::Audio, out);
        self.queue.timestamp = fields.timestamp;
        self.marker |= is_new || jumped || fields.marker;
    }

    /// Makes up for lost frames, when it was few of them. Returns whether the packet's audio
    /// follows on.
    fn conceal(
        &mut self,
        inbound: &Inbound,
        payload: &[u8],
        run: &mut Option<Run>,
        target: &mut Target<'_>,
    ) -> bool {
        let (Some(newest), Some(tail), Some(_)) = (self.newest, self.tail, run.as_ref()) else {
            return false;
        };
        let missing = inbound.number.0 - newest.0 - 1;
        let gap = timestamp_delta(inbound.header.fields.timestamp, tail.end);
        if gap == 0 {
            return true;
        }
        let most = i64::from(MAX_CONCEALED) * i64::from(tail.units);
        if missing == 0 || !(1..=most).contains(&i64::from(gap)) {
            return false;
        }
        let mut left = gap as u32;
        while left > 0 {
            let units = left.min(tail.units);
            left -= units;
            let next = (left == 0).then_some(payload);
            let made = self.chain.conceal(units, next, self.queue.free());
            let Some(made) = made else { return false };
            self.queue.grow(made.samples);
            target.to.stats.concealed += 1;
            self.release(made, run, target);
        }
        true
    }

    /// Sends what may go now, after so much has come.
    fn release(&mut self, came: Made, run: &mut Option<Run>, target: &mut Target<'_>) {
        let (frame, rate) = (self.encoder.frame_samples(), self.chain.rate());
        self.paced |= came.units != self.frame_units;
        if !self.paced {
            while self.has_frame() {
                self.emit(run, target);
            }
            return;
        }
        if !self.pace.is_running() && self.has_frame() {
            self.pace
                .start(target.now, start_delay(came.samples, frame, rate));
        }
        let most = 2 * frame + 2 * came.samples + (rate / 1_000 * SLACK_MS) as usize;
        let has_room = |queue: &mut Queue, next| queue.len() <= most && queue.free().len() >= next;
        while self.has_frame() && !has_room(&mut self.queue, self.chain.most_samples()) {
            self.emit(run, target);
        }
    }

    fn has_frame(&self) -> bool {
        self.queue.len() >= self.encoder.frame_samples()
    }

    fn period(&self) -> std::time::Duration {
        duration(self.encoder.frame_samples(), self.chain.rate())
    }

    /// Encodes and sends the first frame of the queue.
    fn emit(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        let frame = self.encoder.frame_samples();
        let payload = &mut self.packet[HEADER_BYTES..];
        match self.encoder.encode(self.queue.front(frame), payload) {
            // Nothing that is worth a packet: what comes after it begins anew.
            Ok(0) | Err(_) => self.marker = true,
            Ok(len) => self.send(target.to.spec.format.payload_type, len, run, target),
        }
        self.queue.take(frame, self.frame_units);
    }

    /// Sends a payload that lies in the packet, said at the time of the queue's first sample.
    fn send(
        &mut self,
        payload_type: u8,
        len: usize,
        run: &mut Option<Run>,
        target: &mut Target<'_>,
    ) {
        let Some(run) = run else { return };
        let Some(header) = self.packet.first_chunk_mut::<HEADER_BYTES>() else {
            return;
        };
        run.move_origin(self.queue.timestamp);
        let to = &mut *target.to;
        let fields = Fields {
            marker: std::mem::take(&mut self.marker),
            payload_type,
            sequence: to.out.next_sequence(),
            timestamp: run.timestamp(self.queue.timestamp),
            ssrc: to.out.ssrc,
        };
        fields.write(header);
        let packet = &self.packet[..HEADER_BYTES + len];
        to.transmit(target.now, &fields, packet, target.out);
    }
}

impl std::fmt::Debug for Transcoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcoder")
            .field("queued", &self.queue.len())
            .field("newest", &self.newest)
            .field("tail", &self.tail)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

/// What a codec makes of a leg's format, when sound goes on behind it at this rate.
pub(crate) fn negotiated(
    codec: &dyn Codec,
    spec: &LegSpec,
    sample_rate: u32,
) -> Option<audio::Params> {
    let offered = Offered {
        fmtp: spec.format.fmtp.as_deref(),
        settings: &spec.format.params,
        ptime_ms: spec.ptime_ms,
        sample_rate,
    };
    codec.negotiate(&offered).ok()
}
