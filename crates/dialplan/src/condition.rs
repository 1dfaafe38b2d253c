//! What a rule asks of a request: a pattern that one of its values matches as a whole.

use core::fmt;
use std::borrow::Cow;

use regex::{Regex, RegexBuilder};

use crate::plan::Query;

/// Longest pattern, in bytes.
const MAX_PATTERN_BYTES: usize = 1_000;
/// Largest compiled pattern, in bytes: room for a few hundred repetitions, not for `.{9999}`.
const MAX_COMPILED_BYTES: usize = 1 << 20;
/// Deepest nesting of groups.
const MAX_NESTING: u32 = 32;

/// Which value of a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Subject {
    Called,
    CalledHost,
    Caller,
    CallerHost,
    Header(String),
}

/// A pattern for one value.
#[derive(Clone, Debug)]
pub(crate) struct Condition {
    pub(crate) subject: Subject,
    /// As written.
    pub(crate) pattern: String,
    regex: Regex,
}

impl Subject {
    /// The value in a request.
    pub(crate) fn of<'q>(&self, query: &Query<'q>) -> Option<Cow<'q, str>> {
        match self {
            Self::Called => Some(query.called_user.into()),
            Self::CalledHost => Some(query.called_host.into()),
            Self::Caller => Some(query.caller_user.into()),
            Self::CallerHost => Some(query.caller_host.into()),
            Self::Header(name) => (query.header)(name).map(Cow::Owned),
        }
    }

    /// Host names have no case (RFC 3261, 19.1.4).
    const fn ignores_case(&self) -> bool {
        matches!(self, Self::CalledHost | Self::CallerHost)
    }
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Called => f.write_str("called"),
            Self::CalledHost => f.write_str("called_host"),
            Self::Caller => f.write_str("caller"),
            Self::CallerHost => f.write_str("caller_host"),
            Self::Header(name) => write!(f, "header {name}"),
        }
    }
}

impl Condition {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// What is wrong with it and what to do.
    pub(crate) fn new(subject: Subject, pattern: &str) -> Result<Self, String> {
        if pattern.len() > MAX_PATTERN_BYTES {
            return Err(format!(
                "the pattern has {} bytes and may have {MAX_PATTERN_BYTES}; make it several rules",
                pattern.len()
            ));
        }
        // By itself first: then no parenthesis can close the one that is put around it.
        compile(pattern, false)?;
        let regex = compile(&anchored(pattern), subject.ignores_case())?;
        Ok(Self {
            subject,
            pattern: pattern.to_owned(),
            regex,
        })
    }

    /// The pattern as it is compiled.
    pub(crate) fn anchored(&self) -> String {
        anchored(&self.pattern)
    }

    pub(crate) fn matches(&self, value: &str) -> bool {
        self.regex.is_match(value)
    }

    /// What a group of the pattern holds; nothing where it took no part.
    pub(crate) fn group(&self, value: &str, group: usize) -> String {
        let captures = self.regex.captures(value);
        let found = captures.as_ref().and_then(|captures| captures.get(group));
        found
            .map(|found| found.as_str().to_owned())
            .unwrap_or_default()
    }

    /// How many groups the pattern has.
    pub(crate) fn group_count(&self) -> usize {
        self.regex.captures_len() - 1
    }

    /// Groups with a name, and their numbers.
    pub(crate) fn named_groups(&self) -> impl Iterator<Item = (&str, usize)> {
        self.regex
            .capture_names()
            .enumerate()
            .filter_map(|(n, name)| Some((name?, n)))
    }
}

/// The pattern for a whole value.
fn anchored(pattern: &str) -> String {
    format!(r"\A(?:{pattern})\z")
}

fn compile(pattern: &str, ignore_case: bool) -> Result<Regex, String> {
    RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(MAX_COMPILED_BYTES)
        .nest_limit(MAX_NESTING)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => {
                "the pattern is too large when compiled; use smaller repetitions, or [0-9] for \\d"
                    .to_owned()
            }
            error => {
                // The last line of a syntax error says what; those before draw where.
                let text = error.to_string();
                let what = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                format!("the pattern cannot be read: {what}; correct it, or put \\ before a sign that is meant")
            }
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(pattern: &str) -> Condition {
        Condition::new(Subject::Called, pattern).expect(pattern)
    }

    #[test]
    fn a_pattern_matches_the_whole_value() {
        let rows = [
            ("echo", "echo", true),
            ("echo", "echo2", false),
            ("echo", "my-echo", false),
            ("9196|echo", "echo", true),
            ("a|ab", "ab", true),
            ("", "", true),
            ("", "x", false),
            ("1[0-9]{3}", "1000\n", false),
            ("(?i)echo", "ECHO", true),
            ("echo", "ECHO", false),
        ];
        for (pattern, value, expected) in rows {
            assert_eq!(
                condition(pattern).matches(value),
                expected,
                "{pattern} {value:?}"
            );
        }
    }

    #[test]
    fn hosts_have_no_case() {
        let host = Condition::new(Subject::CalledHost, "pbx\\.example").expect("valid");
        assert!(host.matches("PBX.Example"));
    }

    #[test]
    fn groups_are_found_by_number_and_name() {
        let c = condition("(?<code>[0-9]{3})-(x)?");
        assert_eq!(
            (c.group_count(), c.group("486-", 1), c.group("486-", 2)),
            (2, "486".into(), String::new())
        );
        assert_eq!(c.named_groups().collect::<Vec<_>>(), [("code", 1)]);
    }

    #[test]
    fn bad_patterns_are_refused_with_a_reason() {
        let rows = [
            ("(", "unclosed group"),
            ("a)|(b", "unopened group"),
            ("(?x) a # b", "unclosed group"),
            ("[z-a]", "invalid character class range"),
            ("(?:.{999}){999}", "too large"),
            (&"a".repeat(1_001), "several rules"),
        ];
        for (pattern, expected) in rows {
            let error = Condition::new(Subject::Called, pattern).expect_err(pattern);
            assert!(error.contains(expected), "{error}");
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
