//! Comfort noise for a leg that has no payload number for it (RFC 3389): described by one side,
//! heard by the other as sound.

use std::time::{Duration, Instant};

use audio::comfort::ComfortNoise;

/// Noise goes on so long after its last description: a sender that is gone must not be heard for
/// ever.
const LONGEST: Duration = Duration::from_secs(60);

/// Noise that is on, one packet each packet time.
#[derive(Debug)]
pub(super) struct Noise {
    pub(super) sound: ComfortNoise,
    next: Option<Instant>,
    until: Instant,
}

impl Noise {
    /// Silent, and off.
    pub(super) fn new(now: Instant, seed: u64) -> Self {
        Self {
            sound: ComfortNoise::new(seed),
            next: None,
            until: now,
        }
    }

    pub(super) fn is_on(&self) -> bool {
        self.next.is_some()
    }

    /// Takes a description; where it was off, the first packet leaves after `delay`.
    pub(super) fn describe(&mut self, now: Instant, payload: &[u8], delay: Duration) {
        self.sound.handle_payload(payload);
        self.until = now + LONGEST;
        self.next.get_or_insert(now + delay);
    }

    pub(super) fn stop(&mut self) {
        self.next = None;
    }

    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a packet is due; the next is due a packet time later. Packets that are far behind
    /// are passed over.
    pub(super) fn tick(&mut self, now: Instant, period: Duration) -> bool {
        let Some(due) = self.next.filter(|due| *due <= now) else {
            return false;
        };
        let next = (due + period).max(now.checked_sub(period * 4).unwrap_or(due));
        self.next = (next < self.until).then_some(next);
        true
    }
}
