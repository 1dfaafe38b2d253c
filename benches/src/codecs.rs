//! The codecs of the program, found by what a dialplan writes: `speex/8000?complexity=2&quality=8`.

use std::sync::LazyLock;

use anyhow::Context;
use audio::{Codec, Registry};

/// All codecs.
#[must_use]
pub fn registry() -> Registry {
    REGISTRY.clone()
}

/// A codec and its settings.
pub type Found = (&'static dyn Codec, Vec<(String, String)>);

/// A codec and the settings written after it.
///
/// # Errors
/// The text is no codec, or none of that name is built in.
pub fn find(text: &str) -> anyhow::Result<Found> {
    let (name, settings) = text.split_once('?').unwrap_or((text, ""));
    let mut parts = name.split('/');
    let (encoding, clock) = (parts.next().unwrap_or_default(), parts.next());
    let clock = clock.context("a codec has a clock")?.parse()?;
    let channels = parts.next().map_or(Ok(1), str::parse)?;
    let codec = REGISTRY.find(encoding, clock, channels);
    let pairs = settings.split('&').filter_map(|pair| pair.split_once('='));
    let settings = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    Ok((
        codec.with_context(|| format!("{name} is not built in"))?,
        settings.collect(),
    ))
}

static REGISTRY: LazyLock<Registry> = LazyLock::new(|| {
    let mut registry = Registry::new();
    registry.register(Box::new(g711::Pcma));
    registry.register(Box::new(g711::Pcmu));
    registry
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_found_with_their_settings() {
        let (codec, settings) = find("PCMA/8000").expect("built in");
        assert_eq!((codec.info().name, settings.len()), ("PCMA", 0));
        assert!(find("PCMA").is_err() && find("nothing/8000").is_err());
    }
}
