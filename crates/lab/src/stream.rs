//! One leg's media: what it says, what it hears, and the counts of both.
//!
//! ```text
//!   start --> frame 0, 1, 2, ... every 20 ms --> finish --> three frames marked last --> silent
//!   packet --> RTP read by the outside crate --> sequence, delay --> Hearing | Capture
//! ```
//!
//! Frames are due on an absolute schedule: `started + n * 20 ms`, so lateness does not add up.
//! A callee stops by itself once its peer has said that it stops, or after [`QUIET`] without a
//! packet; so what is sent has arrived before the call is hung up, and counts can be equal.
//!
//! RTP is built and read by the crate `rtp` of the webrtc-rs project, never by ours.

use std::f64::consts::TAU;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use rtp_witness::header::Header;
use rtp_witness::packet::Packet;
use webrtc_util::marshal::{Marshal, Unmarshal};

use crate::analysis::FULL_SCALE_DBM0;
use crate::capture::Capture;
use crate::hearing::{Heard, Hearing};
use crate::law::{Codes, Law};
use crate::mark::{Mark, MarkKey, Side};
use crate::sequence::{Sequence, SequenceCounts};

/// Length of a frame.
pub const FRAME: Duration = Duration::from_millis(20);

/// Samples (and bytes) of a G.711 frame.
pub const FRAME_SAMPLES: usize = 160;

/// Frames at the end that say so.
const LAST_FRAMES: u32 = 3;

/// After this long without a packet, a callee takes its peer to have stopped.
pub const QUIET: Duration = Duration::from_millis(200);

/// What a leg says.
#[derive(Copy, Clone, PartialEq, Debug)]
pub enum Speech {
    /// Marked frames; see [`crate::mark`].
    Marks,
    /// A sine, for recordings that people listen to.
    Tone {
        /// Frequency in hertz.
        hz: f64,
        /// Level in dBm0.
        level_dbm0: f64,
    },
    /// Nothing at all.
    Nothing,
}

/// What a leg does with what it hears.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Listen {
    /// Holds each frame against its mark, expecting this side to speak.
    Marks(Side),
    /// Keeps it for later.
    Capture,
}

/// A leg to be opened.
#[derive(Copy, Clone, Debug)]
pub struct StreamSpec {
    /// Number of the call; a callee may have to learn it from what it hears.
    pub call: Option<u32>,
    /// Which side of the call this leg is.
    pub side: Side,
    /// What it says.
    pub speech: Speech,
    /// What it does with what it hears.
    pub listen: Listen,
    /// Whether it stops speaking when its peer does.
    pub stops_with_peer: bool,
}

/// What was agreed: where to send, and how.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Agreement {
    /// The peer's RTP address.
    pub remote: SocketAddr,
    /// The law to speak; its static payload type is used.
    pub law: Law,
}

/// Network delay of marked frames: arrival against the instant the frame was due.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Delay {
    /// The least.
    pub min: Duration,
    /// The most.
    pub max: Duration,
    /// Sum over all frames, for means.
    pub sum: Duration,
    /// Frames.
    pub count: u64,
}

impl Delay {
    fn note(this: &mut Option<Self>, delay: Duration) {
        let delays = this.get_or_insert(Self {
            min: delay,
            max: delay,
            sum: Duration::ZERO,
            count: 0,
        });
        delays.min = delays.min.min(delay);
        delays.max = delays.max.max(delay);
        delays.sum += delay;
        delays.count += 1;
    }

    /// The mean.
    #[must_use]
    pub fn mean(&self) -> Duration {
        self.sum / u32::try_from(self.count.max(1)).unwrap_or(u32::MAX)
    }
}

/// All that one leg said and heard.
#[derive(Clone, Debug)]
pub struct LegReport {
    /// Number of the call, if it was known or learnt.
    pub call: Option<u32>,
    /// Which side of the call.
    pub side: Side,
    /// What it said.
    pub speech: Speech,
    /// RTP packets sent.
    pub sent: u64,
    /// Packets that the socket refused.
    pub send_failed: u64,
    /// RTP packets received, audio or not.
    pub received: u64,
    /// Datagrams that are not RTP.
    pub junk: u64,
    /// RTP packets whose payload type is neither law.
    pub other_payload: u64,
    /// What the sequence numbers and timestamps say.
    pub sequence: SequenceCounts,
    /// What was heard, frame by frame; empty when captured.
    pub heard: Heard,
    /// Delay of what was heard.
    pub delay: Option<Delay>,
    /// What was heard, when it was kept.
    pub capture: Option<Capture>,
}

/// One leg.
#[derive(Debug)]
pub(crate) struct Stream {
    key: MarkKey,
    spec: StreamSpec,
    call: Option<u32>,
    agreed: Option<Agreement>,
    speaking: Option<Speaking>,
    hearing: Hearing,
    capture: Option<Capture>,
    sequence: Sequence,
    last_arrival: Option<Instant>,
    report: LegReport,
}

#[derive(Debug)]
struct Speaking {
    started: Instant,
    next: u32,
    until: Option<u32>,
    ssrc: u32,
    first_sequence: u16,
    first_timestamp: u32,
    codes: Option<Codes>,
}

/// A packet to send.
pub(crate) struct Outgoing {
    pub(crate) to: SocketAddr,
    pub(crate) packet: Bytes,
    /// How late it is.
    pub(crate) lateness: Duration,
}

impl Stream {
    pub(crate) fn new(key: MarkKey, spec: StreamSpec) -> Self {
        let speaker = match spec.listen {
            Listen::Marks(side) => side,
            Listen::Capture => spec.side.other(),
        };
        Self {
            key,
            spec,
            call: spec.call,
            agreed: None,
            speaking: None,
            hearing: Hearing::new(key, spec.call, speaker),
            capture: (spec.listen == Listen::Capture).then(Capture::default),
            sequence: Sequence::default(),
            last_arrival: None,
            report: LegReport {
                call: spec.call,
                side: spec.side,
                speech: spec.speech,
                sent: 0,
                send_failed: 0,
                received: 0,
                junk: 0,
                other_payload: 0,
                sequence: SequenceCounts::default(),
                heard: Heard::default(),
                delay: None,
                capture: None,
            },
        }
    }

    /// Lets it speak; a leg that does not know its call yet waits until it has heard it.
    pub(crate) fn start(&mut self, now: Instant, agreed: Agreement) {
        self.agreed = Some(agreed);
        if let Some(speaking) = &self.speaking {
            debug_assert!(speaking.started <= now);
            return;
        }
        let waits = self.spec.speech == Speech::Marks && self.call.is_none();
        if waits || self.spec.speech == Speech::Nothing {
            return;
        }
        // Any starting point will do; they differ per leg so that a mix-up shows.
        let salt = self.call.unwrap_or(0).wrapping_mul(0x9e37_79b9)
            ^ if self.spec.side == Side::Caller {
                0x1357_9bdf
            } else {
                0x8642_0eca
            };
        self.speaking = Some(Speaking {
            started: now,
            next: 0,
            until: None,
            ssrc: salt,
            first_sequence: (salt >> 7) as u16,
            first_timestamp: salt.rotate_left(13),
            codes: matches!(self.spec.speech, Speech::Tone { .. }).then(|| agreed.law.codes()),
        });
    }

    /// Sends three more frames, marked as the last, then falls silent.
    pub(crate) fn finish(&mut self) {
        if let Some(speaking) = &mut self.speaking {
            let until = speaking.next.saturating_add(LAST_FRAMES);
            speaking.until.get_or_insert(until);
        }
    }

    /// When the next frame is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        let speaking = self.speaking.as_ref()?;
        let done = speaking.until.is_some_and(|until| speaking.next >= until);
        (!done).then(|| speaking.started + FRAME * speaking.next)
    }

    /// The instant frame 0 was due, and whose frames they are.
    pub(crate) fn origin(&self) -> Option<(u32, Side, Instant)> {
        let speaking = self.speaking.as_ref()?;
        Some((self.call?, self.spec.side, speaking.started))
    }

    /// The next packet, if one is due.
    pub(crate) fn speak(&mut self, now: Instant) -> Option<Outgoing> {
        let due = self.due().filter(|&due| due <= now)?;
        let agreed = self.agreed?;
        if self.spec.stops_with_peer && self.peer_is_quiet(now) {
            self.finish();
        }
        let mut payload = [0u8; FRAME_SAMPLES];
        let speaking = self.speaking.as_mut()?;
        match self.spec.speech {
            Speech::Marks => {
                let mark = Mark {
                    call: self.call?,
                    side: self.spec.side,
                    frame: speaking.next,
                    last: speaking.until.is_some(),
                    law: agreed.law,
                };
                self.key.write(mark, &mut payload);
            }
            Speech::Tone { hz, level_dbm0 } => speaking.tone(hz, level_dbm0, &mut payload),
            Speech::Nothing => return None,
        }
        let header = Header {
            version: 2,
            marker: speaking.next == 0,
            payload_type: agreed.law.payload_type(),
            sequence_number: speaking.first_sequence.wrapping_add(speaking.next as u16),
            timestamp: speaking
                .first_timestamp
                .wrapping_add(speaking.next.wrapping_mul(FRAME_SAMPLES as u32)),
            ssrc: speaking.ssrc,
            ..Header::default()
        };
        speaking.next += 1;
        let packet = Packet {
            header,
            payload: Bytes::copy_from_slice(&payload),
        };
        let packet = packet.marshal().ok()?;
        Some(Outgoing {
            to: agreed.remote,
            packet,
            lateness: now.saturating_duration_since(due),
        })
    }

    /// Accounts for a packet handed to the socket.
    pub(crate) fn note_sent(&mut self, taken: bool) {
        if taken {
            self.report.sent += 1;
        } else {
            self.report.send_failed += 1;
        }
    }

    /// Takes one datagram; `origin` tells when a speaker's frame 0 was due.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        mut datagram: &[u8],
        origin: impl Fn(u32, Side) -> Option<Instant>,
    ) {
        let Some(packet) = read(&mut datagram) else {
            self.report.junk += 1;
            return;
        };
        self.report.received += 1;
        self.last_arrival = Some(now);
        self.sequence.take(now, &packet.header);
        let Some(law) = Law::from_payload_type(packet.header.payload_type) else {
            self.report.other_payload += 1;
            return;
        };
        if let Some(capture) = &mut self.capture {
            capture.take(law, packet.header.timestamp, &packet.payload);
            return;
        }
        let Some(mark) = self.hearing.hear(law, &packet.payload) else {
            return;
        };
        if let Some(origin) = origin(mark.call, mark.side) {
            let due = origin + FRAME * mark.frame;
            Delay::note(&mut self.report.delay, now.saturating_duration_since(due));
        }
        if self.hearing.is_ended() && self.spec.stops_with_peer {
            self.finish();
        }
        self.learn_call(now);
    }

    /// The counts, and an end.
    pub(crate) fn close(mut self) -> LegReport {
        self.report.call = self.call;
        self.report.sequence = self.sequence.counts();
        self.report.heard = self.hearing.heard().clone();
        self.report.capture = self.capture;
        self.report
    }

    fn learn_call(&mut self, now: Instant) {
        if self.call.is_none() {
            self.call = self.hearing.call();
            if let Some(agreed) = self.agreed {
                self.start(now, agreed);
            }
        }
    }

    fn peer_is_quiet(&self, now: Instant) -> bool {
        self.last_arrival
            .is_some_and(|last| now.saturating_duration_since(last) > QUIET)
    }
}

impl Speaking {
    fn tone(&self, hz: f64, level_dbm0: f64, payload: &mut [u8]) {
        let Some(codes) = &self.codes else { return };
        let amplitude = 32767.0 * 10f64.powf((level_dbm0 - FULL_SCALE_DBM0) / 20.0);
        let first = f64::from(self.next) * FRAME_SAMPLES as f64;
        for (n, byte) in payload.iter_mut().enumerate() {
            let turns = hz * (first + n as f64) / 8000.0;
            *byte = codes.nearest((amplitude * (TAU * turns.fract()).sin()).round() as i16);
        }
    }
}

/// Reads RTP version 2; RTCP on the same port (RFC 5761, 4) is not RTP.
fn read(datagram: &mut &[u8]) -> Option<Packet> {
    let [first, second, ..] = **datagram else {
        return None;
    };
    if first >> 6 != 2 || (192..=223).contains(&second) {
        return None;
    }
    Packet::unmarshal(datagram).ok()
}
