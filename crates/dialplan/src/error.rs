//! What is wrong with a plan, where, and what to do about it.

use thiserror::Error;

/// A plan that cannot be used: `FILE:LINE:COLUMN: what is wrong; what to do`.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("{source_name}:{line}:{column}: {message}")]
pub struct PlanError {
    pub(crate) source_name: String,
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) message: String,
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
}
