//! The dialplan: (plan, request) to decision.
#![forbid(unsafe_code)]

mod decision;
mod error;
mod plan;

pub use decision::{
    Action, Bridge, Clip, CodecSpec, Codecs, Decision, MediaMode, Missed, RecordSpec, RuleRef,
    Target, TraceStep,
};
pub use error::PlanError;
pub use plan::{Plan, Query};
