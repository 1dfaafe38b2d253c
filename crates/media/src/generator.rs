//! Sound of our own, one packet each packet time: tone, clip, beep, silence.
//!
//! ```text
//!  Source -> PCM -> Encoder -> packet n at started + n x packet time
//! ```
//!
//! Deadlines are counted from the start, so that late ticks do not add up. Packets that are late
//! leave together, five at most; what is more is passed over, in sound and in timestamps. Without
//! anywhere to send to, time passes all the same.

use std::time::Instant;

use audio::clip::Clip;
use audio::level::Dbm0;
use audio::tone::Tone;
use audio::{Codec, CodecInfo, Encoder};
use rtp::{ExtSeqNo, Fields, HEADER_BYTES};

use crate::Outbox;
use crate::command::{LegSpec, Program, Side};
use crate::leg::{Leg, Notice, Notices};
use crate::session::SessionError;
use crate::stream::Run;
use crate::tapping::Tapping;
use crate::transcode::{duration, negotiated};

const MAX_BURST: u64 = 5;
/// The beep before a recording.
const BEEP_HZ: f32 = 1_000.0;
const BEEP_LEVEL: Dbm0 = Dbm0(-13.0);
const BEEP_MS: u64 = 400;

#[derive(Debug)]
pub(crate) enum Source {
    Silence,
    Tone(Tone),
    Beep { tone: Tone, left: u64 },
    Clip { clip: Clip, at: usize, repeat: bool },
}

impl Source {
    /// What a program plays; `None` for the programs that play nothing.
    pub(crate) fn new(
        program: &Program,
        clip: Option<&Clip>,
        sample_rate: u32,
    ) -> Result<Option<Self>, SessionError> {
        Ok(Some(match *program {
            Program::Bridge | Program::Echo { .. } => return Ok(None),
            Program::Silence | Program::Record { beep: false } => Self::Silence,
            Program::Tone { hz, level_dbm0 } => {
                Self::Tone(Tone::new(hz, Dbm0(level_dbm0), sample_rate))
            }
            Program::Record { beep: true } => Self::Beep {
                tone: Tone::new(BEEP_HZ, BEEP_LEVEL, sample_rate),
                left: u64::from(sample_rate) * BEEP_MS / 1_000,
            },
            Program::Play { repeat, .. } => {
                let clip = clip.ok_or(SessionError::Incomplete)?;
                Self::Clip {
                    clip: clip.at_rate(sample_rate),
                    at: 0,
                    repeat,
                }
            }
        }))
    }

    /// Writes the next samples. Returns whether a clip has come to its end with them.
    fn fill(&mut self, out: &mut [i16]) -> bool {
        match self {
            Self::Silence => out.fill(0),
            Self::Tone(tone) => tone.fill(out),
            Self::Beep { tone, left } => {
                let (sound, rest) = out.split_at_mut((*left).min(out.len() as u64) as usize);
                tone.fill(sound);
                rest.fill(0);
                *left -= sound.len() as u64;
                if *left == 0 {
                    *self = Self::Silence;
                }
            }
            Self::Clip { clip, at, repeat } => return play(&clip.samples, at, *repeat, out),
        }
        false
    }

    /// Passes over samples that come too late; a clip waits.
    fn skip(&mut self, samples: u64) {
        match self {
            Self::Tone(tone) => tone.skip(samples),
            Self::Beep { left, .. } => *left = left.saturating_sub(samples),
            Self::Silence | Self::Clip { .. } => {}
        }
    }
}

/// Copies from a clip, round and round or up to its end and silence after it.
fn play(samples: &[i16], at: &mut usize, repeat: bool, out: &mut [i16]) -> bool {
    let begun = *at;
    let mut rest = out;
    while !rest.is_empty() {
        if *at == samples.len() && repeat {
            *at = 0;
        }
        let left = &samples[*at..];
        if left.is_empty() {
            rest.fill(0);
            break;
        }
        let count = left.len().min(rest.len());
        let (now, later) = rest.split_at_mut(count);
        now.copy_from_slice(&left[..count]);
        *at += count;
        rest = later;
    }
    !repeat && *at == samples.len() && (begun < samples.len() || samples.is_empty())
}

pub(crate) struct Generator {
    source: Source,
    finished: bool,
    encoder: Box<dyn Encoder>,
    info: CodecInfo,
    pcm: Box<[i16]>,
    packet: Box<[u8]>,
    /// Frame 0's deadline, and the frame that is next; no clock runs while the leg is on hold.
    started: Option<Instant>,
    next: u64,
    run: Option<Run>,
}

impl Generator {
    pub(crate) fn new(
        source: Source,
        codec: &dyn Codec,
        spec: &LegSpec,
    ) -> Result<Self, SessionError> {
        let encoder = negotiated(codec, spec, codec.info().sample_rate)
            .and_then(|params| codec.encoder(&params).ok())
            .ok_or(SessionError::Codec { side: Side::A })?;
        let info = codec.info().clone();
        Ok(Self {
            source,
            finished: false,
            pcm: vec![0; encoder.frame_samples() * usize::from(info.channels)].into(),
            packet: vec![0; HEADER_BYTES + info.max_payload_bytes].into(),
            encoder,
            info,
            started: None,
            next: 0,
            run: None,
        })
    }

    /// Goes on with the sound of a generator for another format, where the sample rate is the same.
    pub(crate) fn take_over(&mut self, old: Self) {
        if old.info.sample_rate == self.info.sample_rate {
            self.source = old.source;
            self.finished = old.finished;
        }
    }

    /// Starts the clock, or stops it, as the leg may be sent to or not. Sound goes on where it was.
    pub(crate) fn set_running(&mut self, now: Instant, running: bool) {
        if running != self.started.is_some() {
            self.started = running.then_some(now);
            self.next = 0;
            self.run = None;
        }
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        let samples = usize::try_from(self.next).ok()? * self.encoder.frame_samples();
        Some(self.started? + duration(samples, self.info.sample_rate))
    }

    /// Sends what is due.
    pub(crate) fn handle_timeout(
        &mut self,
        now: Instant,
        leg: &mut Leg,
        tapping: &mut Tapping,
        notices: &mut Notices,
        out: &mut dyn Outbox,
    ) {
        let Some(started) = self.started else { return };
        let frame = self.encoder.frame_samples() as u64;
        let period = duration(frame as usize, self.info.sample_rate)
            .as_nanos()
            .max(1);
        let elapsed = now.saturating_duration_since(started).as_nanos();
        let behind = ((elapsed / period) as u64 + 1).saturating_sub(self.next);
        if behind > MAX_BURST {
            self.source.skip((behind - MAX_BURST) * frame);
            self.next += behind - MAX_BURST;
        }
        while self.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.emit(now, leg, tapping, notices, out);
        }
    }

    fn emit(
        &mut self,
        now: Instant,
        leg: &mut Leg,
        tapping: &mut Tapping,
        notices: &mut Notices,
        out: &mut dyn Outbox,
    ) {
        let frame = self.encoder.frame_samples();
        let timestamp = (self.next as u32).wrapping_mul(self.info.clock_units(frame));
        self.next += 1;
        if self.source.fill(&mut self.pcm[..frame]) && !self.finished {
            self.finished = true;
            notices.push(Notice::PlayFinished);
        }
        self.spread();
        let (header, payload) = self.packet.split_at_mut(HEADER_BYTES);
        let Ok(len) = self.encoder.encode(&self.pcm, payload) else {
            return;
        };
        let Ok(header) = header.try_into() else {
            return;
        };
        let marker = self.run.is_none();
        let clock_rate = self.info.clock_rate;
        let begin = || Run::begin(now, ExtSeqNo::first(0), timestamp, clock_rate, &leg.out);
        let run = self.run.get_or_insert_with(begin);
        run.move_origin(timestamp);
        let fields = Fields {
            marker,
            payload_type: leg.spec.format.payload_type,
            sequence: leg.out.next_sequence(),
            timestamp: run.timestamp(timestamp),
            ssrc: leg.out.ssrc,
        };
        fields.write(header);
        let packet = &self.packet[..HEADER_BYTES + len];
        if leg.transmit(now, &fields, packet, out) {
            tapping.push(now, Side::B, &fields, &packet[HEADER_BYTES..]);
        }
    }

    /// Gives every channel the same sound.
    fn spread(&mut self) {
        let channels = usize::from(self.info.channels);
        for place in (0..self.pcm.len()).rev().filter(|_| channels > 1) {
            self.pcm[place] = self.pcm[place / channels];
        }
    }
}

impl std::fmt::Debug for Generator {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Generator")
            .field("codec", &self.info.name)
            .field("started", &self.started)
            .field("next", &self.next)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clip_is_played_once_or_round_and_round() {
        let samples = [1, 2, 3];
        let (mut once, mut round) = (0, 0);
        let mut out = [9; 5];
        assert!(play(&samples, &mut once, false, &mut out));
        assert_eq!(out, [1, 2, 3, 0, 0]);
        assert!(!play(&samples, &mut once, false, &mut out), "it ends once");
        assert_eq!(out, [0; 5]);
        assert!(!play(&samples, &mut round, true, &mut out));
        assert_eq!(out, [1, 2, 3, 1, 2]);
        assert!(!play(&samples, &mut round, true, &mut out));
        assert_eq!(out, [3, 1, 2, 3, 1]);
    }

    #[test]
    fn an_empty_clip_ends_at_once_and_never_hangs() {
        let mut out = [9; 4];
        assert!(play(&[], &mut 0, false, &mut out));
        assert!(!play(&[], &mut 0, true, &mut out));
        assert_eq!(out, [0; 4]);
    }

    #[test]
    fn a_beep_is_followed_by_silence() {
        let program = Program::Record { beep: true };
        let mut source = Source::new(&program, None, 8_000)
            .expect("no clip needed")
            .expect("sound");
        let mut out = [1; 3_200];
        source.fill(&mut out);
        assert!(audio::level::dbm0(&out).0 > -14.0);
        source.fill(&mut out);
        assert_eq!(out, [0; 3_200]);
    }
}
