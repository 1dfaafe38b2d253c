//! File names from a template, such as `{start:%Y%m%d-%H%M%S}-{caller}-{callee}-{call_id}.wav`.
//!
//! The template is the operator's and may name sub-directories with `/`. What stands in `{...}` is
//! filled from the call, that is from the network, so it is never trusted:
//!
//! ```text
//! field value -> keep A-Z a-z 0-9 . + _   -> anything else becomes _ -> no leading dot
//!             -> at most 64 characters    -> nothing left: "none"
//! ```
//!
//! A value therefore holds no separator, no `..`, no control character, and no `-`: in the default
//! template the dashes between fields stay readable by a program ([`caller_of`]).
//! Times are UTC. `{start}` alone is `{start:%Y%m%d-%H%M%S}`.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The template used when a recording brings none.
pub const DEFAULT_TEMPLATE: &str = "{start:%Y%m%d-%H%M%S}-{caller}-{callee}-{call_id}.wav";

/// Longest value of one field after sanitising, in characters.
const MAX_FIELD_CHARS: usize = 64;

/// Longest single component of the path, in bytes: NAME_MAX of Linux (255) less room for the
/// suffix that keeps names unique.
const MAX_COMPONENT_BYTES: usize = 240;

/// What is wrong with a template.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TemplateError {
    /// A `{` has no `}`.
    #[error("`{{` at byte {offset} is never closed")]
    Unclosed {
        /// Where the brace stands.
        offset: usize,
    },
    /// A `}` has no `{`, or a field has no name.
    #[error("unexpected brace or empty field at byte {offset}")]
    BadField {
        /// Where it stands.
        offset: usize,
    },
    /// A conversion of `{start:...}` that isn't one of `%Y %m %d %H %M %S %j %s %f %%`.
    #[error("unknown time conversion `%{conversion}`")]
    BadConversion {
        /// The letter after the percent sign.
        conversion: char,
    },
    /// The path is absolute, or one of its components is empty, `.` or `..`.
    #[error("the name must be a relative path without empty, `.` or `..` components")]
    UnsafePath,
    /// One component of the path is longer than a file system takes.
    #[error("a component of {length} bytes is longer than {MAX_COMPONENT_BYTES}")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
}

/// Fills `template` and returns a path relative to the recordings directory, ending in `.wav`.
///
/// A field that the call doesn't have reads `none`.
///
/// # Errors
/// The template is malformed or would leave the directory; nothing in `fields` can cause that.
pub fn render_template(
    template: &str,
    fields: &[(String, String)],
    started: SystemTime,
) -> Result<PathBuf, TemplateError> {
    let mut name = String::with_capacity(96);
    let mut rest = template;
    let offset = |rest: &str| template.len() - rest.len();
    while let Some(brace) = rest.find(['{', '}']) {
        name.push_str(&rest[..brace]);
        rest = &rest[brace..];
        let at = offset(rest);
        let Some(inside) = rest.strip_prefix('{') else {
            return Err(TemplateError::BadField { offset: at });
        };
        let close = inside
            .find('}')
            .ok_or(TemplateError::Unclosed { offset: at })?;
        let (field, format) = match inside[..close].split_once(':') {
            Some((field, format)) => (field, Some(format)),
            None => (&inside[..close], None),
        };
        match (field, format) {
            ("start", format) => {
                format_time(&mut name, format.unwrap_or("%Y%m%d-%H%M%S"), started)?;
            }
            ("", _) | (_, Some(_)) => return Err(TemplateError::BadField { offset: at }),
            (field, None) => {
                let value = fields.iter().find(|(key, _)| key == field);
                name.push_str(&sanitise(value.map_or("", |(_, value)| value)));
            }
        }
        rest = &inside[close + 1..];
    }
    name.push_str(rest);
    if !name.ends_with(".wav") {
        name.push_str(".wav");
    }
    checked_path(&name)
}

/// The caller in a file name that [`DEFAULT_TEMPLATE`] made, if it stands there unaltered.
///
/// A name whose caller was altered or cut by sanitising gives `None`: two callers could share it.
pub fn caller_of(file_name: &str) -> Option<&str> {
    let mut parts = file_name.strip_suffix(".wav")?.split('-');
    let digits = |part: Option<&str>, length: usize| {
        part.is_some_and(|p| p.len() == length && p.bytes().all(|b| b.is_ascii_digit()))
    };
    if !digits(parts.next(), 8) || !digits(parts.next(), 6) {
        return None;
    }
    let caller = parts.next()?;
    parts.next()?;
    let exact = !caller.contains('_') && caller.len() < MAX_FIELD_CHARS && caller != ABSENT;
    exact.then_some(caller)
}

/// What a field reads that has no value.
const ABSENT: &str = "none";

fn sanitise(value: &str) -> String {
    let mut clean: String = value
        .chars()
        .take(MAX_FIELD_CHARS)
        .map(|c| {
            if c.is_ascii_alphanumeric() || matches!(c, '.' | '+') {
                c
            } else {
                '_'
            }
        })
        .collect();
    if clean.is_empty() {
        return ABSENT.to_owned();
    }
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    clean
}

fn checked_path(name: &str) -> Result<PathBuf, TemplateError> {
    let mut path = PathBuf::new();
    for component in name.split('/') {
        if matches!(component, "" | "." | "..") || component.contains('\0') {
            return Err(TemplateError::UnsafePath);
        }
        if component.len() > MAX_COMPONENT_BYTES {
            return Err(TemplateError::TooLong {
                length: component.len(),
            });
        }
        path.push(component);
    }
    Ok(path)
}

fn format_time(out: &mut String, format: &str, time: SystemTime) -> Result<(), TemplateError> {
    let since_epoch = time.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let utc = Utc::from_unix(since_epoch.as_secs());
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let conversion = chars.next().unwrap_or(' ');
        let written = match conversion {
            'Y' => write!(out, "{:04}", utc.year),
            'm' => write!(out, "{:02}", utc.month),
            'd' => write!(out, "{:02}", utc.day),
            'j' => write!(out, "{:03}", utc.day_of_year),
            'H' => write!(out, "{:02}", utc.second_of_day / 3600),
            'M' => write!(out, "{:02}", utc.second_of_day / 60 % 60),
            'S' => write!(out, "{:02}", utc.second_of_day % 60),
            's' => write!(out, "{}", since_epoch.as_secs()),
            'f' => write!(out, "{:06}", since_epoch.subsec_micros()),
            '%' => write!(out, "%"),
            conversion => return Err(TemplateError::BadConversion { conversion }),
        };
        written.expect("writing to a String can't fail");
    }
    Ok(())
}

/// A moment of the proleptic Gregorian calendar, UTC.
#[derive(Debug, PartialEq, Eq)]
struct Utc {
    year: u64,
    month: u64,
    day: u64,
    day_of_year: u64,
    second_of_day: u64,
}

impl Utc {
    fn from_unix(seconds: u64) -> Self {
        let mut day = seconds / 86_400;
        // Whole 400-year cycles first (146,097 days each), then years one by one.
        let mut year = 1970 + day / 146_097 * 400;
        day %= 146_097;
        while day >= days_of(year) {
            day -= days_of(year);
            year += 1;
        }
        let day_of_year = day + 1;
        let february = if days_of(year) == 366 { 29 } else { 28 };
        let mut month = 1;
        for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
            if day < length {
                break;
            }
            day -= length;
            month += 1;
        }
        Self {
            year,
            month,
            day: day + 1,
            day_of_year,
            second_of_day: seconds % 86_400,
        }
    }
}

fn days_of(year: u64) -> u64 {
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    if leap { 366 } else { 365 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()))
            .collect()
    }

    fn at(unix: u64) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(unix)
    }

    #[test]
    fn default_template_reads_well() {
        let call = fields(&[
            ("caller", "1000"),
            ("callee", "echo"),
            ("call_id", "a84b-4c@pc33"),
        ]);
        let path = render_template(DEFAULT_TEMPLATE, &call, at(1_790_000_000)).unwrap();
        assert_eq!(
            path.to_str().unwrap(),
            "20260921-141320-1000-echo-a84b_4c_pc33.wav"
        );
        assert_eq!(
            caller_of("20260921-141320-1000-echo-a84b_4c_pc33.wav"),
            Some("1000")
        );
    }

    #[test]
    fn calendar_agrees_with_known_days() {
        let rows = [
            (0, "1970-01-01 001 00:00:00"),
            (951_782_399, "2000-02-28 059 23:59:59"),
            (951_782_400, "2000-02-29 060 00:00:00"),
            (1_709_164_800, "2024-02-29 060 00:00:00"),
            (1_735_689_599, "2024-12-31 366 23:59:59"),
            (4_107_542_400, "2100-03-01 060 00:00:00"),
            (13_574_563_200, "2400-02-29 060 00:00:00"),
        ];
        for (unix, expected) in rows {
            let mut text = String::new();
            format_time(&mut text, "%Y-%m-%d %j %H:%M:%S", at(unix)).unwrap();
            assert_eq!(text, expected, "{unix}");
        }
    }

    #[test]
    fn sub_directories_come_from_the_template_alone() {
        let call = fields(&[("caller", "../../etc/passwd"), ("callee", "..")]);
        let path = render_template("{start:%Y/%m}/{caller}/{callee}", &call, at(0)).unwrap();
        assert_eq!(path.to_str().unwrap(), "1970/01/_._.._etc_passwd/_..wav");
    }

    #[test]
    fn templates_that_leave_the_directory_are_refused() {
        for template in [
            "/etc/{caller}",
            "../{caller}",
            "a//b",
            "a/./b",
            "{start:%Y/../%m}",
            "a/",
        ] {
            let refused = render_template(template, &[], at(0));
            if template == "a/" {
                // Ends as `a/.wav`: a hidden file, but inside.
                assert_eq!(refused.unwrap().to_str(), Some("a/.wav"));
            } else {
                assert_eq!(refused, Err(TemplateError::UnsafePath), "{template}");
            }
        }
    }

    #[test]
    fn malformed_templates_say_where() {
        let rows = [
            ("a{b", TemplateError::Unclosed { offset: 1 }),
            ("ab}c", TemplateError::BadField { offset: 2 }),
            ("{}", TemplateError::BadField { offset: 0 }),
            ("x{caller:%Y}", TemplateError::BadField { offset: 1 }),
            (
                "{start:%Q}",
                TemplateError::BadConversion { conversion: 'Q' },
            ),
        ];
        for (template, error) in rows {
            assert_eq!(
                render_template(template, &[], at(0)),
                Err(error),
                "{template}"
            );
        }
        let long = "x".repeat(300);
        assert_eq!(
            render_template(&long, &[], at(0)),
            Err(TemplateError::TooLong { length: 304 })
        );
    }

    #[test]
    fn absent_field_reads_none() {
        let path = render_template("{caller}-{callee}", &fields(&[("callee", "")]), at(0)).unwrap();
        assert_eq!(path.to_str().unwrap(), "none-none.wav");
    }

    #[test]
    fn altered_callers_are_not_read_back() {
        for (name, caller) in [
            ("20260921-141320-a_b-echo-x.wav", None),
            ("20260921-141320-none-echo-x.wav", None),
            ("2026-141320-1000-echo-x.wav", None),
            ("20260921-141320-1000.wav", None),
            ("notes.wav", None),
            ("20260921-141320-+49.30-echo-x-2.wav", Some("+49.30")),
        ] {
            assert_eq!(caller_of(name), caller, "{name}");
        }
    }

    proptest! {
        #[test]
        fn no_field_escapes_the_directory(value in ".{0,80}", other in ".{0,80}") {
            let call = fields(&[("caller", &value), ("callee", &other)]);
            let path = render_template("sub/{caller}{callee}", &call, at(0)).unwrap();
            let parts: Vec<_> = path.components().collect();
            prop_assert_eq!(parts.len(), 2);
            prop_assert!(parts.iter().all(|p| matches!(p, std::path::Component::Normal(_))));
            prop_assert!(path.to_str().unwrap().bytes().all(|b| b.is_ascii_graphic()));
        }
    }
}
