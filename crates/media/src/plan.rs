//! What a specification needs, made before anything is changed: paths, generator, delay line.
//!
//! ```text
//!  same codec, same packet time ........ Relay
//!  a table leads from law to law ....... Relay through the table
//!  anything else ....................... Transcode
//!  one of the two on hold, or missing .. Held
//! ```
//!
//! What is the same under the new specification as under the old is left alone and goes on without a
//! break. Codecs are looked up only where something has to be decoded or encoded: what is relayed as
//! it is need not be known.

use std::time::Instant;

use crate::command::{LegSpec, PayloadFormat, Program, SessionSpec, Side};
use crate::delay::DelayLine;
use crate::generator::{Generator, Source};
use crate::session::{Session, SessionError};
use crate::stream::Run;
use crate::transcode::{Transcoder, at_rate};

/// Rate of telephony, which tones are made for.
const SPEECH_RATE: u32 = 8_000;
/// Rate of wideband speech.
const WIDEBAND_RATE: u32 = 16_000;

/// What becomes of the packets that come in on a leg.
#[derive(Debug)]
pub(crate) enum Path {
    /// Nothing: there is no other leg, or one of the two is on hold.
    Held,
    /// Passed on, through a table from law to law where there is one.
    Relay(Option<&'static [u8; 256]>),
    Transcode(Box<Transcoder>),
}

/// The way of one codec that a leg's peer may send.
#[derive(Debug)]
pub(crate) struct Way {
    /// The number that its packets come under.
    pub(crate) payload_type: u8,
    pub(crate) clock_rate: u32,
    pub(crate) path: Path,
}

/// A leg's packets on their way out again.
#[derive(Debug)]
pub(crate) struct Feed {
    /// First that of the leg's codec; those of others are made when the first packet of theirs
    /// comes.
    ways: Vec<Way>,
    /// Which of them is on.
    current: usize,
    pub(crate) run: Option<Run>,
}

impl Feed {
    pub(crate) fn held() -> Self {
        Self::new(0, 8_000, Path::Held)
    }

    fn new(payload_type: u8, clock_rate: u32, path: Path) -> Self {
        let way = Way {
            payload_type,
            clock_rate,
            path,
        };
        Self {
            ways: vec![way],
            current: 0,
            run: None,
        }
    }

    /// The way that is on, and what numbers its packets.
    pub(crate) fn current(&mut self) -> (&mut Way, &mut Option<Run>) {
        (&mut self.ways[self.current], &mut self.run)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.ways[self.current].path
    }

    /// Whether packets of this number go the way that is on. Nothing leads away from a leg that is
    /// held.
    pub(crate) fn is_current(&self, payload_type: u8) -> bool {
        let is_held = matches!(self.ways[0].path, Path::Held);
        is_held || self.ways[self.current].payload_type == payload_type
    }

    /// Turns to the way of another number, when there is one already. What comes next is a run of
    /// its own.
    pub(crate) fn turn_to(&mut self, payload_type: u8) -> bool {
        let known = self
            .ways
            .iter()
            .position(|way| way.payload_type == payload_type);
        if let Some(index) = known {
            self.current = index;
            self.run = None;
        }
        known.is_some()
    }

    pub(crate) fn add(&mut self, payload_type: u8, clock_rate: u32, path: Path) {
        self.ways.push(Way {
            payload_type,
            clock_rate,
            path,
        });
    }
}

/// What a specification asks for beyond what there is: made before anything is changed.
pub(crate) struct Changes {
    pub(crate) feeds: [Option<Feed>; 2],
    pub(crate) generator: Option<Option<Generator>>,
    pub(crate) delay: Option<Option<DelayLine>>,
}

impl Session {
    /// Makes what a specification needs, as far as it differs from what there is.
    pub(crate) fn prepare(
        &self,
        now: Instant,
        spec: &SessionSpec,
    ) -> Result<Changes, SessionError> {
        let a = spec.leg(Side::A).ok_or(SessionError::Incomplete)?;
        let is_new_program = self.program != spec.program || self.legs[0].is_none();
        let mut changes = Changes {
            feeds: [None, None],
            generator: None,
            delay: None,
        };
        for side in Side::BOTH {
            let into = match spec.program {
                Program::Bridge => spec.leg(side.other()),
                Program::Echo { .. } if side == Side::A => Some(a),
                _ => None,
            };
            let goes_on = !is_new_program && self.feed_stays(side, spec, into);
            if !goes_on {
                changes.feeds[side.index()] = Some(match (spec.leg(side), into) {
                    (Some(from), Some(to)) => {
                        let format = &from.format;
                        let path = self.path(now, (side, from), to)?;
                        Feed::new(format.recv_payload_type, format.clock_rate, path)
                    }
                    _ => Feed::held(),
                });
            }
        }
        if is_new_program {
            changes.delay = Some(match spec.program {
                Program::Echo { delay } if !delay.is_zero() => Some(DelayLine::new(delay)),
                _ => None,
            });
        }
        let is_new_format = self.legs[0]
            .as_ref()
            .is_none_or(|leg| !same_sound(&leg.spec, a));
        if is_new_program || is_new_format {
            changes.generator = Some(self.generator(spec, a)?);
        }
        Ok(changes)
    }

    /// Whether the way from a leg is the same under a new specification.
    fn feed_stays(&self, side: Side, spec: &SessionSpec, into: Option<&LegSpec>) -> bool {
        let own = |side: Side| self.legs[side.index()].as_ref().map(|leg| &leg.spec);
        let target = if spec.program == Program::Bridge {
            side.other()
        } else {
            side
        };
        match (own(side), spec.leg(side), own(target), into) {
            (Some(from), Some(new_from), Some(to), Some(new_to)) => {
                same_sound(from, new_from)
                    && same_sound(to, new_to)
                    && from.receive == new_from.receive
                    && to.send == new_to.send
            }
            _ => false,
        }
    }

    /// The way from one leg to another, or back to the same.
    pub(crate) fn path(
        &self,
        now: Instant,
        (side, from): (Side, &LegSpec),
        to: &LegSpec,
    ) -> Result<Path, SessionError> {
        if !from.receive || !to.send {
            return Ok(Path::Held);
        }
        let (a, b) = (&from.format, &to.format);
        let same_codec = a.name.eq_ignore_ascii_case(&b.name)
            && (a.clock_rate, a.channels) == (b.clock_rate, b.channels);
        let same_time = from.ptime_ms == to.ptime_ms;
        if same_codec && same_time {
            return Ok(Path::Relay(None));
        }
        let find = |side, format: &PayloadFormat| {
            let found = self
                .registry
                .find(&format.name, format.clock_rate, format.channels);
            found.ok_or(SessionError::Codec { side })
        };
        let (from_codec, to_codec) = (find(side, a)?, find(side.other(), b)?);
        match from_codec.octet_map(to_codec.info()).filter(|_| same_time) {
            Some(table) => Ok(Path::Relay(Some(table))),
            None => {
                let (from, to) = ((side, from), (side.other(), to));
                let transcoder = Transcoder::new(now, from, to, from_codec, to_codec)?;
                Ok(Path::Transcode(Box::new(transcoder)))
            }
        }
    }

    /// The sample rate at which a codec is recorded: where it has a choice, that of the other leg,
    /// but no more than wideband. 0 where no codec is known.
    pub(crate) fn recorded_rate(
        &self,
        format: &PayloadFormat,
        other: Option<&PayloadFormat>,
    ) -> u32 {
        let find = |format: &PayloadFormat| {
            self.registry
                .find(&format.name, format.clock_rate, format.channels)
        };
        let Some(codec) = find(format) else { return 0 };
        let own = codec.info().sample_rate;
        let behind = other
            .and_then(find)
            .map_or(own, |codec| codec.info().sample_rate);
        [behind.min(WIDEBAND_RATE), WIDEBAND_RATE]
            .into_iter()
            .find(|rate| at_rate(codec, *rate).is_some())
            .unwrap_or(own)
    }

    fn generator(
        &self,
        spec: &SessionSpec,
        a: &LegSpec,
    ) -> Result<Option<Generator>, SessionError> {
        if matches!(spec.program, Program::Bridge | Program::Echo { .. }) {
            return Ok(None);
        }
        let codec = self
            .registry
            .find(&a.format.name, a.format.clock_rate, a.format.channels);
        let codec = codec.ok_or(SessionError::Codec { side: Side::A })?;
        // Tones and telephony's clips hold nothing that a higher rate would carry.
        let rate = self
            .clip
            .as_ref()
            .map_or(SPEECH_RATE, |clip| clip.sample_rate);
        let codec = at_rate(codec, rate)
            .or_else(|| at_rate(codec, codec.info().sample_rate))
            .ok_or(SessionError::SampleRates)?;
        let source = Source::new(&spec.program, self.clip.as_ref(), codec.info().sample_rate)?;
        source
            .map(|source| Generator::new(source, codec, a))
            .transpose()
    }
}

/// Whether two specifications of a leg are the same to whoever encodes or decodes.
fn same_sound(a: &LegSpec, b: &LegSpec) -> bool {
    a.format == b.format
        && a.ptime_ms == b.ptime_ms
        && (&a.also, a.cn_send, a.cn_recv) == (&b.also, b.cn_send, b.cn_recv)
}
