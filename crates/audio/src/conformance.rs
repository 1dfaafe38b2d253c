//! What every codec has to pass, run from the tests of its crate.
//!
//! Facts that agree with each other; frames of the shape they state; slices too small refused
//! without harm; loss before the first frame and in the middle; silence that stays silent; a tone
//! that keeps its level; a floor of signal to noise; random payloads that neither panic nor
//! overrun; encoders and decoders that may change threads. That a frame costs no allocation needs
//! an allocator that counts, and is shown where one is at hand: in the tests of `media`.

use crate::codec::{Codec, CodecError, CodecInfo, Decoder, Encoder, Input, Offered, Params};
use crate::level::{Dbm0, dbm0, peak};
use crate::tone::Tone;

/// What the suite asks of a codec in particular.
#[derive(Copy, Clone, Debug)]
pub struct Options<'a> {
    /// Settings for the encoder.
    pub settings: &'a [(String, String)],
    /// Signal to noise that a tone of -10 dBm0 has to keep, in dB.
    pub min_snr_db: f32,
    /// By how much such a tone may change its level, in dB.
    pub max_level_change_db: f32,
    /// The longest delay of encoder and decoder together, in samples per channel.
    pub max_delay_samples: usize,
    /// Level below which silence has to stay.
    pub max_silence: Dbm0,
    /// Packet times to try, in milliseconds.
    pub ptimes_ms: &'a [u32],
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
        }
    }
}

/// Runs the suite.
///
/// # Panics
/// The codec fails; the message says where.
pub fn run(codec: &dyn Codec, options: &Options<'_>) {
    facts_agree(codec.info());
    for &ptime_ms in options.ptimes_ms {
        let bench = Bench::new(codec, options, ptime_ms);
        bench.frames_have_their_shape();
        bench.small_slices_are_refused();
        bench.loss_is_made_up_for();
        bench.silence_stays_silent();
        bench.a_tone_stays_a_tone();
        bench.random_payloads_do_no_harm();
    }
    fn changes_threads<T: Send + ?Sized>() {}
    changes_threads::<dyn Encoder>();
    changes_threads::<dyn Decoder>();
}

fn facts_agree(info: &CodecInfo) {
    assert!(
        !info.name.is_empty() && info.name.is_ascii(),
        "name {:?}",
        info.name
    );
    assert!(
        info.static_payload_type.is_none_or(|number| number < 96),
        "static number in use"
    );
    assert!(
        info.clock_rate > 0 && info.sample_rate > 0 && info.channels > 0,
        "{info:?}"
    );
    assert!(
        info.frame_step_samples > 0 && info.max_payload_bytes > 0,
        "{info:?}"
    );
    assert_eq!(
        info.max_frame_samples % info.frame_step_samples,
        0,
        "longest frame: whole steps"
    );
    let default = info.samples_per_packet(info.default_ptime_ms);
    let exact = u64::from(info.sample_rate) * u64::from(info.default_ptime_ms) / 1000;
    assert_eq!(
        default as u64, exact,
        "the default packet time is not a whole number of steps"
    );
    assert!(
        info.is_named(
            &info.name.to_ascii_lowercase(),
            info.clock_rate,
            info.rtpmap_channels
        ),
        "case matters"
    );
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

    /// Samples of a frame over all channels.
    fn frame(&self) -> usize {
        self.params.frame_samples * usize::from(self.info.channels)
    }

    fn pcm_room(&self) -> Vec<i16> {
        vec![0; self.info.max_frame_samples * usize::from(self.info.channels)]
    }

    /// Encodes and decodes frame by frame.
    fn through(&self, pcm: &[i16]) -> Vec<i16> {
        let (mut encoder, mut decoder) = (self.encoder(), self.decoder());
        let mut payload = vec![0; self.info.max_payload_bytes];
        let mut room = self.pcm_room();
        let mut heard = Vec::new();
        for frame in pcm.chunks_exact(self.frame()) {
            let len = encoder.encode(frame, &mut payload).expect("a whole frame");
            let samples = decoder.decode(Input::Frame(&payload[..len]), &mut room);
            let samples = samples.expect("our own payload");
            heard.extend_from_slice(&room[..samples * usize::from(self.info.channels)]);
        }
        heard
    }

    fn tone(&self, seconds: usize) -> Vec<i16> {
        let rate = self.info.sample_rate;
        let mut mono = vec![0; rate as usize * seconds];
        Tone::new(1004.0, Dbm0(-10.0), rate).fill(&mut mono);
        let channels = usize::from(self.info.channels);
        mono.iter()
            .flat_map(|&sample| std::iter::repeat_n(sample, channels))
            .collect()
    }

    fn frames_have_their_shape(&self) {
        let expected = self.info.samples_per_packet(self.ptime_ms);
        assert_eq!(
            self.params.frame_samples, expected,
            "frame at {} ms",
            self.ptime_ms
        );
        assert_eq!(
            self.encoder().frame_samples(),
            expected,
            "encoder at {} ms",
            self.ptime_ms
        );
        let pcm = vec![0; self.frame() * 5];
        assert_eq!(
            self.through(&pcm).len(),
            pcm.len(),
            "samples out at {} ms",
            self.ptime_ms
        );
    }

    fn small_slices_are_refused(&self) {
        let pcm = self.tone(1);
        let frame = &pcm[..self.frame()];
        let mut encoder = self.encoder();
        let mut payload = vec![0; self.info.max_payload_bytes];
        let refused = encoder.encode(frame, &mut []);
        assert!(
            matches!(refused, Err(CodecError::OutputTooSmall { .. })),
            "{refused:?}"
        );
        for wrong in [
            &frame[..0],
            &frame[..frame.len() - 1],
            &pcm[..frame.len() + 1],
        ] {
            let refused = encoder.encode(wrong, &mut payload);
            assert!(
                matches!(refused, Err(CodecError::FrameLength { .. })),
                "{refused:?}"
            );
        }
        let len = encoder
            .encode(frame, &mut payload)
            .expect("as if nothing had happened");
        let mut untouched = vec![0; self.info.max_payload_bytes];
        let untouched_len = self
            .encoder()
            .encode(frame, &mut untouched)
            .expect("a whole frame");
        assert_eq!(
            payload[..len],
            untouched[..untouched_len],
            "a refusal changed the encoder"
        );

        let mut decoder = self.decoder();
        let refused = decoder.decode(Input::Frame(&payload[..len]), &mut []);
        assert!(
            matches!(refused, Err(CodecError::OutputTooSmall { .. })),
            "{refused:?}"
        );
        let lost = Input::Lost {
            samples: self.params.frame_samples,
        };
        let refused = decoder.decode(lost, &mut []);
        assert!(
            matches!(refused, Err(CodecError::OutputTooSmall { .. })),
            "{refused:?}"
        );
        let mut room = self.pcm_room();
        assert!(
            decoder
                .decode(Input::Frame(&payload[..len]), &mut room)
                .is_ok()
        );
    }

    fn loss_is_made_up_for(&self) {
        let lost = Input::Lost {
            samples: self.params.frame_samples,
        };
        let mut decoder = self.decoder();
        let mut room = self.pcm_room();
        let first = decoder
            .decode(lost, &mut room)
            .expect("loss before the first frame");
        assert_eq!(first, self.params.frame_samples, "samples for a lost frame");
        let quiet = dbm0(&room[..self.frame()]).0;
        assert!(
            quiet < self.options.max_silence.0,
            "{quiet} dBm0 out of nothing"
        );

        let pcm = self.tone(1);
        let loudest = u32::from(peak(&pcm)) * 3 / 2;
        let mut encoder = self.encoder();
        let mut payload = vec![0; self.info.max_payload_bytes];
        for frame in pcm.chunks_exact(self.frame()) {
            let len = encoder.encode(frame, &mut payload).expect("a whole frame");
            decoder
                .decode(Input::Frame(&payload[..len]), &mut room)
                .expect("our own payload");
        }
        for run in 0..30 {
            let samples = decoder.decode(lost, &mut room).expect("loss in the middle");
            assert_eq!(
                samples, self.params.frame_samples,
                "samples for a lost frame"
            );
            let level = u32::from(peak(&room[..self.frame()]));
            assert!(level <= loudest, "lost frame {run} peaks at {level}");
        }
        let faded = dbm0(&room[..self.frame()]).0;
        assert!(faded < -30.0, "{faded} dBm0 after a long loss");
    }

    fn silence_stays_silent(&self) {
        let heard = self.through(&vec![0; self.frame() * 50]);
        let level = dbm0(&heard[heard.len() / 2..]).0;
        assert!(
            level < self.options.max_silence.0,
            "silence at {level} dBm0"
        );
    }

    fn a_tone_stays_a_tone(&self) {
        let sent = self.tone(2);
        let heard = self.through(&sent);
        let half = heard.len() / 2;
        let change = dbm0(&heard[half..]).0 - dbm0(&sent[half..]).0;
        assert!(
            change.abs() <= self.options.max_level_change_db,
            "level changed by {change} dB"
        );
        let channels = usize::from(self.info.channels);
        let best = (0..=self.options.max_delay_samples)
            .map(|delay| snr_db(&sent[half..], &heard[half..], delay * channels))
            .fold(f32::NEG_INFINITY, f32::max);
        assert!(best >= self.options.min_snr_db, "signal to noise {best} dB");
    }

    fn random_payloads_do_no_harm(&self) {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64 ^ u64::from(self.ptime_ms);
        let mut next = move || {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random
        };
        let mut decoder = self.decoder();
        let mut room = self.pcm_room();
        for _ in 0..500 {
            let len = (next() % (self.info.max_payload_bytes as u64 + 40)) as usize;
            let payload: Vec<u8> = (0..len).map(|_| next() as u8).collect();
            if let Ok(samples) = decoder.decode(Input::Frame(&payload), &mut room) {
                assert!(samples <= self.info.max_frame_samples, "{samples} samples");
            }
        }
        let frame = vec![0; self.frame()];
        let mut payload = vec![0; self.info.max_payload_bytes];
        let len = self
            .encoder()
            .encode(&frame, &mut payload)
            .expect("a whole frame");
        let after = decoder.decode(Input::Frame(&payload[..len]), &mut room);
        assert_eq!(after, Ok(self.params.frame_samples), "decoding goes on");
    }
}

/// Signal to noise when `heard` lags behind `sent` by this many samples.
fn snr_db(sent: &[i16], heard: &[i16], delay: usize) -> f32 {
    let pairs = || sent.iter().zip(heard.iter().skip(delay));
    let energy = |value: i32| f64::from(value).powi(2);
    let signal: f64 = pairs().map(|(&a, _)| energy(a.into())).sum();
    let noise: f64 = pairs()
        .map(|(&a, &b)| energy(i32::from(a) - i32::from(b)))
        .sum();
    (10.0 * (signal / noise.max(1e-9)).log10()) as f32
}
