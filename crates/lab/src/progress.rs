//! A line that says how far a run is: rewritten in place on a terminal, now and then a plain
//! line in a pipe.

use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

/// Time between two lines on a terminal.
const ON_TERMINAL: Duration = Duration::from_millis(200);

/// Time between two lines in a pipe.
const IN_PIPE: Duration = Duration::from_secs(5);

/// The line.
#[derive(Debug)]
pub struct Progress<W> {
    out: W,
    in_place: bool,
    shown: Option<Instant>,
    open: usize,
}

impl Progress<io::Stderr> {
    /// On standard error.
    #[must_use]
    pub fn on_stderr() -> Self {
        let out = io::stderr();
        let in_place = out.is_terminal();
        Self::new(out, in_place)
    }
}

impl<W: Write> Progress<W> {
    /// On any writer; `in_place` when it is a terminal.
    pub fn new(out: W, in_place: bool) -> Self {
        Self {
            out,
            in_place,
            shown: None,
            open: 0,
        }
    }

    /// Shows `line` if it is time to. Output that cannot be written is no reason to stop.
    pub fn show(&mut self, now: Instant, line: &str) {
        let interval = if self.in_place { ON_TERMINAL } else { IN_PIPE };
        let too_soon = |at: Instant| now.saturating_duration_since(at) < interval;
        if self.shown.is_some_and(too_soon) {
            return;
        }
        self.shown = Some(now);
        let _ = if self.in_place {
            let width = self.open;
            self.open = line.chars().count();
            write!(self.out, "\r{line:<width$}").and_then(|()| self.out.flush())
        } else {
            writeln!(self.out, "{line}")
        };
    }

    /// Shows `line` for good.
    pub fn settle(&mut self, line: &str) {
        let width = std::mem::take(&mut self.open);
        let start = if width > 0 { "\r" } else { "" };
        let _ = writeln!(self.out, "{start}{line:<width$}");
        self.shown = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(in_place: bool, run: impl FnOnce(&mut Progress<&mut Vec<u8>>, Instant)) -> String {
        let mut out = Vec::new();
        run(&mut Progress::new(&mut out, in_place), Instant::now());
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_pipe_gets_plain_lines_now_and_then() {
        let lines = text(false, |progress, start| {
            for second in 0..12 {
                progress.show(start + Duration::from_secs(second), &format!("at {second}"));
            }
            progress.settle("done");
        });
        assert_eq!(lines, "at 0\nat 5\nat 10\ndone\n");
    }

    #[test]
    fn a_terminal_gets_one_line_that_covers_the_last() {
        let lines = text(true, |progress, start| {
            progress.show(start, "long line");
            progress.show(start + ON_TERMINAL, "short");
            progress.settle("end");
        });
        assert_eq!(lines, "\rlong line\rshort    \rend  \n");
    }
}
