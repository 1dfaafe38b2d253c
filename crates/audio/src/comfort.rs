//! Comfort noise (RFC 3389): what is heard while the other side says nothing.

/// The largest payload that [`describe`] writes: the level and ten reflection coefficients.
pub const MAX_PAYLOAD_BYTES: usize = 11;

/// Makes noise as a payload describes it.
#[derive(Clone, Debug)]
pub struct ComfortNoise;

impl ComfortNoise {
    /// Silence, until it is told otherwise. `seed` decides the noise.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let _ = seed;
        todo!()
    }

    /// Takes a payload: the level in -dBov, then reflection coefficients (RFC 3389 section 3). An
    /// empty one changes nothing.
    pub fn handle_payload(&mut self, payload: &[u8]) {
        let _ = payload;
        todo!()
    }

    /// Makes the next samples. Cost: no allocation.
    pub fn fill(&mut self, out: &mut [i16]) {
        let _ = out;
        todo!()
    }
}

/// Describes noise as a payload. Returns the octets written, at most [`MAX_PAYLOAD_BYTES`].
///
/// # Panics
/// `out` is smaller than that.
pub fn describe(pcm: &[i16], out: &mut [u8]) -> usize {
    let _ = (pcm, out);
    todo!()
}
