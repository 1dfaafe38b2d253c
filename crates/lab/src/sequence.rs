//! What RTP's own numbers say about a stream: loss, repeats, jumps, jitter (RFC 3550, A.1, A.8).
//!
//! Kept apart from what is heard: a server can repair the sequence numbers and lose audio, or
//! carry all audio under broken numbers.

use std::time::{Duration, Instant};

use rtp_witness::header::Header;

/// Counts of one direction, in packets unless said otherwise.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct SequenceCounts {
    /// Sequence numbers between the first and the highest that never came.
    pub missing: u64,
    /// Sequence numbers at or below the highest: repeated or late.
    pub behind: u64,
    /// Changes of the synchronisation source after the first.
    pub source_changes: u64,
    /// Steps at which the timestamp did not move with the sequence number.
    pub timestamp_jumps: u64,
    /// Interarrival jitter at the end (RFC 3550, 6.4.1).
    pub jitter: Duration,
}

/// One stream's numbers as they come.
#[derive(Clone, Default, Debug)]
pub(crate) struct Sequence {
    last: Option<Last>,
    counts: SequenceCounts,
    jitter_seconds: f64,
}

#[derive(Copy, Clone, Debug)]
struct Last {
    ssrc: u32,
    sequence: u16,
    timestamp: u32,
    at: Instant,
}

impl Sequence {
    pub(crate) fn take(&mut self, now: Instant, header: &Header) {
        let this = Last {
            ssrc: header.ssrc,
            sequence: header.sequence_number,
            timestamp: header.timestamp,
            at: now,
        };
        let Some(last) = self.last else {
            self.last = Some(this);
            return;
        };
        if last.ssrc != this.ssrc {
            self.counts.source_changes += 1;
            self.last = Some(this);
            return;
        }
        let step = this.sequence.wrapping_sub(last.sequence);
        if step == 0 || step >= 0x8000 {
            self.counts.behind += 1;
            self.counts.missing = self.counts.missing.saturating_sub(u64::from(step != 0));
            return;
        }
        self.counts.missing += u64::from(step - 1);
        let ticks = this.timestamp.wrapping_sub(last.timestamp);
        if !header.marker && ticks != u32::from(step) * FRAME_TICKS {
            self.counts.timestamp_jumps += 1;
        }
        let elapsed = now.saturating_duration_since(last.at).as_secs_f64();
        let transit = elapsed - f64::from(ticks) / CLOCK;
        self.jitter_seconds += (transit.abs() - self.jitter_seconds) / 16.0;
        self.last = Some(this);
    }

    pub(crate) fn counts(&self) -> SequenceCounts {
        SequenceCounts {
            jitter: Duration::try_from_secs_f64(self.jitter_seconds).unwrap_or(Duration::MAX),
            ..self.counts
        }
    }
}

/// RTP clock of G.711 in hertz (RFC 3551, 4.5.14).
const CLOCK: f64 = 8000.0;

/// Timestamp ticks of a 20 ms frame.
const FRAME_TICKS: u32 = 160;

#[cfg(test)]
mod tests {
    use super::*;

    fn run(list: &[(u32, u16, u32)]) -> SequenceCounts {
        let start = Instant::now();
        let mut sequence = Sequence::default();
        for (n, &(ssrc, sequence_number, timestamp)) in list.iter().enumerate() {
            let header = Header {
                ssrc,
                sequence_number,
                timestamp,
                ..Header::default()
            };
            sequence.take(start + Duration::from_millis(20) * n as u32, &header);
        }
        sequence.counts()
    }

    #[test]
    fn a_whole_stream_wraps_without_a_count() {
        let list: Vec<_> = (0..100u32)
            .map(|n| {
                (
                    1,
                    65500u16.wrapping_add(n as u16),
                    (u32::MAX - 800).wrapping_add(n * 160),
                )
            })
            .collect();
        assert_eq!(run(&list), SequenceCounts::default());
    }

    #[test]
    fn loss_lateness_and_repeats() {
        let counts = run(&[
            (1, 1, 0),
            (1, 2, 160),
            (1, 5, 640),
            (1, 4, 480),
            (1, 5, 640),
        ]);
        assert_eq!((counts.missing, counts.behind), (1, 2));
    }

    #[test]
    fn a_new_source_and_a_jumping_clock_are_seen() {
        let counts = run(&[
            (1, 1, 0),
            (1, 2, 160),
            (2, 77, 9),
            (2, 78, 169),
            (2, 79, 500),
        ]);
        assert_eq!(
            (
                counts.source_changes,
                counts.timestamp_jumps,
                counts.missing
            ),
            (1, 1, 0)
        );
    }

    #[test]
    fn jitter_follows_rfc_3550() {
        let start = Instant::now();
        let mut sequence = Sequence::default();
        for (n, ms) in [0u64, 20, 44].into_iter().enumerate() {
            let header = Header {
                sequence_number: n as u16,
                timestamp: n as u32 * 160,
                ..Header::default()
            };
            sequence.take(start + Duration::from_millis(ms), &header);
        }
        assert_eq!(sequence.counts().jitter, Duration::from_micros(250));
    }
}
