//! What a codec costs on this machine: processor time per 20 ms of sound, to encode and to decode.
//!
//! ```text
//!   sound, cut into frames -> encoder -> payloads kept -> decoder
//!            | window by window, in turn: encode, decode, encode, decode, ...
//!            +-> median of the windows, per 20 ms
//! ```
//!
//! Time is that of the measuring thread alone (CLOCK_THREAD_CPUTIME_ID), so that a busy machine
//! disturbs little. Figures of two codecs compare when they come from one run; those of two runs
//! differ with the machine's clock.

use std::time::Duration;

use audio::{Codec, CodecError, Input, NegotiateError, Offered};
use rustix::time::{ClockId, clock_gettime};
use thiserror::Error;

/// Windows of each direction; the median of them is told.
const WINDOWS: usize = 5;

/// What was measured of a codec.
#[derive(Copy, Clone, PartialEq, Debug)]
pub struct CodecCost {
    /// Processor time to encode 20 ms.
    pub encode: Duration,
    /// Processor time to decode 20 ms.
    pub decode: Duration,
    /// Octets of payload per second.
    pub bytes_per_second: f64,
}

/// Why a codec could not be measured.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum CostError {
    /// The settings are not among the codec's.
    #[error(transparent)]
    Negotiate(#[from] NegotiateError),
    /// It cannot encode or decode what it should.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The sound is shorter than one frame.
    #[error("the sound is shorter than a frame")]
    NoSound,
}

/// Measures a codec on `pcm`, which is at the codec's sample rate, mono, for about `budget` in all.
///
/// Every payload is decoded once per window, in order, after having been encoded in that window.
///
/// # Errors
/// The settings are refused, the codec fails, or there is no sound.
pub fn measure(
    codec: &dyn Codec,
    settings: &[(String, String)],
    pcm: &[i16],
    budget: Duration,
) -> Result<CodecCost, CostError> {
    let mut subject = Subject::new(codec, settings, pcm)?;
    let frames = subject.frames_within(budget / (2 * WINDOWS as u32))?;
    let (mut encode, mut decode) = ([0_u128; WINDOWS], [0_u128; WINDOWS]);
    for (encode, decode) in encode.iter_mut().zip(&mut decode) {
        let begun = thread_time();
        subject.encode(frames)?;
        let between = thread_time();
        subject.decode(frames)?;
        *encode = (between - begun).as_nanos();
        *decode = (thread_time() - between).as_nanos();
    }
    let units = subject.twenty_ms(frames);
    let per_unit = |mut windows: [u128; WINDOWS]| {
        windows.sort_unstable();
        Duration::from_nanos((windows[WINDOWS / 2] as f64 / units) as u64)
    };
    Ok(CodecCost {
        encode: per_unit(encode),
        decode: per_unit(decode),
        bytes_per_second: subject.bytes as f64 / (units * WINDOWS as f64) * 50.0,
    })
}

/// Processor time that this thread has used.
#[must_use]
pub fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), nanos)
}

struct Subject<'a> {
    encoder: Box<dyn audio::Encoder>,
    decoder: Box<dyn audio::Decoder>,
    /// Whole frames of sound, gone through again and again.
    pcm: &'a [i16],
    frame: usize,
    sample_rate: u32,
    next: usize,
    /// Payloads of a window, one after the other, and their lengths.
    payloads: Vec<u8>,
    lengths: Vec<usize>,
    payload_room: usize,
    out: Vec<i16>,
    bytes: usize,
}

impl<'a> Subject<'a> {
    fn new(
        codec: &dyn Codec,
        settings: &[(String, String)],
        pcm: &'a [i16],
    ) -> Result<Self, CostError> {
        let info = codec.info();
        let params = codec.negotiate(&Offered {
            settings,
            ..Offered::default()
        })?;
        let encoder = codec.encoder(&params)?;
        let frame = encoder.frame_samples() * usize::from(info.channels);
        if pcm.len() < frame {
            return Err(CostError::NoSound);
        }
        Ok(Self {
            decoder: codec.decoder(&params)?,
            pcm: &pcm[..pcm.len() / frame * frame],
            sample_rate: info.sample_rate * u32::from(info.channels),
            payload_room: info.max_payload_bytes,
            out: vec![0; info.max_frame_samples * usize::from(info.channels)],
            encoder,
            frame,
            next: 0,
            payloads: Vec::new(),
            lengths: Vec::new(),
            bytes: 0,
        })
    }

    /// How many frames can be encoded in this time: at least one, at most a minute of sound.
    fn frames_within(&mut self, budget: Duration) -> Result<usize, CostError> {
        let most = 60 * self.sample_rate as usize / self.frame;
        let mut frames = 0;
        let begun = thread_time();
        while frames == 0 || (frames < most && thread_time() - begun < budget) {
            self.encode(1)?;
            self.decode(1)?;
            frames += 1;
        }
        self.bytes = 0;
        Ok(frames)
    }

    fn encode(&mut self, frames: usize) -> Result<(), CodecError> {
        self.payloads.resize(frames * self.payload_room, 0);
        self.lengths.clear();
        for room in self.payloads.chunks_exact_mut(self.payload_room) {
            let pcm = &self.pcm[self.next..self.next + self.frame];
            let len = self.encoder.encode(pcm, room)?;
            self.lengths.push(len);
            self.bytes += len;
            self.next = (self.next + self.frame) % self.pcm.len();
        }
        Ok(())
    }

    /// Decodes what was encoded last; a frame that was not worth sending as a lost one.
    fn decode(&mut self, frames: usize) -> Result<(), CodecError> {
        let rooms = self.payloads.chunks_exact(self.payload_room);
        for (room, &len) in rooms.zip(&self.lengths).take(frames) {
            let input = match len {
                0 => Input::Lost {
                    samples: self.encoder.frame_samples(),
                },
                _ => Input::Frame(&room[..len]),
            };
            std::hint::black_box(self.decoder.decode(input, &mut self.out)?);
        }
        Ok(())
    }

    /// How many times 20 ms so many frames are.
    fn twenty_ms(&self, frames: usize) -> f64 {
        (frames * self.frame) as f64 / f64::from(self.sample_rate) * 50.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_law_costs_something_and_fills_its_line() {
        let pcm: Vec<i16> = (0..8_000_i16).map(|n| n.wrapping_mul(77)).collect();
        let cost = measure(&g711::Pcma, &[], &pcm, Duration::from_millis(20)).expect("measured");
        assert!(cost.encode > Duration::ZERO && cost.decode > Duration::ZERO);
        assert_eq!(cost.bytes_per_second, 8_000.0);
    }

    #[test]
    fn what_cannot_be_measured_is_said() {
        let budget = Duration::from_millis(1);
        let short = measure(&g711::Pcma, &[], &[0; 159], budget);
        assert_eq!(short, Err(CostError::NoSound));
        let unknown = [("quality".to_owned(), "3".to_owned())];
        let refused = measure(&Strict, &unknown, &[0; 160], budget);
        assert!(
            matches!(refused, Err(CostError::Negotiate(_))),
            "{refused:?}"
        );
    }

    /// A-law that knows no settings.
    struct Strict;

    impl Codec for Strict {
        fn info(&self) -> &audio::CodecInfo {
            g711::Pcma.info()
        }

        fn negotiate(&self, offered: &Offered<'_>) -> Result<audio::Params, NegotiateError> {
            self.offer(offered)?;
            g711::Pcma.negotiate(offered)
        }

        fn encoder(&self, params: &audio::Params) -> Result<Box<dyn audio::Encoder>, CodecError> {
            g711::Pcma.encoder(params)
        }

        fn decoder(&self, params: &audio::Params) -> Result<Box<dyn audio::Decoder>, CodecError> {
            g711::Pcma.decoder(params)
        }
    }
}
