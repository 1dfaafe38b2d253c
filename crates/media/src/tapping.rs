//! A session's side of its tap: frames as they come, and what their payload numbers mean.
//!
//! Side A is what leg A's peer says. Side B is what leg B's peer says, or, in a session of one leg,
//! what we say to leg A. Only audio is tapped; pauses and telephone-events show as gaps in the
//! timestamps.

use std::time::{Duration, Instant};

use audio::tap::{TapFrame, TapMark, TapWriter};
use rtp::Fields;

use crate::command::{PayloadFormat, Side};

#[derive(Debug)]
pub(crate) struct Tapping {
    epoch: Instant,
    writer: Option<TapWriter>,
}

impl Tapping {
    pub(crate) fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            writer: None,
        }
    }

    /// Sets another writer, or none; the one before is told to stop.
    pub(crate) fn set(&mut self, now: Instant, writer: Option<TapWriter>) {
        let at = self.at(now);
        if let Some(old) = &mut self.writer {
            old.mark(&TapMark::Stop { at });
        }
        self.writer = writer;
        if let Some(new) = &mut self.writer {
            new.mark(&TapMark::Start { at });
        }
    }

    /// Says what a payload number of a side means from now on, and at which sample rate it is to be
    /// decoded; 0 for the codec's own.
    pub(crate) fn mark_codec(
        &mut self,
        now: Instant,
        side: Side,
        payload_type: u8,
        format: &PayloadFormat,
        sample_rate: u32,
    ) {
        let at = self.at(now);
        if let Some(writer) = &mut self.writer {
            writer.mark(&TapMark::Codec {
                at,
                side: side.index() as u8,
                payload_type,
                name: &format.name,
                clock_rate: format.clock_rate,
                channels: format.channels,
                sample_rate,
                fmtp: format.fmtp.as_deref().unwrap_or_default(),
            });
        }
    }

    /// Hands a frame over. Cost: no allocation, no waiting.
    pub(crate) fn push(&mut self, now: Instant, side: Side, fields: &Fields, payload: &[u8]) {
        let at = self.at(now);
        if let Some(writer) = &mut self.writer {
            writer.push(&TapFrame {
                side: side.index() as u8,
                at,
                ssrc: fields.ssrc,
                sequence: fields.sequence,
                timestamp: fields.timestamp,
                payload_type: fields.payload_type,
                payload,
            });
        }
    }

    fn at(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.epoch)
    }
}
