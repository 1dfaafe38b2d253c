//! Simulated clock and lossy network, world runner, ladder diagrams.
