//! What is wrong with a plan, where, and what to do about it.

use core::ops::Range;

use thiserror::Error;

/// A plan that cannot be used: `FILE:LINE:COLUMN: what is wrong; what to do`.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{source_name}:{line}:{column}: {message}")]
pub struct PlanError {
    source_name: String,
    line: usize,
    column: usize,
    /// Composed where the fault is found: it quotes the plan, and only people read it.
    message: String,
}

impl PlanError {
    /// Line, from 1.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Column in characters, from 1.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// What is wrong and what to do, without the place.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The text of a plan, by which places are told.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Source<'t> {
    pub(crate) name: &'t str,
    pub(crate) text: &'t str,
}

impl Source<'_> {
    /// An error at bytes of the text.
    pub(crate) fn error(&self, at: Range<usize>, message: impl Into<String>) -> PlanError {
        let (line, column) = self.place(at.start);
        PlanError {
            source_name: self.name.to_owned(),
            line,
            column,
            message: message.into(),
        }
    }

    /// Line and column of a byte.
    pub(crate) fn place(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        (line, column)
    }
}
