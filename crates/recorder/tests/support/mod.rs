//! What the recorder's tests share: a codec that hides nothing, a talker with its own clock and
//! network, and a recording run on simulated time.
#![allow(dead_code, unreachable_pub, reason = "each test binary uses its part")]

use std::time::Duration;

use audio::tap::{TapEvent, TapFrame, TapMark};
use audio::{
    Codec, CodecError, CodecInfo, Decoder, Encoder, Input, NegotiateError, Offered, Params,
    Registry,
};
use recorder::{Layout, Scratch, Settings, Timeline, TrackStats};

/// The payload number of [`Plain`].
pub const PLAIN: u8 = 96;
/// Samples of a frame: 20 ms at 8 kHz.
pub const FRAME: usize = 160;
/// Samples per second.
pub const RATE: u32 = 8000;

/// A codec whose octets are the upper halves of its samples.
pub struct Plain(CodecInfo);

impl Default for Plain {
    fn default() -> Self {
        Self(CodecInfo {
            name: "PLAIN",
            static_payload_type: None,
            clock_rate: 8000,
            rtpmap_channels: 1,
            sample_rate: 8000,
            channels: 1,
            frame_step_samples: 1,
            max_frame_samples: 1500,
            default_ptime_ms: 20,
            max_payload_bytes: 1500,
        })
    }
}

impl Codec for Plain {
    fn info(&self) -> &CodecInfo {
        &self.0
    }

    fn negotiate(&self, _: &Offered<'_>) -> Result<Params, NegotiateError> {
        Ok(Params::default())
    }

    fn encoder(&self, _: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        Err(CodecError::Setup)
    }

    fn decoder(&self, _: &Params) -> Result<Box<dyn Decoder>, CodecError> {
        Ok(Box::new(PlainDecoder))
    }
}

struct PlainDecoder;

impl Decoder for PlainDecoder {
    fn decode(&mut self, input: Input<'_>, out: &mut [i16]) -> Result<usize, CodecError> {
        let Input::Frame(payload) = input else {
            return Ok(0);
        };
        for (sample, octet) in out.iter_mut().zip(payload) {
            *sample = sample_of(*octet);
        }
        Ok(payload.len())
    }
}

/// The sample that an octet of [`Plain`] stands for.
pub fn sample_of(octet: u8) -> i16 {
    i16::from_be_bytes([octet, 0])
}

/// A registry with [`Plain`].
pub fn registry() -> Registry {
    let mut registry = Registry::new();
    registry.register(Box::new(Plain::default()));
    registry
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Where a moment stands in a recording that began at zero.
pub fn position(at: Duration) -> usize {
    (at.as_nanos() * u128::from(RATE) / 1_000_000_000) as usize
}

/// A frame on its way, with its payload.
#[derive(Debug, Clone)]
pub struct Sent {
    pub side: u8,
    pub at: Duration,
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
    pub payload_type: u8,
    pub payload: Vec<u8>,
}

impl Sent {
    pub fn tap_frame(&self) -> TapFrame<'_> {
        TapFrame {
            side: self.side,
            at: self.at,
            ssrc: self.ssrc,
            sequence: self.sequence,
            timestamp: self.timestamp,
            payload_type: self.payload_type,
            payload: &self.payload,
        }
    }
}

/// One talker: its own clock, sequence and timestamps.
#[derive(Debug, Clone)]
pub struct Talker {
    pub side: u8,
    pub ssrc: u32,
    pub sequence: u16,
    pub timestamp: u32,
    /// True time of the next frame in nanoseconds.
    pub clock: f64,
    pub ppm: f64,
}

impl Talker {
    pub fn new(side: u8, starts: Duration) -> Self {
        // Close to both wraps, so that every test crosses them.
        Self {
            side,
            ssrc: 0x1111 * (u32::from(side) + 1),
            sequence: 65_530,
            timestamp: u32::MAX - 1000,
            clock: starts.as_nanos() as f64,
            ppm: 0.0,
        }
    }

    /// True time at which the next frame leaves.
    pub fn now(&self) -> Duration {
        Duration::from_nanos(self.clock.round() as u64)
    }

    /// Sends 20 ms of `octet`, which arrives at once.
    pub fn say(&mut self, octet: u8) -> Sent {
        self.send(PLAIN, vec![octet; FRAME])
    }

    pub fn send(&mut self, payload_type: u8, payload: Vec<u8>) -> Sent {
        let sent = Sent {
            side: self.side,
            at: self.now(),
            ssrc: self.ssrc,
            sequence: self.sequence,
            timestamp: self.timestamp,
            payload_type,
            payload,
        };
        self.sequence = self.sequence.wrapping_add(1);
        self.pause(1);
        sent
    }

    /// Lets this many frames' time pass without sending (DTX): the timestamps go on.
    pub fn pause(&mut self, frames: u32) {
        self.timestamp = self.timestamp.wrapping_add(FRAME as u32 * frames);
        self.clock += 20e6 * f64::from(frames) / (1.0 + self.ppm * 1e-6);
    }

    /// Says the same octet for a while.
    pub fn talk(&mut self, frames: usize, octet: u8) -> Vec<Sent> {
        (0..frames).map(|_| self.say(octet)).collect()
    }
}

/// The outcome of a run.
pub struct Recorded {
    /// Left is leg A.
    pub left: Vec<i16>,
    pub right: Vec<i16>,
    pub stats: [TrackStats; 2],
    /// Most samples per channel that one drain gave.
    pub largest_drain: usize,
}

/// Records `frames` in stereo from zero to `stop`, on a clock that ticks every 100 ms.
pub fn record(frames: &[Sent], stop: Duration) -> Recorded {
    record_with(frames, stop, ms(100))
}

/// The same with another interval between two looks at the tap.
pub fn record_with(frames: &[Sent], stop: Duration, poll: Duration) -> Recorded {
    let mut run = Run::new(Layout::Stereo);
    let mut frames: Vec<_> = frames.iter().collect();
    frames.sort_by_key(|frame| frame.at);
    let mut frames = frames.into_iter().peekable();
    let mut now = Duration::ZERO;
    while now < stop {
        now = (now + poll).min(stop);
        while let Some(frame) = frames.next_if(|frame| frame.at <= now) {
            run.handle(TapEvent::Frame(frame.tap_frame()));
        }
        if now < stop {
            run.timeline.handle_timeout(now, &mut run.scratch);
            run.drain();
        }
    }
    run.handle(TapEvent::Mark(TapMark::Stop { at: stop }));
    run.drain();
    assert!(run.timeline.is_done());
    let stats = run.timeline.stats();
    let (left, right) = run.out.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    Recorded {
        left,
        right,
        stats,
        largest_drain: run.largest_drain,
    }
}

/// A timeline with its surroundings.
pub struct Run {
    pub timeline: Timeline,
    pub registry: Registry,
    pub scratch: Scratch,
    pub out: Vec<i16>,
    pub largest_drain: usize,
}

impl Run {
    /// A recording that began at zero, with [`Plain`] on both legs.
    pub fn new(layout: Layout) -> Self {
        let mut run = Self {
            timeline: Timeline::new(Settings {
                layout,
                ..Settings::default()
            }),
            registry: registry(),
            scratch: Scratch::default(),
            out: Vec::new(),
            largest_drain: 0,
        };
        run.handle(TapEvent::Mark(TapMark::Start { at: Duration::ZERO }));
        run.handle(plain_codec(0));
        run.handle(plain_codec(1));
        run
    }

    pub fn handle(&mut self, event: TapEvent<'_>) {
        self.timeline
            .handle_event(event, &self.registry, &mut self.scratch);
    }

    pub fn drain(&mut self) {
        let drained = self.timeline.drain(usize::MAX, &mut self.out);
        self.largest_drain = self.largest_drain.max(drained);
    }
}

/// The mark that says that [`PLAIN`] is [`Plain`].
pub fn plain_codec(side: u8) -> TapEvent<'static> {
    TapEvent::Mark(TapMark::Codec {
        at: Duration::ZERO,
        side,
        payload_type: PLAIN,
        name: "plain",
        clock_rate: 8000,
        channels: 1,
        sample_rate: 0,
        fmtp: "",
    })
}

/// First and last-but-one position of each stretch that isn't silent, with its first sample.
pub fn stretches(samples: &[i16]) -> Vec<(usize, usize, i16)> {
    let mut found: Vec<(usize, usize, i16)> = Vec::new();
    for (at, &sample) in samples
        .iter()
        .enumerate()
        .filter(|(_, sample)| **sample != 0)
    {
        match found.last_mut() {
            Some((_, end, _)) if *end == at => *end += 1,
            _ => found.push((at, at + 1, sample)),
        }
    }
    found
}
