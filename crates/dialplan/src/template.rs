//! Texts of a plan with values in them: `$1`, `${name}`, `$$`.
//!
//! Variables of the plan are put in when it is loaded; what comes from the call is put in when it
//! is there, escaped for the place.

use core::fmt::Write as _;
use std::collections::BTreeMap;

use crate::suggest::nearest;

/// Values that every call has, by name.
pub(crate) const BUILT_IN: [(&str, Value); 5] = [
    ("called", Value::Called),
    ("called_host", Value::CalledHost),
    ("caller", Value::Caller),
    ("caller_host", Value::CallerHost),
    ("source", Value::Source),
];

/// A value that comes from the call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Value {
    Called,
    CalledHost,
    Caller,
    CallerHost,
    Source,
    /// A group of the pattern of a rule's nth condition.
    Capture {
        condition: usize,
        group: usize,
    },
}

/// What a template of a rule may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scope<'a> {
    pub(crate) variables: &'a BTreeMap<String, String>,
    /// Named groups of the rule's patterns.
    pub(crate) captures: &'a [(String, Value)],
    /// The condition on the called user, and how many groups its pattern has.
    pub(crate) called: Option<(usize, usize)>,
}

/// A text with values in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Template {
    parts: Vec<Part>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Value(Value),
}

/// What a value of the call must not break.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// A URI: whatever may not stand in a user part becomes %-escapes (RFC 3261, 25.1).
    Uri,
    /// A file name: whatever is no letter, digit, `-`, `_` or `+` becomes `_`.
    File,
    /// A line of text: control characters become spaces.
    Line,
    /// Nothing: the whole is read afterwards.
    Plain,
}

impl Template {
    /// Reads a text.
    ///
    /// # Errors
    /// What is wrong with it and what to do.
    pub(crate) fn parse(text: &str, scope: &Scope<'_>) -> Result<Self, String> {
        let mut template = Self::default();
        let mut rest = text;
        while let Some(at) = rest.find('$') {
            template.push_text(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('$') {
                template.push_text("$");
                rest = after;
            } else if let Some(after) = rest.strip_prefix('{') {
                let (name, after) = after
                    .split_once('}')
                    .ok_or("`${` without `}`; close it, or write `$$` for a dollar")?;
                template.push_named(name, scope)?;
                rest = after;
            } else {
                let digits = rest
                    .find(|c: char| !c.is_ascii_digit())
                    .unwrap_or(rest.len());
                let (number, after) = rest.split_at(digits);
                template.push_group(number, scope)?;
                rest = after;
            }
        }
        template.push_text(rest);
        Ok(template)
    }

    fn push_text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ => self.parts.push(Part::Text(text.to_owned())),
        }
    }

    fn push_named(&mut self, name: &str, scope: &Scope<'_>) -> Result<(), String> {
        if let Some(value) = scope.variables.get(name) {
            self.push_text(value);
            return Ok(());
        }
        if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit()) {
            return self.push_group(name, scope);
        }
        let captures = scope
            .captures
            .iter()
            .map(|(name, value)| (name.as_str(), *value));
        let known: Vec<_> = BUILT_IN.into_iter().chain(captures).collect();
        if let Some((_, value)) = known.iter().find(|(known, _)| *known == name) {
            self.parts.push(Part::Value(*value));
            return Ok(());
        }
        let names = scope
            .variables
            .keys()
            .map(String::as_str)
            .chain(known.iter().map(|k| k.0));
        let nearest = nearest(name, names).unwrap_or_default();
        Err(format!(
            "nothing is named `${{{name}}}` here; the nearest name is `${{{nearest}}}`"
        ))
    }

    fn push_group(&mut self, number: &str, scope: &Scope<'_>) -> Result<(), String> {
        if number.is_empty() {
            return Err("`$` without a number or `{name}`; write `$$` for a dollar".to_owned());
        }
        let (condition, groups) = scope.called.unwrap_or_default();
        match number.parse() {
            Ok(group) if (1..=groups).contains(&group) => {
                self.parts
                    .push(Part::Value(Value::Capture { condition, group }));
                Ok(())
            }
            _ => Err(format!(
                "`${number}` names a group that `called` does not have (it has {groups}); put ( ) \
                 around what it should hold"
            )),
        }
    }

    /// Whether it says the same for every call.
    pub(crate) fn is_fixed(&self) -> bool {
        self.parts.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// The text for one call. `lookup` gives a value of the call.
    pub(crate) fn expand(&self, place: Place, lookup: &dyn Fn(Value) -> String) -> String {
        let mut out = String::new();
        for part in &self.parts {
            match part {
                Part::Text(text) => out.push_str(text),
                Part::Value(value) => escape(&mut out, &lookup(*value), *value, place),
            }
        }
        out
    }
}

fn escape(out: &mut String, text: &str, value: Value, place: Place) {
    let is_host = matches!(value, Value::CalledHost | Value::CallerHost | Value::Source);
    match place {
        Place::Plain => out.push_str(text),
        Place::Line => out.extend(text.chars().map(|c| if c.is_control() { ' ' } else { c })),
        Place::File => out.extend(text.chars().map(|c| match c {
            '-' | '_' | '+' => c,
            c if c.is_ascii_alphanumeric() => c,
            _ => '_',
        })),
        Place::Uri if is_host && text.contains(':') && !text.starts_with('[') => {
            // An IPv6 address stands in brackets in a URI.
            out.push('[');
            escape_uri(out, text, is_host);
            out.push(']');
        }
        Place::Uri => escape_uri(out, text, is_host),
    }
}

fn escape_uri(out: &mut String, text: &str, is_host: bool) {
    for byte in text.bytes() {
        let is_plain = match byte {
            b'[' | b']' | b':' => is_host,
            // unreserved, and what of user-unreserved has no meaning elsewhere in a URI
            byte => byte.is_ascii_alphanumeric() || b"-_.!~*'()&=+$,".contains(&byte),
        };
        if is_plain {
            out.push(char::from(byte));
        } else {
            write!(out, "%{byte:02X}").expect("a String takes all");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expand(text: &str, place: Place, called: &str) -> Result<String, String> {
        let variables = BTreeMap::from([("pbx".to_owned(), "sip:$1@pbx".to_owned())]);
        let captures = [(
            "name".to_owned(),
            Value::Capture {
                condition: 4,
                group: 2,
            },
        )];
        let scope = Scope {
            variables: &variables,
            captures: &captures,
            called: Some((4, 2)),
        };
        let template = Template::parse(text, &scope)?;
        Ok(template.expand(place, &|value| match value {
            Value::Called => called.to_owned(),
            Value::Source => "2001:db8::1".to_owned(),
            Value::Capture { condition, group } => format!("{condition}/{group}"),
            other => format!("{other:?}"),
        }))
    }

    #[test]
    fn values_are_put_in() {
        let rows = [
            ("", ""),
            ("plain", "plain"),
            ("a$1b${2}c${name}", "a4/1b4/2c4/2"),
            ("$$1 ${called}$$", "$1 42$"),
            // A variable is text: nothing in it is read again.
            ("${pbx}", "sip:$1@pbx"),
            ("${source}", "2001:db8::1"),
        ];
        for (text, expected) in rows {
            assert_eq!(
                expand(text, Place::Plain, "42").as_deref(),
                Ok(expected),
                "{text}"
            );
        }
    }

    #[test]
    fn values_of_the_call_break_out_of_nothing() {
        let nasty = "a;b?c@d/..\r\n%41\u{e9}";
        let rows = [
            (Place::Uri, "sip:a%3Bb%3Fc%40d%2F..%0D%0A%2541%C3%A9@h"),
            (Place::File, "sip:a_b_c_d_____"),
            (Place::Line, "sip:a;b?c@d/..  %41\u{e9}@h"),
        ];
        for (place, expected) in rows {
            let expanded = expand("sip:${called}@h", place, nasty).expect("valid");
            assert!(expanded.starts_with(expected), "{place:?} {expanded}");
        }
        let host = expand("sip:x@${source}", Place::Uri, "");
        assert_eq!(host.as_deref(), Ok("sip:x@[2001:db8::1]"));
    }

    #[test]
    fn what_nothing_stands_for_is_said() {
        let rows = [
            ("$3", "`called` does not have (it has 2)"),
            ("$0", "`called` does not have"),
            ("${9}", "`called` does not have"),
            ("$x", "write `$$` for a dollar"),
            ("$", "write `$$` for a dollar"),
            ("${called", "close it"),
            ("${caled}", "the nearest name is `${called}`"),
            ("${pbxx}", "the nearest name is `${pbx}`"),
        ];
        for (text, expected) in rows {
            let error = expand(text, Place::Plain, "").expect_err(text);
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
