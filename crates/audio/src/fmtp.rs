//! The value of `a=fmtp` as the audio codecs of this field write it: `name=value; name="value, x"`.
//!
//! Lenient where peers differ (blanks, empty items, names without value), since what is not
//! understood is ignored all the same (RFC 8866 section 6.15 leaves the form to the codec).

/// The parameters in order; the value of a bare name is empty, quotes are taken off.
///
/// Cost: no allocation.
pub fn parameters(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        while !rest.is_empty() {
            let (item, after) = split_item(rest);
            rest = after;
            let item = item.trim();
            if !item.is_empty() {
                let (name, value) = item.split_once('=').unwrap_or((item, ""));
                return Some((name.trim(), value.trim().trim_matches('"')));
            }
        }
        None
    })
}

/// The value of the first parameter of this name, in any case of letters.
#[must_use]
pub fn parameter<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    parameters(text)
        .find(|(known, _)| known.eq_ignore_ascii_case(name))
        .map(|(_, value)| value)
}

/// Up to the next semicolon outside of quotes, and what comes after it.
fn split_item(text: &str) -> (&str, &str) {
    let mut quoted = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'"' => quoted = !quoted,
            b';' if !quoted => return (&text[..at], &text[at + 1..]),
            _ => {}
        }
    }
    (text, "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_read_in_the_forms_that_peers_write() {
        let rows: [(&str, &[(&str, &str)]); 6] = [
            ("", &[]),
            (" ; ;", &[]),
            ("useinbandfec=1", &[("useinbandfec", "1")]),
            (
                "vbr=on;cng=off; mode=\"1,any\" ",
                &[("vbr", "on"), ("cng", "off"), ("mode", "1,any")],
            ),
            ("mode=\"1;2\";x", &[("mode", "1;2"), ("x", "")]),
            ("0-15", &[("0-15", "")]),
        ];
        for (text, expected) in rows {
            assert_eq!(parameters(text).collect::<Vec<_>>(), expected, "{text:?}");
        }
        assert_eq!(parameter("a=1; B=2", "b"), Some("2"));
        assert_eq!(parameter("a=1", "b"), None);
    }
}
