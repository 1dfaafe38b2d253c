//! Messages out of a byte stream (RFC 3261, 7.5 and 18.3; keep-alives of RFC 5626, 4.4.1).
//!
//! ```text
//! Idle --CRLF CRLF--> Ping         Idle --other--> Head --empty line--> Body --Content-Length--> Message
//! ```
//!
//! Sans-IO: [`StreamFramer::push`] takes what the socket gave, [`StreamFramer::next`] gives frames until `None`. A slow
//! sender costs nothing twice: the search for the empty line goes on where it stopped. Memory is bounded by
//! the message limit plus one push, as long as the owner drains after each push. Any error is for good: the
//! stream has lost its frame and is to be closed.
//!
//! A header section may use bare LF throughout, and may not mix it with CRLF, as in [`Message::parse`](crate::Message::parse).

use memchr::{memchr, memchr2};
use thiserror::Error;

use crate::error::ParseErrorKind;
use crate::lex;
use crate::{Limits, Name};

/// A buffer above this is given back once its messages are out, so that idle connections stay small.
const KEPT_BYTES: usize = 4_096;

/// What a stream carries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Frame {
    /// The octets of one message, for [`Message::parse`](crate::Message::parse) with [`Framing::Stream`](crate::Framing::Stream).
    Message(Vec<u8>),
    /// A double CRLF between messages, to be answered with a single one.
    Ping,
}

/// Why a stream must be closed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// What stands where a message should begin is no start line.
    #[error("no start line")]
    Garbage,
    /// The header section cannot be delimited, or is above a limit.
    #[error("unusable header section: {0}")]
    Head(ParseErrorKind),
}

impl FrameError {
    /// The status to send before closing, when [`StreamFramer::pending`] can be answered by [`refusal`](crate::refusal).
    #[must_use]
    pub const fn status(self) -> Option<u16> {
        match self {
            Self::Garbage => None,
            Self::Head(kind) => Some(kind.status()),
        }
    }
}

/// Cuts a byte stream into messages and keep-alives.
#[derive(Clone, Debug)]
pub struct StreamFramer {
    limits: Limits,
    buf: Vec<u8>,
    /// Octets at the front of `buf` that were given out.
    start: usize,
    state: State,
}

/// Offsets are from `start`.
#[derive(Clone, Copy, Debug)]
enum State {
    /// Between messages.
    Idle,
    /// Inside a header section: the current line begins at `line`, and no line end stands before `seen`.
    Head {
        ends: Option<LineEnd>,
        line: usize,
        seen: usize,
    },
    /// The header section is complete; the message ends at `end`.
    Body {
        end: usize,
    },
    Failed(FrameError),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineEnd {
    Crlf,
    Lf,
}

impl StreamFramer {
    /// A framer at the start of a stream.
    #[must_use]
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            buf: Vec::new(),
            start: 0,
            state: State::Idle,
        }
    }

    /// Takes octets from the socket. After an error they are dropped.
    pub fn push(&mut self, octets: &[u8]) {
        if matches!(self.state, State::Failed(_)) {
            return;
        }
        if self.start == self.buf.len() && self.buf.capacity() > KEPT_BYTES {
            self.buf = Vec::new();
            self.start = 0;
        } else if self.start > 0 && self.start >= self.buf.len() / 2 {
            self.buf.drain(..self.start);
            self.start = 0;
        }
        self.buf.extend_from_slice(octets);
    }

    /// The next frame; `None` when more octets are needed.
    ///
    /// # Errors
    /// [`FrameError`], the same at every later call.
    #[expect(
        clippy::should_implement_trait,
        reason = "an error ends the frames, which no Iterator says"
    )]
    pub fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        let result = self.advance();
        if let Err(error) = result {
            self.state = State::Failed(error);
        }
        result
    }

    /// Octets held and not given out, from the start of the unfinished message.
    #[must_use]
    pub fn pending(&self) -> &[u8] {
        &self.buf[self.start..]
    }

    fn advance(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            match self.state {
                State::Failed(error) => return Err(error),
                State::Idle => match self.pending() {
                    [b'\r', b'\n', b'\r', b'\n', ..] => {
                        self.start += 4;
                        return Ok(Some(Frame::Ping));
                    }
                    [] | [b'\r'] | [b'\r', b'\n'] | [b'\r', b'\n', b'\r'] => return Ok(None),
                    [b'\r', b'\n', ..] => self.start += 2,
                    [b'\n', ..] => self.start += 1,
                    [first, ..] if lex::is_token(*first) => {
                        self.state = State::Head {
                            ends: None,
                            line: 0,
                            seen: 0,
                        };
                    }
                    [_, ..] => return Err(FrameError::Garbage),
                },
                State::Head { ends, line, seen } => {
                    if !self.head_line(ends, line, seen)? {
                        return Ok(None);
                    }
                }
                State::Body { end } => {
                    let Some(message) = self.pending().get(..end) else {
                        return Ok(None);
                    };
                    let frame = Frame::Message(message.to_vec());
                    self.start += end;
                    self.state = State::Idle;
                    return Ok(Some(frame));
                }
            }
        }
    }

    /// Looks for the end of the current line; false when it has not come yet.
    fn head_line(
        &mut self,
        ends: Option<LineEnd>,
        line: usize,
        seen: usize,
    ) -> Result<bool, FrameError> {
        let head = |kind| Err(FrameError::Head(kind));
        let octets = self.pending();
        let Some(at) = memchr2(b'\r', b'\n', &octets[seen..]).map(|at| seen + at) else {
            self.check_line_length(line, octets.len())?;
            self.state = State::Head {
                ends,
                line,
                seen: self.pending().len(),
            };
            return Ok(false);
        };
        self.check_line_length(line, at)?;
        let (end, next) = match (octets[at], octets.get(at + 1)) {
            (b'\n', _) => (LineEnd::Lf, at + 1),
            (_, Some(b'\n')) => (LineEnd::Crlf, at + 2),
            (_, Some(_)) => return head(ParseErrorKind::LineEnds),
            (_, None) => {
                self.state = State::Head {
                    ends,
                    line,
                    seen: at,
                };
                return Ok(false);
            }
        };
        if ends.is_some_and(|ends| ends != end) {
            return head(ParseErrorKind::LineEnds);
        }
        if ends.is_none() && !is_start_line(&octets[..at]) {
            return Err(FrameError::Garbage);
        }
        if at > line {
            self.state = State::Head {
                ends: Some(end),
                line: next,
                seen: next,
            };
            return Ok(true);
        }
        // An empty line: the header section is complete.
        let length = content_length(&octets[..line])?;
        let end = next.saturating_add(length);
        if end > self.limits.max_message_bytes {
            return head(ParseErrorKind::TooLarge);
        }
        self.state = State::Body { end };
        Ok(true)
    }

    /// `end` is how far the line that begins at `line` has come.
    fn check_line_length(&self, line: usize, end: usize) -> Result<(), FrameError> {
        let (max, kind) = match line {
            0 => (
                self.limits.max_start_line_bytes,
                ParseErrorKind::StartLineTooLong,
            ),
            _ => (self.limits.max_header_bytes, ParseErrorKind::HeaderTooLong),
        };
        let too_long = end - line > max;
        if end > self.limits.max_message_bytes.min(usize::from(u16::MAX)) {
            return Err(FrameError::Head(ParseErrorKind::TooLarge));
        }
        if too_long {
            Err(FrameError::Head(kind))
        } else {
            Ok(())
        }
    }
}

/// Good enough to go on reading: begins or ends with `SIP/` and something. The rest is for the parser to judge.
fn is_start_line(line: &[u8]) -> bool {
    let sip = |word: &[u8]| word.len() > 4 && word[..4].eq_ignore_ascii_case(b"SIP/");
    let mut words = line.split(|&b| b == b' ').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default();
    sip(first) || words.next_back().is_some_and(sip)
}

/// Content-Length of a complete header section whose line ends are uniform: exactly one is needed.
fn content_length(head: &[u8]) -> Result<usize, FrameError> {
    let mut found = None;
    let mut rest = lex::cut_line(head).map_or(&[][..], |(_, rest)| rest);
    while let Some((line, next)) = lex::cut_line(rest) {
        rest = next;
        let Some(colon) = memchr(b':', line) else {
            continue;
        };
        if Name::from_bytes(lex::trim_bytes(&line[..colon])) != Some(Name::ContentLength) {
            continue;
        }
        if found.is_some() {
            return Err(FrameError::Head(ParseErrorKind::RepeatedContentLength));
        }
        let length = lex::decimal(lex::trim_bytes(&line[colon + 1..]));
        let length = length.ok_or(FrameError::Head(ParseErrorKind::ContentLength))?;
        found = Some(usize::try_from(length).unwrap_or(usize::MAX));
    }
    found.ok_or(FrameError::Head(ParseErrorKind::MissingContentLength))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A byte-by-byte sender must not make the search begin anew: quadratic work is a denial of service.
    #[test]
    fn search_goes_on_where_it_stopped() {
        let mut framer = StreamFramer::new(Limits::default());
        let head = b"OPTIONS sip:a SIP/2.0\r\nSubject: a long and slow one\r\nl: 3\r\n\r\n";
        for (sent, byte) in head.iter().enumerate() {
            framer.push(&[*byte]);
            assert_eq!(framer.next(), Ok(None));
            match framer.state {
                // Only a CR that waits for its LF is looked at again.
                State::Head { seen, .. } => assert_eq!(seen, sent + usize::from(*byte != b'\r')),
                State::Body { end } => assert_eq!((sent + 1, end), (head.len(), head.len() + 3)),
                state => panic!("{state:?}"),
            }
        }
    }

    #[test]
    fn a_large_buffer_is_given_back() {
        let mut framer = StreamFramer::new(Limits::default());
        let body = vec![b'b'; 50_000];
        for _ in 0..3 {
            framer.push(b"OPTIONS sip:a SIP/2.0\r\nl: 50000\r\n\r\n");
            framer.push(&body);
            assert!(matches!(framer.next(), Ok(Some(Frame::Message(_)))));
            framer.push(b"");
            assert!(framer.buf.capacity() <= KEPT_BYTES && framer.pending().is_empty());
        }
    }
}
