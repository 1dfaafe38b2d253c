//! One leg's samples, laid where they belong in time.
//!
//! ```text
//! frame in order -> place -> decode -> samples from `cursor` on -> drain (silence where nothing came)
//! ```
//!
//! The first frame of a run is placed by its arrival, later ones by their RTP timestamps (RFC 3550,
//! 5.1), so jitter moves nothing and what was lost or never sent (DTX, RFC 3551, 4.1) stays open as
//! silence. Arrival is what both legs share, so each leg is held to it: `lead` is how far a frame's
//! place runs ahead of its arrival, and the greatest lead of late (that of the packets which were
//! delayed least) should be zero.
//!
//! ```text
//! greatest lead   beyond +100 ms or below -hold   place anew by arrival (clock jumped, or stood)
//!                 beyond +-8 ms                    slew: one sample a frame, all of it in a pause
//!                 else                             leave alone
//! ```
//!
//! Units: positions are samples of the recording's rate since its start, and may be negative for
//! audio from before it. Driven by [`Timeline`](crate::Timeline).

use std::time::Duration;

use audio::{Decoder, Input};

use crate::reorder::{Frame, Held, Reorder};

/// Longest frame decoded: 120 ms at 48 kHz (RFC 6716, 2.1.4), or a full datagram of G.711.
pub(crate) const MAX_FRAME_SAMPLES: usize = 5760;

/// Frames whose greatest lead is taken together before the drift is judged: a second at 20 ms.
const DRIFT_FRAMES: u32 = 50;

/// No packet arrives before it was sent: a lead of more than the usual jitter is another clock.
const MAX_AHEAD: Duration = Duration::from_millis(100);

/// Drift that is left alone. Both legs together stay well within 20 ms.
const TOLERANCE: Duration = Duration::from_millis(8);

/// What a payload number of this leg means.
pub(crate) struct Format {
    pub(crate) payload_type: u8,
    /// Encoding name, RTP clock in Hz (RFC 3551, 4.1: not always the sampling rate), parameters.
    pub(crate) codec: (String, u32, String),
    /// `None` for what can't be heard here.
    pub(crate) decoder: Option<Box<dyn Decoder>>,
}

/// What became of one leg.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrackStats {
    /// Frames that were decoded and placed.
    pub frames: u64,
    /// Frames that came after their place was written, wholly or in part.
    pub late: u64,
    /// Frames that came twice.
    pub duplicates: u64,
    /// Frames of a payload type that carries no audio here (comfort noise, telephone-event), or that
    /// the codec refused.
    pub skipped: u64,
    /// Times the leg was placed anew by arrival: new source, restart, clock jump.
    pub anchors: u64,
    /// Sum of all slewing in samples, ahead minus behind: the drift corrected.
    pub slewed: i64,
    /// Samples of silence in the file because nothing was received for them.
    pub silence: u64,
}

/// Where the timestamps of the current run stand on the timeline.
#[derive(Debug)]
struct Anchor {
    run: u64,
    clock_rate: u32,
    timestamp: u32,
    /// In samples; moved by slewing.
    position: i64,
    drift: Drift,
}

impl Anchor {
    fn position_of(&self, timestamp: u32, rate: u32) -> i64 {
        let ticks = i64::from(timestamp.wrapping_sub(self.timestamp) as i32);
        if rate == self.clock_rate {
            return self.position + ticks;
        }
        self.position + (ticks * i64::from(rate)).div_euclid(i64::from(self.clock_rate))
    }

    /// Moves the reference to a later timestamp where that loses no fraction of a sample, so that
    /// the 32-bit difference never wraps.
    fn rebase(&mut self, timestamp: u32, rate: u32) {
        let ticks = i64::from(timestamp.wrapping_sub(self.timestamp) as i32);
        if ticks > 0 && (ticks * i64::from(rate)) % i64::from(self.clock_rate) == 0 {
            self.position = self.position_of(timestamp, rate);
            self.timestamp = timestamp;
        }
    }

    fn shift(&mut self, samples: i64) {
        self.position += samples;
        self.drift.shift(samples);
    }
}

/// Greatest lead of the frames of late, in two halves so that it can fall again.
#[derive(Debug, Default)]
struct Drift {
    frames: u32,
    greatest: Option<i64>,
    before: Option<i64>,
    /// Samples still to be taken off (positive) or put in (negative).
    slew: i64,
}

impl Drift {
    fn observe(&mut self, lead: i64, tolerance: i64) {
        self.greatest = self.greatest.max(Some(lead));
        self.frames += 1;
        if self.frames < DRIFT_FRAMES {
            return;
        }
        if self.slew == 0 && self.before.is_some() {
            let greatest = self.greatest.max(self.before);
            self.slew = greatest.filter(|lead| lead.abs() > tolerance).unwrap_or(0);
        }
        self.before = self.greatest.take();
        self.frames = 0;
    }

    fn shift(&mut self, samples: i64) {
        self.greatest = self.greatest.map(|lead| lead + samples);
        self.before = self.before.map(|lead| lead + samples);
    }
}

/// The samples of one leg between what was written and what is still to come.
pub(crate) struct Track {
    rate: u32,
    /// Since the session's epoch.
    start: Duration,
    /// Most that a frame ahead of its arrival is believed, in samples.
    ahead: i64,
    /// Most that all frames of late may be behind, in samples.
    behind: i64,
    /// Drift that is left alone, in samples.
    tolerance: i64,
    formats: Vec<Format>,
    anchor: Option<Anchor>,
    /// Position of the first sample not yet drained, and of `pcm[0]`.
    cursor: i64,
    pcm: Vec<i16>,
    /// One past the last position that was received.
    end: i64,
    received: i64,
    stats: TrackStats,
}

impl Track {
    pub(crate) fn new(rate: u32, hold: Duration) -> Self {
        Self {
            rate,
            start: Duration::ZERO,
            ahead: samples_in(MAX_AHEAD, rate),
            behind: samples_in(hold, rate),
            tolerance: samples_in(TOLERANCE, rate),
            formats: Vec::new(),
            anchor: None,
            cursor: 0,
            pcm: Vec::new(),
            end: 0,
            received: 0,
            stats: TrackStats::default(),
        }
    }

    /// Says when position 0 is. Before the first frame.
    pub(crate) fn begin(&mut self, start: Duration) {
        self.start = start;
    }

    /// What a payload type means at present.
    pub(crate) fn format(&self, payload_type: u8) -> Option<&Format> {
        self.formats
            .iter()
            .find(|known| known.payload_type == payload_type)
    }

    /// Sets what a payload type means from the next frame on.
    pub(crate) fn set_format(&mut self, format: Format) {
        self.formats
            .retain(|known| known.payload_type != format.payload_type);
        self.formats.push(format);
    }

    /// Decodes and places one frame. What waits behind it in `queue` tells delay from drift.
    ///
    /// `scratch` takes the decoded samples: at least [`MAX_FRAME_SAMPLES`].
    pub(crate) fn place(&mut self, held: &Held, queue: &Reorder, scratch: &mut [i16]) {
        let frame = &held.frame;
        let Some((length, clock_rate)) = self.decode(frame, scratch) else {
            self.stats.skipped += 1;
            return;
        };
        if !self.is_plausible(held, clock_rate, queue) {
            self.anchor = Some(self.anchor_at(held, clock_rate, queue));
            self.stats.anchors += 1;
        }
        let position = self.follow(frame);
        self.write(position, &scratch[..length]);
        self.stats.frames += 1;
    }

    /// The samples from the cursor up to position `until`; where they end early, silence follows.
    pub(crate) fn peek(&self, until: i64) -> &[i16] {
        let due = usize::try_from(until - self.cursor).unwrap_or(0);
        &self.pcm[..due.min(self.pcm.len())]
    }

    /// Moves the cursor to position `until`.
    pub(crate) fn consume(&mut self, until: i64) {
        self.pcm.drain(..self.peek(until).len());
        self.cursor = self.cursor.max(until);
        // A writer that stalled for long leaves a long buffer behind.
        let usual = self.rate as usize;
        if self.pcm.capacity() > 4 * usual && self.pcm.len() < usual {
            self.pcm.shrink_to(usual);
        }
    }

    /// The account of this leg, `total` samples being the length of the recording.
    pub(crate) fn stats(&self, queue: &Reorder, total: i64) -> TrackStats {
        let beyond = (self.end - total).max(0);
        TrackStats {
            late: self.stats.late + queue.late,
            duplicates: queue.duplicates,
            silence: u64::try_from(total - (self.received - beyond).max(0)).unwrap_or(0),
            ..self.stats
        }
    }

    /// Samples decoded and the RTP clock; `None` when the frame can't be heard.
    fn decode(&mut self, frame: &Frame, scratch: &mut [i16]) -> Option<(usize, u32)> {
        let format = self
            .formats
            .iter_mut()
            .find(|f| f.payload_type == frame.payload_type)?;
        let decoder = format.decoder.as_mut()?;
        let length = decoder.decode(Input::Frame(&frame.payload), scratch).ok()?;
        Some((length, format.codec.1))
    }

    /// An anchor at `held`, such that of it and what waits the least delayed is where it arrived.
    fn anchor_at(&self, held: &Held, clock_rate: u32, queue: &Reorder) -> Anchor {
        let mut anchor = Anchor {
            run: held.run,
            clock_rate,
            timestamp: held.frame.timestamp,
            position: self.arrival(&held.frame),
            drift: Drift::default(),
        };
        // One that seems earlier still has another clock: it will get its own anchor.
        let waiting = self.waiting_leads(&anchor, held, queue);
        let leads = waiting.filter(|lead| *lead <= self.behind);
        anchor.position -= leads.fold(0, i64::max);
        anchor
    }

    /// Whether the anchor's timestamps still tell where `held` belongs.
    fn is_plausible(&self, held: &Held, clock_rate: u32, queue: &Reorder) -> bool {
        let Some(anchor) = &self.anchor else {
            return false;
        };
        if anchor.run != held.run || anchor.clock_rate != clock_rate {
            return false;
        }
        let lead = self.lead(anchor, &held.frame);
        // One frame may be late; that all are means that the clock stood.
        lead <= self.ahead
            && (lead >= -self.behind
                || self
                    .waiting_leads(anchor, held, queue)
                    .any(|lead| lead >= -self.behind))
    }

    /// How far a frame runs ahead of its arrival.
    fn lead(&self, anchor: &Anchor, frame: &Frame) -> i64 {
        anchor.position_of(frame.timestamp, self.rate) - self.arrival(frame)
    }

    /// The leads of the frames that wait behind `held` in its run.
    fn waiting_leads<'a>(
        &'a self,
        anchor: &'a Anchor,
        held: &'a Held,
        queue: &'a Reorder,
    ) -> impl Iterator<Item = i64> + 'a {
        let alike = queue.waiting().take_while(|next| next.run == held.run);
        alike
            .filter(|next| next.frame.payload_type == held.frame.payload_type)
            .map(|next| self.lead(anchor, &next.frame))
    }

    /// The place of the next frame of the run, after slewing.
    fn follow(&mut self, frame: &Frame) -> i64 {
        let Self {
            rate,
            tolerance,
            end,
            ..
        } = *self;
        let arrival = self.arrival(frame);
        let anchor = self
            .anchor
            .as_mut()
            .expect("place() has just set the anchor");
        let position = anchor.position_of(frame.timestamp, rate);
        anchor.rebase(frame.timestamp, rate);
        anchor.drift.observe(position - arrival, tolerance);
        let in_pause = position > end;
        let step = if in_pause {
            anchor.drift.slew
        } else {
            anchor.drift.slew.signum()
        };
        anchor.drift.slew -= step;
        anchor.shift(-step);
        self.stats.slewed += step;
        position - step
    }

    /// Puts samples at a position, as far as that isn't given out yet.
    fn write(&mut self, position: i64, samples: &[i16]) {
        let stop = position + samples.len() as i64;
        if position < self.cursor {
            self.stats.late += 1;
        }
        if stop <= self.cursor || samples.is_empty() {
            return;
        }
        let begin = position.max(self.cursor);
        let offset = |at: i64| usize::try_from(at - self.cursor).expect("at or after the cursor");
        let (first, last) = (offset(begin), offset(stop));
        if self.pcm.len() < last {
            self.pcm.resize(last, 0);
        }
        self.pcm[first..last].copy_from_slice(&samples[samples.len() - (last - first)..]);
        // A sample put in by slewing repeats its neighbour, which nobody hears.
        if begin == self.end + 1 && first >= 2 {
            self.pcm[first - 1] = self.pcm[first - 2];
            self.received += 1;
        }
        self.received += (stop - begin.max(self.end)).max(0);
        self.end = self.end.max(stop);
    }

    /// Where a frame would stand by its arrival alone.
    fn arrival(&self, frame: &Frame) -> i64 {
        position_at(frame.at, self.start, self.rate)
    }
}

/// A duration in samples, rounded to the nearest.
pub(crate) fn samples_in(duration: Duration, rate: u32) -> i64 {
    // Below 2^30 * 2^32, with room to spare.
    let part = u64::from(duration.subsec_nanos()) * u64::from(rate);
    let rounded = (part + 500_000_000) / 1_000_000_000;
    let whole = duration.as_secs().saturating_mul(u64::from(rate));
    i64::try_from(whole.saturating_add(rounded)).unwrap_or(i64::MAX)
}

/// The position of a moment on a timeline that begins at `start`, rounded to the nearest sample.
pub(crate) fn position_at(at: Duration, start: Duration, rate: u32) -> i64 {
    if at >= start {
        samples_in(at - start, rate)
    } else {
        -samples_in(start - at, rate)
    }
}
