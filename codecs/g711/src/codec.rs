//! PCMA and PCMU as `audio` knows codecs. One octet is one sample, so a frame may have any length.

use audio::{
    Codec, CodecError, CodecInfo, Decoder, Encoder, Input, NegotiateError, Offered, Params,
    settings,
};

use crate::conceal::Concealer;
use crate::convert::{ALAW_TO_ULAW, ULAW_TO_ALAW};
use crate::law::{Law, decode, encode};

/// 160 ms in one packet, more than anyone asks for.
const MAX_FRAME_SAMPLES: usize = 1_280;

const fn info(name: &'static str, payload_type: u8) -> CodecInfo {
    CodecInfo {
        name,
        static_payload_type: Some(payload_type),
        clock_rate: 8_000,
        rtpmap_channels: 1,
        sample_rate: 8_000,
        channels: 1,
        frame_step_samples: 1,
        max_frame_samples: MAX_FRAME_SAMPLES,
        default_ptime_ms: 20,
        max_payload_bytes: MAX_FRAME_SAMPLES,
    }
}

static PCMA: CodecInfo = info("PCMA", 8);
static PCMU: CodecInfo = info("PCMU", 0);

/// A-law.
#[derive(Copy, Clone, Debug, Default)]
pub struct Pcma;

/// Mu-law.
#[derive(Copy, Clone, Debug, Default)]
pub struct Pcmu;

impl Codec for Pcma {
    fn info(&self) -> &CodecInfo {
        &PCMA
    }

    fn negotiate(&self, offered: &Offered<'_>) -> Result<Params, NegotiateError> {
        settings::check(self.settings(), offered.settings)?;
        Ok(negotiate(&PCMA, offered))
    }

    fn encoder(&self, params: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        G711Encoder::boxed(Law::A, params)
    }

    fn decoder(&self, _params: &Params) -> Result<Box<dyn Decoder>, CodecError> {
        Ok(Box::new(G711Decoder {
            law: Law::A,
            concealer: Concealer::new(),
        }))
    }

    fn octet_map(&self, to: &CodecInfo) -> Option<&'static [u8; 256]> {
        (*to == PCMU).then_some(&ALAW_TO_ULAW)
    }
}

impl Codec for Pcmu {
    fn info(&self) -> &CodecInfo {
        &PCMU
    }

    fn negotiate(&self, offered: &Offered<'_>) -> Result<Params, NegotiateError> {
        settings::check(self.settings(), offered.settings)?;
        Ok(negotiate(&PCMU, offered))
    }

    fn encoder(&self, params: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        G711Encoder::boxed(Law::Mu, params)
    }

    fn decoder(&self, _params: &Params) -> Result<Box<dyn Decoder>, CodecError> {
        Ok(Box::new(G711Decoder {
            law: Law::Mu,
            concealer: Concealer::new(),
        }))
    }

    fn octet_map(&self, to: &CodecInfo) -> Option<&'static [u8; 256]> {
        (*to == PCMA).then_some(&ULAW_TO_ALAW)
    }
}

/// G.711 has no format parameters (RFC 4856); what a peer states all the same is
/// ignored.
fn negotiate(info: &CodecInfo, offered: &Offered<'_>) -> Params {
    let ptime_ms = if offered.ptime_ms == 0 {
        info.default_ptime_ms
    } else {
        offered.ptime_ms
    };
    Params {
        frame_samples: info.samples_per_packet(ptime_ms),
        fmtp: None,
        settings: offered.settings.to_vec(),
    }
}

struct G711Encoder {
    law: Law,
    frame_samples: usize,
}

impl G711Encoder {
    fn boxed(law: Law, params: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        let frame_samples = params.frame_samples;
        if frame_samples == 0 || frame_samples > MAX_FRAME_SAMPLES {
            return Err(CodecError::FrameLength {
                samples: frame_samples,
            });
        }
        Ok(Box::new(Self { law, frame_samples }))
    }
}

impl Encoder for G711Encoder {
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> Result<usize, CodecError> {
        let needed = pcm.len();
        if needed != self.frame_samples {
            return Err(CodecError::FrameLength { samples: needed });
        }
        let available = out.len();
        let out = out
            .get_mut(..needed)
            .ok_or(CodecError::OutputTooSmall { needed, available })?;
        encode(self.law, pcm, out);
        Ok(needed)
    }

    fn frame_samples(&self) -> usize {
        self.frame_samples
    }
}

struct G711Decoder {
    law: Law,
    concealer: Concealer,
}

impl Decoder for G711Decoder {
    fn decode(&mut self, input: Input<'_>, out: &mut [i16]) -> Result<usize, CodecError> {
        let needed = match input {
            Input::Frame(payload) => payload.len(),
            Input::Lost { samples } | Input::Recover { samples, .. } => samples,
            _ => 0,
        };
        if needed == 0 || needed > MAX_FRAME_SAMPLES {
            return Err(CodecError::BadPayload { len: needed });
        }
        let available = out.len();
        let out = out
            .get_mut(..needed)
            .ok_or(CodecError::OutputTooSmall { needed, available })?;
        match input {
            Input::Frame(payload) => {
                decode(self.law, payload, out);
                self.concealer.hear(out);
            }
            // Nothing of a lost frame stands in the next one: it is made up, as long as that.
            _ => self.concealer.conceal(out),
        }
        Ok(needed)
    }
}

#[cfg(test)]
mod tests {
    use audio::conformance::{Options, run};
    use audio::level::Dbm0;

    use super::*;

    #[test]
    fn both_laws_conform() {
        // G.712 asks for 33 dB from 0 down to -30 dBm0.
        let options = Options {
            min_snr_db: 36.0,
            max_level_change_db: 0.05,
            max_delay_samples: 0,
            max_silence: Dbm0(-65.0),
            ..Options::default()
        };
        run(&Pcma, &options);
        run(&Pcmu, &options);
    }

    #[test]
    fn packet_times_of_any_length_are_met() {
        for (ptime_ms, samples) in [
            (0, 160),
            (1, 8),
            (20, 160),
            (30, 240),
            (60, 480),
            (999, 1_280),
        ] {
            let offered = Offered {
                ptime_ms,
                ..Offered::default()
            };
            assert_eq!(
                Pcma.negotiate(&offered).map(|p| p.frame_samples),
                Ok(samples)
            );
        }
    }

    #[test]
    fn the_laws_know_the_way_to_each_other_and_to_nothing_else() {
        assert_eq!(Pcma.octet_map(Pcmu.info()), Some(&ALAW_TO_ULAW));
        assert_eq!(Pcmu.octet_map(Pcma.info()), Some(&ULAW_TO_ALAW));
        assert_eq!(Pcma.octet_map(Pcma.info()), None);
        assert_eq!(Pcmu.octet_map(Pcmu.info()), None);
    }
}
