//! PCM on its way from the decoder to the encoder.

/// PCM that waits to be encoded, oldest first, and when it was said.
pub(super) struct Queue {
    pcm: Box<[i16]>,
    len: usize,
    /// Timestamp of the first sample, in units of the feeding stream.
    pub(super) timestamp: u32,
}

impl Queue {
    /// Room for so many samples.
    pub(super) fn new(room: usize) -> Self {
        Self {
            pcm: vec![0; room].into(),
            len: 0,
            timestamp: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Room behind what waits.
    pub(super) fn free(&mut self) -> &mut [i16] {
        &mut self.pcm[self.len..]
    }

    /// Takes in what was written to [`Self::free`].
    pub(super) fn grow(&mut self, samples: usize) {
        self.len = (self.len + samples).min(self.pcm.len());
    }

    /// The oldest samples.
    pub(super) fn front(&self, samples: usize) -> &[i16] {
        &self.pcm[..samples.min(self.len)]
    }

    /// Fills up to so many samples with silence.
    pub(super) fn fill_up(&mut self, samples: usize) {
        if let Some(rest) = self.pcm.get_mut(self.len..samples) {
            rest.fill(0);
            self.len = samples;
        }
    }

    /// Takes out the oldest samples, which last so many units of the feeding stream's clock.
    pub(super) fn take(&mut self, samples: usize, units: u32) {
        let samples = samples.min(self.len);
        self.pcm.copy_within(samples..self.len, 0);
        self.len -= samples;
        self.timestamp = self.timestamp.wrapping_add(units);
    }
}
