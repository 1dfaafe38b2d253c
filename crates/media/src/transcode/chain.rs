//! From payloads to the PCM that is encoded: one channel, at the rate of the encoder.
//!
//! ```text
//!  payload -> [law table] -> Decoder -> [two channels to one] -> [Resampler] -> PCM
//!  lost ------------------------^   comfort noise --^
//! ```
//!
//! What stands in brackets is there where it is needed. Without it the decoder writes where the
//! encoder reads.

use audio::comfort::ComfortNoise;
use audio::resample::Resampler;
use audio::{Codec, CodecInfo, Decoder, Input};

use crate::command::{LegSpec, Side};
use crate::session::SessionError;
use crate::transcode::negotiated;

/// A codec with one channel at this rate, where it can be had so.
pub(crate) fn at_rate(codec: &dyn Codec, sample_rate: u32) -> Option<&dyn Codec> {
    let info = codec.info();
    if (info.sample_rate, info.channels) == (sample_rate, 1) {
        return Some(codec);
    }
    codec.variant(sample_rate, 1)
}

/// Both codecs as they are run between each other: at one rate where one of them can be run at the
/// other's, so that no resampler is needed.
pub(crate) fn matched<'c>(
    from: &'c dyn Codec,
    to: &'c dyn Codec,
) -> (&'c dyn Codec, Option<&'c dyn Codec>) {
    let (from_rate, to_rate) = (from.info().sample_rate, to.info().sample_rate);
    let narrowed = at_rate(to, from_rate);
    if narrowed.is_some() {
        return (at_rate(from, from_rate).unwrap_or(from), narrowed);
    }
    let decoded = at_rate(from, to_rate).or_else(|| at_rate(from, from_rate));
    (decoded.unwrap_or(from), at_rate(to, to_rate))
}

/// What a payload, or the lack of one, came to.
#[derive(Copy, Clone, Debug)]
pub(super) struct Made {
    /// Samples of PCM.
    pub(super) samples: usize,
    /// The same in units of the RTP clock.
    pub(super) units: u32,
}

pub(super) struct Chain {
    map: Option<&'static [u8; 256]>,
    octets: Box<[u8]>,
    decoder: Box<dyn Decoder>,
    /// Facts of the codec as it is run.
    info: CodecInfo,
    resampler: Option<Resampler>,
    /// What the decoder made, where that is not yet what is wanted.
    decoded: Box<[i16]>,
    rate: u32,
}

impl Chain {
    /// `rate` is that of the PCM that comes out; `behind` the one that sound behind us has.
    pub(super) fn new(
        codec: &dyn Codec,
        (side, spec): (Side, &LegSpec),
        map: Option<&'static [u8; 256]>,
        (rate, behind): (u32, u32),
    ) -> Result<Self, SessionError> {
        let info = codec.info().clone();
        let decoder = negotiated(codec, spec, behind)
            .and_then(|params| codec.decoder(&params).ok())
            .ok_or(SessionError::Codec { side })?;
        let resampler = if info.sample_rate == rate {
            None
        } else {
            Some(Resampler::new(info.sample_rate, rate).map_err(|_| SessionError::SampleRates)?)
        };
        let is_direct = resampler.is_none() && info.channels == 1;
        let room = info.max_frame_samples * usize::from(info.channels);
        Ok(Self {
            octets: vec![0; map.map_or(0, |_| info.max_payload_bytes)].into(),
            map,
            decoder,
            resampler,
            decoded: vec![0; if is_direct { 0 } else { room }].into(),
            rate,
            info,
        })
    }

    /// RTP clock of the payloads.
    pub(super) fn clock_rate(&self) -> u32 {
        self.info.clock_rate
    }

    /// Samples per second that come out.
    pub(super) fn rate(&self) -> u32 {
        self.rate
    }

    /// The most samples that one call makes.
    pub(super) fn most_samples(&self) -> usize {
        let most = self.info.max_frame_samples;
        self.resampler
            .as_ref()
            .map_or(most, |resampler| resampler.most_samples(most))
    }

    /// Decodes a payload; `None` when the decoder refuses it.
    ///
    /// Shape: `out` has room for [`Self::most_samples`]. Cost: no allocation.
    pub(super) fn decode(&mut self, payload: &[u8], out: &mut [i16]) -> Option<Made> {
        let Some(map) = self.map else {
            return self.run(Input::Frame(payload), out);
        };
        let mut octets = std::mem::take(&mut self.octets);
        let made = octets.get_mut(..payload.len()).and_then(|mapped| {
            for (to, from) in mapped.iter_mut().zip(payload) {
                *to = map[usize::from(*from)];
            }
            self.run(Input::Frame(mapped), out)
        });
        self.octets = octets;
        made
    }

    /// Makes up for a lost payload of so many units of the clock, from the `next` one where it is
    /// there and holds something about it.
    pub(super) fn conceal(
        &mut self,
        units: u32,
        next: Option<&[u8]>,
        out: &mut [i16],
    ) -> Option<Made> {
        let samples = self.info.samples(units).min(self.info.max_frame_samples);
        match next.filter(|_| self.map.is_none()) {
            Some(next) => self.run(Input::Recover { next, samples }, out),
            None => self.run(Input::Lost { samples }, out),
        }
    }

    /// Makes noise that lasts so many samples of what comes out.
    pub(super) fn noise(
        &mut self,
        noise: &mut ComfortNoise,
        samples: usize,
        out: &mut [i16],
    ) -> Option<Made> {
        let own =
            (samples as u64 * u64::from(self.info.sample_rate) / u64::from(self.rate)) as usize;
        let units = self.info.clock_units(own);
        let samples = match &mut self.resampler {
            None => {
                noise.fill(out.get_mut(..own)?);
                own
            }
            Some(resampler) => {
                let pcm = self.decoded.get_mut(..own)?;
                noise.fill(pcm);
                resampler.process(pcm, out)
            }
        };
        Some(Made { samples, units })
    }

    fn run(&mut self, input: Input<'_>, out: &mut [i16]) -> Option<Made> {
        if self.decoded.is_empty() {
            let samples = self.decoder.decode(input, out).ok()?;
            let units = self.info.clock_units(samples);
            return Some(Made { samples, units });
        }
        let decoded = self.decoder.decode(input, &mut self.decoded).ok()?;
        let units = self.info.clock_units(decoded);
        let mono = to_mono(&mut self.decoded, decoded, usize::from(self.info.channels));
        let samples = match &mut self.resampler {
            Some(resampler) => resampler.process(mono, out),
            None => {
                out.get_mut(..decoded)?.copy_from_slice(mono);
                decoded
            }
        };
        Some(Made { samples, units })
    }
}

/// The mean of all channels, written over what it is made of.
fn to_mono(pcm: &mut [i16], samples: usize, channels: usize) -> &[i16] {
    if channels > 1 {
        for index in 0..samples {
            let all = &pcm[index * channels..][..channels];
            let sum: i32 = all.iter().map(|sample| i32::from(*sample)).sum();
            pcm[index] = (sum / channels as i32) as i16;
        }
    }
    &pcm[..samples]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_channels_become_their_mean() {
        let mut pcm = [10, 20, -32_768, -32_768, 1, 2, 9, 9];
        assert_eq!(to_mono(&mut pcm, 3, 2), [15, -32_768, 1]);
        assert_eq!(to_mono(&mut [1, 2, 3], 2, 1), [1, 2]);
    }
}
