//! Benchmarks. Each file under `benches/` states in its header the question that it answers.
#![forbid(unsafe_code)]
