//! Digest authentication as client: RFC 3261 section 22, RFC 7616, RFC 8760.
//!
//! One challenge is answered with the strongest algorithm that it offers among SHA-256 and MD5
//! (and their `-sess` forms), with `qop=auth` where offered and without where the server is of the
//! RFC 2069 kind. `auth-int` alone is not answered.

use std::fmt::Write as _;

use md5::Md5;
use sha2::{Digest, Sha256};

use crate::params::unquote;
use crate::{Credentials, Incoming, Name, Rng};

#[derive(Copy, Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
enum Algorithm {
    Md5,
    Sha256,
}

impl Algorithm {
    fn hex(self, text: &str) -> String {
        match self {
            Self::Md5 => hex(&Md5::digest(text.as_bytes())),
            Self::Sha256 => hex(&Sha256::digest(text.as_bytes())),
        }
    }
}

/// One challenge, as far as we answer it.
#[derive(Clone, Debug)]
struct Challenge {
    realm: String,
    nonce: String,
    opaque: Option<String>,
    algorithm: Algorithm,
    /// As written, to be echoed.
    algorithm_name: Option<String>,
    session: bool,
    with_qop: bool,
    /// The nonce of the last answer was right but old.
    stale: bool,
}

impl Challenge {
    fn parse(value: &str) -> Option<Self> {
        let (scheme, rest) = value.trim().split_once(|c: char| c.is_ascii_whitespace())?;
        if !scheme.eq_ignore_ascii_case("Digest") {
            return None;
        }
        let mut realm = None;
        let mut nonce = None;
        let mut opaque = None;
        let mut algorithm_name: Option<String> = None;
        let mut qop: Option<String> = None;
        let mut stale = false;
        for parameter in crate::lex::List::new(rest, b',', false) {
            let Some((name, value)) = parameter.split_once('=') else {
                continue;
            };
            let value = unquote(value.trim()).into_owned();
            match name.trim().to_ascii_lowercase().as_str() {
                "realm" => realm = Some(value),
                "nonce" => nonce = Some(value),
                "opaque" => opaque = Some(value),
                "algorithm" => algorithm_name = Some(value),
                "qop" => qop = Some(value),
                "stale" => stale = value.eq_ignore_ascii_case("true"),
                _ => {}
            }
        }
        let name = algorithm_name
            .as_deref()
            .unwrap_or("MD5")
            .to_ascii_uppercase();
        let (algorithm, session) = match name.as_str() {
            "MD5" => (Algorithm::Md5, false),
            "MD5-SESS" => (Algorithm::Md5, true),
            "SHA-256" => (Algorithm::Sha256, false),
            "SHA-256-SESS" => (Algorithm::Sha256, true),
            _ => return None,
        };
        let with_qop = match &qop {
            None => false,
            Some(list)
                if list
                    .split(',')
                    .any(|q| q.trim().eq_ignore_ascii_case("auth")) =>
            {
                true
            }
            Some(_) => return None,
        };
        Some(Self {
            realm: realm?,
            nonce: nonce?,
            opaque,
            algorithm,
            algorithm_name,
            session,
            with_qop,
            stale,
        })
    }
}

/// The header that answers the challenges of a 401 or 407, or `None` where there is none that we
/// can answer. `only_stale` is for those who have answered before: the same answer to anything but
/// a stale nonce would be refused again.
pub(crate) fn answer(
    response: &Incoming,
    credentials: &Credentials,
    method: &str,
    uri: &str,
    only_stale: bool,
    rng: &mut Rng,
) -> Option<(Name, String)> {
    let (challenges, name) = match response.status()? {
        401 => (Name::WwwAuthenticate, Name::Authorization),
        407 => (Name::ProxyAuthenticate, Name::ProxyAuthorization),
        _ => return None,
    };
    let challenge = response
        .headers(challenges)
        .filter_map(Challenge::parse)
        .filter(|challenge| challenge.stale || !only_stale)
        .max_by_key(|challenge| challenge.algorithm)?;
    Some((
        name,
        respond(&challenge, credentials, method, uri, &rng.token(16)),
    ))
}

fn respond(
    challenge: &Challenge,
    credentials: &Credentials,
    method: &str,
    uri: &str,
    cnonce: &str,
) -> String {
    // The first and only use of each nonce by us.
    const NC: &str = "00000001";
    let Challenge {
        realm,
        nonce,
        algorithm,
        ..
    } = challenge;
    let Credentials { username, password } = credentials;
    let mut a1 = algorithm.hex(&format!("{username}:{realm}:{password}"));
    if challenge.session {
        a1 = algorithm.hex(&format!("{a1}:{nonce}:{cnonce}"));
    }
    let a2 = algorithm.hex(&format!("{method}:{uri}"));
    let response = if challenge.with_qop {
        algorithm.hex(&format!("{a1}:{nonce}:{NC}:{cnonce}:auth:{a2}"))
    } else {
        algorithm.hex(&format!("{a1}:{nonce}:{a2}"))
    };
    let quote = crate::quote;
    let mut header = format!(
        "Digest username={},realm={},nonce={},uri={},response=\"{response}\"",
        quote(username),
        quote(realm),
        quote(nonce),
        quote(uri),
    );
    if let Some(name) = &challenge.algorithm_name {
        write!(header, ",algorithm={name}").expect("a String takes all");
    }
    if challenge.with_qop {
        write!(header, ",qop=auth,nc={NC},cnonce=\"{cnonce}\"").expect("a String takes all");
    } else if challenge.session {
        write!(header, ",cnonce=\"{cnonce}\"").expect("a String takes all");
    }
    if let Some(opaque) = &challenge.opaque {
        write!(header, ",opaque={}", quote(opaque)).expect("a String takes all");
    }
    header
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes all");
            text
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn response_of(header: &str) -> &str {
        header
            .split("response=\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .expect("there")
    }

    /// RFC 7616 section 3.9.1, both algorithms over one challenge.
    #[test]
    fn the_examples_of_rfc_7616_come_out() {
        let credentials = Credentials {
            username: "Mufasa".to_owned(),
            password: "Circle of Life".to_owned(),
        };
        let rows = [
            (
                "SHA-256",
                "753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1",
            ),
            ("MD5", "8ca523f5e9506fed4657c9700eebdbec"),
        ];
        for (algorithm, expected) in rows {
            let challenge = Challenge::parse(&format!(
                "Digest realm=\"http-auth@example.org\", qop=\"auth, auth-int\", \
                 algorithm={algorithm}, nonce=\"7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v\", \
                 opaque=\"FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS\""
            ))
            .expect("a challenge we answer");
            let header = respond(
                &challenge,
                &credentials,
                "GET",
                "/dir/index.html",
                "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ",
            );
            assert_eq!(response_of(&header), expected, "{algorithm}");
        }
    }

    #[test]
    fn without_qop_the_old_form_is_used() {
        let challenge = Challenge::parse("Digest realm=\"a\",nonce=\"b\"").expect("RFC 2069 form");
        let credentials = Credentials {
            username: "u".to_owned(),
            password: "p".to_owned(),
        };
        let header = respond(&challenge, &credentials, "INVITE", "sip:a@b", "c");
        assert!(
            !header.contains("cnonce") && !header.contains("algorithm"),
            "{header}"
        );
    }

    #[test]
    fn what_we_cannot_answer_is_left() {
        for value in [
            "Basic realm=\"a\"",
            "Digest realm=\"a\",nonce=\"b\",qop=\"auth-int\"",
            "Digest realm=\"a\",nonce=\"b\",algorithm=SHA-512-256",
            "Digest realm=\"a\"",
            "",
        ] {
            assert!(Challenge::parse(value).is_none(), "{value}");
        }
    }
}
