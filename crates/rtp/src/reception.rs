//! What is kept of a source of RTP packets (RFC 3550 appendix A.1, A.3, A.8).
//!
//! ```text
//!            behind by 1..=100              ahead by 1..3000
//!   Late, Duplicate  <----- highest number -----> InOrder { missing }
//!                     anything else: Jump; if the next packet follows on: Restarted
//!   another SSRC: NewSource at once; back to the SSRC before: only when two packets follow on
//! ```
//!
//! One departure from A.1: a source is valid from its first packet, not after `MIN_SEQUENTIAL`,
//! because signalling has announced it and its owner has checked where it comes from. Loss is
//! counted over all streams of a source; jitter starts anew with each.

use std::time::Duration;

use crate::header::Fields;
use crate::sequence::{ExtSeqNo, clock_units};

/// Packets ahead beyond which a number is a jump (A.1).
pub const MAX_DROPOUT: u16 = 3000;
/// Packets behind beyond which a number is a jump (A.1).
pub const MAX_MISORDER: u16 = 100;

/// How a packet fits into its stream.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// The first packet of the first stream.
    First,
    /// The newest so far.
    InOrder {
        /// Numbers skipped right before it.
        missing: u16,
    },
    /// Older than the newest, and not seen before.
    Late,
    /// Seen before, or too old to say.
    Duplicate,
    /// Far from all that came: not to be used, unless the next one follows on.
    Jump,
    /// The sender has started again under the same SSRC: a new stream begins.
    Restarted,
    /// The sender has changed its SSRC: a new stream begins.
    NewSource,
}

impl Arrival {
    /// Whether a stream begins with this packet.
    #[must_use]
    pub fn is_start(self) -> bool {
        matches!(self, Self::First | Self::Restarted | Self::NewSource)
    }

    /// Whether the packet is the newest of its stream.
    #[must_use]
    pub fn is_newest(self) -> bool {
        self.is_start() || matches!(self, Self::InOrder { .. })
    }
}

/// State of the stream that is on.
#[derive(Copy, Clone, Debug)]
struct Stream {
    ssrc: u32,
    base: ExtSeqNo,
    highest: ExtSeqNo,
    received: u64,
    /// Bit n: the number `highest - n` has come.
    seen: u64,
    /// Relative transit time of the latest packet, and its timestamp.
    transit: Option<(u32, u32)>,
    /// Interarrival jitter, times 16.
    jitter_q4: u32,
}

/// A candidate for the next stream: SSRC and the number that would confirm it.
type Candidate = (u32, u16);

/// Reception statistics of one source.
#[derive(Clone, Debug, Default)]
pub struct Reception {
    stream: Option<Stream>,
    candidate: Option<Candidate>,
    ssrc_before: Option<u32>,
    streams: u32,
    lost_before: i64,
}

impl Reception {
    /// A source that has not been heard.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Accounts for a packet.
    pub fn handle_packet(&mut self, fields: &Fields) -> Arrival {
        let Some(stream) = &mut self.stream else {
            self.begin(fields);
            return Arrival::First;
        };
        if stream.ssrc != fields.ssrc {
            if self.ssrc_before == Some(fields.ssrc) && !self.confirms(fields) {
                return Arrival::Late;
            }
            self.begin(fields);
            return Arrival::NewSource;
        }
        let ahead = fields.sequence.wrapping_sub(stream.highest.sequence());
        let behind = stream.highest.sequence().wrapping_sub(fields.sequence);
        if ahead == 0 {
            return Arrival::Duplicate;
        }
        if ahead < MAX_DROPOUT {
            stream.highest.0 += u64::from(ahead);
            stream.seen = stream.seen.checked_shl(ahead.into()).unwrap_or(0) | 1;
            stream.received += 1;
            self.candidate = None;
            return Arrival::InOrder { missing: ahead - 1 };
        }
        if behind <= MAX_MISORDER {
            let bit = 1_u64.checked_shl(behind.into()).unwrap_or(0);
            if bit == 0 || stream.seen & bit != 0 {
                return Arrival::Duplicate;
            }
            stream.seen |= bit;
            stream.received += 1;
            stream.base = stream.base.min(stream.highest.nearest(fields.sequence));
            return Arrival::Late;
        }
        if self.confirms(fields) {
            self.begin(fields);
            return Arrival::Restarted;
        }
        Arrival::Jump
    }

    /// Takes the time of an audio packet into account; telephone-events, whose timestamps stand
    /// still, are left out. `arrival` is the time since an epoch of the caller's.
    pub fn handle_timing(&mut self, timestamp: u32, arrival: Duration, clock_rate: u32) {
        let Some(stream) = &mut self.stream else {
            return;
        };
        let transit = (clock_units(arrival, clock_rate) as u32).wrapping_sub(timestamp);
        if let Some((before, its_timestamp)) = stream.transit
            && its_timestamp != timestamp
        {
            let change = (transit.wrapping_sub(before) as i32).unsigned_abs();
            let jitter = stream.jitter_q4;
            stream.jitter_q4 = jitter
                .saturating_add(change)
                .saturating_sub((jitter + 8) >> 4);
        }
        stream.transit = Some((transit, timestamp));
    }

    /// Forgets when the last packet came: the next has another clock.
    pub fn restart_timing(&mut self) {
        if let Some(stream) = &mut self.stream {
            stream.transit = None;
            stream.jitter_q4 = 0;
        }
    }

    /// Interarrival jitter of the current stream, in units of its clock.
    #[must_use]
    pub fn jitter(&self) -> u32 {
        self.stream.map_or(0, |stream| stream.jitter_q4 >> 4)
    }

    /// The SSRC of the current stream.
    #[must_use]
    pub fn ssrc(&self) -> Option<u32> {
        self.stream.map(|stream| stream.ssrc)
    }

    /// The newest packet's extended number.
    #[must_use]
    pub fn highest(&self) -> Option<ExtSeqNo> {
        self.stream.map(|stream| stream.highest)
    }

    /// The extended number that a packet of the current stream has.
    #[must_use]
    pub fn extend(&self, sequence: u16) -> ExtSeqNo {
        let Some(stream) = &self.stream else {
            return ExtSeqNo::first(sequence);
        };
        stream.highest.nearest(sequence)
    }

    /// Packets expected less packets that came, over all streams (A.3). Duplicates are not counted
    /// as come.
    #[must_use]
    pub fn lost(&self) -> i64 {
        self.lost_before + self.stream.as_ref().map_or(0, Stream::lost)
    }

    /// Streams so far.
    #[must_use]
    pub fn streams(&self) -> u32 {
        self.streams
    }

    /// Whether this packet follows on from the candidate; else it becomes the candidate.
    fn confirms(&mut self, fields: &Fields) -> bool {
        let expected = self
            .candidate
            .replace((fields.ssrc, fields.sequence.wrapping_add(1)));
        expected == Some((fields.ssrc, fields.sequence))
    }

    fn begin(&mut self, fields: &Fields) {
        if let Some(before) = self.stream.take() {
            self.lost_before += before.lost();
            if before.ssrc != fields.ssrc {
                self.ssrc_before = Some(before.ssrc);
            }
        }
        let number = ExtSeqNo::first(fields.sequence);
        self.stream = Some(Stream {
            ssrc: fields.ssrc,
            base: number,
            highest: number,
            received: 1,
            seen: 1,
            transit: None,
            jitter_q4: 0,
        });
        self.candidate = None;
        self.streams += 1;
    }
}

impl Stream {
    fn lost(&self) -> i64 {
        (self.highest.0 - self.base.0 + 1) as i64 - self.received as i64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(ssrc: u32, sequence: u16) -> Fields {
        Fields {
            ssrc,
            sequence,
            ..Fields::default()
        }
    }

    fn arrivals(reception: &mut Reception, sequences: &[u16]) -> Vec<Arrival> {
        sequences
            .iter()
            .map(|&number| reception.handle_packet(&fields(1, number)))
            .collect()
    }

    #[test]
    fn loss_is_counted_across_the_wrap() {
        let mut reception = Reception::new();
        let seen = arrivals(&mut reception, &[65_533, 65_534, 1, 2]);
        assert_eq!(seen[0], Arrival::First);
        assert_eq!(seen[2], Arrival::InOrder { missing: 2 });
        assert_eq!(reception.lost(), 2);
        assert_eq!(
            arrivals(&mut reception, &[65_535, 0]),
            [Arrival::Late, Arrival::Late]
        );
        assert_eq!(reception.lost(), 0);
    }

    #[test]
    fn what_comes_twice_is_a_duplicate() {
        let mut reception = Reception::new();
        arrivals(&mut reception, &[10, 12]);
        assert_eq!(
            arrivals(&mut reception, &[12, 11, 11, 10]),
            [
                Arrival::Duplicate,
                Arrival::Late,
                Arrival::Duplicate,
                Arrival::Duplicate
            ]
        );
        assert_eq!(reception.lost(), 0);
    }

    #[test]
    fn a_packet_from_before_the_first_is_expected_too() {
        let mut reception = Reception::new();
        assert_eq!(
            arrivals(&mut reception, &[100, 98]),
            [Arrival::First, Arrival::Late]
        );
        assert_eq!(reception.lost(), 1, "99 is missing");
        assert_eq!(arrivals(&mut reception, &[99]), [Arrival::Late]);
        assert_eq!(reception.lost(), 0);
    }

    #[test]
    fn a_number_too_old_to_judge_counts_as_seen() {
        let mut reception = Reception::new();
        arrivals(&mut reception, &[0, 100]);
        assert_eq!(
            arrivals(&mut reception, &[20, 37]),
            [Arrival::Duplicate, Arrival::Late]
        );
    }

    #[test]
    fn a_jump_needs_a_second_packet_to_restart() {
        let mut reception = Reception::new();
        arrivals(&mut reception, &[10, 11]);
        assert_eq!(
            arrivals(&mut reception, &[9_000, 12, 9_001, 9_002, 9_003]),
            [
                Arrival::Jump,
                Arrival::InOrder { missing: 0 },
                Arrival::Jump,
                Arrival::Restarted,
                Arrival::InOrder { missing: 0 }
            ]
        );
        assert_eq!((reception.lost(), reception.streams()), (0, 2));
    }

    #[test]
    fn limits_are_those_of_appendix_a_1() {
        assert_eq!((MAX_DROPOUT, MAX_MISORDER), (3000, 100));
        for (step, expected) in [
            (2_999, Arrival::InOrder { missing: 2_998 }),
            (3_000, Arrival::Jump),
            (65_536 - 101, Arrival::Jump),
        ] {
            let mut reception = Reception::new();
            assert_eq!(
                arrivals(&mut reception, &[0, step as u16])[1],
                expected,
                "step {step}"
            );
        }
    }

    #[test]
    fn a_new_ssrc_is_taken_at_once_and_stragglers_of_the_old_are_late() {
        let mut reception = Reception::new();
        arrivals(&mut reception, &[5, 6]);
        assert_eq!(
            reception.handle_packet(&fields(2, 40_000)),
            Arrival::NewSource
        );
        assert_eq!(reception.handle_packet(&fields(1, 7)), Arrival::Late);
        assert_eq!(
            reception.handle_packet(&fields(2, 40_001)),
            Arrival::InOrder { missing: 0 }
        );
        assert_eq!(reception.handle_packet(&fields(1, 8)), Arrival::Late);
        assert_eq!(reception.handle_packet(&fields(1, 9)), Arrival::NewSource);
        assert_eq!((reception.ssrc(), reception.streams()), (Some(1), 3));
    }

    /// A.8 worked by hand: transit changes by 16 once, then decays by a sixteenth a packet.
    #[test]
    fn jitter_follows_appendix_a_8_across_the_wrap() {
        let mut reception = Reception::new();
        let start = u32::MAX - 200;
        for (number, (step, late_units)) in [(0, 0), (160, 0), (320, 16), (480, 16), (640, 16)]
            .into_iter()
            .enumerate()
        {
            reception.handle_packet(&fields(1, number as u16));
            let units = u64::from(step + late_units);
            reception.handle_timing(
                start.wrapping_add(step),
                Duration::from_micros(units * 125),
                8_000,
            );
        }
        // J (times 16): 0, 0, 16, 16 - (24 >> 4) = 15, 15 - (23 >> 4) = 14
        assert_eq!(reception.stream.map(|stream| stream.jitter_q4), Some(14));
        assert_eq!(reception.jitter(), 0);
    }

    #[test]
    fn steady_jitter_settles_at_its_mean() {
        let mut reception = Reception::new();
        for number in 0..1_000_u32 {
            reception.handle_packet(&fields(1, number as u16));
            let late = if number % 2 == 0 { 0 } else { 80 };
            let arrival = Duration::from_micros(u64::from(number * 160 + late) * 125);
            reception.handle_timing(number.wrapping_mul(160), arrival, 8_000);
        }
        assert!(
            (78..=80).contains(&reception.jitter()),
            "{}",
            reception.jitter()
        );
    }
}
