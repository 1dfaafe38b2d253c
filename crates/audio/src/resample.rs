//! From one sample rate to another.

use thiserror::Error;

/// Rates that there is a way between.
pub const RATES: [u32; 5] = [8_000, 16_000, 24_000, 32_000, 48_000];

/// Why there is no resampler.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResampleError {
    /// One of the rates is not among [`RATES`].
    #[error("no way from {from} to {to} samples per second")]
    Rates {
        /// Rate of what comes in.
        from: u32,
        /// Rate of what is wanted.
        to: u32,
    },
}

/// Turns mono PCM of one rate into PCM of another, as it comes.
#[derive(Debug)]
pub struct Resampler {
    from: u32,
    to: u32,
}

impl Resampler {
    /// Makes one. Cost: allocates.
    ///
    /// # Errors
    /// A rate is not among [`RATES`].
    pub fn new(from: u32, to: u32) -> Result<Self, ResampleError> {
        if !RATES.contains(&from) || !RATES.contains(&to) {
            return Err(ResampleError::Rates { from, to });
        }
        Ok(Self { from, to })
    }

    /// Takes all of `input` and writes what it comes to. Returns the samples written.
    ///
    /// Shape: any length of `input`; of `n` samples taken since the beginning, exactly
    /// `n * to / from`, rounded down, have been written. `out` has room for
    /// [`Self::most_samples`]. Cost: no allocation.
    ///
    /// # Panics
    /// `out` is smaller than that.
    pub fn process(&mut self, input: &[i16], out: &mut [i16]) -> usize {
        let _ = (input, out, self.from, self.to);
        todo!()
    }

    /// The most samples that this many make.
    #[must_use]
    pub fn most_samples(&self, input: usize) -> usize {
        (input as u64 * u64::from(self.to)).div_ceil(u64::from(self.from)) as usize
    }

    /// How much later a sound comes out, in samples of the rate that comes out.
    #[must_use]
    pub fn delay_samples(&self) -> usize {
        todo!()
    }
}
