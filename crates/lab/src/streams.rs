//! All legs of a run: a sans-IO machine that owns their schedule.
//!
//! ```text
//!   open -> start -> [ due heap ] -> handle_timeout -> packets out, lateness noted
//!   handle_packet -> the leg by its port -> counts
//!   finish, close -> LegReport
//! ```
//!
//! Driven by [`crate::generator`] with real sockets, and by tests in memory. One pass costs
//! O(log legs) a packet.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::mark::{MarkKey, Side};
use crate::stream::{Agreement, LegReport, Stream, StreamSpec};

/// A frame that leaves this long after it was due counts as late.
pub const LATE: Duration = Duration::from_millis(20);

/// The sender's own timeliness.
#[derive(Copy, Clone, PartialEq, Eq, Default, Debug)]
pub struct Timeliness {
    /// Frames sent.
    pub frames: u64,
    /// Of these, sent [`LATE`] or more after they were due.
    pub late: u64,
    /// The worst.
    pub worst: Duration,
}

/// The legs of a run, by port number.
#[derive(Debug)]
pub struct Streams {
    key: MarkKey,
    legs: HashMap<u32, Stream>,
    due: BinaryHeap<Reverse<(Instant, u32)>>,
    /// When each speaker's frame 0 was due, while its leg is open.
    origins: HashMap<(u32, Side), Instant>,
    timeliness: Timeliness,
    strays: u64,
}

impl Streams {
    /// No legs yet.
    #[must_use]
    pub fn new(key: MarkKey) -> Self {
        Self {
            key,
            legs: HashMap::new(),
            due: BinaryHeap::new(),
            origins: HashMap::new(),
            timeliness: Timeliness::default(),
            strays: 0,
        }
    }

    /// Opens a leg on `port`: from now on what comes there is heard.
    pub fn open(&mut self, port: u32, spec: StreamSpec) {
        self.legs.insert(port, Stream::new(self.key, spec));
    }

    /// Lets a leg speak to where and in what was agreed.
    pub fn start(&mut self, now: Instant, port: u32, agreed: Agreement) {
        if let Some(leg) = self.legs.get_mut(&port) {
            let was_due = leg.due();
            leg.start(now, agreed);
            self.note_start(port, was_due);
        }
    }

    /// Lets a leg say its last frames.
    pub fn finish(&mut self, port: u32) {
        if let Some(leg) = self.legs.get_mut(&port) {
            leg.finish();
        }
    }

    /// Ends a leg and returns its counts.
    pub fn close(&mut self, port: u32) -> Option<LegReport> {
        let leg = self.legs.remove(&port)?;
        if let Some((call, side, _)) = leg.origin() {
            self.origins.remove(&(call, side));
        }
        Some(leg.close())
    }

    /// Takes a datagram that came to `port`.
    pub fn handle_packet(&mut self, now: Instant, port: u32, datagram: &[u8]) {
        let Some(leg) = self.legs.get_mut(&port) else {
            self.strays += 1;
            return;
        };
        let was_due = leg.due();
        let origins = &self.origins;
        leg.take(now, datagram, |call, side| {
            origins.get(&(call, side)).copied()
        });
        if was_due.is_none() {
            self.note_start(port, was_due);
        }
    }

    /// Sends all that is due; `send` says whether the socket took it.
    pub fn handle_timeout(
        &mut self,
        now: Instant,
        mut send: impl FnMut(u32, SocketAddr, &[u8]) -> bool,
    ) {
        while let Some(&Reverse((at, port))) = self.due.peek() {
            if at > now {
                break;
            }
            self.due.pop();
            let Some(leg) = self.legs.get_mut(&port) else {
                continue;
            };
            if let Some(out) = leg.speak(now) {
                self.timeliness.frames += 1;
                self.timeliness.late += u64::from(out.lateness >= LATE);
                self.timeliness.worst = self.timeliness.worst.max(out.lateness);
                leg.note_sent(send(port, out.to, &out.packet));
            }
            if let Some(next) = leg.due() {
                self.due.push(Reverse((next, port)));
            }
        }
    }

    /// When the next frame is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.due.peek().map(|&Reverse((at, _))| at)
    }

    /// How timely this sender was.
    #[must_use]
    pub fn timeliness(&self) -> Timeliness {
        self.timeliness
    }

    /// Datagrams that came to a port without a leg.
    #[must_use]
    pub fn strays(&self) -> u64 {
        self.strays
    }

    /// Legs open.
    #[must_use]
    pub fn len(&self) -> usize {
        self.legs.len()
    }

    /// Whether no leg is open.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.legs.is_empty()
    }

    fn note_start(&mut self, port: u32, was_due: Option<Instant>) {
        let Some(leg) = self.legs.get(&port) else {
            return;
        };
        if let (None, Some(due)) = (was_due, leg.due()) {
            self.due.push(Reverse((due, port)));
            if let Some((call, side, started)) = leg.origin() {
                self.origins.insert((call, side), started);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Law;
    use crate::stream::{FRAME, FRAME_SAMPLES, Listen, Speech};

    const CALLER: u32 = 0;
    const CALLEE: u32 = 1;

    fn address(port: u32) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], 10_000 + port as u16))
    }

    fn spec(call: u32, side: Side) -> StreamSpec {
        StreamSpec {
            call: Some(call),
            side,
            speech: Speech::Marks,
            listen: Listen::Marks(side.other()),
            stops_with_peer: side == Side::Callee,
        }
    }

    /// What becomes of the nth packet sent: the ports it comes out at, and its bytes.
    type Fault = fn(n: u64, to: u32, packet: Vec<u8>) -> Vec<(u32, Vec<u8>)>;

    fn straight(_: u64, to: u32, packet: Vec<u8>) -> Vec<(u32, Vec<u8>)> {
        vec![(to, packet)]
    }

    /// Runs calls (caller at port 2n, callee at 2n + 1) of 100 frames over a faulty wire.
    fn run(calls: u32, fault: Fault) -> Vec<LegReport> {
        let mut now = Instant::now();
        let mut streams = Streams::new(MarkKey::new(5));
        for call in 0..calls {
            for (port, side) in [(2 * call, Side::Caller), (2 * call + 1, Side::Callee)] {
                streams.open(port, spec(call, side));
                let agreed = Agreement {
                    remote: address(port ^ 1),
                    law: Law::A,
                };
                streams.start(now, port, agreed);
            }
        }
        let mut sent = 0;
        for frame in 0..150 {
            if frame == 97 {
                (0..calls).for_each(|call| streams.finish(2 * call));
            }
            if frame == 140 {
                (0..calls).for_each(|call| streams.finish(2 * call + 1));
            }
            let mut wire = Vec::new();
            streams.handle_timeout(now, |_, to, packet| {
                let port = u32::from(to.port()) - 10_000;
                wire.extend(fault(sent, port, packet.to_vec()));
                sent += 1;
                true
            });
            for (port, packet) in wire {
                streams.handle_packet(now, port, &packet);
            }
            now += FRAME;
        }
        assert_eq!(streams.poll_timeout(), None, "everybody has stopped");
        (0..2 * calls)
            .map(|port| streams.close(port).expect("the leg is open"))
            .collect()
    }

    #[test]
    fn an_honest_wire_carries_every_frame_of_both_sides() {
        let legs = run(3, straight);
        for (leg, peer) in (0..6).map(|n| (&legs[n], &legs[n ^ 1])) {
            assert!(leg.heard.is_exact(), "{leg:?}");
            assert_eq!((leg.sent, leg.received), (peer.received, peer.sent));
            assert_eq!(leg.sequence, crate::sequence::SequenceCounts::default());
            assert_eq!(leg.delay.map(|delay| delay.max), Some(Duration::ZERO));
        }
        assert_eq!(legs[0].sent, 100);
    }

    #[test]
    fn loss_is_found_with_its_size() {
        let legs = run(1, |n, to, packet| match n {
            40 | 41 | 42 | 60 => vec![],
            _ => straight(n, to, packet),
        });
        let lost: u64 = legs.iter().map(|leg| leg.heard.missing).sum();
        let sent: u64 = legs.iter().map(|leg| leg.sent).sum();
        let received: u64 = legs.iter().map(|leg| leg.received).sum();
        assert_eq!((lost, sent - received), (4, 4));
        assert_eq!(legs.iter().map(|leg| leg.sequence.missing).sum::<u64>(), 4);
        assert!(legs.iter().all(|leg| !leg.heard.is_exact()));
    }

    #[test]
    fn swapped_parties_are_found() {
        let legs = run(2, |_, to, packet| vec![(to ^ 2, packet)]);
        for leg in &legs {
            assert_eq!((leg.heard.exact, leg.heard.wrong_party), (0, leg.received));
            assert_eq!(
                leg.heard.stranger.map(|(call, _)| Some(call)),
                Some(leg.call.map(|c| c ^ 1))
            );
        }
    }

    #[test]
    fn one_way_audio_is_found() {
        let legs = run(1, |n, to, packet| match to {
            0 => vec![],
            _ => straight(n, to, packet),
        });
        assert_eq!(legs[CALLER as usize].received, 0);
        assert!(!legs[CALLER as usize].heard.is_exact());
        assert!(legs[CALLEE as usize].heard.is_exact());
    }

    #[test]
    fn repeats_and_altered_bytes_are_found() {
        let legs = run(1, |n, to, mut packet| match (n, to) {
            (50, _) => vec![(to, packet.clone()), (to, packet)],
            (53, _) => {
                packet[12 + 140] ^= 0x10;
                vec![(to, packet)]
            }
            _ => straight(n, to, packet),
        });
        let heard = legs.iter().map(|leg| &leg.heard);
        assert_eq!(heard.clone().map(|h| h.repeated).sum::<u64>(), 1);
        assert_eq!(heard.map(|h| h.altered).sum::<u64>(), 1);
    }

    #[test]
    fn an_echo_is_not_taken_for_the_peer() {
        let legs = run(1, |_, to, packet| vec![(to ^ 1, packet)]);
        for leg in &legs {
            assert_eq!((leg.heard.exact, leg.heard.wrong_party), (0, leg.received));
        }
    }

    #[test]
    fn junk_and_unknown_payloads_are_counted_apart() {
        let mut streams = Streams::new(MarkKey::new(5));
        streams.open(CALLEE, spec(1, Side::Callee));
        let now = Instant::now();
        for bytes in [
            &b""[..],
            b"\x80",
            b"RTP/1.0 hello",
            &[0x80, 200, 0, 1, 0, 0, 0, 0],
            &[0x80; 5],
        ] {
            streams.handle_packet(now, CALLEE, bytes);
        }
        let mut event = vec![0x80, 101, 0, 1, 0, 0, 0, 0, 0, 0, 0, 9];
        event.extend([1, 10, 0, 160]);
        streams.handle_packet(now, CALLEE, &event);
        streams.handle_packet(now, 99, &event);
        let leg = streams.close(CALLEE).expect("the leg is open");
        assert_eq!((leg.junk, leg.received, leg.other_payload), (5, 1, 1));
        assert_eq!(streams.strays(), 1);
    }

    #[test]
    fn a_callee_learns_its_call_from_what_it_hears() {
        let now = Instant::now();
        let mut streams = Streams::new(MarkKey::new(5));
        streams.open(CALLER, spec(321, Side::Caller));
        streams.open(
            CALLEE,
            StreamSpec {
                call: None,
                ..spec(0, Side::Callee)
            },
        );
        for port in [CALLEE, CALLER] {
            let agreed = Agreement {
                remote: address(port ^ 1),
                law: Law::Mu,
            };
            streams.start(now, port, agreed);
        }
        let mut first = Vec::new();
        streams.handle_timeout(now, |port, _, packet| {
            first.push((port, packet.to_vec()));
            true
        });
        assert_eq!(first.len(), 1, "only the caller speaks yet");
        streams.handle_packet(now, CALLEE, &first[0].1);
        let mut second = Vec::new();
        streams.handle_timeout(now, |port, _, packet| {
            second.push((port, packet.to_vec()));
            true
        });
        assert_eq!(second.len(), 1);
        streams.handle_packet(now, CALLER, &second[0].1);
        assert!(
            streams
                .close(CALLER)
                .is_some_and(|leg| leg.heard.is_exact())
        );
        assert_eq!(streams.close(CALLEE).and_then(|leg| leg.call), Some(321));
    }

    #[test]
    fn lateness_is_noted_and_the_schedule_caught_up() {
        let now = Instant::now();
        let mut streams = Streams::new(MarkKey::new(5));
        streams.open(CALLER, spec(1, Side::Caller));
        let agreed = Agreement {
            remote: address(1),
            law: Law::A,
        };
        streams.start(now, CALLER, agreed);
        let mut sent = 0;
        streams.handle_timeout(now + FRAME * 5, |_, _, packet| {
            assert_eq!(packet.len(), 12 + FRAME_SAMPLES);
            sent += 1;
            true
        });
        assert_eq!(sent, 6);
        let timeliness = streams.timeliness();
        assert_eq!((timeliness.late, timeliness.worst), (5, FRAME * 5));
        assert_eq!(streams.poll_timeout(), Some(now + FRAME * 6));
    }

    #[test]
    fn a_refused_send_is_counted() {
        let now = Instant::now();
        let mut streams = Streams::new(MarkKey::new(5));
        streams.open(CALLER, spec(1, Side::Caller));
        let agreed = Agreement {
            remote: address(1),
            law: Law::A,
        };
        streams.start(now, CALLER, agreed);
        streams.handle_timeout(now, |_, _, _| false);
        let leg = streams.close(CALLER).expect("the leg is open");
        assert_eq!((leg.sent, leg.send_failed), (0, 1));
    }
}
