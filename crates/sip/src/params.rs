//! Header parameters: `*( SEMI generic-param )` of RFC 3261, 25.1.
//!
//! The text is checked once, when the value that owns it is read, and cut on demand after that. Names match
//! case-insensitively. Values are raw; [`Params::unquoted`] takes quotes and escapes off.

use std::borrow::Cow;

use crate::error::HeaderErrorKind;
use crate::lex::{self, List};

/// The parameters of a header value, in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Params<'a>(&'a str);

impl<'a> Params<'a> {
    /// Reads what follows a value: nothing, or `;` and parameters.
    ///
    /// # Errors
    /// [`HeaderErrorKind::Malformed`] for an empty parameter, a name that is no token, unbalanced quotes or
    /// white space inside a value.
    pub fn parse(text: &'a str) -> Result<Self, HeaderErrorKind> {
        let text = lex::trim(text);
        if text.is_empty() {
            return Ok(Self(""));
        }
        let list = text.strip_prefix(';').ok_or(HeaderErrorKind::Malformed)?;
        if lex::trim(list).is_empty() || !List::new(list, b';', false).all(is_param) {
            return Err(HeaderErrorKind::Malformed);
        }
        Ok(Self(list))
    }

    /// Name and value as written, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + use<'a> {
        List::new(self.0, b';', false).map(split)
    }

    /// The first parameter of that name: outer `None` when absent, inner `None` when it has no value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<Option<&'a str>> {
        self.iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of the first parameter of that name, raw; `None` when absent or without a value.
    #[must_use]
    pub fn value(&self, name: &str) -> Option<&'a str> {
        self.get(name).flatten()
    }

    /// Like [`Params::value`], with quotes and escapes taken off.
    #[must_use]
    pub fn unquoted(&self, name: &str) -> Option<Cow<'a, str>> {
        self.value(name).map(unquote)
    }

    /// Whether a parameter of that name is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The text after the first semicolon, as written.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.0
    }
}

/// A quoted string without its quotes and escapes (RFC 3261, 25.1); other text comes back as it is.
#[must_use]
pub fn unquote(text: &str) -> Cow<'_, str> {
    let Some(inner) = text.strip_prefix('"').and_then(|t| t.strip_suffix('"')) else {
        return Cow::Borrowed(text);
    };
    if !inner.contains('\\') {
        return Cow::Borrowed(inner);
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        out.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    Cow::Owned(out)
}

/// A text as a quoted string, quotes and backslashes escaped.
#[must_use]
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
    out
}

fn split(param: &str) -> (&str, Option<&str>) {
    match param.split_once('=') {
        Some((name, value)) => (lex::trim(name), Some(lex::trim(value))),
        None => (param, None),
    }
}

fn is_param(param: &str) -> bool {
    let (name, value) = split(param);
    lex::is_token_str(name) && value.is_none_or(is_value)
}

/// token, host or quoted-string. An empty value is let through: some senders write `;rport=`.
fn is_value(value: &str) -> bool {
    if value.starts_with('"') {
        return lex::quoted_len(value) == Some(value.len());
    }
    !value
        .bytes()
        .any(|b| lex::is_lws(b) || matches!(b, b'"' | b'<' | b'>' | b','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_white_space_quotes_and_folds() {
        let p = Params::parse(" ;\r\n tag\t=  a ; Q = \"x;\\\"y\" ;lr").unwrap();
        assert_eq!(p.value("TAG"), Some("a"));
        assert_eq!(p.unquoted("q").as_deref(), Some("x;\"y"));
        assert_eq!(p.get("lr"), Some(None));
        assert_eq!(p.get("none"), None);
        assert_eq!(p.iter().count(), 3);
        assert!(Params::parse(" ").unwrap().is_empty());
    }

    #[test]
    fn refuses_empty_and_broken_ones() {
        for bad in [
            ";",
            ";;",
            ";a;",
            ";a;;b",
            "a",
            ";=b",
            ";a=\"b",
            ";a=b c",
            ";a b",
            ";a=\"b\"c",
            ";,",
        ] {
            assert_eq!(Params::parse(bad), Err(HeaderErrorKind::Malformed), "{bad}");
        }
    }

    #[test]
    fn quote_is_undone_by_unquote() {
        for text in ["", "plain", "a\"b\\c", "\\", "é\"✓"] {
            assert_eq!(unquote(&quote(text)), text);
        }
        assert_eq!(unquote("bare"), "bare");
    }
}
