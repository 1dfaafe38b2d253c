//! A piece of mono sound held in memory, shared by all who play it.

use std::sync::Arc;

/// Mono PCM and its rate. Cost: a clone is one reference count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clip {
    /// Samples per second.
    pub sample_rate: u32,
    /// The sound.
    pub samples: Arc<[i16]>,
}

impl Clip {
    /// A clip of these samples.
    #[must_use]
    pub fn new(sample_rate: u32, samples: impl Into<Arc<[i16]>>) -> Self {
        Self { sample_rate, samples: samples.into() }
    }
}
