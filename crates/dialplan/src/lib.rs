//! The dialplan: (plan, request) to decision.
#![forbid(unsafe_code)]
