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

use crate::command::{LegSpec, PayloadFormat, Program, SessionSpec, Side};
use crate::delay::DelayLine;
use crate::generator::{Generator, Source};
use crate::session::{Session, SessionError};
use crate::stream::Run;
use crate::transcode::Transcoder;

/// What becomes of the packets that come in on a leg.
#[derive(Debug)]
pub(crate) enum Path {
    /// Nothing: there is no other leg, or one of the two is on hold.
    Held,
    /// Passed on, through a table from law to law where there is one.
    Relay(Option<&'static [u8; 256]>),
    Transcode(Box<Transcoder>),
}

/// A leg's packets on their way out again.
#[derive(Debug)]
pub(crate) struct Feed {
    pub(crate) path: Path,
    pub(crate) run: Option<Run>,
}

impl Feed {
    pub(crate) fn new(path: Path) -> Self {
        Self { path, run: None }
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
    pub(crate) fn prepare(&self, spec: &SessionSpec) -> Result<Changes, SessionError> {
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
                let path = match (spec.leg(side), into) {
                    (Some(from), Some(to)) => self.path(side, from, to)?,
                    _ => Path::Held,
                };
                changes.feeds[side.index()] = Some(Feed::new(path));
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
    fn path(&self, side: Side, from: &LegSpec, to: &LegSpec) -> Result<Path, SessionError> {
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
                let transcoder = Transcoder::new(from, to, from_codec, to_codec)?;
                Ok(Path::Transcode(Box::new(transcoder)))
            }
        }
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
        let source = Source::new(&spec.program, self.clip.as_ref(), codec.info().sample_rate)?;
        source
            .map(|source| Generator::new(source, codec, a))
            .transpose()
    }
}

/// Whether two specifications of a leg are the same to whoever encodes or decodes.
fn same_sound(a: &LegSpec, b: &LegSpec) -> bool {
    a.format == b.format && a.ptime_ms == b.ptime_ms
}
