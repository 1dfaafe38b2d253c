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

use audio::Decoder;

use crate::reorder::{Frame, Reorder};
use crate::track::{Format, Track, TrackStats, position_at, samples_in};

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
        Self { sample_rate: 8000, layout: Layout::Stereo, hold: Duration::from_millis(150) }
    }
}

/// Slack for the time between an arrival's stamp and its coming out of the tap.
const SLACK: Duration = Duration::from_millis(50);

/// One recording between tap and file.
pub struct Timeline {
    settings: Settings,
    legs: Option<[(Reorder, Track); 2]>,
    start: Duration,
    /// Latest moment known to have passed.
    now: Duration,
    /// Length in samples, once the end is known.
    total: Option<i64>,
    drained: i64,
    formats: Vec<(usize, Format)>,
}

impl Timeline {
    /// A timeline that waits for its start mark, or for its first frame.
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            legs: None,
            start: Duration::ZERO,
            now: Duration::ZERO,
            total: None,
            drained: 0,
            formats: Vec::new(),
        }
    }

    /// How far behind the clock samples are given out.
    pub fn lag(&self) -> Duration {
        self.settings.hold * 2 + SLACK
    }

    /// The start mark: the recording begins here. Only the first counts.
    pub fn handle_start(&mut self, at: Duration) {
        if self.legs.is_some() {
            return;
        }
        let Settings { sample_rate, hold, .. } = self.settings;
        let leg = || (Reorder::new(hold), Track::new(sample_rate, at, hold));
        let legs = self.legs.insert([leg(), leg()]);
        for (side, format) in self.formats.drain(..) {
            legs[side].1.set_format(format);
        }
        self.start = at;
        self.now = at;
    }

    /// What `payload_type` means on a side (0 is leg A, 1 is leg B) from here on. `clock_rate` is
    /// the RTP clock in Hz.
    ///
    /// The decoder's output must have the recording's rate, in one channel.
    pub fn handle_codec(
        &mut self,
        side: usize,
        payload_type: u8,
        clock_rate: u32,
        decoder: Box<dyn Decoder>,
    ) {
        let format = Format { payload_type, clock_rate: clock_rate.max(1), decoder };
        match &mut self.legs {
            Some(legs) => {
                // Frames before the change belong to the old meaning; those that wait for a
                // straggler are few, and take the new one only when the number was reused.
                if let Some((_, track)) = legs.get_mut(side) {
                    track.set_format(format);
                }
            }
            None if side < 2 => self.formats.push((side, format)),
            None => {}
        }
    }

    /// One frame of a side, in order of arrival. `head.payload` is ignored; `scratch` takes at least
    /// [`MAX_FRAME_SAMPLES`](crate::MAX_FRAME_SAMPLES).
    pub fn handle_frame(
        &mut self,
        side: usize,
        head: &Frame,
        payload: &[u8],
        scratch: &mut [i16],
    ) {
        if self.total.is_some() {
            return;
        }
        self.handle_start(head.at);
        self.now = self.now.max(head.at);
        let leg = self.legs.as_mut().and_then(|legs| legs.get_mut(side));
        let Some((queue, track)) = leg else { return };
        queue.push(head, payload);
        release(queue, track, head.at, scratch);
    }

    /// The clock says `now`: frames held long enough are placed, and samples become due.
    pub fn handle_timeout(&mut self, now: Duration, scratch: &mut [i16]) {
        self.now = self.now.max(now);
        for (queue, track) in self.legs.iter_mut().flatten() {
            release(queue, track, self.now, scratch);
        }
    }

    /// The stop mark: the recording ends here, to the sample. Only the first counts.
    pub fn handle_stop(&mut self, at: Duration, scratch: &mut [i16]) {
        if self.total.is_some() {
            return;
        }
        self.handle_start(at);
        for (queue, track) in self.legs.iter_mut().flatten() {
            while let Some(held) = queue.pop() {
                track.place(&held, queue, scratch);
                queue.recycle(held.frame);
            }
        }
        let length = position_at(at, self.start, self.settings.sample_rate);
        self.total = Some(length.max(self.drained));
    }

    /// The tap ended without a stop mark: the recording ends at the latest moment known.
    pub fn handle_closed(&mut self, scratch: &mut [i16]) {
        self.handle_stop(self.now, scratch);
    }

    /// Samples per channel that are due and not yet drained.
    pub fn due(&self) -> usize {
        let until = self.total.unwrap_or_else(|| {
            let behind = self.now.saturating_sub(self.lag());
            position_at(behind.max(self.start), self.start, self.settings.sample_rate)
        });
        usize::try_from(until - self.drained).unwrap_or(0)
    }

    /// Appends up to `max` due samples per channel to `out`, interleaved; returns how many.
    pub fn drain(&mut self, max: usize, out: &mut Vec<i16>) -> usize {
        let count = self.due().min(max);
        let Some([(_, a), (_, b)]) = &mut self.legs else { return 0 };
        let until = self.drained + count as i64;
        let base = out.len();
        match self.settings.layout {
            Layout::Mono => {
                a.drain(until, |sample| out.push(sample));
                let mut rest = out[base..].iter_mut();
                b.drain(until, |sample| {
                    if let Some(sum) = rest.next() {
                        *sum = sum.saturating_add(sample);
                    }
                });
            }
            Layout::Stereo => {
                a.drain(until, |sample| out.extend([sample, 0]));
                let mut right = out[base..].iter_mut().skip(1).step_by(2);
                b.drain(until, |sample| {
                    if let Some(slot) = right.next() {
                        *slot = sample;
                    }
                });
            }
        }
        self.drained = until;
        count
    }

    /// Whether the end is known and every sample was drained.
    pub fn is_done(&self) -> bool {
        self.total == Some(self.drained)
    }

    /// Samples per channel drained so far.
    pub fn samples(&self) -> u64 {
        self.drained.unsigned_abs()
    }

    /// The account of both legs, as of the samples drained.
    pub fn stats(&self) -> [TrackStats; 2] {
        let total = self.drained;
        match &self.legs {
            Some(legs) => legs.each_ref().map(|(queue, track)| track.stats(queue, total)),
            None => Default::default(),
        }
    }

    /// A duration in samples of this recording.
    pub fn samples_in(&self, duration: Duration) -> u64 {
        samples_in(duration, self.settings.sample_rate).unsigned_abs()
    }
}

fn release(queue: &mut Reorder, track: &mut Track, now: Duration, scratch: &mut [i16]) {
    while let Some(held) = queue.pop_due(now) {
        track.place(&held, queue, scratch);
        queue.recycle(held.frame);
    }
}
