//! The one pass over a message: where the start line, each header field and the body are.
//!
//! RFC 3261, 7, 7.3.1, 18.3 and 25.1.
//!
//! ```text
//! octets -> skip leading line ends -> start line -> header fields (folds joined) -> body by Content-Length
//! ```
//!
//! The result holds offsets only, 16 bits each, in an array inside the index: nothing is allocated and
//! the owner of the octets may move. The first line end decides: CRLF, or bare LF for the whole header
//! section. A section that mixes both, or holds a CR alone, is refused, since two readers could see
//! different headers in it. Values are left raw; meaning is looked at on demand elsewhere.

use core::ops::Range;

use memchr::memchr2;

use crate::error::{ParseError, ParseErrorKind as Kind};
use crate::lex;
use crate::{Framing, Limits, Name};

/// Offsets of a text in the header section.
pub(crate) type Span = Range<u16>;

/// The start line, cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Start {
    Request { method: Span, uri: Span },
    Response { code: u16, reason: Span },
}

/// One header field in eight octets. Where the name ends is found again when somebody asks for it.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    kind: Option<Name>,
    name: u16,
    value: u16,
    value_end: u16,
}

impl Entry {
    const EMPTY: Self = Self {
        kind: None,
        name: 0,
        value: 0,
        value_end: 0,
    };

    pub(crate) const fn kind(&self) -> Option<Name> {
        self.kind
    }

    /// The name as written; `buf` is what was indexed.
    pub(crate) fn name(&self, buf: &[u8]) -> Span {
        let rest = buf.get(usize::from(self.name)..).unwrap_or_default();
        let len = rest.iter().take_while(|&&b| lex::is_token(b)).count();
        self.name
            ..self
                .name
                .saturating_add(u16::try_from(len).unwrap_or(u16::MAX))
    }

    pub(crate) const fn value(&self) -> Span {
        self.value..self.value_end
    }
}

/// Where everything in a message is.
#[derive(Clone)]
pub(crate) struct Index {
    pub(crate) start: Start,
    entries: [Entry; Limits::HEADER_SLOTS],
    len: u8,
    pub(crate) body: Range<usize>,
}

impl Index {
    /// The header fields in order.
    pub(crate) fn entries(&self) -> &[Entry] {
        &self.entries[..usize::from(self.len)]
    }

    /// Indexes `buf`; see [`Message::parse`](crate::Message::parse).
    pub(crate) fn build(buf: &[u8], framing: Framing, limits: &Limits) -> Result<Self, ParseError> {
        let mut scan = Scan {
            buf,
            pos: 0,
            ends: LineEnds::Crlf,
        };
        scan.skip_line_ends();
        if scan.pos == buf.len() {
            return Err(scan.error(Kind::Empty));
        }
        let begin = scan.pos;
        Self::build_from(&mut scan, framing, limits).map_err(|mut error| {
            error.answerable = looks_like_request(&buf[begin..]);
            error
        })
    }

    fn build_from(
        scan: &mut Scan<'_>,
        framing: Framing,
        limits: &Limits,
    ) -> Result<Self, ParseError> {
        let begin = scan.pos;
        if scan.buf.len() > limits.max_message_bytes {
            return Err(scan.error(Kind::TooLarge));
        }
        let start = scan.start_line(limits)?;
        let mut index = Self {
            start,
            entries: [Entry::EMPTY; Limits::HEADER_SLOTS],
            len: 0,
            body: 0..0,
        };
        let max_headers = limits.max_headers.min(Limits::HEADER_SLOTS);
        let mut content_length = None;
        while !scan.at_empty_line()? {
            let at = scan.pos;
            let entry = scan.header(limits)?;
            if entry.kind == Some(Name::ContentLength) {
                if content_length.is_some() {
                    return Err(ParseError::new(Kind::RepeatedContentLength, at));
                }
                let value = &scan.buf[usize::from(entry.value)..usize::from(entry.value_end)];
                let length =
                    lex::decimal(value).ok_or_else(|| ParseError::new(Kind::ContentLength, at))?;
                content_length = Some(usize::try_from(length).unwrap_or(usize::MAX));
            }
            if usize::from(index.len) == max_headers {
                return Err(ParseError::new(Kind::TooManyHeaders, at));
            }
            index.entries[usize::from(index.len)] = entry;
            index.len += 1;
        }
        if let Err(error) = core::str::from_utf8(&scan.buf[begin..scan.pos]) {
            return Err(ParseError::new(Kind::NotUtf8, begin + error.valid_up_to()));
        }
        index.body = body_range(scan, content_length, framing)?;
        Ok(index)
    }
}

fn body_range(
    scan: &Scan<'_>,
    length: Option<usize>,
    framing: Framing,
) -> Result<Range<usize>, ParseError> {
    let available = scan.buf.len() - scan.pos;
    let length = match (length, framing) {
        (Some(length), _) => length,
        (None, Framing::Datagram) => available,
        (None, Framing::Stream) => return Err(scan.error(Kind::MissingContentLength)),
    };
    if length > available {
        return Err(scan.error(Kind::ShortBody));
    }
    Ok(scan.pos..scan.pos + length)
}

/// Which line end the header section uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineEnds {
    Crlf,
    Lf,
}

/// A reader over the header section, line by line.
struct Scan<'a> {
    buf: &'a [u8],
    pos: usize,
    ends: LineEnds,
}

impl Scan<'_> {
    fn error(&self, kind: Kind) -> ParseError {
        ParseError::new(kind, self.pos)
    }

    /// Line ends in front of a start line are ignored (RFC 3261, 7.5).
    fn skip_line_ends(&mut self) {
        self.pos = self
            .buf
            .iter()
            .position(|b| !matches!(b, b'\r' | b'\n'))
            .unwrap_or(self.buf.len());
    }

    /// Ends the line that holds `from`: (end of its text, start of the next line).
    fn line_from(&self, from: usize) -> Result<(usize, usize), ParseError> {
        let Some(len) = memchr2(b'\r', b'\n', &self.buf[from..]) else {
            return Err(ParseError::new(Kind::Unterminated, self.buf.len()));
        };
        let end = from + len;
        let next = match (self.ends, self.buf[end], self.buf.get(end + 1)) {
            (LineEnds::Lf, b'\n', _) => end + 1,
            (LineEnds::Crlf, b'\r', Some(b'\n')) => end + 2,
            (LineEnds::Crlf, b'\r', None) => return Err(ParseError::new(Kind::Unterminated, end)),
            _ => return Err(ParseError::new(Kind::LineEnds, end)),
        };
        // Offsets are 16 bits wide.
        if next > usize::from(u16::MAX) {
            return Err(ParseError::new(Kind::TooLarge, end));
        }
        Ok((end, next))
    }

    fn start_line(&mut self, limits: &Limits) -> Result<Start, ParseError> {
        let begin = self.pos;
        let rest = &self.buf[begin..];
        if memchr2(b'\r', b'\n', rest).is_some_and(|at| rest[at] == b'\n') {
            self.ends = LineEnds::Lf;
        }
        let (end, next) = self.line_from(begin)?;
        if end - begin > limits.max_start_line_bytes {
            return Err(self.error(Kind::StartLineTooLong));
        }
        self.pos = next;
        let line = &self.buf[begin..end];
        cut_start_line(line, begin as u16).map_err(|kind| ParseError::new(kind, begin))
    }

    /// Steps over the empty line that ends the header section, when it stands here.
    fn at_empty_line(&mut self) -> Result<bool, ParseError> {
        match self.buf.get(self.pos) {
            Some(b'\r' | b'\n') => {
                self.pos = self.line_from(self.pos)?.1;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(self.error(Kind::Unterminated)),
        }
    }

    fn header(&mut self, limits: &Limits) -> Result<Entry, ParseError> {
        let buf = self.buf;
        let begin = self.pos;
        let mut at = begin;
        while buf.get(at).is_some_and(|&b| lex::is_token(b)) {
            at += 1;
        }
        let name_end = at;
        while matches!(buf.get(at), Some(b' ' | b'\t')) {
            at += 1;
        }
        match buf.get(at) {
            Some(b':') if name_end > begin => {}
            None => return Err(ParseError::new(Kind::Unterminated, at)),
            Some(_) => return Err(ParseError::new(Kind::HeaderLine, at)),
        }
        let mut value = at + 1;
        let (mut end, mut next) = self.line_from(value)?;
        while matches!(buf.get(next), Some(b' ' | b'\t')) {
            (end, next) = self.line_from(next)?;
        }
        if end - begin > limits.max_header_bytes {
            return Err(ParseError::new(Kind::HeaderTooLong, begin));
        }
        while value < end && lex::is_lws(buf[value]) {
            value += 1;
        }
        while end > value && lex::is_lws(buf[end - 1]) {
            end -= 1;
        }
        self.pos = next;
        Ok(Entry {
            kind: Name::from_bytes(&buf[begin..name_end]),
            name: begin as u16,
            value: value as u16,
            value_end: end as u16,
        })
    }
}

/// `Method SP Request-URI SP SIP-Version` or `SIP-Version SP Status-Code SP Reason-Phrase`, single spaces only.
/// A status line that ends after its code is taken too.
fn cut_start_line(line: &[u8], offset: u16) -> Result<Start, Kind> {
    let span = |from: usize, to: usize| offset + from as u16..offset + to as u16;
    let space = memchr::memchr(b' ', line).ok_or(Kind::StartLine)?;
    let first = &line[..space];
    if starts_with_sip(first) {
        check_version(first)?;
        let rest = &line[space + 1..];
        let digits = rest.iter().position(|&b| b == b' ').unwrap_or(rest.len());
        let code = lex::decimal(&rest[..digits]).ok_or(Kind::StartLine)?;
        if digits != 3 || !(100..=699).contains(&code) {
            return Err(Kind::StatusCode);
        }
        let reason = (space + 1 + digits + 1).min(line.len());
        return Ok(Start::Response {
            code: code as u16,
            reason: span(reason, line.len()),
        });
    }
    if first.is_empty() || !first.iter().copied().all(lex::is_token) {
        return Err(Kind::StartLine);
    }
    let last = memchr::memrchr(b' ', line).ok_or(Kind::StartLine)?;
    if last <= space + 1 || !starts_with_sip(&line[last + 1..]) {
        return Err(Kind::StartLine);
    }
    check_version(&line[last + 1..])?;
    let uri = &line[space + 1..last];
    if uri
        .iter()
        .any(|&b| b <= b' ' || b == 0x7f || matches!(b, b'<' | b'>' | b'"'))
    {
        return Err(Kind::StartLine);
    }
    Ok(Start::Request {
        method: span(0, space),
        uri: span(space + 1, last),
    })
}

fn starts_with_sip(text: &[u8]) -> bool {
    text.get(..4)
        .is_some_and(|head| head.eq_ignore_ascii_case(b"SIP/"))
}

/// `SIP/2.0`; another well-formed version is [`Kind::Version`], anything else no start line.
fn check_version(text: &[u8]) -> Result<(), Kind> {
    let number = &text[4..];
    if number == b"2.0" {
        return Ok(());
    }
    let mut parts = number.split(|&b| b == b'.');
    let numeric = |part: Option<&[u8]>| part.is_some_and(|p| lex::decimal(p).is_some());
    let well_formed = numeric(parts.next()) && numeric(parts.next()) && parts.next().is_none();
    Err(if well_formed {
        Kind::Version
    } else {
        Kind::StartLine
    })
}

/// Whether the first line begins with a method other than ACK and names SIP further on: what may be answered.
pub(crate) fn looks_like_request(buf: &[u8]) -> bool {
    let line = &buf[..memchr2(b'\r', b'\n', buf).unwrap_or(buf.len())];
    let Some(space) = memchr::memchr(b' ', line) else {
        return false;
    };
    let (method, rest) = line.split_at(space);
    !method.is_empty()
        && method != b"ACK"
        && method.iter().copied().all(lex::is_token)
        && rest
            .windows(5)
            .any(|w| w[0] == b' ' && starts_with_sip(&w[1..]))
}
