//! What a codec may be told by our own configuration: `speex/8000?complexity=2&vbr=on`.
//!
//! A codec states its settings as a table of [`Setting`]; [`check`] holds what was given against
//! it, and [`integer`], [`switch`] and [`word`] read what was checked.

use std::fmt;
use std::ops::RangeInclusive;

use thiserror::Error;

/// A setting of a codec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name.
    pub name: &'static str,
    /// What it may be.
    pub values: Values,
    /// What it is when it is not given, as it would be written.
    pub default: &'static str,
    /// What it does, in a few words.
    pub meaning: &'static str,
}

/// The values of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Values {
    /// A whole number.
    Integers(RangeInclusive<u32>),
    /// `on` or `off`.
    Switch,
    /// One of these words.
    Words(&'static [&'static str]),
}

/// Why a setting was refused.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SettingError {
    /// The codec has no setting of this name.
    #[error("setting {} is unknown", index + 1)]
    Unknown {
        /// Its place among those given.
        index: usize,
    },
    /// The value is not one that the setting can have.
    #[error("{} must be {}", setting.name, setting.values)]
    Value {
        /// The setting.
        setting: &'static Setting,
    },
}

impl Values {
    fn allow(&self, text: &str) -> bool {
        match self {
            Self::Integers(range) => text.parse().is_ok_and(|value| range.contains(&value)),
            Self::Switch => matches!(text, "on" | "off"),
            Self::Words(words) => words.contains(&text),
        }
    }
}

impl fmt::Display for Values {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integers(range) => write!(f, "{} to {}", range.start(), range.end()),
            Self::Switch => f.write_str("on or off"),
            Self::Words(words) => f.write_str(&words.join(" or ")),
        }
    }
}

/// Holds settings against the table of a codec.
///
/// # Errors
/// The first that is unknown, or that has a value it cannot have.
pub fn check(table: &'static [Setting], given: &[(String, String)]) -> Result<(), SettingError> {
    for (index, (name, value)) in given.iter().enumerate() {
        let setting = table.iter().find(|setting| setting.name == name);
        let setting = setting.ok_or(SettingError::Unknown { index })?;
        if !setting.values.allow(value) {
            return Err(SettingError::Value { setting });
        }
    }
    Ok(())
}

/// The value of a setting as it was given.
#[must_use]
pub fn word<'a>(given: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let (_, value) = given.iter().find(|(known, _)| known == name)?;
    Some(value)
}

/// A setting as a whole number.
#[must_use]
pub fn integer(given: &[(String, String)], name: &str) -> Option<u32> {
    word(given, name)?.parse().ok()
}

/// A setting as a switch.
#[must_use]
pub fn switch(given: &[(String, String)], name: &str) -> Option<bool> {
    match word(given, name)? {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: [Setting; 3] = [
        Setting {
            name: "complexity",
            values: Values::Integers(1..=10),
            default: "2",
            meaning: "effort",
        },
        Setting {
            name: "vbr",
            values: Values::Switch,
            default: "off",
            meaning: "variable bit rate",
        },
        Setting {
            name: "signal",
            values: Values::Words(&["voice", "music"]),
            default: "voice",
            meaning: "what is coded",
        },
    ];

    fn given(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        let own = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        pairs.iter().map(own).collect()
    }

    #[test]
    fn what_the_table_allows_is_read() {
        let settings = given(&[("complexity", "10"), ("vbr", "on"), ("signal", "music")]);
        assert_eq!(check(&TABLE, &settings), Ok(()));
        assert_eq!(integer(&settings, "complexity"), Some(10));
        assert_eq!(switch(&settings, "vbr"), Some(true));
        assert_eq!(word(&settings, "signal"), Some("music"));
        assert_eq!(integer(&settings, "quality"), None);
    }

    #[test]
    fn what_it_does_not_allow_is_named() {
        let rows = [
            (("complexity", "0"), "complexity must be 1 to 10"),
            (("complexity", "11"), "complexity must be 1 to 10"),
            (("complexity", ""), "complexity must be 1 to 10"),
            (("complexity", "-1"), "complexity must be 1 to 10"),
            (("vbr", "yes"), "vbr must be on or off"),
            (("signal", "noise"), "signal must be voice or music"),
            (("Vbr", "on"), "setting 1 is unknown"),
        ];
        for (pair, message) in rows {
            let refused = check(&TABLE, &given(&[pair])).expect_err(message);
            assert_eq!(refused.to_string(), message);
        }
    }
}
