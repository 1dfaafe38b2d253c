//! What every codec has to pass, run from the tests of its crate.
//!
//! * facts that agree with each other, a table of settings in which every value makes an encoder,
//!   parameters that come to the same however often they are negotiated
//! * frames of the shape they state; slices too small refused without harm; loss before the first
//!   frame, in the middle and where a later frame recovers it; frames that need not be sent
//! * silence that stays silent, a tone and speech that keep their level, floors of signal to noise
//!   and ceilings of spectral distance, channels that stay apart
//! * 10,000 random payloads, and real ones cut, changed and doubled, that neither panic nor overrun
//! * no allocation per frame, where the crate hands in a count of its allocator
//! * the same, in short, for every variant; encoders and decoders that may change threads
//!
//! [`run`] does it all with sound of its own; [`run_on`] takes recorded speech, and returns figures
//! that a crate can hold against those of a reference library.

mod facts;
mod frames;
mod hostile;
mod settings;
mod sound;
mod spectrum;
mod speech;

use std::fmt;

use crate::codec::{Codec, CodecInfo, Decoder, Encoder, Input, Offered, Params};
use crate::level::Dbm0;
use crate::resample::RATES;

pub use sound::Heard;
pub use speech::speech;

/// What the suite asks of a codec in particular.
#[derive(Copy, Clone)]
pub struct Options<'a> {
    /// Settings for the encoder.
    pub settings: &'a [(String, String)],
    /// Signal to noise that a tone of -10 dBm0 has to keep, in dB.
    pub min_snr_db: f32,
    /// By how much such a tone, or speech, may change its level, in dB.
    pub max_level_change_db: f32,
    /// The longest delay of encoder and decoder together, in samples per channel.
    pub max_delay_samples: usize,
    /// Level below which silence has to stay.
    pub max_silence: Dbm0,
    /// Packet times to try, in milliseconds.
    pub ptimes_ms: &'a [u32],
    /// The furthest that the spectrum of speech may move, in dB: the mean of 20 to 40 ms frames
    /// over bands of 200 Hz, 40 dB deep.
    pub max_spectral_distance_db: f32,
    /// Where that comparison ends, in Hz.
    pub speech_edge_hz: u32,
    /// Mean signal to noise that 20 ms frames of speech have to keep, in dB; `None` for a codec
    /// that does not keep the wave form.
    pub min_segmental_snr_db: Option<f32>,
    /// By how much a tone on one channel is quieter on the others, in dB; `None` for a codec that
    /// may code their mean.
    pub min_separation_db: Option<f32>,
    /// How often this thread has allocated so far, from an allocator that counts. There is one in
    /// `crates/audio/tests/counting`, which the tests of `g711` show how to take.
    pub allocations: Option<&'a dyn Fn() -> u64>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self {
            settings: &[],
            min_snr_db: 10.0,
            max_level_change_db: 1.0,
            max_delay_samples: 480,
            max_silence: Dbm0(-60.0),
            ptimes_ms: &[10, 20, 30, 40, 60],
            max_spectral_distance_db: 6.0,
            speech_edge_hz: 3_400,
            min_segmental_snr_db: None,
            min_separation_db: None,
            allocations: None,
        }
    }
}

impl fmt::Debug for Options<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("settings", &self.settings)
            .field("min_snr_db", &self.min_snr_db)
            .field("ptimes_ms", &self.ptimes_ms)
            .finish_non_exhaustive()
    }
}

/// Runs the suite.
///
/// # Panics
/// The codec fails; the message says where.
pub fn run(codec: &dyn Codec, options: &Options<'_>) {
    fn changes_threads<T: Send + ?Sized>() {}
    changes_threads::<dyn Encoder>();
    changes_threads::<dyn Decoder>();

    facts::agree(codec.info());
    settings::are_sane(codec);
    settings::make_codecs(codec, options);
    settings::negotiate_to_the_same(codec, options);
    for &ptime_ms in options.ptimes_ms {
        Bench::new(codec, options, ptime_ms).all();
    }
    Bench::new(codec, options, codec.info().default_ptime_ms).many_random_payloads_do_no_harm();
    run_on(codec, options, &speech(codec.info().sample_rate));
    for (sample_rate, channels) in RATES.into_iter().flat_map(|rate| [(rate, 1), (rate, 2)]) {
        if let Some(variant) = codec.variant(sample_rate, channels) {
            facts::of_a_variant_agree(codec.info(), variant.info(), sample_rate, channels);
            run_variant(codec, variant, options);
        }
    }
    for (sample_rate, channels) in [(0, 1), (8_000, 0), (7, 1), (u32::MAX, 255)] {
        assert!(
            codec.variant(sample_rate, channels).is_none(),
            "a variant of {sample_rate} Hz with {channels} channels"
        );
    }
}

/// Passes speech through the codec, holds what is heard against the options, and says what was
/// measured.
///
/// Shape: `pcm` is mono, of the codec's sample rate, two seconds at least; every channel gets it.
///
/// # Panics
/// The codec fails; the message says where.
pub fn run_on(codec: &dyn Codec, options: &Options<'_>, pcm: &[i16]) -> Heard {
    Bench::new(codec, options, codec.info().default_ptime_ms).speech_stays_speech(pcm)
}

/// What may differ in a variant, with the delay counted in its samples.
fn run_variant(codec: &dyn Codec, variant: &dyn Codec, options: &Options<'_>) {
    let (of, to) = (codec.info().sample_rate, variant.info().sample_rate);
    let delay = options.max_delay_samples as u64 * u64::from(to) / u64::from(of);
    let options = Options {
        max_delay_samples: delay as usize,
        ..*options
    };
    Bench::new(variant, &options, variant.info().default_ptime_ms).all();
    run_on(variant, &options, &speech(to)[..2 * to as usize]);
}

/// One codec at one packet time.
struct Bench<'a> {
    codec: &'a dyn Codec,
    info: &'a CodecInfo,
    options: &'a Options<'a>,
    params: Params,
    ptime_ms: u32,
}

impl<'a> Bench<'a> {
    fn new(codec: &'a dyn Codec, options: &'a Options<'a>, ptime_ms: u32) -> Self {
        let offered = Offered {
            fmtp: None,
            settings: options.settings,
            ptime_ms,
            sample_rate: 0,
        };
        let params = codec
            .negotiate(&offered)
            .expect("no format parameters are an offer too");
        Self {
            codec,
            info: codec.info(),
            options,
            params,
            ptime_ms,
        }
    }

    fn all(&self) {
        self.frames_have_their_shape();
        self.small_slices_are_refused();
        self.loss_is_made_up_for();
        self.recovery_gives_whole_frames();
        self.frames_allocate_nothing();
        self.silence_stays_silent();
        self.a_tone_stays_a_tone();
        self.channels_stay_apart();
        self.some_random_payloads_do_no_harm();
        self.changed_payloads_do_no_harm();
    }

    fn encoder(&self) -> Box<dyn Encoder> {
        self.codec
            .encoder(&self.params)
            .expect("an encoder of negotiated parameters")
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        self.codec
            .decoder(&self.params)
            .expect("a decoder of negotiated parameters")
    }

    fn channels(&self) -> usize {
        self.info.channels.into()
    }

    /// Samples of a frame over all channels.
    fn frame(&self) -> usize {
        self.params.frame_samples * self.channels()
    }

    fn pcm_room(&self) -> Vec<i16> {
        vec![0; self.info.max_frame_samples * self.channels()]
    }

    fn payload_room(&self) -> Vec<u8> {
        vec![0; self.info.max_payload_bytes]
    }

    fn lost(&self) -> Input<'static> {
        Input::Lost {
            samples: self.params.frame_samples,
        }
    }

    /// What the decoder gets for these octets: none are sent for a frame that needs none.
    fn input<'p>(&self, payload: &'p [u8]) -> Input<'p> {
        if payload.is_empty() {
            self.lost()
        } else {
            Input::Frame(payload)
        }
    }

    /// The payloads of this sound.
    fn payloads(&self, pcm: &[i16]) -> Vec<Vec<u8>> {
        let mut encoder = self.encoder();
        let mut room = self.payload_room();
        pcm.chunks_exact(self.frame())
            .map(|frame| {
                let len = encoder.encode(frame, &mut room).expect("a whole frame");
                room[..len].to_vec()
            })
            .collect()
    }

    /// Encodes and decodes frame by frame.
    fn through(&self, pcm: &[i16]) -> Vec<i16> {
        let mut decoder = self.decoder();
        let mut room = self.pcm_room();
        let mut heard = Vec::with_capacity(pcm.len());
        for payload in self.payloads(pcm) {
            let samples = decoder.decode(self.input(&payload), &mut room);
            let samples = samples.expect("our own payload");
            heard.extend_from_slice(&room[..samples * self.channels()]);
        }
        heard
    }

    /// The same sound on every channel.
    fn on_all_channels(&self, mono: &[i16]) -> Vec<i16> {
        let channels = self.channels();
        mono.iter()
            .flat_map(|&sample| std::iter::repeat_n(sample, channels))
            .collect()
    }
}

/// Numbers that look random and are the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn new(seed: u32) -> Self {
        Self(0x9e37_79b9_7f4a_7c15 ^ u64::from(seed))
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// From 0 to below this.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn octets(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 32) as u8).collect()
    }
}
