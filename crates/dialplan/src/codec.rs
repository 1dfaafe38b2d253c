//! Codecs as a plan writes them: `[NUMBER ]NAME/CLOCK[?PARAMETER=VALUE[&...]]`.

use std::collections::BTreeMap;

use crate::decision::CodecSpec;

/// What a codec looks like.
pub(crate) const FORM: &str = "a codec such as \"PCMU/8000\", or with its payload type and settings \"97 speex/8000?quality=8\"";

/// Reads one; `None` for anything else.
pub(crate) fn parse(text: &str) -> Option<CodecSpec> {
    let text = text.trim();
    let (payload_type, text) = match text.split_once(' ') {
        Some((number, rest)) => (Some(number.parse().ok().filter(|&n| n < 128)?), rest.trim()),
        None => (None, text),
    };
    let (codec, settings) = text.split_once('?').unwrap_or((text, ""));
    let (name, clock_rate) = codec.split_once('/')?;
    let clock_rate = clock_rate
        .parse()
        .ok()
        .filter(|hz| (1..=192_000).contains(hz))?;
    let mut params = BTreeMap::new();
    for setting in settings.split('&').filter(|_| text.contains('?')) {
        let (key, value) = setting.split_once('=')?;
        if !is_word(key) || !is_word(value) || params.insert(key.into(), value.into()).is_some() {
            return None;
        }
    }
    let name = Some(name).filter(|name| is_word(name))?.to_owned();
    Some(CodecSpec {
        name,
        clock_rate,
        payload_type,
        params,
    })
}

fn is_word(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !text.is_empty() && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codecs_are_read_with_number_and_settings() {
        let codec = parse("97 speex/8000?complexity=2&quality=8").expect("a codec");
        assert_eq!((codec.name.as_str(), codec.clock_rate), ("speex", 8_000));
        assert_eq!(codec.payload_type, Some(97));
        let params: Vec<_> = codec
            .params
            .iter()
            .map(|(k, v)| (k.as_str(), v.as_str()))
            .collect();
        assert_eq!(params, [("complexity", "2"), ("quality", "8")]);
        let plain = parse("PCMU/8000").expect("a codec");
        assert_eq!((plain.payload_type, plain.params.len()), (None, 0));
    }

    #[test]
    fn what_is_no_codec_is_none() {
        let rows = [
            "",
            "PCMU",
            "/8000",
            "PCMU/",
            "PCMU/0",
            "PCMU/x",
            "128 PCMU/8000",
            "x PCMU/8000",
            "a b/8000",
            "PCMU/8000?",
            "PCMU/8000?x",
            "PCMU/8000?x=",
            "PCMU/8000?x=1&x=2",
            "PCMU/8000?=1",
            "P\u{e9}/8000",
        ];
        for text in rows {
            assert_eq!(parse(text), None, "{text:?}");
        }
    }
}
