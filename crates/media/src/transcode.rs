//! From the codec of one leg to the codec of the other, or from one packet time to another.
//!
//! ```text
//!  payload -> [law table] -> Decoder -> queue of PCM -> Encoder -> packet, stamped with the time
//!  lost 1 to 3 frames ------> Lost --------^             |        of its first sample
//!                                            at once, or paced: one packet each packet time
//! ```
//!
//! Driven by packets as they come, while both legs have the same packet time. A gap of up to three
//! frames is concealed before the next frame, each with its own timestamps; a longer one, and a
//! pause of the sender's, stays a gap. A frame older than the last decoded is dropped. Where packet
//! times differ, packets leave evenly: the first when enough is there to go on without a hole, the
//! others each one packet time later, until the queue runs dry.
//!
//! Where a table leads from law to law, it is used before decoding, so that what a listener gets is
//! octet by octet what the table says, in packets of any length. Units: samples of PCM; both codecs
//! have the same sample rate.

use std::time::{Duration, Instant};

use audio::{Codec, CodecInfo, Decoder, Encoder, Input, Offered};
use rtp::{ExtSeqNo, Fields, HEADER_BYTES, timestamp_delta};

use crate::Outbox;
use crate::command::{LegSpec, Side};
use crate::leg::{Inbound, Leg, Payload};
use crate::session::SessionError;
use crate::stream::Run;

/// Lost frames that are made up for.
const MAX_CONCEALED: u32 = 3;
/// Time that packets may come late without a hole, where they leave paced.
const PACE_MARGIN: Duration = Duration::from_millis(10);
/// Packets that leave at once to catch up with a late clock.
const MAX_BURST: usize = 5;

pub(crate) struct Transcoder {
    map: Option<&'static [u8; 256]>,
    decoder: Box<dyn Decoder>,
    encoder: Box<dyn Encoder>,
    /// Facts of the codec that is decoded.
    from: CodecInfo,
    queue: Queue,
    last: Option<Last>,
    pace: Option<Pace>,
    marker: bool,
    packet: Box<[u8]>,
    octets: Box<[u8]>,
}

/// The newest packet of the feeding stream.
#[derive(Copy, Clone, Debug)]
struct Last {
    number: ExtSeqNo,
    /// Timestamp after the last audio, and the units of its packet.
    end: u32,
    units: u32,
}

/// PCM that waits to be encoded.
struct Queue {
    pcm: Box<[i16]>,
    len: usize,
    /// Timestamp of the first sample, in units of the feeding stream.
    timestamp: u32,
}

#[derive(Debug)]
struct Pace {
    period: Duration,
    next: Option<Instant>,
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
        (from_side, from): (Side, &LegSpec),
        (to_side, to): (Side, &LegSpec),
        from_codec: &dyn Codec,
        to_codec: &dyn Codec,
    ) -> Result<Self, SessionError> {
        let (from_info, to_info) = (from_codec.info(), to_codec.info());
        if from_info.sample_rate != to_info.sample_rate || from_info.channels != to_info.channels {
            return Err(SessionError::SampleRates);
        }
        let map = from_codec.octet_map(to_info);
        let decoded = if map.is_some() { to_codec } else { from_codec };
        let decoder = negotiated(decoded, from)
            .and_then(|params| decoded.decoder(&params).ok())
            .ok_or(SessionError::Codec { side: from_side })?;
        let encoder = negotiated(to_codec, to)
            .and_then(|params| to_codec.encoder(&params).ok())
            .ok_or(SessionError::Codec { side: to_side })?;
        let frame = encoder.frame_samples();
        let channels = usize::from(to_info.channels);
        let room = (2 * from_info.max_frame_samples + 2 * frame) * channels;
        let pace = (from.ptime_ms != to.ptime_ms).then(|| Pace {
            period: duration(frame, to_info.sample_rate),
            next: None,
        });
        Ok(Self {
            map,
            decoder,
            encoder,
            from: from_info.clone(),
            queue: Queue {
                pcm: vec![0; room].into(),
                len: 0,
                timestamp: 0,
            },
            last: None,
            pace,
            marker: false,
            packet: vec![0; HEADER_BYTES + to_info.max_payload_bytes].into(),
            octets: vec![
                0;
                if map.is_some() {
                    from_info.max_payload_bytes
                } else {
                    0
                }
            ]
            .into(),
        })
    }

    /// A stream of the sender's begins: what is left of the one before goes out.
    pub(crate) fn handle_start(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        self.pause(run, target);
        self.last = None;
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
        if self.last.is_some_and(|last| inbound.number <= last.number) {
            return Err(Unused::Late);
        }
        let follows = self.conceal(inbound, run, target);
        if !follows {
            self.pause(run, target);
            let is_new = run.is_none();
            let run = self.begin(inbound, run, target);
            let jumped =
                run.settle_timestamp(target.now, fields.timestamp, Payload::Audio, &target.to.out);
            self.queue.timestamp = fields.timestamp;
            self.marker = is_new || jumped || fields.marker;
        }
        let samples = self.decode(payload).ok_or(Unused::Undecodable)?;
        let units = self.from.clock_units(samples);
        let end = fields.timestamp.wrapping_add(units);
        self.last = Some(Last {
            number: inbound.number,
            end,
            units,
        });
        self.release(samples, run, target);
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
            self.last = None;
        }
        let run = self.begin(inbound, run, target);
        run.settle_timestamp(target.now, timestamp, Payload::Event, &target.to.out);
        run
    }

    /// The run that is on, or one that begins with this packet.
    fn begin<'r>(
        &self,
        inbound: &Inbound,
        run: &'r mut Option<Run>,
        target: &Target<'_>,
    ) -> &'r mut Run {
        let timestamp = inbound.header.fields.timestamp;
        let clock_rate = self.from.clock_rate;
        run.get_or_insert_with(|| {
            Run::begin(
                target.now,
                inbound.number,
                timestamp,
                clock_rate,
                &target.to.out,
            )
        })
    }

    /// Takes note of a packet of the same stream that is not audio.
    pub(crate) fn handle_other(&mut self, number: ExtSeqNo) {
        if let Some(last) = &mut self.last {
            last.number = last.number.max(number);
        }
    }

    /// Makes up for lost frames, when it was few of them. Returns whether the packet's audio
    /// follows on.
    fn conceal(
        &mut self,
        inbound: &Inbound,
        run: &mut Option<Run>,
        target: &mut Target<'_>,
    ) -> bool {
        let (Some(last), Some(_)) = (self.last, run.as_ref()) else {
            return false;
        };
        let missing = inbound.number.0 - last.number.0 - 1;
        let gap = timestamp_delta(inbound.header.fields.timestamp, last.end);
        if gap == 0 {
            return true;
        }
        let most = i64::from(MAX_CONCEALED * last.units);
        if missing == 0 || !(1..=most).contains(&i64::from(gap)) {
            return false;
        }
        let mut left = self.from.samples(gap as u32);
        while left > 0 {
            let samples = left.min(self.from.samples(last.units).max(1));
            self.make_room(samples, run, target);
            let made = self
                .decoder
                .decode(Input::Lost { samples }, self.queue.free());
            let Ok(made) = made else { return false };
            self.queue.len += made * usize::from(self.from.channels);
            target.to.stats.concealed += 1;
            self.release(samples, run, target);
            left -= samples;
        }
        true
    }

    /// Decodes a payload into the queue. Returns its samples per channel.
    fn decode(&mut self, payload: &[u8]) -> Option<usize> {
        let payload = match self.map {
            None => payload,
            Some(map) => {
                let octets = self.octets.get_mut(..payload.len())?;
                octets
                    .iter_mut()
                    .zip(payload)
                    .for_each(|(to, from)| *to = map[usize::from(*from)]);
                octets
            }
        };
        let samples = self
            .decoder
            .decode(Input::Frame(payload), self.queue.free())
            .ok()?;
        self.queue.len += samples * usize::from(self.from.channels);
        Some(samples)
    }

    /// Sends what may go now, after this many samples have come.
    fn release(&mut self, came: usize, run: &mut Option<Run>, target: &mut Target<'_>) {
        let frame = self.encoder.frame_samples();
        let Some(pace) = &mut self.pace else {
            while self.has_frame() {
                self.emit(run, target);
            }
            return;
        };
        if pace.next.is_none() && self.queue.len >= frame * usize::from(self.from.channels) {
            let delay = start_delay(came, frame, self.from.sample_rate);
            pace.next = Some(target.now + delay + PACE_MARGIN);
        }
        // A sender whose clock runs faster than ours, or one that catches up: let the queue not
        // grow without end.
        let most = (2 * frame + 2 * came + self.from.samples_per_packet(60))
            * usize::from(self.from.channels);
        while self.queue.len > most {
            self.emit(run, target);
        }
    }

    /// Sends what is due, where packets leave paced.
    pub(crate) fn handle_timeout(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        let mut burst = 0;
        while let Some(next) = self.poll_timeout().filter(|next| *next <= target.now) {
            let goes_on = self.has_frame();
            if goes_on {
                self.emit(run, target);
            }
            burst += 1;
            let is_late = burst == MAX_BURST;
            if let Some(pace) = &mut self.pace {
                let next = if is_late {
                    target.now + pace.period
                } else {
                    next + pace.period
                };
                pace.next = goes_on.then_some(next);
            }
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.pace.as_ref()?.next
    }

    /// The sender has paused: what is left goes out now, its last frame filled up with silence.
    fn pause(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        while self.has_frame() {
            self.emit(run, target);
        }
        if self.queue.len > 0 {
            let frame = self.encoder.frame_samples() * usize::from(self.from.channels);
            self.queue.pcm[self.queue.len..frame].fill(0);
            self.queue.len = frame;
            self.emit(run, target);
        }
        if let Some(pace) = &mut self.pace {
            pace.next = None;
        }
    }

    fn make_room(&mut self, samples: usize, run: &mut Option<Run>, target: &mut Target<'_>) {
        while self.queue.free().len() < samples * usize::from(self.from.channels)
            && self.has_frame()
        {
            self.emit(run, target);
        }
    }

    fn has_frame(&self) -> bool {
        self.queue.len >= self.encoder.frame_samples() * usize::from(self.from.channels)
    }

    /// Encodes and sends the first frame of the queue.
    fn emit(&mut self, run: &mut Option<Run>, target: &mut Target<'_>) {
        let samples = self.encoder.frame_samples();
        let frame = samples * usize::from(self.from.channels);
        let (header, payload) = self.packet.split_at_mut(HEADER_BYTES);
        let encoded = self.encoder.encode(&self.queue.pcm[..frame], payload);
        if let (Ok(len), Some(run), Ok(header)) = (encoded, run.as_mut(), header.try_into()) {
            run.move_origin(self.queue.timestamp);
            let to = &mut *target.to;
            let fields = Fields {
                marker: self.marker,
                payload_type: to.spec.format.payload_type,
                sequence: to.out.next_sequence(),
                timestamp: run.timestamp(self.queue.timestamp),
                ssrc: to.out.ssrc,
            };
            fields.write(header);
            to.transmit(
                target.now,
                &fields,
                &self.packet[..HEADER_BYTES + len],
                target.out,
            );
            self.marker = false;
        }
        self.queue.pcm.copy_within(frame..self.queue.len, 0);
        self.queue.len -= frame;
        let units = self.from.clock_units(samples);
        self.queue.timestamp = self.queue.timestamp.wrapping_add(units);
    }
}

impl std::fmt::Debug for Transcoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transcoder")
            .field("from", &self.from.name)
            .field("queued", &self.queue.len)
            .field("last", &self.last)
            .field("pace", &self.pace)
            .finish_non_exhaustive()
    }
}

impl Queue {
    fn free(&mut self) -> &mut [i16] {
        &mut self.pcm[self.len..]
    }
}

/// What a codec makes of a leg's format.
pub(crate) fn negotiated(codec: &dyn Codec, spec: &LegSpec) -> Option<audio::Params> {
    let offered = Offered {
        fmtp: spec.format.fmtp.as_deref(),
        settings: &spec.format.params,
        ptime_ms: spec.ptime_ms,
        sample_rate: 0,
    };
    codec.negotiate(&offered).ok()
}

/// How long this many samples last.
pub(crate) fn duration(samples: usize, sample_rate: u32) -> Duration {
    Duration::from_nanos(samples as u64 * 1_000_000_000 / u64::from(sample_rate.max(1)))
}

/// How long the first packet has to wait, once it is complete, so that none after it comes too
/// early: packets of `came` samples arrive evenly, packets of `frame` samples leave evenly.
fn start_delay(came: usize, frame: usize, sample_rate: u32) -> Duration {
    let came = came.max(1);
    let complete = |count: usize| (count * frame).div_ceil(came) * came;
    let slack =
        (1..=came.min(64)).map(|k| (complete(k + 1) - complete(1)).saturating_sub(k * frame));
    duration(slack.max().unwrap_or(0), sample_rate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_packet_waits_just_long_enough() {
        for (came, frame, expected_ms) in [
            (160, 160, 0),
            (160, 240, 0),
            (240, 160, 10),
            (160, 480, 0),
            (480, 160, 0),
            (80, 160, 0),
        ] {
            // All packets that leave must be complete when they do.
            let wait = start_delay(came, frame, 8_000).as_millis() as usize * 8;
            let arrival = |samples: usize| samples.div_ceil(came) * came;
            let first = arrival(frame) + wait;
            for k in 0..100 {
                assert!(
                    first + k * frame >= arrival((k + 1) * frame),
                    "{came} {frame} {k}"
                );
            }
            assert_eq!(wait / 8, expected_ms, "{came} to {frame}");
        }
    }
}
