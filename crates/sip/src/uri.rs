//! SIP, SIPS and tel URIs (RFC 3261, 19.1; RFC 3966); any other scheme is kept opaque.
//!
//! ```text
//! sip:user:password@host:port;uri-parameters?headers
//! ```
//!
//! Parts are borrowed and raw; the `*_decoded` forms resolve %-escapes. The user part ends at the first `@`, so it may
//! hold `;`, `?` and `/` (RFC 4475, 3.1.1.2 and 3.1.1.9).

use core::fmt;
use std::borrow::Cow;

use thiserror::Error;

use crate::host::Host;
use crate::lex;

/// The scheme of a URI.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scheme<'a> {
    /// `sip:`
    Sip,
    /// `sips:`
    Sips,
    /// `tel:` (RFC 3966)
    Tel,
    /// Any other, as written.
    Other(&'a str),
}

/// Why a text is no URI.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum UriError {
    /// No scheme and colon in front.
    #[error("missing scheme")]
    Scheme,
    /// White space, a control character, a quote or an angle bracket.
    #[error("character that no URI holds")]
    Character,
    /// An empty user in front of `@`, or a `tel:` number without a digit.
    #[error("malformed user")]
    User,
    /// The host is no name, IPv4 address or bracketed IPv6 address, or the port is not in 0..=65535.
    #[error("malformed host or port")]
    Host,
    /// A `%` without two hexadecimal digits after it in a SIP or SIPS URI.
    #[error("malformed escape")]
    Escape,
}

/// A URI, cut into its parts.
#[derive(Clone, Copy, Debug)]
pub struct Uri<'a> {
    raw: &'a str,
    scheme: Scheme<'a>,
    user: Option<&'a str>,
    password: Option<&'a str>,
    host: Option<Host<'a>>,
    port: Option<u16>,
    params: &'a str,
    headers: &'a str,
}

impl<'a> Uri<'a> {
    /// Reads a URI without angle brackets.
    ///
    /// # Errors
    /// [`UriError`]; an unknown scheme is no error.
    pub fn parse(raw: &'a str) -> Result<Self, UriError> {
        let (scheme, rest) = raw.split_once(':').ok_or(UriError::Scheme)?;
        if !lex::is_scheme(scheme) {
            return Err(UriError::Scheme);
        }
        if raw
            .bytes()
            .any(|b| b <= b' ' || b == 0x7f || matches!(b, b'"' | b'<' | b'>'))
        {
            return Err(UriError::Character);
        }
        let scheme = match scheme {
            s if s.eq_ignore_ascii_case("sip") => Scheme::Sip,
            s if s.eq_ignore_ascii_case("sips") => Scheme::Sips,
            s if s.eq_ignore_ascii_case("tel") => Scheme::Tel,
            s => Scheme::Other(s),
        };
        let uri = Uri {
            raw,
            scheme,
            user: None,
            password: None,
            host: None,
            port: None,
            params: "",
            headers: "",
        };
        match scheme {
            Scheme::Sip | Scheme::Sips => uri.with_sip(rest),
            Scheme::Tel => uri.with_tel(rest),
            Scheme::Other(_) => Ok(uri),
        }
    }

    fn with_sip(mut self, rest: &'a str) -> Result<Self, UriError> {
        if !escapes_are_whole(rest) {
            return Err(UriError::Escape);
        }
        let host_part = match rest.split_once('@') {
            Some((user_info, host_part)) => {
                let (user, password) = match user_info.split_once(':') {
                    Some((user, password)) => (user, Some(password)),
                    None => (user_info, None),
                };
                if user.is_empty() {
                    return Err(UriError::User);
                }
                (self.user, self.password) = (Some(user), password);
                host_part
            }
            None => rest,
        };
        let (host_part, headers) = host_part.split_once('?').unwrap_or((host_part, ""));
        let (host_port, params) = host_part.split_once(';').unwrap_or((host_part, ""));
        let (host, port) = Host::parse_with_port(host_port).ok_or(UriError::Host)?;
        (self.host, self.port, self.params, self.headers) = (Some(host), port, params, headers);
        Ok(self)
    }

    fn with_tel(mut self, rest: &'a str) -> Result<Self, UriError> {
        let (number, params) = rest.split_once(';').unwrap_or((rest, ""));
        let digits = number.strip_prefix('+').unwrap_or(number);
        let phone =
            |b: u8| b.is_ascii_hexdigit() || matches!(b, b'*' | b'#' | b'-' | b'.' | b'(' | b')');
        let dialable = |b: u8| b.is_ascii_hexdigit() || matches!(b, b'*' | b'#');
        if !digits.bytes().all(phone) || !digits.bytes().any(dialable) {
            return Err(UriError::User);
        }
        (self.user, self.params) = (Some(number), params);
        Ok(self)
    }

    /// The scheme.
    #[must_use]
    pub const fn scheme(&self) -> Scheme<'a> {
        self.scheme
    }

    /// The text as written.
    #[must_use]
    pub const fn as_str(&self) -> &'a str {
        self.raw
    }

    /// The user part, escapes and all, without the password; the number of a `tel:`.
    #[must_use]
    pub const fn user(&self) -> Option<&'a str> {
        self.user
    }

    /// The user part with its escapes resolved; octets that are no UTF-8 become U+FFFD.
    #[must_use]
    pub fn user_decoded(&self) -> Option<Cow<'a, str>> {
        self.user.map(decode)
    }

    /// The password, which nobody should use (RFC 3261, 19.1.1).
    #[must_use]
    pub const fn password(&self) -> Option<&'a str> {
        self.password
    }

    /// The host; `None` for `tel:` and opaque schemes.
    #[must_use]
    pub const fn host(&self) -> Option<Host<'a>> {
        self.host
    }

    /// The port, when written.
    #[must_use]
    pub const fn port(&self) -> Option<u16> {
        self.port
    }

    /// URI parameters in order, raw.
    pub fn params(&self) -> impl Iterator<Item = (&'a str, Option<&'a str>)> + use<'a> {
        pairs(self.params, ';')
    }

    /// The first URI parameter of that name (any case, escapes resolved): outer `None` when absent, inner when it has
    /// no value. The value is raw.
    #[must_use]
    pub fn param(&self, name: &str) -> Option<Option<&'a str>> {
        self.params()
            .find(|(n, _)| decode(n).eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The value of `transport`.
    #[must_use]
    pub fn transport(&self) -> Option<&'a str> {
        self.param("transport").flatten()
    }

    /// Whether `lr` marks a loose router (RFC 3261, 19.1.1).
    #[must_use]
    pub fn lr(&self) -> bool {
        self.param("lr").is_some()
    }

    /// The headers after `?`, raw.
    pub fn headers(&self) -> impl Iterator<Item = (&'a str, &'a str)> + use<'a> {
        pairs(self.headers, '&').map(|(name, value)| (name, value.unwrap_or("")))
    }

    /// Whether both name the same resource (RFC 3261, 19.1.4; RFC 3966, 5 for `tel:`).
    #[must_use]
    pub fn equivalent(&self, other: &Uri<'_>) -> bool {
        match (self.scheme, other.scheme) {
            (Scheme::Sip, Scheme::Sip) | (Scheme::Sips, Scheme::Sips) => self.sip_equivalent(other),
            (Scheme::Tel, Scheme::Tel) => {
                dialled(self.user).eq(dialled(other.user)) && self.all_params_match(other)
            }
            (Scheme::Other(_), Scheme::Other(_)) => self.raw == other.raw,
            _ => false,
        }
    }

    fn sip_equivalent(&self, other: &Uri<'_>) -> bool {
        // These count as different when only one side has them; any other parameter must match when both do.
        const ALWAYS: [&str; 5] = ["user", "ttl", "method", "maddr", "transport"];
        let same = |a: Option<&str>, b: Option<&str>| match (a, b) {
            (Some(a), Some(b)) => same_unescaped(a, b, false),
            (a, b) => a.is_none() && b.is_none(),
        };
        let param_matches = |name: &str| match (self.param(name), other.param(name)) {
            (Some(a), Some(b)) => same_unescaped(a.unwrap_or(""), b.unwrap_or(""), true),
            (None, None) => true,
            _ => !ALWAYS
                .iter()
                .any(|always| name.eq_ignore_ascii_case(always)),
        };
        let names = self.params().chain(other.params()).map(|(name, _)| name);
        same(self.user, other.user)
            && same(self.password, other.password)
            && self.host == other.host
            && self.port == other.port
            && names.into_iter().all(|name| param_matches(&decode(name)))
            && self.headers().count() == other.headers().count()
            && self
                .headers()
                .all(|a| other.headers().any(|b| same_header(a, b)))
            && other
                .headers()
                .all(|b| self.headers().any(|a| same_header(a, b)))
    }

    fn all_params_match(&self, other: &Uri<'_>) -> bool {
        let within = |a: &Uri<'_>, b: &Uri<'_>| {
            a.params().all(|(name, value)| {
                b.param(&decode(name))
                    .is_some_and(|v| same_unescaped(v.unwrap_or(""), value.unwrap_or(""), true))
            })
        };
        within(self, other) && within(other, self)
    }
}

impl fmt::Display for Uri<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.raw)
    }
}

/// Resolves %-escapes; a `%` without two digits stays, octets that are no UTF-8 become U+FFFD.
#[must_use]
pub fn decode(text: &str) -> Cow<'_, str> {
    if !text.contains('%') {
        return Cow::Borrowed(text);
    }
    let octets: Vec<u8> = Octets(text.as_bytes()).map(|(octet, _)| octet).collect();
    Cow::Owned(String::from_utf8_lossy(&octets).into_owned())
}

/// Escapes whatever may not stand bare in the user part of a SIP URI (RFC 3261, 25.1).
#[must_use]
pub fn encode_user(text: &str) -> Cow<'_, str> {
    let bare = |b: u8| b.is_ascii_alphanumeric() || b"-_.!~*'()&=+$,;?/".contains(&b);
    if text.bytes().all(bare) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for b in text.bytes() {
        if bare(b) {
            out.push(char::from(b));
        } else {
            out.extend(['%', hex_digit(b >> 4), hex_digit(b & 15)]);
        }
    }
    Cow::Owned(out)
}

fn hex_digit(nibble: u8) -> char {
    char::from(b"0123456789ABCDEF"[usize::from(nibble & 15)])
}

/// Octets of an escaped text, each with whether it had been escaped.
struct Octets<'a>(&'a [u8]);

impl Iterator for Octets<'_> {
    type Item = (u8, bool);

    fn next(&mut self) -> Option<(u8, bool)> {
        let hex = |b: u8| char::from(b).to_digit(16);
        let (item, used) = match *self.0 {
            [b'%', hi, lo, ..] => match (hex(hi), hex(lo)) {
                (Some(hi), Some(lo)) => (((hi * 16 + lo) as u8, true), 3),
                _ => ((b'%', false), 1),
            },
            [b, ..] => ((b, false), 1),
            [] => return None,
        };
        self.0 = &self.0[used..];
        Some(item)
    }
}

fn escapes_are_whole(text: &str) -> bool {
    let mut octets = Octets(text.as_bytes());
    octets.all(|octet| octet != (b'%', false))
}

/// A character and its escape are the same unless the character is a reserved one (RFC 3261, 19.1.4).
fn same_unescaped(a: &str, b: &str, ignore_case: bool) -> bool {
    let reserved = |b: u8| b";/?:@&=+$,".contains(&b);
    let key = |(octet, escaped): (u8, bool)| {
        let octet = if ignore_case {
            octet.to_ascii_lowercase()
        } else {
            octet
        };
        (octet, escaped && reserved(octet))
    };
    Octets(a.as_bytes())
        .map(key)
        .eq(Octets(b.as_bytes()).map(key))
}

fn same_header(a: (&str, &str), b: (&str, &str)) -> bool {
    same_unescaped(a.0, b.0, true) && same_unescaped(a.1, b.1, false)
}

fn pairs(text: &str, separator: char) -> impl Iterator<Item = (&str, Option<&str>)> {
    text.split(separator)
        .filter(|pair| !pair.is_empty())
        .map(|pair| match pair.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (pair, None),
        })
}

/// The digits of a number without visual separators (RFC 3966, 5).
fn dialled(number: Option<&str>) -> impl Iterator<Item = u8> + '_ {
    let visual = |b: &u8| matches!(b, b'-' | b'.' | b'(' | b')');
    number
        .unwrap_or("")
        .bytes()
        .filter(move |b| !visual(b))
        .map(|b| b.to_ascii_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri<'_> {
        Uri::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    #[test]
    fn cuts_every_part() {
        let u =
            uri("sips:alice:secret@[2001:db8::1]:5071;transport=tcp;lr?Subject=x&Priority=urgent");
        assert_eq!(u.scheme(), Scheme::Sips);
        assert_eq!((u.user(), u.password()), (Some("alice"), Some("secret")));
        assert_eq!(u.host(), Some(Host::V6("2001:db8::1".parse().unwrap())));
        assert_eq!(
            (u.port(), u.transport(), u.lr()),
            (Some(5071), Some("tcp"), true)
        );
        assert_eq!(
            u.headers().collect::<Vec<_>>(),
            [("Subject", "x"), ("Priority", "urgent")]
        );
    }

    #[test]
    fn user_may_hold_reserved_characters() {
        let u = uri("sip:1_x~(a!b)&c'd+e$/f?,/;;*:&p=1,w!*d@example.com");
        assert_eq!(u.user(), Some("1_x~(a!b)&c'd+e$/f?,/;;*"));
        assert_eq!(u.password(), Some("&p=1,w!*d"));
        let u = uri("sip:user;par=u%40example.net@example.com");
        assert_eq!(u.user_decoded().as_deref(), Some("user;par=u@example.net"));
        assert_eq!(u.host(), Some(Host::Name("example.com")));
    }

    #[test]
    fn escapes_are_resolved_on_demand() {
        assert_eq!(
            uri("sip:null-%00-null@a").user_decoded().as_deref(),
            Some("null-\0-null")
        );
        let u = uri("sip:a@b;%6C%72;n%61me=v%61lue%25%34%31");
        assert!(u.lr());
        assert_eq!(
            u.param("name").flatten().map(decode).as_deref(),
            Some("value%41")
        );
        assert_eq!(encode_user("a b@c%"), "a%20b%40c%25");
        assert_eq!(decode(&encode_user("grüße\0")), "grüße\0");
    }

    #[test]
    fn tel_and_opaque() {
        let u = uri("tel:+1-201-555-0123;phone-context=x");
        assert_eq!(
            (u.user(), u.host(), u.scheme()),
            (Some("+1-201-555-0123"), None, Scheme::Tel)
        );
        assert_eq!(
            uri("soap.beep://192.0.2.103:3002").scheme(),
            Scheme::Other("soap.beep")
        );
        assert_eq!(Uri::parse("tel:").unwrap_err(), UriError::User);
        assert_eq!(Uri::parse("tel:abcx").unwrap_err(), UriError::User);
    }

    #[test]
    fn refuses() {
        let table = [
            ("", UriError::Scheme),
            ("a@b", UriError::Scheme),
            ("1x:y", UriError::Scheme),
            ("sip:", UriError::Host),
            ("sip:@b", UriError::User),
            ("sip:a@", UriError::Host),
            ("sip:a@b@c", UriError::Host),
            ("sip:a@b:x", UriError::Host),
            ("sip:a@b:99999", UriError::Host),
            ("sip:2001:db8::10", UriError::Host),
            ("sip:a%@b", UriError::Escape),
            ("sip:a%zz@b", UriError::Escape),
            ("sip:a b@c", UriError::Character),
            ("<sip:a@b>", UriError::Scheme),
            ("sip:<a@b>", UriError::Character),
        ];
        for (text, error) in table {
            assert_eq!(Uri::parse(text).unwrap_err(), error, "{text}");
        }
    }

    #[test]
    fn equivalence_of_rfc3261_19_1_4() {
        let same = [
            (
                "sip:%61lice@atlanta.com;transport=TCP",
                "sip:alice@AtlanTa.CoM;Transport=tcp",
            ),
            ("sip:carol@chicago.com", "sip:carol@chicago.com;newparam=5"),
            (
                "sip:carol@chicago.com;newparam=5",
                "sip:carol@chicago.com;security=on",
            ),
            (
                "sip:biloxi.com;transport=tcp;method=REGISTER?to=sip:bob%40biloxi.com",
                "sip:biloxi.com;method=REGISTER;transport=tcp?to=sip:bob%40biloxi.com",
            ),
            (
                "sip:alice@atlanta.com?subject=project%20x&priority=urgent",
                "sip:alice@atlanta.com?priority=urgent&subject=project%20x",
            ),
            ("tel:+1-201-555-0123", "tel:+12015550123"),
        ];
        for (a, b) in same {
            assert!(
                uri(a).equivalent(&uri(b)) && uri(b).equivalent(&uri(a)),
                "{a} {b}"
            );
        }
        let different = [
            (
                "SIP:ALICE@AtLanTa.CoM;Transport=udp",
                "sip:alice@AtLanTa.CoM;Transport=UDP",
            ),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com:5060"),
            ("sip:bob@biloxi.com", "sip:bob@biloxi.com;transport=udp"),
            (
                "sip:bob@biloxi.com",
                "sip:bob@biloxi.com:6000;transport=tcp",
            ),
            (
                "sip:carol@chicago.com",
                "sip:carol@chicago.com?Subject=next%20meeting",
            ),
            ("sip:bob@phone21.boxesbybob.com", "sip:bob@192.0.2.4"),
            (
                "sip:carol@chicago.com;security=off",
                "sip:carol@chicago.com;security=on",
            ),
            ("sip:a@b", "sips:a@b"),
            ("sip:a%2Fb@c", "sip:a/b@c"),
            ("tel:123;phone-context=a", "tel:123;phone-context=b"),
        ];
        for (a, b) in different {
            assert!(
                !uri(a).equivalent(&uri(b)) && !uri(b).equivalent(&uri(a)),
                "{a} {b}"
            );
        }
    }
}
