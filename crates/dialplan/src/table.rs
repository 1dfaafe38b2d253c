//! TOML tables read with places: every complaint points at the key or value that it is about.

use core::ops::Range;
use core::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{PlanError, Source};
use crate::suggest::nearest;

/// A table and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Table<'t> {
    pub(crate) source: Source<'t>,
    pub(crate) span: Range<usize>,
    entries: &'t DeTable<'t>,
}

/// A text and where it stands.
#[derive(Clone, Debug)]
pub(crate) struct Text<'t> {
    pub(crate) value: &'t str,
    pub(crate) span: Range<usize>,
}

impl<'t> Table<'t> {
    pub(crate) fn new(source: Source<'t>, table: &'t Spanned<DeTable<'t>>) -> Self {
        Self {
            source,
            span: table.span(),
            entries: table.get_ref(),
        }
    }

    /// Refuses keys that `known` does not name.
    pub(crate) fn allow_only(&self, known: &[&str]) -> Result<(), PlanError> {
        for key in self.entries.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let nearest = nearest(name, known.iter().copied()).unwrap_or_default();
                let message = format!("unknown key `{name}`; the nearest known one is `{nearest}`");
                return Err(self.source.error(key.span(), message));
            }
        }
        Ok(())
    }

    /// Where a key stands, if it does.
    pub(crate) fn key(&self, name: &str) -> Option<Range<usize>> {
        Some(self.entries.get_key_value(name)?.0.span())
    }

    /// Where a key's value stands, or else the table.
    pub(crate) fn value_span(&self, name: &str) -> Range<usize> {
        self.entries
            .get(name)
            .map_or_else(|| self.span.clone(), Spanned::span)
    }

    /// An error at a key's value, or else at the table.
    pub(crate) fn error(&self, name: &str, message: impl Into<String>) -> PlanError {
        self.source.error(self.value_span(name), message)
    }

    /// A text.
    pub(crate) fn text(&self, name: &str) -> Result<Option<Text<'t>>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(None);
        };
        match self.as_text(value) {
            Some(text) => Ok(Some(text)),
            None => Err(self.kind(name, value, "a text in quotes")),
        }
    }

    /// A text, or a whole number read as one.
    pub(crate) fn text_or_number(&self, name: &str) -> Result<Option<Text<'t>>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Integer(number) if number.radix() == 10 => Ok(Some(Text {
                value: number.as_str(),
                span: value.span(),
            })),
            _ => self.text(name),
        }
    }

    /// A text, or a list of them; none when the key is not there.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<Text<'t>>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(Vec::new());
        };
        let wanted = "a text in quotes, or a list of them";
        if let Some(text) = self.as_text(value) {
            return Ok(vec![text]);
        }
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.kind(name, value, wanted));
        };
        if items.is_empty() {
            return Err(self.error(name, format!("`{name}` is an empty list; write {wanted}")));
        }
        items
            .iter()
            .map(|item| {
                self.as_text(item)
                    .ok_or_else(|| self.kind(name, item, wanted))
            })
            .collect()
    }

    /// true or false.
    pub(crate) fn flag(&self, name: &str) -> Result<Option<bool>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Boolean(flag) => Ok(Some(*flag)),
            _ => Err(self.kind(name, value, "true or false")),
        }
    }

    /// A number.
    pub(crate) fn number(&self, name: &str) -> Result<Option<f64>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(None);
        };
        match number(value.get_ref()) {
            Some(number) => Ok(Some(number)),
            None => Err(self.kind(name, value, "a number")),
        }
    }

    /// `"5 s"`, `"200ms"`, `"2m"`, `"1h"`, or a number of seconds; at most a day.
    pub(crate) fn duration(&self, name: &str) -> Result<Option<Duration>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(None);
        };
        let seconds = match value.get_ref() {
            DeValue::String(text) => seconds(text),
            value => number(value),
        };
        match seconds {
            Some(seconds) if (0.0..=86_400.0).contains(&seconds) => {
                Ok(Some(Duration::from_secs_f64(seconds)))
            }
            _ => {
                let wanted = "a time such as \"5s\", \"200ms\" or \"2m\", at most a day";
                Err(self.kind(name, value, wanted))
            }
        }
    }

    /// A table within.
    pub(crate) fn table(&self, name: &str) -> Result<Option<Self>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(None);
        };
        match value.get_ref() {
            DeValue::Table(entries) => Ok(Some(Self {
                source: self.source,
                span: value.span(),
                entries,
            })),
            _ => Err(self.kind(name, value, "a table, as in { \"X-Name\" = \"value\" }")),
        }
    }

    /// A list of tables (`[[name]]`).
    pub(crate) fn tables(&self, name: &str) -> Result<Vec<Self>, PlanError> {
        let Some(value) = self.entries.get(name) else {
            return Ok(Vec::new());
        };
        let wanted = format!("a list of tables, each begun by [[{name}]]");
        let DeValue::Array(items) = value.get_ref() else {
            return Err(self.kind(name, value, &wanted));
        };
        items
            .iter()
            .map(|item| match item.get_ref() {
                DeValue::Table(entries) => Ok(Self {
                    source: self.source,
                    span: item.span(),
                    entries,
                }),
                _ => Err(self.kind(name, item, &wanted)),
            })
            .collect()
    }

    /// Every entry as name and text.
    pub(crate) fn text_entries(&self) -> Result<Vec<(Text<'t>, Text<'t>)>, PlanError> {
        self.entries
            .iter()
            .map(|(key, value)| {
                let name: &str = key.get_ref();
                let text = self.as_text(value);
                let text = text.ok_or_else(|| self.kind(name, value, "a text in quotes"))?;
                Ok((
                    Text {
                        value: name,
                        span: key.span(),
                    },
                    text,
                ))
            })
            .collect()
    }

    fn as_text(&self, value: &'t Spanned<DeValue<'t>>) -> Option<Text<'t>> {
        Some(Text {
            value: value.get_ref().as_str()?,
            span: value.span(),
        })
    }

    fn kind(&self, name: &str, value: &Spanned<DeValue<'_>>, wanted: &str) -> PlanError {
        let written = self.source.text.get(value.span()).unwrap_or_default();
        let written = written.lines().next().unwrap_or_default();
        let message = format!("`{name}` is {written}; write {wanted}");
        self.source.error(value.span(), message)
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Integer(number) if number.radix() == 10 => number.as_str().parse().ok(),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
    .filter(|number: &f64| number.is_finite())
}

fn seconds(text: &str) -> Option<f64> {
    let text = text.trim();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim() {
        "ms" => 0.001,
        "s" | "" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}
