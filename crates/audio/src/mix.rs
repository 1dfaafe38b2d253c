//! Adding sounds together.
//!
//! Sums are kept in 32 bits and cut to 16 once, at the end: the result does not depend on the order
//! of the inputs, which saturating additions one after another would.

/// Adds frames up. Room for 65,536 inputs at full scale.
#[derive(Clone, Debug)]
pub struct Mixer {
    sums: Box<[i32]>,
}

impl Mixer {
    /// A mixer for frames of this many samples. Cost: allocates.
    #[must_use]
    pub fn new(frame_samples: usize) -> Self {
        Self {
            sums: vec![0; frame_samples].into(),
        }
    }

    /// Adds one input; what is shorter than the frame counts as silence after its end, what is
    /// longer is cut.
    pub fn add(&mut self, pcm: &[i16]) {
        for (sum, &sample) in self.sums.iter_mut().zip(pcm) {
            *sum += i32::from(sample);
        }
    }

    /// Writes the mix and begins the next frame.
    pub fn finish(&mut self, out: &mut [i16]) {
        for (sample, sum) in out.iter_mut().zip(&mut self.sums) {
            *sample = saturate(*sum);
            *sum = 0;
        }
    }
}

/// Adds two blocks, sample by sample, as far as all three reach.
pub fn mix(a: &[i16], b: &[i16], out: &mut [i16]) {
    for ((sample, &a), &b) in out.iter_mut().zip(a).zip(b) {
        *sample = a.saturating_add(b);
    }
}

/// Cuts a sum to what a sample holds.
#[must_use]
pub fn saturate(sum: i32) -> i16 {
    sum.clamp(i16::MIN.into(), i16::MAX.into()) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_of_inputs_does_not_matter() {
        let inputs = [
            [30_000, -30_000, 1],
            [20_000, -20_000, 2],
            [-25_000, 25_000, -3],
        ];
        let orders = [
            [0, 1, 2],
            [0, 2, 1],
            [1, 0, 2],
            [1, 2, 0],
            [2, 0, 1],
            [2, 1, 0],
        ];
        for order in orders {
            let mut mixer = Mixer::new(3);
            order
                .iter()
                .for_each(|&which: &usize| mixer.add(&inputs[which]));
            let mut out = [0; 3];
            mixer.finish(&mut out);
            assert_eq!(out, [25_000, -25_000, 0], "{order:?}");
        }
    }

    #[test]
    fn sums_are_cut_at_full_scale_and_frames_begin_anew() {
        let mut mixer = Mixer::new(2);
        mixer.add(&[i16::MAX, i16::MIN]);
        mixer.add(&[i16::MAX, i16::MIN]);
        let mut out = [0; 2];
        mixer.finish(&mut out);
        assert_eq!(out, [i16::MAX, i16::MIN]);
        mixer.add(&[5]);
        mixer.finish(&mut out);
        assert_eq!(out, [5, 0]);
    }

    #[test]
    fn two_blocks_are_mixed_like_many() {
        let mut out = [0; 3];
        mix(&[1, i16::MAX, i16::MIN], &[2, 1, -1], &mut out);
        assert_eq!(out, [3, i16::MAX, i16::MIN]);
    }
}
