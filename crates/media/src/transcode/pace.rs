//! When packets leave that were cut anew: evenly (RFC 8866 section 6.4), whatever the rhythm of
//! those that came.

use std::time::{Duration, Instant};

/// Time that packets may come late without a hole.
const MARGIN: Duration = Duration::from_millis(10);
/// Packets that leave at once to catch up with a late clock.
const MAX_BURST: usize = 5;

/// A clock that runs while there is something to send.
#[derive(Debug)]
pub(super) struct Pace {
    period: Duration,
    next: Option<Instant>,
    /// Packets let go at once so far.
    burst: usize,
}

impl Pace {
    pub(super) fn new(period: Duration) -> Self {
        Self {
            period,
            next: None,
            burst: 0,
        }
    }

    pub(super) fn is_running(&self) -> bool {
        self.next.is_some()
    }

    /// Lets the first packet go after this delay and the margin.
    pub(super) fn start(&mut self, now: Instant, delay: Duration) {
        self.next = Some(now + delay + MARGIN);
        self.burst = 0;
    }

    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a packet is due. The one after it is then due a packet time later, or, after
    /// several at once, counted from now.
    pub(super) fn tick(&mut self, now: Instant) -> bool {
        let Some(due) = self.next.filter(|due| *due <= now) else {
            self.burst = 0;
            return false;
        };
        self.burst += 1;
        let from = if self.burst >= MAX_BURST { now } else { due };
        self.next = Some(from + self.period);
        true
    }
}

/// How long the first packet has to wait, once it is complete, so that none after it comes too
/// early: packets of `came` samples arrive evenly, packets of `frame` samples leave evenly.
pub(super) fn start_delay(came: usize, frame: usize, sample_rate: u32) -> Duration {
    let came = came.max(1);
    let complete = |count: usize| (count * frame).div_ceil(came) * came;
    let slack =
        (1..=came.min(64)).map(|k| (complete(k + 1) - complete(1)).saturating_sub(k * frame));
    duration(slack.max().unwrap_or(0), sample_rate)
}

/// How long this many samples last.
pub(crate) fn duration(samples: usize, sample_rate: u32) -> Duration {
    Duration::from_nanos(samples as u64 * 1_000_000_000 / u64::from(sample_rate.max(1)))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests begin now")]
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

    #[test]
    fn a_late_clock_is_caught_up_with_in_a_short_burst() {
        let period = Duration::from_millis(20);
        let now = Instant::now();
        let mut pace = Pace::new(period);
        assert!(!pace.tick(now));
        pace.start(now, Duration::ZERO);
        let late = now + MARGIN + period * 50;
        let burst = std::iter::repeat_with(|| pace.tick(late)).take_while(|due| *due);
        assert_eq!(burst.count(), MAX_BURST);
        assert_eq!(pace.poll_timeout(), Some(late + period));
    }
}
