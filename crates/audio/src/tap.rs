//! Frames on their way from a media session to a recorder: a bounded ring with one writer and one
//! reader.
//!
//! ```text
//!  session -- push, mark --> [ header | at | ssrc,ts | payload ... ][ header ... -- pop --> recorder
//!            TapWriter         Box<[AtomicU64]>, head and tail count words       TapReader
//! ```
//!
//! The writer never waits: a frame that does not fit is dropped and counted. Marks (codec changes,
//! start, stop) travel in order with the frames and have room of their own, which frames do not
//! take. Both ends are wait-free, with safe atomics alone: records are copied as words, published
//! by a release store of `head`, freed by one of `tail`.
//!
//! Memory: 192 octets per frame of capacity, 24 KiB at [`DEFAULT_CAPACITY_FRAMES`], that is 1.28 s
//! of both legs of a call in G.711 at 20 ms. Larger payloads take more room each and come less
//! often.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

/// Frames that a tap holds unless its maker says otherwise.
pub const DEFAULT_CAPACITY_FRAMES: usize = 128;

/// Words per frame of capacity: three of header and 168 octets of payload.
const WORDS_PER_FRAME: usize = 24;
/// Words of a record before its payload.
const HEADER_WORDS: usize = 3;
/// Room that frames leave to marks: a codec change on both legs and a stop, with names of ordinary
/// length.
const RESERVE_WORDS: usize = 64;
/// The longest payload of a record: its length field has 16 bits.
const MAX_PAYLOAD_BYTES: usize = 0xffff;

/// One RTP payload as it came, or as we sent it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct TapFrame<'a> {
    /// 0 for leg A, 1 for leg B; in a session of one leg, 1 is what we sent.
    pub side: u8,
    /// When it arrived, since the session's epoch.
    pub at: Duration,
    /// SSRC of the stream.
    pub ssrc: u32,
    /// RTP sequence number.
    pub sequence: u16,
    /// RTP timestamp.
    pub timestamp: u32,
    /// RTP payload number, meaning what the latest [`TapMark::Codec`] of this side says.
    pub payload_type: u8,
    /// The payload, without padding.
    pub payload: &'a [u8],
}

/// Something that happened between two frames.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TapMark<'a> {
    /// The tap was set.
    Start {
        /// Since the session's epoch.
        at: Duration,
    },
    /// From here on this payload number of this side means this codec.
    Codec {
        /// Since the session's epoch.
        at: Duration,
        /// As in [`TapFrame::side`].
        side: u8,
        /// RTP payload number.
        payload_type: u8,
        /// Encoding name, for [`crate::Registry::find`].
        name: &'a str,
        /// RTP clock rate.
        clock_rate: u32,
        /// Channels as `a=rtpmap` states them.
        channels: u8,
        /// Samples per second that the session itself decodes it to; 0 when it doesn't decode it.
        sample_rate: u32,
        /// Format parameters, empty for none.
        fmtp: &'a str,
    },
    /// The tap was taken off, or the session ended.
    Stop {
        /// Since the session's epoch.
        at: Duration,
    },
}

/// What a reader finds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum TapEvent<'a> {
    /// A frame.
    Frame(TapFrame<'a>),
    /// A mark.
    Mark(TapMark<'a>),
}

/// One cache line, so that the two ends do not fight over it.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Line(AtomicUsize);

#[derive(Debug)]
struct Ring {
    words: Box<[AtomicU64]>,
    /// Words written since the beginning; the writer's.
    head: Line,
    /// Words read since the beginning; the reader's.
    tail: Line,
    dropped: AtomicU64,
    writer_gone: AtomicBool,
    reader_gone: AtomicBool,
}

impl Ring {
    /// The place after a place.
    fn after(&self, place: usize) -> usize {
        if place + 1 == self.words.len() {
            0
        } else {
            place + 1
        }
    }
}

/// Makes a tap that holds about this many frames of 20 ms.
#[must_use]
pub fn tap(capacity_frames: usize) -> (TapWriter, TapReader) {
    let len = capacity_frames.max(4) * WORDS_PER_FRAME;
    let ring = Arc::new(Ring {
        words: std::iter::repeat_with(AtomicU64::default)
            .take(len)
            .collect(),
        head: Line::default(),
        tail: Line::default(),
        dropped: AtomicU64::new(0),
        writer_gone: AtomicBool::new(false),
        reader_gone: AtomicBool::new(false),
    });
    let reader = TapReader {
        ring: Arc::clone(&ring),
        tail: 0,
        place: 0,
        payload: Vec::new(),
    };
    (
        TapWriter {
            ring,
            head: 0,
            place: 0,
            tail: 0,
        },
        reader,
    )
}

/// The session's end of a tap.
#[derive(Debug)]
pub struct TapWriter {
    ring: Arc<Ring>,
    head: usize,
    /// Where the next word goes.
    place: usize,
    /// What the reader had read when we last looked.
    tail: usize,
}

impl TapWriter {
    /// Puts a frame in. Returns false, and counts, when there is no room or nobody reads any more.
    ///
    /// Cost: no allocation, no lock, no waiting; a store per eight octets.
    pub fn push(&mut self, frame: &TapFrame<'_>) -> bool {
        let meta = Meta {
            kind: Kind::Frame,
            side: frame.side,
            payload_type: frame.payload_type,
            channels: 0,
            len: frame.payload.len(),
            low: frame.sequence,
        };
        let stream = u64::from(frame.ssrc) << 32 | u64::from(frame.timestamp);
        self.write(meta, frame.at, stream, &[frame.payload], RESERVE_WORDS)
    }

    /// Puts a mark in, into room that frames leave free. Returns false, and counts, when even that
    /// is used up.
    pub fn mark(&mut self, mark: &TapMark<'_>) -> bool {
        let plain = |kind| Meta {
            kind,
            side: 0,
            payload_type: 0,
            channels: 0,
            len: 0,
            low: 0,
        };
        match *mark {
            TapMark::Start { at } => self.write(plain(Kind::Start), at, 0, &[], 0),
            TapMark::Stop { at } => self.write(plain(Kind::Stop), at, 0, &[], 0),
            TapMark::Codec {
                at,
                side,
                payload_type,
                name,
                clock_rate,
                channels,
                sample_rate,
                fmtp,
            } => {
                let meta = Meta {
                    kind: Kind::Codec,
                    side,
                    payload_type,
                    channels,
                    len: name.len() + fmtp.len(),
                    low: name.len().try_into().unwrap_or(u16::MAX),
                };
                let text = [name.as_bytes(), fmtp.as_bytes()];
                let rates = u64::from(sample_rate) << 32 | u64::from(clock_rate);
                self.write(meta, at, rates, &text, 0)
            }
        }
    }

    /// Whether the reader is gone, so that nothing is worth writing.
    #[must_use]
    pub fn is_abandoned(&self) -> bool {
        self.ring.reader_gone.load(Ordering::Relaxed)
    }

    fn write(
        &mut self,
        meta: Meta,
        at: Duration,
        stream: u64,
        parts: &[&[u8]],
        reserve: usize,
    ) -> bool {
        let words = HEADER_WORDS + meta.len.div_ceil(8);
        if meta.len > MAX_PAYLOAD_BYTES || !self.has_room(words + reserve) {
            self.ring.dropped.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        self.put(meta.pack());
        self.put(u64::try_from(at.as_nanos()).unwrap_or(u64::MAX));
        self.put(stream);
        if let [payload] = parts {
            let (whole, rest) = payload.as_chunks::<8>();
            for word in whole {
                self.put(u64::from_le_bytes(*word));
            }
            self.put_rest(rest.iter().copied());
        } else {
            let mut octets = parts.iter().flat_map(|part| part.iter().copied());
            for _ in 0..meta.len / 8 {
                let mut word = [0; 8];
                word.iter_mut()
                    .zip(&mut octets)
                    .for_each(|(to, from)| *to = from);
                self.put(u64::from_le_bytes(word));
            }
            self.put_rest(octets);
        }
        self.ring.head.0.store(self.head, Ordering::Release);
        true
    }

    fn has_room(&mut self, words: usize) -> bool {
        let len = self.ring.words.len();
        if len - self.head.wrapping_sub(self.tail) >= words {
            return true;
        }
        self.tail = self.ring.tail.0.load(Ordering::Acquire);
        len - self.head.wrapping_sub(self.tail) >= words
    }

    fn put(&mut self, word: u64) {
        self.ring.words[self.place].store(word, Ordering::Relaxed);
        self.head += 1;
        self.place = self.ring.after(self.place);
    }

    /// Writes the last, incomplete word, if there is one.
    fn put_rest(&mut self, octets: impl Iterator<Item = u8>) {
        let mut octets = octets.peekable();
        if octets.peek().is_some() {
            let mut word = [0; 8];
            word.iter_mut()
                .zip(octets)
                .for_each(|(to, from)| *to = from);
            self.put(u64::from_le_bytes(word));
        }
    }
}

impl Drop for TapWriter {
    fn drop(&mut self) {
        self.ring.writer_gone.store(true, Ordering::Release);
    }
}

/// The recorder's end of a tap.
#[derive(Debug)]
pub struct TapReader {
    ring: Arc<Ring>,
    tail: usize,
    /// Where the next word stands.
    place: usize,
    payload: Vec<u8>,
}

impl TapReader {
    /// Takes the oldest event, if there is one.
    pub fn pop_one(&mut self) -> Option<TapEvent<'_>> {
        let head = self.ring.head.0.load(Ordering::Acquire);
        if head == self.tail {
            return None;
        }
        let meta = Meta::unpack(self.get());
        let at = Duration::from_nanos(self.get());
        let stream = self.get();
        self.payload.clear();
        for _ in 0..meta.len.div_ceil(8) {
            let word = self.get();
            self.payload.extend_from_slice(&word.to_le_bytes());
        }
        self.payload.truncate(meta.len);
        self.ring.tail.0.store(self.tail, Ordering::Release);
        Some(meta.event(at, stream, &self.payload))
    }

    /// Hands over everything that was there at the time of the call, oldest first. Returns how many
    /// events it was.
    pub fn pop(&mut self, mut f: impl FnMut(TapEvent<'_>)) -> usize {
        let end = self.ring.head.0.load(Ordering::Acquire);
        let mut count = 0;
        while self.tail != end {
            let Some(event) = self.pop_one() else { break };
            f(event);
            count += 1;
        }
        count
    }

    /// Frames and marks that found no room.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.ring.dropped.load(Ordering::Relaxed)
    }

    /// Whether the writer is gone. What it wrote before may still be there: close, then drain, then
    /// stop.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.ring.writer_gone.load(Ordering::Acquire)
    }

    fn get(&mut self) -> u64 {
        let word = self.ring.words[self.place].load(Ordering::Relaxed);
        self.tail += 1;
        self.place = self.ring.after(self.place);
        word
    }
}

impl Drop for TapReader {
    fn drop(&mut self) {
        self.ring.reader_gone.store(true, Ordering::Release);
    }
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Frame,
    Start,
    Codec,
    Stop,
}

/// The first word of a record: `kind:4 side:4 payload_type:8 channels:8 - low:16 len:16`, from the
/// top.
#[derive(Copy, Clone, Debug)]
struct Meta {
    kind: Kind,
    side: u8,
    payload_type: u8,
    channels: u8,
    /// Octets of payload.
    len: usize,
    /// A frame's sequence number; of a codec's text, the length of its name.
    low: u16,
}

impl Meta {
    fn pack(self) -> u64 {
        (self.kind as u64) << 60
            | u64::from(self.side & 0xf) << 56
            | u64::from(self.payload_type) << 48
            | u64::from(self.channels) << 40
            | u64::from(self.low) << 16
            | self.len as u64
    }

    fn unpack(word: u64) -> Self {
        let octet = |shift: u32| (word >> shift) as u8;
        Self {
            kind: match octet(56) >> 4 {
                0 => Kind::Frame,
                1 => Kind::Start,
                2 => Kind::Codec,
                _ => Kind::Stop,
            },
            side: octet(56) & 0xf,
            payload_type: octet(48),
            channels: octet(40),
            low: (word >> 16) as u16,
            len: usize::from(word as u16),
        }
    }

    fn event(self, at: Duration, stream: u64, payload: &[u8]) -> TapEvent<'_> {
        let Self {
            side, payload_type, ..
        } = self;
        match self.kind {
            Kind::Frame => TapEvent::Frame(TapFrame {
                side,
                at,
                ssrc: (stream >> 32) as u32,
                sequence: self.low,
                timestamp: stream as u32,
                payload_type,
                payload,
            }),
            Kind::Start => TapEvent::Mark(TapMark::Start { at }),
            Kind::Stop => TapEvent::Mark(TapMark::Stop { at }),
            Kind::Codec => {
                let (name, fmtp) = payload.split_at(usize::from(self.low).min(payload.len()));
                TapEvent::Mark(TapMark::Codec {
                    at,
                    side,
                    payload_type,
                    name: std::str::from_utf8(name).unwrap_or_default(),
                    clock_rate: stream as u32,
                    channels: self.channels,
                    sample_rate: (stream >> 32) as u32,
                    fmtp: std::str::from_utf8(fmtp).unwrap_or_default(),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests;
