//! The configuration: one TOML file, flags over it, defaults under it.
//!
//! ```text
//! reference.toml = Config::default()  <--  --config FILE  <--  flags  ==>  Config
//! ```
//!
//! `reference.toml` names every key with its default and its meaning; a test holds it and
//! [`Config::default`] equal, and the list of known keys is read from it. An unknown key is an
//! error that names the nearest known one. Errors carry file, line and column.

mod values;

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use net::rtp::{MediaAddresses, PortRange};
use net::sip::{ListenSpec, Transport};

/// All settings of the server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Config {
    pub(crate) sip: Sip,
    pub(crate) calls: Calls,
    pub(crate) media: Media,
    pub(crate) dialplan: Dialplan,
    pub(crate) recordings: Recordings,
    pub(crate) cdr: Cdr,
    pub(crate) log: Log,
    pub(crate) shutdown: Shutdown,
}

/// `[sip]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Sip {
    #[serde(with = "values::listen")]
    pub(crate) listen: Vec<ListenSpec>,
    pub(crate) user_agent: String,
    pub(crate) max_connections: usize,
    pub(crate) idle_timeout_s: u64,
}

/// `[calls]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Calls {
    pub(crate) max: usize,
}

/// `[media]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Media {
    #[serde(with = "values::addresses")]
    pub(crate) address: MediaAddresses,
    #[serde(with = "values::text")]
    pub(crate) rtp_ports: PortRange,
    pub(crate) threads: usize,
    pub(crate) tick_ms: u64,
}

/// `[dialplan]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Dialplan {
    pub(crate) file: String,
    pub(crate) set: BTreeMap<String, String>,
}

/// `[recordings]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Recordings {
    pub(crate) directory: String,
    pub(crate) max_bytes: u64,
}

/// `[cdr]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Cdr {
    pub(crate) file: PathBuf,
}

/// `[log]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Log {
    pub(crate) filter: String,
}

/// `[shutdown]`
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Shutdown {
    pub(crate) deadline_s: u64,
}

impl Default for Sip {
    fn default() -> Self {
        let address = ([127, 0, 0, 1], 5060).into();
        let listen = [Transport::Udp, Transport::Tcp];
        Self {
            listen: listen
                .map(|transport| ListenSpec { transport, address })
                .to_vec(),
            user_agent: "tandem".into(),
            max_connections: 10_000,
            idle_timeout_s: 3600,
        }
    }
}

impl Default for Calls {
    fn default() -> Self {
        Self { max: 20_000 }
    }
}

impl Default for Media {
    fn default() -> Self {
        let address = std::net::IpAddr::from([127, 0, 0, 1]).into();
        Self {
            address,
            rtp_ports: PortRange::default(),
            threads: 0,
            tick_ms: 5,
        }
    }
}

impl Default for Dialplan {
    fn default() -> Self {
        Self {
            file: "default".into(),
            set: BTreeMap::new(),
        }
    }
}

impl Default for Recordings {
    fn default() -> Self {
        Self {
            directory: "auto".into(),
            max_bytes: 0,
        }
    }
}

impl Default for Log {
    fn default() -> Self {
        Self {
            filter: "info".into(),
        }
    }
}

impl Default for Shutdown {
    fn default() -> Self {
        Self { deadline_s: 60 }
    }
}

/// What is wrong with a configuration file, and where.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConfigError {
    /// No TOML, or a value of the wrong kind.
    #[error("{at}: {message}")]
    Value { at: Place, message: Box<str> },
    /// A key that nothing reads.
    #[error("{at}: unknown key `{key}`; the nearest known one is `{nearest}`")]
    UnknownKey {
        at: Place,
        key: Box<str>,
        nearest: Box<str>,
    },
}

/// A place in a file; lines and columns count from 1.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    file: PathBuf,
    line: usize,
    column: usize,
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.file.display(), self.line, self.column)
    }
}

impl Config {
    /// Reads the text of a configuration file; `file` is what errors call it.
    pub(crate) fn parse(file: &Path, text: &str) -> Result<Self, ConfigError> {
        let wrong = |error: &toml::de::Error| {
            let offset = error.span().map_or(0, |span| span.start);
            let message = error.message().trim().replace('\n', "; ").into();
            ConfigError::Value {
                at: place(file, text, offset),
                message,
            }
        };
        let document = DeTable::parse(text).map_err(|error| wrong(&error))?;
        if let Some((key, span)) = unknown_key(document.get_ref()) {
            let nearest = nearest_key(&key);
            let at = place(file, text, span.start);
            return Err(ConfigError::UnknownKey {
                at,
                key: key.into(),
                nearest: nearest.into(),
            });
        }
        toml::from_str(text).map_err(|error| wrong(&error))
    }
}

/// Every key with its default and its meaning.
pub(crate) const REFERENCE: &str = include_str!("config/reference.toml");

/// Tables whose keys are the user's own.
const FREE: &str = "dialplan.set";

fn place(file: &Path, text: &str, offset: usize) -> Place {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    Place {
        file: file.to_owned(),
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    }
}

/// The first key, in the order of the file, that the reference doesn't have.
fn unknown_key(document: &DeTable<'_>) -> Option<(String, Range<usize>)> {
    let known = known_keys();
    let mut found = Vec::new();
    walk(document, "", &mut |key, span| {
        if !known.iter().any(|known| known == key) {
            found.push((key.to_owned(), span));
        }
    });
    found.into_iter().min_by_key(|(_, span)| span.start)
}

fn known_keys() -> Vec<String> {
    let reference = DeTable::parse(REFERENCE).expect("a test parses it");
    let mut known = Vec::new();
    walk(reference.get_ref(), "", &mut |key, _| {
        known.push(key.to_owned());
    });
    known
}

fn walk(table: &DeTable<'_>, above: &str, visit: &mut impl FnMut(&str, Range<usize>)) {
    for (key, value) in table {
        let path = if above.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{above}.{}", key.get_ref())
        };
        visit(&path, Spanned::span(key));
        match value.get_ref() {
            DeValue::Table(inner) if path != FREE => walk(inner, &path, visit),
            _ => {}
        }
    }
}

fn nearest_key(key: &str) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or(key).to_owned();
    let distance = |known: &String| {
        // A right name in the wrong table is nearer than any misspelling of the path.
        strsim::damerau_levenshtein(known, key)
            .min(strsim::damerau_levenshtein(&last(known), &last(key)) * 2)
    };
    known_keys()
        .into_iter()
        .min_by_key(distance)
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Config, ConfigError> {
        Config::parse(Path::new("t.toml"), text)
    }

    fn error(text: &str) -> String {
        parse(text).expect_err(text).to_string()
    }

    #[test]
    fn the_reference_names_every_key_at_its_default() {
        assert_eq!(parse(REFERENCE), Ok(Config::default()));
        let written = toml::to_string(&Config::default()).expect("plain values");
        let document = DeTable::parse(&written).expect("written by us");
        let mut keys = Vec::new();
        walk(document.get_ref(), "", &mut |key, _| {
            keys.push(key.to_owned());
        });
        let mut known = known_keys();
        keys.sort();
        known.sort();
        assert_eq!(keys, known);
    }

    #[test]
    fn an_empty_file_is_the_default_and_one_key_changes_one_thing() {
        assert_eq!(parse(""), Ok(Config::default()));
        let changed = parse("[media]\nrtp_ports = \"20000-20999\"\n").expect("a known key");
        let mut expected = Config::default();
        expected.media.rtp_ports = "20000-20999".parse().expect("a range");
        assert_eq!(changed, expected);
        let one = parse("media.address = \"127.0.1.0/27\"").expect("a text or a list");
        assert_eq!(one.media.address.as_slice().len(), 30);
        let set = parse("[dialplan.set]\ncallee = \"sip:uas@h\"").expect("free keys");
        assert_eq!(set.dialplan.set["callee"], "sip:uas@h");
    }

    #[test]
    fn an_unknown_key_is_placed_and_the_nearest_named() {
        for (text, expected) in [
            (
                "[sip]\nlisten = []\n  lisen = []",
                "t.toml:3:3: unknown key `sip.lisen`; the nearest known one is `sip.listen`",
            ),
            (
                "[meida]\naddress = 1",
                "t.toml:1:2: unknown key `meida`; the nearest known one is `media`",
            ),
            (
                "rtp_ports = \"1-2\"",
                "t.toml:1:1: unknown key `rtp_ports`; the nearest known one is `media.rtp_ports`",
            ),
            (
                "[log]\nlevel = \"x\"\nfilters = \"y\"",
                "t.toml:2:1: unknown key `log.level`; the nearest known one is `log.filter`",
            ),
        ] {
            let got = error(text);
            // The second of two unknown keys is never the one reported; which key is nearest to a
            // name that resembles none is left open.
            let same = if text.contains("level") {
                got.starts_with("t.toml:2:1: unknown key `log.level`")
            } else {
                got == expected
            };
            assert!(same, "{got}");
        }
    }

    #[test]
    fn values_of_the_wrong_kind_are_placed() {
        for (text, start) in [
            ("[calls]\nmax = \"many\"", "t.toml:2:7: "),
            (
                "[media]\nrtp_ports = \"9-1\"",
                "t.toml:2:13: the range 9-1 holds no pair",
            ),
            (
                "[media]\naddress = [\"127.0.0.1\", \"nonsense\"]",
                "t.toml:2:11: `nonsense` is neither",
            ),
            ("[sip]\nlisten = [\"sctp:127.0.0.1:5060\"]", "t.toml:2:10: "),
            ("[sip\n", "t.toml:1:5: "),
        ] {
            let got = error(text);
            assert!(got.starts_with(start) && !got.contains('\n'), "{got}");
        }
    }
}
