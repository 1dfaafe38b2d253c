//! Character classes and small cutters that every value parser of this crate shares.
//!
//! RFC 3261 section 25.1. All cutters work on bytes and cut only beside ASCII delimiters, so slices of a
//! `str` stay valid UTF-8. White space here means LWS: SP, HT and the CR LF of a folded line.

/// `token` of RFC 3261, 25.1: alphanum and ``-.!%*_+`'~``.
pub(crate) const fn is_token(b: u8) -> bool {
    TOKEN[b as usize]
}

const TOKEN: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0_usize;
    while b < 128 {
        table[b] = (b as u8).is_ascii_alphanumeric();
        b += 1;
    }
    let extra = b"-.!%*_+`'~";
    let mut i = 0;
    while i < extra.len() {
        table[extra[i] as usize] = true;
        i += 1;
    }
    table
};

/// True for a non-empty text of token characters.
pub(crate) fn is_token_str(s: &str) -> bool {
    !s.is_empty() && s.bytes().all(is_token)
}

/// SP, HT, and the CR LF that a folded line leaves inside a raw value.
pub(crate) const fn is_lws(b: u8) -> bool {
    matches!(b, b' ' | b'\t' | b'\r' | b'\n')
}

/// Cuts white space (folds included) off both ends.
pub(crate) fn trim(s: &str) -> &str {
    let bytes = s.as_bytes();
    let Some(start) = bytes.iter().position(|&b| !is_lws(b)) else {
        return "";
    };
    let end = bytes
        .iter()
        .rposition(|&b| !is_lws(b))
        .map_or(start, |last| last + 1);
    &s[start..end]
}

/// [`trim`] for octets.
pub(crate) fn trim_bytes(mut text: &[u8]) -> &[u8] {
    while let [first, rest @ ..] = text
        && is_lws(*first)
    {
        text = rest;
    }
    while let [rest @ .., last] = text
        && is_lws(*last)
    {
        text = rest;
    }
    text
}

/// One line with its end and its folds, and the rest. An unfinished last line counts; `None` when nothing is left.
pub(crate) fn cut_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    if bytes.is_empty() {
        return None;
    }
    let mut end = 0;
    while let Some(at) = memchr::memchr(b'\n', &bytes[end..]) {
        end += at + 1;
        if !matches!(bytes.get(end), Some(b' ' | b'\t')) {
            return Some(bytes.split_at(end));
        }
    }
    Some((bytes, &[]))
}

/// True for a URI scheme: `ALPHA *( ALPHA / DIGIT / "+" / "-" / "." )`.
pub(crate) fn is_scheme(s: &str) -> bool {
    let mut bytes = s.bytes();
    bytes.next().is_some_and(|b| b.is_ascii_alphabetic())
        && bytes.all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
}

/// The length of the quoted string that `s` begins with, both quotes counted; `None` when it never ends.
pub(crate) fn quoted_len(s: &str) -> Option<usize> {
    let bytes = s.as_bytes();
    debug_assert_eq!(bytes.first(), Some(&b'"'));
    let mut i = 1;
    loop {
        match bytes.get(i)? {
            b'"' => return Some(i + 1),
            b'\\' => i += 2,
            _ => i += 1,
        }
    }
}

/// The first `wanted` byte of `s` that stands outside quotes (and outside `<>` when `angles`).
pub(crate) fn find_outside(s: &str, wanted: u8, angles: bool) -> Option<usize> {
    let bytes = s.as_bytes();
    memchr::memchr(wanted, bytes)?;
    let (mut i, mut quoted, mut angled) = (0, false, false);
    while let Some(&b) = bytes.get(i) {
        if quoted {
            match b {
                b'\\' => i += 1,
                b'"' => quoted = false,
                _ => {}
            }
        } else if b == wanted && !angled {
            return Some(i);
        } else {
            match b {
                b'"' => quoted = true,
                b'<' if angles => angled = true,
                b'>' if angles => angled = false,
                _ => {}
            }
        }
        i += 1;
    }
    None
}

/// An iterator over the trimmed elements of a list, cut at `separator` outside quotes and angle brackets.
///
/// Empty elements are given as empty texts, so that a typed reader refuses them; a list that is
/// nothing but white space has no element.
#[derive(Clone, Debug)]
pub(crate) struct List<'a> {
    rest: Option<&'a str>,
    separator: u8,
    angles: bool,
}

impl<'a> List<'a> {
    pub(crate) fn new(s: &'a str, separator: u8, angles: bool) -> Self {
        let rest = Some(trim(s)).filter(|s| !s.is_empty());
        Self {
            rest,
            separator,
            angles,
        }
    }
}

impl<'a> Iterator for List<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let rest = self.rest?;
        let (element, rest) = match find_outside(rest, self.separator, self.angles) {
            Some(at) => (&rest[..at], Some(&rest[at + 1..])),
            None => (rest, None),
        };
        self.rest = rest;
        Some(trim(element))
    }
}

/// Reads an unsigned decimal number, digits only; what does not fit in `u64` becomes `u64::MAX`.
pub(crate) fn decimal(s: &[u8]) -> Option<u64> {
    if s.is_empty() {
        return None;
    }
    s.iter().try_fold(0_u64, |n, b| {
        b.is_ascii_digit()
            .then(|| n.saturating_mul(10).saturating_add(u64::from(b - b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_is_cut_outside_quotes_and_angles() {
        let cut: Vec<_> = List::new(r#" "a,\"b" <sip:x,y@z> , <sip:q> ,,c "#, b',', true).collect();
        assert_eq!(cut, [r#""a,\"b" <sip:x,y@z>"#, "<sip:q>", "", "c"]);
        assert_eq!(List::new(" \r\n ", b',', true).count(), 0);
        assert_eq!(List::new("a,", b',', true).collect::<Vec<_>>(), ["a", ""]);
    }

    #[test]
    fn decimal_saturates_and_refuses_signs() {
        assert_eq!(decimal(b"0009"), Some(9));
        assert_eq!(decimal(b"36893488147419103232"), Some(u64::MAX));
        assert_eq!(decimal(b"-1"), None);
        assert_eq!(decimal(b""), None);
    }

    #[test]
    fn quoted_string_ends_at_the_bare_quote() {
        assert_eq!(quoted_len(r#""a\"b"c"#), Some(6));
        assert_eq!(quoted_len(r#""a\""#), None);
    }
}
