//! The suite itself: a codec without a fault passes, and each fault is found.
#![cfg(feature = "testing")]
#![allow(missing_docs, reason = "a test")]

mod counting;

use std::panic::{AssertUnwindSafe, catch_unwind};

use audio::conformance::{Options, run};
use audio::settings::{self, Setting, SettingError, Values};
use audio::{
    Codec, CodecError, CodecInfo, Cost, Decoder, Encoder, Input, NegotiateError, Offered, Params,
};

/// What may be wrong with it.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Fault {
    None,
    TakesUnknownSettings,
    TakesAnyValue,
    HasAnotherDefault,
    KnowsHalfItsCost,
    AddsSettings,
    VariantHasAnotherClock,
    WritesWithoutRoom,
    TakesAnyLength,
    IsSilentWhenLost,
    RepeatsForever,
    RecoversTooMuch,
    Hums,
    Attenuates,
    IsCoarse,
    IsLate,
    MixesChannels,
    PanicsOnEmpty,
    PanicsOnLong,
    StopsAfterGarbage,
    Allocates,
}

/// Linear samples, the octets in network order, in one or two channels.
struct Linear {
    fault: Fault,
    info: CodecInfo,
    variants: Vec<Self>,
}

static SETTINGS: [Setting; 3] = [
    Setting {
        name: "shift",
        values: Values::Integers(0..=2),
        default: "0",
        meaning: "bits to leave out",
    },
    Setting {
        name: "dtx",
        values: Values::Switch,
        default: "off",
        meaning: "send nothing for silence",
    },
    Setting {
        name: "order",
        values: Values::Words(&["network", "host"]),
        default: "network",
        meaning: "which octet comes first",
    },
];

impl Linear {
    fn new(fault: Fault) -> Self {
        let mut codec = Self::of(fault, 8_000, 1);
        codec.variants = vec![Self::of(fault, 16_000, 1), Self::of(fault, 8_000, 2)];
        if fault == Fault::VariantHasAnotherClock {
            codec.variants[0].info.clock_rate = 16_000;
        }
        codec
    }

    fn of(fault: Fault, sample_rate: u32, channels: u8) -> Self {
        let info = CodecInfo {
            name: "LINEAR",
            static_payload_type: None,
            clock_rate: 8_000,
            rtpmap_channels: 1,
            sample_rate,
            channels,
            frame_step_samples: sample_rate as usize / 200,
            max_frame_samples: sample_rate as usize / 10,
            default_ptime_ms: 20,
            max_payload_bytes: sample_rate as usize / 5 * usize::from(channels),
        };
        Self {
            fault,
            info,
            variants: Vec::new(),
        }
    }
}

impl Linear {
    fn check(&self, given: &[(String, String)]) -> Result<(), NegotiateError> {
        let is_known = |name: &str| SETTINGS.iter().any(|setting| setting.name == name);
        let checked: Vec<_> = given
            .iter()
            .filter(|(name, _)| match self.fault {
                Fault::TakesUnknownSettings => is_known(name),
                Fault::TakesAnyValue => !is_known(name),
                _ => true,
            })
            .cloned()
            .collect();
        let refused = settings::check(&SETTINGS, &checked);
        refused.map_err(|error| match error {
            // The place among those given, not among those looked at.
            SettingError::Unknown { .. } => SettingError::Unknown {
                index: given
                    .iter()
                    .position(|(name, _)| !is_known(name))
                    .unwrap_or(0),
            },
            other => other,
        })?;
        Ok(())
    }
}

impl Codec for Linear {
    fn info(&self) -> &CodecInfo {
        &self.info
    }

    fn settings(&self) -> &'static [Setting] {
        &SETTINGS
    }

    fn variant(&self, sample_rate: u32, channels: u8) -> Option<&dyn Codec> {
        let is_it = |codec: &&Self| {
            (codec.info.sample_rate, codec.info.channels) == (sample_rate, channels)
        };
        let variant = self.variants.iter().find(is_it)?;
        Some(variant)
    }

    fn cost(&self, _settings: &[(String, String)]) -> Cost {
        Cost {
            encode_ns: 100,
            decode_ns: u32::from(self.fault != Fault::KnowsHalfItsCost),
        }
    }

    fn offer(&self, offered: &Offered<'_>) -> Result<Option<String>, NegotiateError> {
        self.check(offered.settings)?;
        Ok(Some("linear=1".to_owned()))
    }

    fn negotiate(&self, offered: &Offered<'_>) -> Result<Params, NegotiateError> {
        self.check(offered.settings)?;
        let ptime_ms = if offered.ptime_ms == 0 {
            20
        } else {
            offered.ptime_ms
        };
        let mut settings = offered.settings.to_vec();
        if self.fault == Fault::AddsSettings {
            settings.push(("dtx".to_owned(), "off".to_owned()));
        }
        Ok(Params {
            frame_samples: self.info.samples_per_packet(ptime_ms),
            fmtp: None,
            settings,
        })
    }

    fn encoder(&self, params: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        let default = u32::from(self.fault == Fault::HasAnotherDefault);
        Ok(Box::new(LinearEncoder {
            fault: self.fault,
            frame_samples: params.frame_samples,
            channels: self.info.channels.into(),
            shift: settings::integer(&params.settings, "shift").unwrap_or(default),
            dtx: settings::switch(&params.settings, "dtx") == Some(true),
        }))
    }

    fn decoder(&self, _params: &Params) -> Result<Box<dyn Decoder>, CodecError> {
        Ok(Box::new(LinearDecoder {
            fault: self.fault,
            channels: self.info.channels.into(),
            most: self.info.max_frame_samples,
            last: Vec::with_capacity(10_000),
            line: vec![0; 2_000].into(),
            losses: 0,
            stuck: false,
        }))
    }
}

struct LinearEncoder {
    fault: Fault,
    frame_samples: usize,
    channels: usize,
    shift: u32,
    dtx: bool,
}

impl Encoder for LinearEncoder {
    fn encode(&mut self, pcm: &[i16], out: &mut [u8]) -> Result<usize, CodecError> {
        let samples = pcm.len();
        if samples != self.frame_samples * self.channels && self.fault != Fault::TakesAnyLength {
            return Err(CodecError::FrameLength { samples });
        }
        let (needed, available) = (samples * 2, out.len());
        if needed > available && self.fault == Fault::WritesWithoutRoom {
            return Ok(0);
        } else if needed > available {
            return Err(CodecError::OutputTooSmall { needed, available });
        }
        if self.dtx && pcm.iter().all(|&sample| sample == 0) {
            return Ok(0);
        }
        if self.fault == Fault::Allocates {
            drop(std::hint::black_box(pcm.to_vec()));
        }
        for (octets, &sample) in out.chunks_exact_mut(2).zip(pcm) {
            let kept = match self.fault {
                Fault::Attenuates => sample / 2,
                Fault::IsCoarse => sample / 3_000 * 3_000,
                _ => sample >> self.shift << self.shift,
            };
            octets.copy_from_slice(&kept.to_be_bytes());
        }
        Ok(needed)
    }

    fn frame_samples(&self) -> usize {
        self.frame_samples
    }
}

struct LinearDecoder {
    fault: Fault,
    channels: usize,
    most: usize,
    /// What was heard last.
    last: Vec<i16>,
    /// A delay line, for those who are late.
    line: std::collections::VecDeque<i16>,
    losses: u32,
    stuck: bool,
}

impl LinearDecoder {
    fn conceal(&mut self, samples: usize, out: &mut [i16]) -> Result<usize, CodecError> {
        let needed = samples * self.channels;
        let available = out.len();
        let out = out.get_mut(..needed);
        let out = out.ok_or(CodecError::OutputTooSmall { needed, available })?;
        self.losses += 1;
        out.fill(0);
        if self.fault == Fault::RepeatsForever || self.losses < 3 {
            for (sample, &last) in out.iter_mut().zip(&self.last) {
                *sample = last;
            }
        }
        match self.fault {
            Fault::IsSilentWhenLost => Ok(0),
            _ => Ok(samples),
        }
    }

    fn frame(&mut self, payload: &[u8], out: &mut [i16]) -> Result<usize, CodecError> {
        let len = payload.len();
        assert!(len > 0 || self.fault != Fault::PanicsOnEmpty, "empty");
        assert!(len < 1_450 || self.fault != Fault::PanicsOnLong, "long");
        let whole = 2 * self.channels;
        if len == 0 || !len.is_multiple_of(whole) || len / whole > self.most || self.stuck {
            self.stuck = self.fault == Fault::StopsAfterGarbage;
            return Err(CodecError::BadPayload { len });
        }
        let (needed, available) = (len / 2, out.len());
        let out = out.get_mut(..needed);
        let out = out.ok_or(CodecError::OutputTooSmall { needed, available })?;
        for (sample, octets) in out.iter_mut().zip(payload.chunks_exact(2)) {
            *sample = i16::from_be_bytes([octets[0], octets[1]]);
        }
        self.spoil(out);
        self.losses = 0;
        self.last.clear();
        self.last.extend_from_slice(out);
        Ok(len / whole)
    }

    fn spoil(&mut self, out: &mut [i16]) {
        match self.fault {
            Fault::Hums => out.iter_mut().step_by(2).for_each(|sample| *sample |= 256),
            Fault::MixesChannels if self.channels == 2 => {
                for pair in out.chunks_exact_mut(2) {
                    pair[1] = pair[0];
                }
            }
            Fault::IsLate => {
                for sample in out {
                    let late = self.line.pop_front().unwrap_or(0);
                    self.line.push_back(*sample);
                    *sample = late;
                }
            }
            _ => {}
        }
    }
}

impl Decoder for LinearDecoder {
    fn decode(&mut self, input: Input<'_>, out: &mut [i16]) -> Result<usize, CodecError> {
        match input {
            Input::Frame(payload) => self.frame(payload, out),
            Input::Recover { samples, .. } if self.fault == Fault::RecoversTooMuch => {
                self.conceal(samples, out).map(|samples| samples + 1)
            }
            Input::Lost { samples } | Input::Recover { samples, .. } => self.conceal(samples, out),
            other => unreachable!("{other:?}"),
        }
    }
}

fn options() -> Options<'static> {
    Options {
        min_snr_db: 30.0,
        max_level_change_db: 0.2,
        max_delay_samples: 100,
        max_spectral_distance_db: 1.0,
        min_segmental_snr_db: Some(25.0),
        ptimes_ms: &[10, 20],
        allocations: Some(&counting::allocations),
        ..Options::default()
    }
}

#[test]
fn a_codec_without_a_fault_passes() {
    run(&Linear::new(Fault::None), &options());
}

#[test]
fn every_fault_is_found() {
    let rows = [
        (Fault::TakesUnknownSettings, "setting \"no-such-setting\""),
        (Fault::TakesAnyValue, "shift=\"\""),
        (Fault::HasAnotherDefault, "shift is not its default"),
        (Fault::KnowsHalfItsCost, "Cost"),
        (Fault::AddsSettings, "settings agreed on"),
        (Fault::VariantHasAnotherClock, "a variant"),
        (Fault::WritesWithoutRoom, "Ok(0)"),
        (Fault::TakesAnyLength, "Ok("),
        (Fault::IsSilentWhenLost, "samples for a lost frame"),
        (Fault::RepeatsForever, "after a long loss"),
        (Fault::RecoversTooMuch, "with recovery"),
        (Fault::Hums, "silence at"),
        (Fault::Attenuates, "level changed by"),
        (Fault::IsCoarse, "level changed by"),
        (Fault::IsLate, "speech: Heard"),
        (Fault::MixesChannels, "a tone on channel 1"),
        (Fault::PanicsOnEmpty, "empty"),
        (Fault::PanicsOnLong, "long"),
        (Fault::StopsAfterGarbage, "decoding goes on"),
        (Fault::Allocates, "allocations in 100 frames"),
    ];
    let mut wrong = Vec::new();
    for (fault, expected) in rows {
        let codec = Linear::new(fault);
        let refused = catch_unwind(AssertUnwindSafe(|| run(&codec, &options())));
        let message = refused.err().map(|panic| {
            let owned = panic.downcast_ref::<String>().cloned();
            owned.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        });
        let message = message.flatten().unwrap_or_default();
        if !message.contains(expected) {
            wrong.push((fault, expected, message));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
