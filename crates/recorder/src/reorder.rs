//! Puts the frames of one leg back in the order in which they were sent.
//!
//! ```text
//! tap (arrival order) -> push -> [ held for `hold`, sorted by (run, sequence) ] -> pop_due -> track
//! ```
//!
//! A *run* is a stretch of packets of one source with continuous sequence numbers; a new SSRC, or a
//! jump of the sequence beyond what RFC 3550 appendix A.1 allows, begins the next one. A frame that
//! comes after its place was handed out is late and counted. Memory is bounded: buffers are reused
//! and never more than [`MAX_HELD`] frames wait.

use std::collections::VecDeque;
use std::time::Duration;

use audio::tap::TapFrame;

/// Most frames held at a time: with 10 ms frames more than half a second.
const MAX_HELD: usize = 64;

/// RFC 3550, A.1: a larger step forward isn't loss but a restart.
const MAX_DROPOUT: i16 = 3000;

/// RFC 3550, A.1: a larger step back isn't reordering but a restart.
const MAX_MISORDER: i16 = 100;

/// A frame as the tap gave it, owned.
#[derive(Debug)]
pub(crate) struct Frame {
    pub(crate) at: Duration,
    pub(crate) timestamp: u32,
    pub(crate) payload_type: u8,
    pub(crate) payload: Vec<u8>,
}

/// A [`Frame`] that waits, with its place in the order.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) run: u64,
    place: i64,
    pub(crate) frame: Frame,
}

impl Held {
    fn key(&self) -> (u64, i64) {
        (self.run, self.place)
    }
}

/// A run as seen from its newest packet.
#[derive(Debug, Clone, Copy)]
struct Run {
    id: u64,
    ssrc: u32,
    newest: i64,
}

impl Run {
    /// The extended place of `frame`, if it belongs to this run.
    fn place(&self, frame: &TapFrame<'_>) -> Option<i64> {
        let step = frame.sequence.wrapping_sub(self.newest as u16) as i16;
        let belongs = frame.ssrc == self.ssrc && (-MAX_MISORDER..=MAX_DROPOUT).contains(&step);
        belongs.then(|| self.newest + i64::from(step))
    }
}

/// The frames of one leg on their way from arrival order to sending order.
#[derive(Debug)]
pub(crate) struct Reorder {
    hold: Duration,
    held: VecDeque<Held>,
    current: Option<Run>,
    /// The run before, and when it was left: its stragglers are known until `hold` later.
    previous: Option<(Run, Duration)>,
    released: Option<(u64, i64)>,
    spare: Vec<Vec<u8>>,
    pub(crate) late: u64,
    pub(crate) duplicates: u64,
}

impl Reorder {
    pub(crate) fn new(hold: Duration) -> Self {
        Self {
            hold,
            held: VecDeque::new(),
            current: None,
            previous: None,
            released: None,
            spare: Vec::new(),
            late: 0,
            duplicates: 0,
        }
    }

    /// Takes one frame in. Call [`pop_due`](Self::pop_due) with its arrival time before the next.
    pub(crate) fn push(&mut self, frame: &TapFrame<'_>) {
        let (run, place) = self.locate(frame);
        let key = (run, place);
        if self.released.is_some_and(|released| key <= released) {
            self.late += 1;
            return;
        }
        let index = self.held.partition_point(|held| held.key() < key);
        if self.held.get(index).is_some_and(|held| held.key() == key) {
            self.duplicates += 1;
            return;
        }
        let mut payload = self.spare.pop().unwrap_or_default();
        payload.clear();
        payload.extend_from_slice(frame.payload);
        let &TapFrame {
            at,
            timestamp,
            payload_type,
            ..
        } = frame;
        let frame = Frame {
            at,
            timestamp,
            payload_type,
            payload,
        };
        self.held.insert(index, Held { run, place, frame });
    }

    /// The next frame in order, once it or one behind it was held long enough.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<Held> {
        let expired = |held: &Held| held.frame.at + self.hold <= now;
        let due = self.held.len() > MAX_HELD || self.held.iter().any(expired);
        if due { self.pop() } else { None }
    }

    /// The next frame in order, due or not.
    pub(crate) fn pop(&mut self) -> Option<Held> {
        let held = self.held.pop_front()?;
        self.released = Some(held.key());
        Some(held)
    }

    /// What waits behind the frame handed out last, in order.
    pub(crate) fn waiting(&self) -> impl Iterator<Item = &Held> {
        self.held.iter()
    }

    /// Gives the buffer of a frame back.
    pub(crate) fn recycle(&mut self, frame: Frame) {
        if self.spare.len() < MAX_HELD {
            self.spare.push(frame.payload);
        }
    }

    fn locate(&mut self, frame: &TapFrame<'_>) -> (u64, i64) {
        if let Some(current) = &mut self.current
            && let Some(place) = current.place(frame)
        {
            current.newest = current.newest.max(place);
            return (current.id, place);
        }
        if let Some((previous, left)) = self.previous
            && frame.at <= left + self.hold
            && let Some(place) = previous.place(frame)
        {
            return (previous.id, place);
        }
        self.previous = self.current.map(|run| (run, frame.at));
        let id = self.current.map_or(0, |run| run.id + 1);
        let newest = i64::from(frame.sequence);
        self.current = Some(Run {
            id,
            ssrc: frame.ssrc,
            newest,
        });
        (id, newest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOLD: Duration = Duration::from_millis(150);

    fn frame(at_ms: u64, ssrc: u32, sequence: u16) -> TapFrame<'static> {
        let at = Duration::from_millis(at_ms);
        // The timestamp carries what the test wants to read back: Held forgets SSRC and sequence.
        let timestamp = ssrc << 16 | u32::from(sequence);
        TapFrame {
            side: 0,
            at,
            ssrc,
            sequence,
            timestamp,
            payload_type: 8,
            payload: b"x",
        }
    }

    /// Pushes (arrival in ms, SSRC, sequence) and returns the sequences in the order handed out.
    fn order(rows: &[(u64, u32, u16)]) -> (Vec<(u32, u16)>, Reorder) {
        let mut queue = Reorder::new(HOLD);
        let mut out = Vec::new();
        let mut take = |queue: &mut Reorder, held: Held| {
            out.push((held.frame.timestamp >> 16, held.frame.timestamp as u16));
            queue.recycle(held.frame);
        };
        for &(at, ssrc, sequence) in rows {
            let frame = frame(at, ssrc, sequence);
            queue.push(&frame);
            while let Some(held) = queue.pop_due(frame.at) {
                take(&mut queue, held);
            }
        }
        while let Some(held) = queue.pop() {
            take(&mut queue, held);
        }
        (out, queue)
    }

    #[test]
    fn wrap_and_swap_come_out_sorted() {
        let (out, queue) = order(&[(0, 1, 65_534), (20, 1, 0), (25, 1, 65_535), (40, 1, 1)]);
        assert_eq!(out, [(1, 65_534), (1, 65_535), (1, 0), (1, 1)]);
        assert_eq!((queue.late, queue.duplicates), (0, 0));
    }

    #[test]
    fn frame_is_late_once_its_place_was_handed_out() {
        let (out, queue) = order(&[(0, 1, 10), (40, 1, 12), (191, 1, 13), (192, 1, 11)]);
        assert_eq!(out, [(1, 10), (1, 12), (1, 13)]);
        assert_eq!((queue.late, queue.duplicates), (1, 0));
    }

    #[test]
    fn duplicate_counts_once() {
        let (out, queue) = order(&[(0, 1, 10), (1, 1, 10), (20, 1, 11)]);
        assert_eq!(out.len(), 2);
        assert_eq!(queue.duplicates, 1);
    }

    #[test]
    fn straggler_of_the_source_before_keeps_its_place() {
        let rows = [
            (0, 1, 10),
            (20, 2, 700),
            (21, 1, 11),
            (40, 2, 701),
            (400, 2, 702),
        ];
        assert_eq!(
            order(&rows).0,
            [(1, 10), (1, 11), (2, 700), (2, 701), (2, 702)]
        );
    }

    #[test]
    fn stray_packet_does_not_end_the_stream() {
        let mut rows = vec![(0, 1, 10), (20, 1, 30_000)];
        rows.extend((0..50).map(|i| (40 + 20 * i, 1, 11 + i as u16)));
        let (out, queue) = order(&rows);
        assert!(out.len() >= 45, "{}", out.len());
        assert!(queue.late <= 7, "{}", queue.late);
    }

    #[test]
    fn flood_is_bounded() {
        let mut queue = Reorder::new(HOLD);
        for sequence in 0..5000 {
            let frame = frame(1, 1, sequence);
            queue.push(&frame);
            while let Some(held) = queue.pop_due(frame.at) {
                queue.recycle(held.frame);
            }
            assert!(queue.held.len() <= MAX_HELD);
        }
    }
}
