//! Logs go to stderr; stdout is for what was asked for.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

/// Starts to log what `filter` lets through.
pub(crate) fn start(filter: &str) -> anyhow::Result<()> {
    tracing_subscriber::fmt()
        .with_env_filter(check(filter)?)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    Ok(())
}

/// Reads a filter without putting it in force.
pub(crate) fn check(filter: &str) -> anyhow::Result<EnvFilter> {
    let read = EnvFilter::builder().parse(filter);
    read.with_context(|| format!("`{filter}` is not a log filter such as info or info,b2bua=debug"))
}
