//! A recording as a machine without file, thread or clock: frames and marks in, samples out.
//!
//! ```text
//!            +- Reorder A -> Track A -+
//! tap event -+                        +- drain -> interleaved (stereo) or mixed (mono) samples
//!            +- Reorder B -> Track B -+
//! ```
//!
//! The recording begins at the start mark and ends at the stop mark, to the sample; whatever came in
//! between decides what is heard, never how long it is. Samples are given out [`Timeline::lag`]
//! behind the clock, so that a frame delayed by up to [`Settings::hold`] still finds its place.
//!
//! Times are since the session's epoch, as on the tap. Driven by the writer thread, or by a test.

use std::time::Duration;

use audio::mix::saturate;
use audio::tap::{TapEvent, TapFrame, TapMark};
use audio::{Decoder, Offered, Registry};

use crate::reorder::Reorder;
use crate::track::{Format, MAX_FRAME_SAMPLES, Track, TrackStats, position_at};

/// How the two legs share the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// One channel: the sum of both legs, limited.
    Mono,
    /// Two channels: leg A left, leg B right.
    Stereo,
}

impl Layout {
    /// Channels in the file.
    pub fn channels(self) -> u16 {
        match self {
            Self::Mono => 1,
            Self::Stereo => 2,
        }
    }
}

/// What a [`Timeline`] is made with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Rate of the recording in Hz. Codecs of another rate aren't decoded.
    pub sample_rate: u32,
    /// How the legs share the file.
    pub layout: Layout,
    /// Longest delay of one frame against its neighbours that is put right.
    pub hold: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            sample_rate: 8000,
            layout: Layout::Stereo,
            hold: Duration::from_millis(150),
        }
    }
}

/// Slack for the time between an arrival's stamp and its coming out of the tap.
const SLACK: Duration = Duration::from_millis(50);

/// Memory for one frame's samples while it is placed; one serves any number of timelines.
pub struct Scratch(Box<[i16]>);

impl Default for Scratch {
    fn default() -> Self {
        Self(vec![0; MAX_FRAME_SAMPLES].into())
    }
}

/// One recording between tap and file.
pub struct Timeline {
    settings: Settings,
    legs: [(Reorder, Track); 2],
    /// `None` until the start mark, or the first frame.
    start: Option<Duration>,
    /// Latest moment known to have passed.
    now: Duration,
    /// Length in samples, once the end is known.
    total: Option<i64>,
    drained: i64,
}

impl Timeline {
    /// A timeline that waits for its start mark.
    pub fn new(settings: Settings) -> Self {
        let Settings {
            sample_rate, hold, ..
        } = settings;
        let leg = || (Reorder::new(hold), Track::new(sample_rate, hold));
        Self {
            settings,
            legs: [leg(), leg()],
            start: None,
            now: Duration::ZERO,
            total: None,
            drained: 0,
        }
    }

    /// How far behind the clock samples are given out.
    pub fn lag(&self) -> Duration {
        self.settings.hold * 2 + SLACK
    }

    /// Takes one frame or mark, in the order of the tap. What comes after the stop mark is ignored.
    pub fn handle_event(
        &mut self,
        event: TapEvent<'_>,
        registry: &Registry,
        scratch: &mut Scratch,
    ) {
        if self.total.is_some() {
            return;
        }
        match event {
            TapEvent::Frame(frame) => self.handle_frame(&frame, scratch),
            TapEvent::Mark(TapMark::Start { at }) => self.begin(at),
            TapEvent::Mark(TapMark::Stop { at }) => self.end(at, scratch),
            TapEvent::Mark(mark @ TapMark::Codec { .. }) => {
                self.handle_codec(&mark, registry, scratch);
            }
            TapEvent::Mark(_) => {}
        }
    }

    /// The clock says `now`: frames held long enough are placed, and samples become due.
    pub fn handle_timeout(&mut self, now: Duration, scratch: &mut Scratch) {
        self.now = self.now.max(now);
        for leg in &mut self.legs {
            release(leg, self.now, scratch);
        }
    }

    /// The tap ended without a stop mark: the recording ends at the latest moment known.
    pub fn handle_closed(&mut self, scratch: &mut Scratch) {
        if self.total.is_none() {
            self.end(self.now, scratch);
        }
    }

    fn begin(&mut self, at: Duration) {
        if self.start.is_none() {
            self.start = Some(at);
            self.now = self.now.max(at);
            self.legs.iter_mut().for_each(|(_, track)| track.begin(at));
        }
    }

    fn end(&mut self, at: Duration, scratch: &mut Scratch) {
        self.begin(at);
        self.legs.iter_mut().for_each(|leg| flush(leg, scratch));
        let start = self.start.unwrap_or(at);
        self.total = Some(position_at(at, start, self.settings.sample_rate).max(self.drained));
    }

    fn handle_frame(&mut self, frame: &TapFrame<'_>, scratch: &mut Scratch) {
        self.begin(frame.at);
        self.now = self.now.max(frame.at);
        if let Some(leg) = self.legs.get_mut(usize::from(frame.side)) {
            leg.0.push(frame);
            release(leg, frame.at, scratch);
        }
    }

    fn handle_codec(&mut self, mark: &TapMark<'_>, registry: &Registry, scratch: &mut Scratch) {
        let &TapMark::Codec {
            side,
            payload_type,
            name,
            clock_rate,
            channels,
            fmtp,
            ..
        } = mark
        else {
            return;
        };
        let Some(leg) = self.legs.get_mut(usize::from(side)) else {
            return;
        };
        let codec = (name.to_owned(), clock_rate.max(1), fmtp.to_owned());
        match leg.1.format(payload_type) {
            // Said again by a re-negotiation: the decoder keeps its state.
            Some(known) if known.codec == codec => return,
            // Frames that wait still have the number's old meaning.
            Some(_) => flush(leg, scratch),
            None => {}
        }
        let decoder = decoder(
            registry,
            (name, clock_rate, channels),
            fmtp,
            self.settings.sample_rate,
        );
        if decoder.is_none() {
            tracing::debug!(codec = name, clock_rate, side, "not decoded for recording");
        }
        leg.1.set_format(Format {
            payload_type,
            codec,
            decoder,
        });
    }

    /// Samples per channel that are due and not yet drained.
    pub fn due(&self) -> usize {
        let Some(start) = self.start else { return 0 };
        let until = self.total.unwrap_or_else(|| {
            let behind = self.now.saturating_sub(self.lag());
            position_at(behind.max(start), start, self.settings.sample_rate)
        });
        usize::try_from(until - self.drained).unwrap_or(0)
    }

    /// Appends up to `max` due samples per channel to `out`, interleaved; returns how many.
    pub fn drain(&mut self, max: usize, out: &mut Vec<i16>) -> usize {
        let count = self.due().min(max);
        let [(_, a), (_, b)] = &mut self.legs;
        let until = self.drained + count as i64;
        let (left, right) = (a.peek(until), b.peek(until));
        let base = out.len();
        out.resize(
            base + count * usize::from(self.settings.layout.channels()),
            0,
        );
        let fresh = &mut out[base..];
        match self.settings.layout {
            Layout::Mono => {
                fresh[..left.len()].copy_from_slice(left);
                for (sum, sample) in fresh.iter_mut().zip(right) {
                    *sum = saturate(i32::from(*sum) + i32::from(*sample));
                }
            }
            Layout::Stereo => {
                for (pair, sample) in fresh.chunks_exact_mut(2).zip(left) {
                    pair[0] = *sample;
                }
                for (pair, sample) in fresh.chunks_exact_mut(2).zip(right) {
                    pair[1] = *sample;
                }
            }
        }
        a.consume(until);
        b.consume(until);
        self.drained = until;
        count
    }

    /// Whether the end is known and every sample was drained.
    pub fn is_done(&self) -> bool {
        self.total == Some(self.drained)
    }

    /// Samples per second and channel.
    pub fn sample_rate(&self) -> u32 {
        self.settings.sample_rate
    }

    /// Samples per channel drained so far.
    pub fn samples(&self) -> u64 {
        self.drained.unsigned_abs()
    }

    /// The account of both legs, as of the samples drained.
    pub fn stats(&self) -> [TrackStats; 2] {
        self.legs
            .each_ref()
            .map(|(queue, track)| track.stats(queue, self.drained))
    }
}

/// A decoder to mono at `sample_rate`, if the registry has one.
fn decoder(
    registry: &Registry,
    (name, clock_rate, channels): (&str, u32, u8),
    fmtp: &str,
    sample_rate: u32,
) -> Option<Box<dyn Decoder>> {
    let codec = registry.find(name, clock_rate, channels)?;
    let info = codec.info();
    if info.sample_rate != sample_rate || info.channels != 1 {
        return None;
    }
    let fmtp = (!fmtp.is_empty()).then_some(fmtp);
    let params = codec
        .negotiate(&Offered {
            fmtp,
            ..Offered::default()
        })
        .ok()?;
    codec.decoder(&params).ok()
}

fn release(leg: &mut (Reorder, Track), now: Duration, scratch: &mut Scratch) {
    while let Some(held) = leg.0.pop_due(now) {
        leg.1.place(&held, &leg.0, &mut scratch.0);
        leg.0.recycle(held.frame);
    }
}

fn flush(leg: &mut (Reorder, Track), scratch: &mut Scratch) {
    while let Some(held) = leg.0.pop() {
        leg.1.place(&held, &leg.0, &mut scratch.0);
        leg.0.recycle(held.frame);
    }
}
