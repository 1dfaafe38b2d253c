//! `name-addr` and `addr-spec` with parameters: From, To, Contact, Route, Record-Route, Refer-To and their kin.
//!
//! RFC 3261, 20.10 and 25.1. A bare addr-spec ends at its first semicolon, and what follows belongs to the header; it
//! may hold neither comma nor question mark.

use core::fmt;
use std::borrow::Cow;

use crate::error::HeaderErrorKind;
use crate::lex;
use crate::params::{self, Params};
use crate::uri::{Uri, UriError};

/// An address with an optional display name and header parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NameAddr<'a> {
    /// The display name without quotes and escapes; `None` when absent or empty.
    pub display: Option<Cow<'a, str>>,
    /// The URI as written, without angle brackets.
    pub uri: &'a str,
    /// The header's parameters (not the URI's).
    pub params: Params<'a>,
}

impl<'a> NameAddr<'a> {
    /// Reads one value.
    ///
    /// # Errors
    /// [`HeaderErrorKind::Malformed`] for unbalanced quotes or brackets, a display name that is neither quoted nor
    /// tokens, white space in the URI, a missing scheme, or broken parameters.
    pub fn parse(text: &'a str) -> Result<Self, HeaderErrorKind> {
        Self::read(lex::trim(text)).ok_or(HeaderErrorKind::Malformed)
    }

    fn read(text: &'a str) -> Option<Self> {
        let (display, uri, params) = if text.starts_with('"') {
            let (display, rest) = text.split_at(lex::quoted_len(text)?);
            let (uri, params) = lex::trim(rest).strip_prefix('<')?.split_once('>')?;
            (params::unquote(display), uri, params)
        } else if let Some((display, rest)) = text.split_once('<') {
            let (uri, params) = rest.split_once('>')?;
            // Tokens by the grammar; unquoted UTF-8 is common and harmless.
            let plain = |b: u8| lex::is_token(b) || lex::is_lws(b) || b >= 0x80;
            if !display.bytes().all(plain) {
                return None;
            }
            (Cow::Borrowed(lex::trim(display)), uri, params)
        } else {
            let (uri, params) = text.split_at(text.find(';').unwrap_or(text.len()));
            if uri.contains(['?', ',']) {
                return None;
            }
            (Cow::Borrowed(""), lex::trim(uri), params)
        };
        let display = Some(display).filter(|d| !d.is_empty());
        let params = Params::parse(params).ok()?;
        is_uri(uri).then_some(Self {
            display,
            uri,
            params,
        })
    }

    /// The tag, when there is one that is not empty.
    #[must_use]
    pub fn tag(&self) -> Option<&'a str> {
        self.params.value("tag").filter(|t| !t.is_empty())
    }

    /// The URI, read.
    ///
    /// # Errors
    /// [`UriError`] when it does not follow the grammar of its scheme.
    pub fn uri(&self) -> Result<Uri<'a>, UriError> {
        Uri::parse(self.uri)
    }

    /// `expires`, a number of seconds; one that overflows is `u32::MAX` (RFC 4475, 3.1.2.4), a malformed one `None`.
    #[must_use]
    pub fn expires(&self) -> Option<u32> {
        let n = lex::decimal(self.params.value("expires")?.as_bytes())?;
        Some(u32::try_from(n).unwrap_or(u32::MAX))
    }

    /// `q` in thousandths, 0 to 1000; `None` when absent or malformed.
    #[must_use]
    pub fn q_milli(&self) -> Option<u16> {
        let q = self.params.value("q")?;
        let (whole, fraction) = q.split_once('.').unwrap_or((q, ""));
        let digits = fraction.len() <= 3 && fraction.bytes().all(|b| b.is_ascii_digit());
        let milli = digits
            .then(|| format!("{fraction:0<3}").parse::<u16>().ok())
            .flatten()?;
        match whole {
            "0" | "" if !q.is_empty() && q != "." => Some(milli),
            "1" if milli == 0 => Some(1000),
            _ => None,
        }
    }
}

/// What any header may carry between its brackets: a scheme, a colon, and no white space or bracket.
fn is_uri(uri: &str) -> bool {
    let bad = |b: u8| b <= b' ' || b == 0x7f || matches!(b, b'<' | b'>' | b'"');
    uri.split_once(':')
        .is_some_and(|(scheme, rest)| lex::is_scheme(scheme) && !rest.is_empty())
        && !uri.bytes().any(bad)
}

impl fmt::Display for NameAddr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(display) = &self.display {
            write!(f, "{} ", params::quote(display))?;
        }
        write!(f, "<{}>", self.uri)?;
        if !self.params.is_empty() {
            write!(f, ";{}", self.params.as_str())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let table = [
            ("sip:a@b;tag=1", None, "sip:a@b", Some("1")),
            ("<sip:a@b;lr>;tag=1", None, "sip:a@b;lr", Some("1")),
            ("Anna <sip:a@b>", Some("Anna"), "sip:a@b", None),
            (
                "Anna of X<sip:a@b> ; tag = q",
                Some("Anna of X"),
                "sip:a@b",
                Some("q"),
            ),
            (
                r#""A, \"B\" <x>"  <sip:a@b>;tag=2"#,
                Some(r#"A, "B" <x>"#),
                "sip:a@b",
                Some("2"),
            ),
            (r#""" <tel:+1>"#, None, "tel:+1", None),
            ("Zoë <sip:z@b>", Some("Zoë"), "sip:z@b", None),
            ("sip:a@b;tag=", None, "sip:a@b", None),
        ];
        for (text, display, uri, tag) in table {
            let read = NameAddr::parse(text).unwrap();
            assert_eq!(
                (read.display.as_deref(), read.uri, read.tag()),
                (display, uri, tag),
                "{text}"
            );
            assert_eq!(NameAddr::parse(&read.to_string()).as_ref(), Ok(&read));
        }
    }

    #[test]
    fn refuses_what_is_not_one() {
        let bad = [
            "",
            "a@b",
            "\"x <sip:a@b>",
            "A, B <sip:a@b>",
            "< sip:a@b >",
            "<sip:a@b",
            "<>",
            "sip:a@b?x=y",
            "\"x\" sip:a@b",
            "<sip:a@b>;;",
            "<sip:a@b> x",
            "sip:",
            "<sip:a b@c>",
            ":a@b",
            "<sip:a\0@b>",
        ];
        for bad in bad {
            assert_eq!(
                NameAddr::parse(bad),
                Err(HeaderErrorKind::Malformed),
                "{bad}"
            );
        }
    }

    #[test]
    fn numbers_of_a_contact() {
        let read = |text| NameAddr::parse(text).unwrap();
        assert_eq!(
            read("<sip:a@b>;expires=280297596632815").expires(),
            Some(u32::MAX)
        );
        assert_eq!(read("<sip:a@b>;expires=60").expires(), Some(60));
        assert_eq!(read("<sip:a@b>;expires=x").expires(), None);
        for (q, milli) in [
            ("0.33", Some(330)),
            ("1", Some(1000)),
            ("1.000", Some(1000)),
            ("0", Some(0)),
            ("2", None),
            ("1.1", None),
            ("0.1234", None),
            (".", None),
            ("", None),
        ] {
            let text = format!("<sip:a@b>;q={q}");
            assert_eq!(NameAddr::parse(&text).unwrap().q_milli(), milli, "{q}");
        }
    }
}
