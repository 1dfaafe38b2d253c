//! The one stream that a leg is sent, whatever feeds it, and how numbers of a feeding stream become
//! numbers of it.
//!
//! ```text
//!  feed:   SSRC 1, 700 701 702 |  SSRC 2, 9 10 |  tone ...      each begins a Run
//!  sent:   SSRC x,  40  41  42        43 44       45 ...        one OutStream
//! ```
//!
//! A [`Run`] maps sequence numbers by an offset and timestamps by an offset and the ratio of the
//! clocks. A new run goes on one number after the last sent, at a timestamp that wall time has
//! reached since (RFC 3550 section 5.1): what listens hears one source without a jump, through
//! changes of SSRC, restarts, codecs, hold and resume.

use std::time::Instant;

use rand_core::Rng;
use rtp::{ExtSeqNo, Fields, is_newer_sequence, is_newer_timestamp, timestamp_delta};

use crate::leg::Payload;

/// A timestamp further ahead of wall time than this is a jump of the sender's, not a pause.
const MAX_AHEAD_SECONDS: i64 = 5;
/// An event, or a segment of a longer one, lasts 8.2 s at most (RFC 4733 section 2.5.1.3).
const MAX_EVENT_SECONDS: i64 = 10;

#[derive(Clone, Debug)]
pub(crate) struct OutStream {
    pub(crate) ssrc: u32,
    /// Of the newest packet sent; before the first, one less than its.
    sequence: u16,
    /// The newest sent, or the one to begin with, and when it went out.
    timestamp: u32,
    at: Option<Instant>,
    clock_rate: u32,
    /// What a packet moves the timestamp by.
    frame_units: u32,
}

impl OutStream {
    /// A stream that begins at random numbers (RFC 3550 section 5.1).
    pub(crate) fn new(random: &mut impl Rng) -> Self {
        Self {
            ssrc: random.next_u32(),
            sequence: random.next_u32() as u16,
            timestamp: random.next_u32(),
            at: None,
            clock_rate: 8_000,
            frame_units: 160,
        }
    }

    pub(crate) fn set_format(&mut self, clock_rate: u32, ptime_ms: u32) {
        self.clock_rate = clock_rate.max(1);
        self.frame_units =
            (u64::from(clock_rate) * u64::from(ptime_ms.clamp(1, 1_000)) / 1_000) as u32;
    }

    pub(crate) fn next_sequence(&self) -> u16 {
        self.sequence.wrapping_add(1)
    }

    /// The timestamp that a packet has which follows on from the last, or from a pause after it.
    fn next_timestamp(&self, now: Instant) -> u32 {
        match self.at {
            None => self.timestamp,
            Some(_) => {
                let units = self.elapsed_units(now).max(self.frame_units.into());
                self.timestamp.wrapping_add(units as u32)
            }
        }
    }

    fn elapsed_units(&self, now: Instant) -> u64 {
        let elapsed = self
            .at
            .map_or(0, |at| now.saturating_duration_since(at).as_nanos());
        (elapsed * u128::from(self.clock_rate) / 1_000_000_000) as u64
    }

    /// Whether a timestamp comes neither before the last one nor far ahead of wall time. That of an
    /// event may lie back: it stands still while audio goes on beside it (RFC 4733 section 2.2).
    fn is_plausible(&self, now: Instant, timestamp: u32, payload: Payload) -> bool {
        let clock_rate = i64::from(self.clock_rate);
        let ahead = i64::from(timestamp_delta(timestamp, self.timestamp));
        let limit = self.elapsed_units(now) as i64 + MAX_AHEAD_SECONDS * clock_rate;
        let back = if payload == Payload::Event {
            MAX_EVENT_SECONDS * clock_rate
        } else {
            0
        };
        self.at.is_none() || (-back..=limit).contains(&ahead)
    }

    /// Accounts for a packet that was sent.
    pub(crate) fn record(&mut self, now: Instant, fields: &Fields) {
        if is_newer_sequence(fields.sequence, self.sequence) {
            self.sequence = fields.sequence;
        }
        if self.at.is_none() || is_newer_timestamp(fields.timestamp, self.timestamp) {
            self.timestamp = fields.timestamp;
            self.at = Some(now);
        }
    }
}

/// A stretch of a feeding stream within which numbers follow from each other.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    /// From `boundary` on, numbers are sent with `offset` added; from `floor` up to it with
    /// `offset_before`; below it they are not sent.
    floor: ExtSeqNo,
    boundary: ExtSeqNo,
    offset_before: u16,
    offset: u16,
    in_timestamp: u32,
    out_timestamp: u32,
    in_clock: u32,
    out_clock: u32,
}

impl Run {
    /// Begins with a packet of this number and timestamp of a stream with this clock.
    pub(crate) fn begin(
        now: Instant,
        number: ExtSeqNo,
        timestamp: u32,
        clock_rate: u32,
        out: &OutStream,
    ) -> Self {
        let offset = out.next_sequence().wrapping_sub(number.sequence());
        Self {
            floor: number,
            boundary: number,
            offset_before: offset,
            offset,
            in_timestamp: timestamp,
            out_timestamp: out.next_timestamp(now),
            in_clock: clock_rate.max(1),
            out_clock: out.clock_rate,
        }
    }

    /// The number to send; `None` for a packet from before this run.
    pub(crate) fn sequence(&self, number: ExtSeqNo) -> Option<u16> {
        let offset = if number >= self.boundary {
            self.offset
        } else {
            self.offset_before
        };
        (number >= self.floor).then(|| number.sequence().wrapping_add(offset))
    }

    /// Leaves out the newest packet, which is not passed on: the next one takes its number.
    pub(crate) fn leave_out(&mut self, number: ExtSeqNo) {
        if number != self.boundary {
            self.floor = self.boundary;
            self.offset_before = self.offset;
        }
        self.boundary = ExtSeqNo(number.0 + 1);
        self.offset = self.offset.wrapping_sub(1);
    }

    /// The timestamp to send.
    pub(crate) fn timestamp(&self, timestamp: u32) -> u32 {
        let ahead = i64::from(timestamp_delta(timestamp, self.in_timestamp));
        self.out_timestamp.wrapping_add(self.scale(ahead) as u32)
    }

    /// A duration in units of the clock that is sent.
    pub(crate) fn scale(&self, units: i64) -> i64 {
        if self.in_clock == self.out_clock {
            return units;
        }
        (units * i64::from(self.out_clock)).div_euclid(i64::from(self.in_clock))
    }

    pub(crate) fn clocks_differ(&self) -> bool {
        self.in_clock != self.out_clock
    }

    /// Whether a packet's timestamp can follow what was sent.
    pub(crate) fn fits(
        &self,
        now: Instant,
        timestamp: u32,
        payload: Payload,
        out: &OutStream,
    ) -> bool {
        out.is_plausible(now, self.timestamp(timestamp), payload)
    }

    /// Makes sure that the newest packet gets a timestamp that can follow what was sent; where the
    /// sender's clock has jumped, timestamps go on from wall time. Returns whether it has.
    pub(crate) fn settle_timestamp(
        &mut self,
        now: Instant,
        timestamp: u32,
        payload: Payload,
        out: &OutStream,
    ) -> bool {
        let jumped = !self.fits(now, timestamp, payload, out);
        if jumped {
            self.in_timestamp = timestamp;
            self.out_timestamp = out.next_timestamp(now);
        } else {
            self.move_origin(timestamp);
        }
        jumped
    }

    /// Moves the origin along by whole seconds, once an hour: differences are taken modulo 2^32,
    /// and a scaled one must not wrap.
    pub(crate) fn move_origin(&mut self, timestamp: u32) {
        let ahead = timestamp_delta(timestamp, self.in_timestamp);
        let hour = self.in_clock.saturating_mul(3_600).min(1 << 30);
        if let Ok(ahead) = u32::try_from(ahead)
            && ahead >= hour
        {
            let seconds = ahead / self.in_clock;
            self.in_timestamp = self
                .in_timestamp
                .wrapping_add(seconds.wrapping_mul(self.in_clock));
            self.out_timestamp = self
                .out_timestamp
                .wrapping_add(seconds.wrapping_mul(self.out_clock));
        }
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests begin now")]
mod tests {
    use std::time::Duration;

    use super::*;

    fn out(sequence: u16, timestamp: u32) -> OutStream {
        OutStream {
            ssrc: 1,
            sequence,
            timestamp,
            at: None,
            clock_rate: 8_000,
            frame_units: 160,
        }
    }

    #[test]
    fn a_new_run_goes_on_after_the_last_packet_at_wall_time() {
        let now = Instant::now();
        let mut stream = out(65_534, u32::MAX - 100);
        let first = Run::begin(now, ExtSeqNo::first(7), 5_000, 8_000, &stream);
        assert_eq!(first.sequence(ExtSeqNo::first(7)), Some(65_535));
        assert_eq!(
            first.timestamp(5_000),
            u32::MAX - 100,
            "nothing was sent before"
        );
        stream.record(
            now,
            &Fields {
                sequence: 65_535,
                timestamp: u32::MAX - 100,
                ..Fields::default()
            },
        );
        let later = now + Duration::from_millis(500);
        let second = Run::begin(later, ExtSeqNo::first(900), 77, 8_000, &stream);
        assert_eq!(second.sequence(ExtSeqNo::first(901)), Some(1));
        assert_eq!(second.timestamp(77), (u32::MAX - 100).wrapping_add(4_000));
        let at_once = Run::begin(now, ExtSeqNo::first(900), 77, 8_000, &stream);
        assert_eq!(
            at_once.timestamp(77),
            (u32::MAX - 100).wrapping_add(160),
            "a frame at least"
        );
    }

    #[test]
    fn packets_left_out_leave_no_hole() {
        let now = Instant::now();
        let mut run = Run::begin(now, ExtSeqNo::first(100), 0, 8_000, &out(999, 0));
        let sent = |run: &Run, number| run.sequence(ExtSeqNo::first(number));
        assert_eq!(sent(&run, 100), Some(1_000));
        run.leave_out(ExtSeqNo::first(102));
        run.leave_out(ExtSeqNo::first(103));
        assert_eq!(sent(&run, 104), Some(1_002));
        assert_eq!(sent(&run, 101), Some(1_001), "late, from before the gap");
        assert_eq!(sent(&run, 99), None);
        run.leave_out(ExtSeqNo::first(105));
        assert_eq!(sent(&run, 106), Some(1_003));
        assert_eq!(sent(&run, 104), Some(1_002), "late, from between the gaps");
        assert_eq!(sent(&run, 101), None, "too late to know");
    }

    #[test]
    fn timestamps_are_scaled_from_clock_to_clock_both_ways() {
        let mut stream = out(0, 1_000);
        stream.set_format(48_000, 20);
        let run = Run::begin(Instant::now(), ExtSeqNo::first(0), 10_000, 8_000, &stream);
        assert_eq!(run.timestamp(10_160), 1_960);
        assert_eq!(run.timestamp(9_840), 40);
        assert_eq!(run.scale(800), 4_800);
    }

    #[test]
    fn a_clock_that_jumps_is_brought_back_to_wall_time() {
        let now = Instant::now();
        let mut stream = out(0, 0);
        let mut run = Run::begin(now, ExtSeqNo::first(0), 0, 8_000, &stream);
        stream.record(
            now,
            &Fields {
                sequence: 1,
                timestamp: 8_000,
                ..Fields::default()
            },
        );
        let later = now + Duration::from_millis(20);
        for (timestamp, jumped) in [
            (8_160, false),
            (7_840, true),
            (8_000 + 41_000, true),
            (8_000 + 40_000, false),
        ] {
            let mut run = run.clone();
            assert_eq!(
                run.settle_timestamp(later, timestamp, Payload::Audio, &stream),
                jumped,
                "{timestamp}"
            );
            let expected = if jumped { 8_160 } else { timestamp };
            assert_eq!(run.timestamp(timestamp), expected);
        }
        let same_again = run.settle_timestamp(later, 8_000, Payload::Audio, &stream);
        assert!(!same_again);
        for (back, jumped) in [(80_000, false), (80_001, true)] {
            let timestamp = 8_000_u32.wrapping_sub(back);
            let mut run = run.clone();
            let found = run.settle_timestamp(later, timestamp, Payload::Event, &stream);
            assert_eq!(found, jumped, "an event that began {back} units ago");
        }
    }

    #[test]
    fn the_origin_moves_along_without_moving_the_map() {
        let mut stream = out(0, 50);
        stream.set_format(8_000, 20);
        let fixed = Run::begin(Instant::now(), ExtSeqNo::first(0), 7, 48_000, &stream);
        let mut moved = fixed.clone();
        let at = 7 + 48_000 * 4_000 + 960;
        moved.move_origin(at);
        assert_ne!(moved.in_timestamp, fixed.in_timestamp);
        for timestamp in [at, at + 961, at - 959] {
            assert_eq!(moved.timestamp(timestamp), fixed.timestamp(timestamp));
        }
    }
}
