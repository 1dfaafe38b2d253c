//! The dialplan: (plan, request) to decision, as a pure function.
//!
//! ```text
//!  TOML --Plan::load--> Plan { rules in order, compiled }          errors: FILE:LINE:COLUMN: what; what to do
//!                        |
//!  Query ----------------+--decide-->  Decision { action, rule, record, fields }
//!                        +--explain--> the same, with what each rule said
//! ```
//!
//! The first rule whose every condition holds decides; when none does, the call is refused with
//! 404. Patterns are regular expressions that match a value as a whole. `dialplan/README.md`
//! documents the language for those who write plans.
//!
//! Everything that can be checked without a call is checked when the plan is loaded, with the
//! variables in place. What depends on the call (`$1`, `${caller}`) is checked when it is there; a
//! value that comes to nothing usable refuses the call with 404, since then the number that was
//! dialled leads nowhere.
//!
//! What a caller sends is escaped for the place that it is put in, so a dialled number cannot turn
//! into another URI, path or header. Durations are [`core::time::Duration`]s; lines and columns
//! count from 1.
#![forbid(unsafe_code)]

mod action;
mod codec;
mod condition;
mod decision;
mod error;
mod load;
mod network;
mod plan;
mod rule;
mod suggest;
mod table;
mod template;

pub use decision::{
    Action, Bridge, Clip, CodecSpec, Codecs, Decision, MediaMode, Missed, RecordSpec, RuleRef,
    Target, TraceStep,
};
pub use error::PlanError;
pub use plan::{Plan, Query};
