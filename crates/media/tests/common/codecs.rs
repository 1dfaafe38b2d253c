//! Codecs as plain as can be, each with one of the properties that real ones have: a clock that is
//! not the sample rate, several rates to run at, redundancy, pauses.
//!
//! ```text
//!  payload: samples of the frame before, in number | these | samples of this frame, at 8 kHz
//! ```
//!
//! The frame before is there only where the codec is redundant. Samples are two octets each.

use audio::{
    Codec, CodecError, CodecInfo, Decoder, Encoder, Input, NegotiateError, Offered, Params,
};

/// What payloads are sampled at, whatever rate the codec is run at.
const CODED_RATE: u32 = 8_000;

pub struct Plain {
    info: CodecInfo,
    variants: Vec<Self>,
    redundant: bool,
}

/// 16 kHz on a clock of 8 kHz, as G.722.
pub const WIDE: (&str, u32, u8) = ("WIDE", 8_000, 1);
/// Any rate on a clock of 48 kHz, as Opus; redundant, and silent where there is silence.
pub const FLEX: (&str, u32, u8) = ("FLEX", 48_000, 2);
/// 32 kHz and nothing else.
pub const HIGH: (&str, u32, u8) = ("HIGH", 32_000, 1);

pub fn all() -> [Plain; 3] {
    let variants = [8_000, 16_000, 24_000, 48_000].map(|rate| Plain::new(FLEX, rate, true));
    let flex = Plain {
        variants: variants.into(),
        ..Plain::new(FLEX, 48_000, true)
    };
    [
        Plain::new(WIDE, 16_000, false),
        flex,
        Plain::new(HIGH, 32_000, false),
    ]
}

impl Plain {
    fn new(
        (name, clock_rate, rtpmap_channels): (&'static str, u32, u8),
        rate: u32,
        redundant: bool,
    ) -> Self {
        let info = CodecInfo {
            name,
            static_payload_type: None,
            clock_rate,
            rtpmap_channels,
            sample_rate: rate,
            channels: 1,
            frame_step_samples: (rate / 100) as usize,
            max_frame_samples: (rate / 1_000 * 120) as usize,
            default_ptime_ms: 20,
            max_payload_bytes: 4_000,
        };
        Self {
            info,
            variants: Vec::new(),
            redundant,
        }
    }

    fn step(&self) -> usize {
        (self.info.sample_rate / CODED_RATE) as usize
    }
}

impl Codec for Plain {
    fn info(&self) -> &CodecInfo {
        &self.info
    }

    fn variant(&self, sample_rate: u32, channels: u8) -> Option<&dyn Codec> {
        let mut all = self.variants.iter();
        let found = all.find(|codec| codec.info.sample_rate == sample_rate)?;
        (channels == 1).then_some(found as &dyn Codec)
    }

    fn negotiate(&self, offered: &Offered<'_>) -> Result<Params, NegotiateError> {
        Ok(Params {
            frame_samples: self.info.samples_per_packet(offered.ptime_ms),
            ..Params::default()
        })
    }

    fn encoder(&self, params: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        Ok(Box::new(PlainEncoder {
            frame: params.frame_samples,
            step: self.step(),
            before: self
                .redundant
                .then(|| Vec::with_capacity(self.info.max_payload_bytes)),
        }))
    }

    fn decoder(&self, _: &Params) -> Result<Box<dyn Decoder>, CodecError> {
        Ok(Box::new(PlainDecoder {
            step: self.step(),
            redundant: self.redundant,
        }))
    }
}

struct PlainEncoder {
    frame: usize,
    step: usize,
    /// The payload's own part of the frame before.
    before: Option<Vec<u8>>,
}

impl Encoder for PlainEncoder {
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> Result<usize, CodecError> {
        if pcm.len() != self.frame {
            return Err(CodecError::FrameLength { samples: pcm.len() });
        }
        let mut len = 0;
        if let Some(before) = &mut self.before {
            if pcm.iter().all(|sample| *sample == 0) {
                before.clear();
                return Ok(0);
            }
            out[..2].copy_from_slice(&(before.len() as u16 / 2).to_be_bytes());
            out[2..][..before.len()].copy_from_slice(before);
            len = 2 + before.len();
        }
        let own = len;
        for sample in pcm.iter().step_by(self.step) {
            out[len..len + 2].copy_from_slice(&sample.to_be_bytes());
            len += 2;
        }
        if let Some(before) = &mut self.before {
            before.clear();
            before.extend_from_slice(&out[own..len]);
        }
        Ok(len)
    }

    fn frame_samples(&self) -> usize {
        self.frame
    }
}

struct PlainDecoder {
    step: usize,
    redundant: bool,
}

impl PlainDecoder {
    /// A payload's redundant part and its own.
    fn split<'p>(&self, payload: &'p [u8]) -> Option<(&'p [u8], &'p [u8])> {
        if !self.redundant {
            return Some((&[], payload));
        }
        let (count, rest) = payload.split_first_chunk()?;
        rest.split_at_checked(usize::from(u16::from_be_bytes(*count)) * 2)
    }

    fn write(&self, coded: &[u8], out: &mut [i16]) -> Option<usize> {
        if coded.is_empty() || !coded.len().is_multiple_of(2) {
            return None;
        }
        let samples = coded
            .chunks_exact(2)
            .map(|two| i16::from_be_bytes([two[0], two[1]]));
        let out = out.get_mut(..coded.len() / 2 * self.step)?;
        for (room, sample) in out.chunks_exact_mut(self.step).zip(samples) {
            room.fill(sample);
        }
        Some(out.len())
    }
}

impl Decoder for PlainDecoder {
    fn decode(&mut self, input: Input<'_>, out: &mut [i16]) -> Result<usize, CodecError> {
        let made = match input {
            Input::Frame(payload) => self
                .split(payload)
                .and_then(|(_, own)| self.write(own, out)),
            Input::Recover { next, samples } => {
                let before = self.split(next).map_or(&[][..], |(before, _)| before);
                self.write(before, out).or_else(|| {
                    out[..samples].fill(0);
                    Some(samples)
                })
            }
            Input::Lost { samples } => {
                out[..samples].fill(0);
                Some(samples)
            }
            _ => None,
        };
        made.ok_or(CodecError::BadPayload { len: 0 })
    }
}
