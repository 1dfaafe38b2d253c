//! Packets held back for a while: the delayed echo.
//!
//! Packets are numbered for the stream that they will be part of when they come, and leave as they
//! came, so much later. All memory is taken at the beginning, for a stream of 64 kbit/s in packets
//! of 10 ms; what is more is dropped.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Longer delays are cut to this: memory grows with them.
const MAX_DELAY: Duration = Duration::from_secs(30);
/// Octets and packets a second, headers included, and some for those that come in a burst.
const OCTETS_PER_SECOND: usize = 10_000;
const PACKETS_PER_SECOND: usize = 100;
const BURST_PACKETS: usize = 32;
/// The longest packet held.
const MAX_PACKET: usize = 1_500;

#[derive(Debug)]
pub(crate) struct DelayLine {
    delay: Duration,
    octets: VecDeque<u8>,
    packets: VecDeque<(Instant, usize)>,
    room: (usize, usize),
    leaving: Box<[u8]>,
}

impl DelayLine {
    pub(crate) fn new(delay: Duration) -> Self {
        let delay = delay.min(MAX_DELAY);
        let seconds = delay.as_secs() as usize + 1;
        let packets = seconds * PACKETS_PER_SECOND + BURST_PACKETS;
        let octets = seconds * OCTETS_PER_SECOND + BURST_PACKETS * 200;
        Self {
            delay,
            octets: VecDeque::with_capacity(octets),
            packets: VecDeque::with_capacity(packets),
            room: (octets, packets),
            leaving: vec![0; MAX_PACKET].into(),
        }
    }

    /// Takes a packet. Returns false when there is no room.
    pub(crate) fn push(&mut self, now: Instant, packet: &[u8]) -> bool {
        let (octets, packets) = self.room;
        let fits = packet.len() <= MAX_PACKET
            && self.octets.len() + packet.len() <= octets
            && self.packets.len() < packets;
        if fits {
            self.octets.extend(packet);
            self.packets.push_back((now + self.delay, packet.len()));
        }
        fits
    }

    /// The next packet that is due.
    pub(crate) fn pop(&mut self, now: Instant) -> Option<&mut [u8]> {
        let (_, len) = self.packets.pop_front_if(|(due, _)| *due <= now)?;
        let packet = &mut self.leaving[..len];
        packet
            .iter_mut()
            .zip(self.octets.drain(..len))
            .for_each(|(to, from)| *to = from);
        Some(packet)
    }

    pub(crate) fn poll_timeout(&self) -> Option<Instant> {
        self.packets.front().map(|(due, _)| *due)
    }
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "tests begin now")]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_in_order_when_they_are_due() {
        let now = Instant::now();
        let mut line = DelayLine::new(Duration::from_secs(5));
        assert!(line.push(now, b"one"));
        assert!(line.push(now + Duration::from_millis(20), b"two"));
        assert_eq!(line.poll_timeout(), Some(now + Duration::from_secs(5)));
        assert_eq!(line.pop(now + Duration::from_millis(4_999)), None);
        let later = now + Duration::from_millis(5_025);
        assert_eq!(line.pop(later).as_deref(), Some(&b"one"[..]));
        assert_eq!(line.pop(later).as_deref(), Some(&b"two"[..]));
        assert_eq!(line.pop(later), None);
        assert_eq!(line.poll_timeout(), None);
    }

    #[test]
    fn memory_is_bounded_and_taken_at_once() {
        let now = Instant::now();
        let mut line = DelayLine::new(Duration::from_secs(5));
        let (octets, packets) = (line.octets.capacity(), line.packets.capacity());
        let taken = (0..10_000).filter(|_| line.push(now, &[0; 172])).count();
        assert!(taken >= 5 * 50, "{taken}");
        assert!(!line.push(now, &[0; 1_501]));
        assert_eq!(
            (line.octets.capacity(), line.packets.capacity()),
            (octets, packets)
        );
        assert!(octets < 100_000);
    }
}
