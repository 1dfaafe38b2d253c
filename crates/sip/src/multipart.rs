//! Bodies of several parts (RFC 2046, 5.1; RFC 5621).
//!
//! Reads what a peer sends; octets of a part may be anything. Parts are found by their delimiter lines, CRLF or LF.

use memchr::memmem;

use crate::Name;
use crate::error::HeaderErrorKind;
use crate::lex;
use crate::values::ContentType;

/// How deep one multipart may stand in another.
const MAX_DEPTH: u8 = 3;

/// One part of a multipart body.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part<'a> {
    head: &'a [u8],
    /// The octets between the part's headers and the next delimiter.
    pub body: &'a [u8],
}

impl<'a> Part<'a> {
    /// The first header of the part with that name, raw and trimmed.
    #[must_use]
    pub fn header(&self, name: Name) -> Option<&'a str> {
        let mut rest = self.head;
        while let Some((line, next)) = lex::cut_line(rest) {
            rest = next;
            let Some((written, value)) = core::str::from_utf8(line)
                .ok()
                .and_then(|l| l.split_once(':'))
            else {
                continue;
            };
            if Name::lookup(lex::trim(written)) == Some(name) {
                return Some(lex::trim(value));
            }
        }
        None
    }

    /// The part's media type; `text/plain` when it has none (RFC 2046, 5.2).
    ///
    /// # Errors
    /// [`HeaderErrorKind::Malformed`].
    pub fn content_type(&self) -> Result<ContentType<'a>, HeaderErrorKind> {
        ContentType::parse(self.header(Name::ContentType).unwrap_or("text/plain"))
    }

    fn cut(octets: &'a [u8]) -> Self {
        let mut at = 0;
        loop {
            match &octets[at..] {
                [b'\r', b'\n', body @ ..] | [b'\n', body @ ..] => {
                    return Self {
                        head: &octets[..at],
                        body,
                    };
                }
                [] => {
                    return Self {
                        head: octets,
                        body: &[],
                    };
                }
                rest => at += lex::cut_line(rest).map_or(rest.len(), |(line, _)| line.len()),
            }
        }
    }
}

/// The parts of a `multipart/*` body in order; none when `content_type` has no boundary or the body no delimiter.
/// A last part whose closing delimiter is missing is given too.
pub fn parts<'a>(
    content_type: &ContentType<'_>,
    body: &'a [u8],
) -> impl Iterator<Item = Part<'a>> + use<'a> {
    let boundary = content_type
        .params
        .unquoted("boundary")
        .filter(|b| !b.is_empty());
    let multipart = content_type.kind.eq_ignore_ascii_case("multipart");
    let delimiter = boundary
        .filter(|_| multipart)
        .map(|b| format!("--{b}").into_bytes());
    let mut rest = delimiter
        .as_ref()
        .and_then(|d| next_delimiter(body, d))
        .and_then(|d| d.after);
    core::iter::from_fn(move || {
        let octets = rest?;
        let (part, after) = match next_delimiter(octets, delimiter.as_ref()?) {
            Some(found) => (&octets[..found.begin], found.after),
            None => (octets, None),
        };
        rest = after;
        Some(Part::cut(part))
    })
}

/// The first body of that media type: the whole body, or a part of it, nested up to three deep.
pub(crate) fn find<'a>(
    content_type: ContentType<'_>,
    body: &'a [u8],
    kind: &str,
    subtype: &str,
) -> Option<&'a [u8]> {
    find_within(content_type, body, kind, subtype, MAX_DEPTH)
}

fn find_within<'a>(
    content_type: ContentType<'_>,
    body: &'a [u8],
    kind: &str,
    subtype: &str,
    depth: u8,
) -> Option<&'a [u8]> {
    if content_type.is(kind, subtype) {
        return Some(body);
    }
    if depth == 0 {
        return None;
    }
    parts(&content_type, body).find_map(|part| {
        find_within(
            part.content_type().ok()?,
            part.body,
            kind,
            subtype,
            depth - 1,
        )
    })
}

/// A delimiter line: where the line end in front of it begins, and what follows it (`None` after the last).
struct Delimiter<'a> {
    begin: usize,
    after: Option<&'a [u8]>,
}

fn next_delimiter<'a>(octets: &'a [u8], delimiter: &[u8]) -> Option<Delimiter<'a>> {
    for at in memmem::find_iter(octets, delimiter) {
        let begin = match &octets[..at] {
            [.., b'\r', b'\n'] => at - 2,
            [.., b'\n'] => at - 1,
            [] => at,
            _ => continue,
        };
        let rest = &octets[at + delimiter.len()..];
        if rest.starts_with(b"--") {
            return Some(Delimiter { begin, after: None });
        }
        let padding = rest
            .iter()
            .position(|b| !matches!(b, b' ' | b'\t'))
            .unwrap_or(rest.len());
        if let [b'\r', b'\n', after @ ..] | [b'\n', after @ ..] = &rest[padding..] {
            return Some(Delimiter {
                begin,
                after: Some(after),
            });
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read<'a>(content_type: &str, body: &'a [u8]) -> Vec<Part<'a>> {
        parts(&ContentType::parse(content_type).unwrap(), body).collect()
    }

    #[test]
    fn cuts_parts_at_delimiter_lines_only() {
        let body = b"preamble\r\n--b\r\nContent-Type: text/x\r\n\r\nx --b y\r\n--bb\r\n\0\xff\r\n--b  \r\n\r\nplain\r\n--b--\r\nepilogue";
        let parts = read("multipart/mixed;boundary=b", body);
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].body, b"x --b y\r\n--bb\r\n\0\xff");
        assert!(parts[0].content_type().unwrap().is("text", "x"));
        assert_eq!(parts[1].body, b"plain");
        assert!(parts[1].content_type().unwrap().is("text", "plain"));
    }

    #[test]
    fn takes_lf_folds_and_a_missing_end() {
        let body = b"--q\nc:\n text/x\n\nbody";
        let parts = read("multipart/mixed;boundary=\"q\"", body);
        assert_eq!((parts.len(), parts[0].body), (1, &b"body"[..]));
        assert_eq!(parts[0].header(Name::ContentType), Some("text/x"));
        assert!(read("multipart/mixed", body).is_empty());
        assert!(read("text/plain;boundary=q", body).is_empty());
    }

    #[test]
    fn finds_nested_parts_three_deep_and_no_deeper() {
        let mut body = b"v=0\r\n".to_vec();
        let mut content_type = "application/sdp".to_owned();
        for depth in 1..=4 {
            let head = format!("--b{depth}\r\nContent-Type: {content_type}\r\n\r\n");
            body = [
                head.as_bytes(),
                &body,
                format!("\r\n--b{depth}--\r\n").as_bytes(),
            ]
            .concat();
            content_type = format!("multipart/mixed;boundary=b{depth}");
            let found = find(
                ContentType::parse(&content_type).unwrap(),
                &body,
                "application",
                "sdp",
            );
            assert_eq!(found, (depth <= 3).then_some(&b"v=0\r\n"[..]), "{depth}");
        }
    }
}
