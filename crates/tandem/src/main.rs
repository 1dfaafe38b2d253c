//! Tandem: a B2BUA media server and load lab.
//!
//! ```text
//! tandem serve   run the server            tandem check   what would be in force
//! tandem route   what the dialplan says    tandem codecs  what is built in, and its cost
//! tandem demo    the main job, end to end
//! ```
//!
//! One error is one line on stderr and exit code 1, a bad argument included.

mod check;
mod cli;
mod clips;
mod codecs;
mod config;
mod driver;
mod limits;
mod logging;
mod memory;
mod notify;
mod plan;
mod records;
mod route;
mod serve;
mod shard_io;
mod signals;
mod storage;
mod translate;

use std::process::ExitCode;

use clap::Parser;
use clap::error::ErrorKind;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return explain(&error),
    };
    let done = match cli.command {
        Command::Serve(settings) => settings.load().and_then(|config| serve::run(&config)),
        Command::Check(settings) => settings.load().and_then(|config| check::run(&config)),
        Command::Route(route) => route::run(&route),
        Command::Codecs => codecs::run(),
        Command::Demo(demo) => show(demo),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&chain(&error)),
    }
}

/// What went wrong, from the outside in, each thing said once: some errors quote their source, some
/// leave that to whoever prints them.
fn chain(error: &anyhow::Error) -> String {
    error
        .chain()
        .map(ToString::to_string)
        .fold(String::new(), |said, cause| match said.as_str() {
            "" => cause,
            text if text.ends_with(&cause) => said,
            text => format!("{text}: {cause}"),
        })
}

/// The demo prints its own table; calls that were not as planned make it fail.
fn show(demo: cli::Demo) -> anyhow::Result<()> {
    let report = lab::demo::run_demo(&lab::demo::DemoOptions {
        server_binary: std::env::current_exe()?,
        quick: demo.quick,
        directory: demo.out,
        seed: demo.seed,
    })?;
    anyhow::ensure!(
        report.is_good(),
        "{} things are not as they should be",
        report.faults.len()
    );
    Ok(())
}

/// Help and version are answers; anything else is an error of one line.
fn explain(error: &clap::Error) -> ExitCode {
    match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            // A closed pipe is no failure of ours: `tandem help | head -1`.
            let _ = error.print();
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            let _ = error.print();
            ExitCode::FAILURE
        }
        _ => fail(&cli::one_line(error)),
    }
}

fn fail(what: &str) -> ExitCode {
    eprintln!("tandem: {}", what.replace('\n', "; "));
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_said_once() {
        let taken = || std::io::Error::from(std::io::ErrorKind::AddrInUse);
        let quoted = anyhow::Error::new(taken()).context(format!("cannot listen: {}", taken()));
        assert_eq!(chain(&quoted), format!("cannot listen: {}", taken()));
        let apart = anyhow::Error::new(taken())
            .context("cannot listen")
            .context("start anew");
        assert_eq!(
            chain(&apart),
            format!("start anew: cannot listen: {}", taken())
        );
    }
}
