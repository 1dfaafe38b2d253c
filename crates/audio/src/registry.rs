//! The codecs that a binary was built with.

use std::fmt;
use std::sync::Arc;

use crate::codec::Codec;

/// A list of codecs, in the order of preference in which they were registered.
///
/// A value, made by the binary. Cost: a clone is one reference count.
#[derive(Clone, Default)]
pub struct Registry {
    codecs: Arc<Vec<Arc<dyn Codec>>>,
}

impl Registry {
    /// A registry without codecs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a codec. One of the same name, clock and channels that was there before is replaced, in its
    /// place.
    pub fn register(&mut self, codec: Box<dyn Codec>) {
        let codec: Arc<dyn Codec> = Arc::from(codec);
        let codecs = Arc::make_mut(&mut self.codecs);
        let info = codec.info();
        match codecs.iter_mut().find(|known| {
            let known = known.info();
            known.is_named(info.name, info.clock_rate, info.rtpmap_channels)
        }) {
            Some(known) => *known = codec,
            None => codecs.push(codec),
        }
    }

    /// The codec that `a=rtpmap:n NAME/clock_rate/channels` names.
    #[must_use]
    pub fn find(&self, name: &str, clock_rate: u32, channels: u8) -> Option<&dyn Codec> {
        self.iter()
            .find(|codec| codec.info().is_named(name, clock_rate, channels))
    }

    /// The codec of a static payload number.
    #[must_use]
    pub fn find_static(&self, payload_type: u8) -> Option<&dyn Codec> {
        self.iter()
            .find(|codec| codec.info().static_payload_type == Some(payload_type))
    }

    /// All codecs, in order.
    pub fn iter(&self) -> impl Iterator<Item = &dyn Codec> {
        self.codecs.iter().map(AsRef::as_ref)
    }

    /// How many codecs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.codecs.len()
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.codecs.is_empty()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.iter().map(|codec| codec.info().name))
            .finish()
    }
}
