//! Payloads that no encoder has made.

use super::{Bench, Random};
use crate::codec::{Decoder, Input};

/// Random payloads for one codec.
const MANY: usize = 10_000;

/// The longest of them: what fits into a packet on Ethernet, and more.
const LONGEST_BYTES: usize = 1_500;

impl Bench<'_> {
    pub(super) fn many_random_payloads_do_no_harm(&self) {
        self.random_payloads_do_no_harm(MANY);
    }

    pub(super) fn some_random_payloads_do_no_harm(&self) {
        self.random_payloads_do_no_harm(MANY / 50);
    }

    fn random_payloads_do_no_harm(&self, count: usize) {
        let mut random = Random::new(self.ptime_ms);
        let mut decoder = self.decoder();
        let mut room = self.pcm_room();
        for number in 0..count {
            let longest = match number % 3 {
                0 => LONGEST_BYTES,
                1 => self.info.max_payload_bytes.min(LONGEST_BYTES),
                _ => 40,
            };
            let len = random.below(longest + 1);
            let payload = random.octets(len);
            self.survives(&mut *decoder, &payload, number, &mut room);
        }
        self.survives(&mut *decoder, &random.octets(65_507), 0, &mut room);
        self.goes_on(&mut *decoder, &mut room);
    }

    /// Payloads of a tone cut short, with bits changed, and one after another.
    pub(super) fn changed_payloads_do_no_harm(&self) {
        let mut random = Random::new(self.ptime_ms);
        let mut decoder = self.decoder();
        let mut room = self.pcm_room();
        for (number, payload) in self.payloads(&self.tone(1)).iter().enumerate() {
            let mut changed = payload.clone();
            for _ in 0..=random.below(8) {
                let place = random.below(changed.len());
                if let Some(octet) = changed.get_mut(place) {
                    *octet ^= 1 << random.below(8);
                }
            }
            let cut = &payload[..random.below(payload.len() + 1)];
            let doubled = [&payload[..], &payload[..]].concat();
            for hostile in [&changed, cut, &doubled] {
                self.survives(&mut *decoder, hostile, number, &mut room);
            }
        }
        self.goes_on(&mut *decoder, &mut room);
    }

    /// Decodes it, mostly as a frame, now and then to recover one, with losses in between.
    fn survives(&self, decoder: &mut dyn Decoder, next: &[u8], number: usize, room: &mut [i16]) {
        let samples = self.params.frame_samples;
        let input = match number % 7 {
            6 => Input::Recover { next, samples },
            _ => Input::Frame(next),
        };
        if let Ok(samples) = decoder.decode(input, room) {
            assert!(
                samples <= self.info.max_frame_samples,
                "{samples} samples of {} octets",
                next.len()
            );
        }
        if number % 11 == 10 {
            let made = decoder.decode(self.lost(), room);
            assert_eq!(made, Ok(samples), "samples for a lost frame");
        }
    }

    fn goes_on(&self, decoder: &mut dyn Decoder, room: &mut [i16]) {
        for payload in self.payloads(&vec![0; self.frame()]) {
            let after = decoder.decode(self.input(&payload), room);
            assert_eq!(after, Ok(self.params.frame_samples), "decoding goes on");
        }
    }
}
