//! Hosts: names, IPv4 addresses and IPv6 references (RFC 3261, 25.1; RFC 5118).

use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::borrow::Cow;

use crate::lex;

/// The host of a URI or of a Via.
#[derive(Clone, Copy, Debug)]
pub enum Host<'a> {
    /// A name to resolve, as written.
    Name(&'a str),
    /// An IPv4 address.
    V4(Ipv4Addr),
    /// An IPv6 address; printed in brackets.
    V6(Ipv6Addr),
}

impl<'a> Host<'a> {
    /// Reads one host without a port; IPv6 needs its brackets.
    ///
    /// The three colons that the grammar of RFC 3261 allowed by mistake (`[2001:db8:::192.0.2.1]`) are read as
    /// two (RFC 5118, 4.10).
    #[must_use]
    pub fn parse(text: &'a str) -> Option<Self> {
        if let Some(inner) = text.strip_prefix('[') {
            return ipv6(inner.strip_suffix(']')?).map(Self::V6);
        }
        if let Ok(v4) = text.parse() {
            return Some(Self::V4(v4));
        }
        // The underscore is no part of the grammar but stands in many a private network's names.
        let plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
        let named = text.bytes().all(plain) && text.bytes().any(|b| b.is_ascii_alphanumeric());
        named.then_some(Self::Name(text))
    }

    /// Reads `host [ ":" port ]`, white space around the colon allowed as in a Via.
    #[must_use]
    pub fn parse_with_port(text: &'a str) -> Option<(Self, Option<u16>)> {
        let text = lex::trim(text);
        let after_brackets = text.find(']').map_or(0, |at| at + 1);
        let (host, port) = match text[after_brackets..].find(':') {
            Some(at) => {
                let at = after_brackets + at;
                let port = lex::decimal(lex::trim(&text[at + 1..]).as_bytes())?;
                (lex::trim(&text[..at]), Some(u16::try_from(port).ok()?))
            }
            None => (text, None),
        };
        Some((Self::parse(host)?, port))
    }

    /// The address, when it needs no resolver.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Name(_) => None,
            Self::V4(v4) => Some(IpAddr::V4(*v4)),
            Self::V6(v6) => Some(IpAddr::V6(*v6)),
        }
    }
}

/// An address with or without brackets, as `received=` carries it (RFC 5118, 4.5).
pub(crate) fn ip_maybe_bracketed(text: &str) -> Option<IpAddr> {
    let inner = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
    match inner {
        Some(inner) => ipv6(inner).map(IpAddr::V6),
        None => text.parse().ok(),
    }
}

fn ipv6(text: &str) -> Option<Ipv6Addr> {
    let text = match text.find(":::") {
        Some(at) => Cow::Owned(format!("{}{}", &text[..at], &text[at + 1..])),
        None => Cow::Borrowed(text),
    };
    text.parse().ok()
}

impl PartialEq for Host<'_> {
    /// Names compare case-insensitively (RFC 3261, 19.1.4).
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Name(a), Self::Name(b)) => a.eq_ignore_ascii_case(b),
            (a, b) => a.ip().is_some() && a.ip() == b.ip(),
        }
    }
}

impl Eq for Host<'_> {}

impl fmt::Display for Host<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::V4(v4) => v4.fmt(f),
            Self::V6(v6) => write!(f, "[{v6}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_hosts_and_ports() {
        let name = |s| Some(Host::Name(s));
        assert_eq!(Host::parse("a.Example-1.com"), name("A.example-1.COM"));
        assert_eq!(
            Host::parse_with_port("192.0.2.1:5060"),
            Some((Host::V4(Ipv4Addr::new(192, 0, 2, 1)), Some(5060)))
        );
        let v6 = Host::V6("2001:db8::10".parse().unwrap());
        assert_eq!(
            Host::parse_with_port("[2001:db8::10] : 5070"),
            Some((v6, Some(5070)))
        );
        assert_eq!(v6.to_string(), "[2001:db8::10]");
        for bad in [
            "",
            "a b",
            "2001:db8::10",
            "[2001:db8::10",
            "[x]",
            "a:",
            "a:65536",
            "a:-1",
            "a@b",
            "[::1]x",
            "...",
        ] {
            assert_eq!(Host::parse_with_port(bad), None, "{bad}");
        }
    }
}
