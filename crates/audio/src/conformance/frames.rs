//! Frames, their loss, and what they may not do.

use super::{Bench, speech};
use crate::codec::{CodecError, Input};
use crate::level::{dbm0, peak};

impl Bench<'_> {
    pub(super) fn frames_have_their_shape(&self) {
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

    pub(super) fn small_slices_are_refused(&self) {
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
        let refused = decoder.decode(self.lost(), &mut []);
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

    pub(super) fn loss_is_made_up_for(&self) {
        let lost = self.lost();
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

        let step = self.info.frame_step_samples;
        for samples in [step, self.info.max_frame_samples] {
            let made = self.decoder().decode(Input::Lost { samples }, &mut room);
            assert_eq!(made, Ok(samples), "samples for a lost frame");
        }

        let pcm = self.tone(1);
        let loudest = u32::from(peak(&pcm)) * 2;
        for payload in self.payloads(&pcm) {
            let input = self.input(&payload);
            decoder.decode(input, &mut room).expect("our own payload");
        }
        // Half a second at least.
        for run in 0..30.max(500 / self.ptime_ms.max(1)) {
            let samples = decoder.decode(lost, &mut room).expect("loss in the middle");
            assert_eq!(
                samples, self.params.frame_samples,
                "samples for a lost frame"
            );
            let level = u32::from(peak(&room[..self.frame()]));
            assert!(level <= loudest, "lost frame {run} peaks at {level}");
        }
        let faded = dbm0(&room[..self.frame()]).0;
        assert!(faded < -25.0, "{faded} dBm0 after a long loss");
    }

    /// Every fifth frame of speech is lost, and asked for from the one after it. What is heard then
    /// may be anything but loud.
    pub(super) fn recovery_gives_whole_frames(&self) {
        let samples = self.params.frame_samples;
        let (speech, rate) = (speech(self.info.sample_rate), self.info.sample_rate);
        let pcm = self.on_all_channels(&speech[..2 * rate as usize]);
        let payloads = self.payloads(&pcm);
        let mut decoder = self.decoder();
        let mut room = self.pcm_room();
        let mut heard = Vec::with_capacity(pcm.len());
        for (number, payload) in payloads.iter().enumerate() {
            let next = payloads.get(number + 1).filter(|next| !next.is_empty());
            let input = match next {
                Some(next) if number % 5 == 0 => Input::Recover { next, samples },
                _ => self.input(payload),
            };
            let made = decoder.decode(input, &mut room);
            assert_eq!(made, Ok(samples), "samples of frame {number} with recovery");
            heard.extend_from_slice(&room[..self.frame()]);
        }
        let change = dbm0(&heard).0 - dbm0(&pcm).0;
        assert!(change < 3.0, "recovered speech is {change} dB louder");
        for next in [&[][..], &[0], &[0xff; 40]] {
            let input = Input::Recover { next, samples };
            if let Ok(made) = decoder.decode(input, &mut room) {
                assert_eq!(made, samples, "samples recovered from {next:?}");
            }
        }
        let Some(next) = payloads.first().filter(|next| !next.is_empty()) else {
            return;
        };
        let refused = decoder.decode(Input::Recover { next, samples }, &mut []);
        assert!(
            matches!(refused, Err(CodecError::OutputTooSmall { .. })),
            "{refused:?}"
        );
    }

    /// Encoding, decoding, loss, recovery and refusals, a hundred frames of each.
    pub(super) fn frames_allocate_nothing(&self) {
        let Some(allocations) = self.options.allocations else {
            return;
        };
        let pcm = self.tone(1);
        let samples = self.params.frame_samples;
        let (mut encoder, mut decoder) = (self.encoder(), self.decoder());
        let (mut payload, mut room) = (self.payload_room(), self.pcm_room());
        let mut frames = pcm.chunks_exact(self.frame()).cycle();
        let before = allocations();
        for _ in 0..100 {
            let Some(frame) = frames.next() else { break };
            let len = encoder.encode(frame, &mut payload).unwrap_or_default();
            let next = &payload[..len];
            for input in [
                self.lost(),
                Input::Recover { next, samples },
                self.input(next),
                Input::Frame(&[0xff; 3]),
            ] {
                let _ = decoder.decode(input, &mut room);
            }
            let _ = encoder.encode(&frame[1..], &mut payload);
            let _ = decoder.decode(self.lost(), &mut []);
        }
        let count = allocations() - before;
        assert_eq!(count, 0, "allocations in 100 frames");
        drop(std::hint::black_box(Vec::<u8>::with_capacity(100)));
        assert!(allocations() > before, "the count does not count");
    }
}
