//! Tandem: a B2BUA media server and load lab.
//!
//! ```text
//! tandem serve   run the server            tandem check   what would be in force
//! tandem route   what the dialplan says    tandem demo    the main job, end to end
//! ```
//!
//! One error is one line on stderr and exit code 1, a bad argument included.

mod check;
mod cli;
mod clips;
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
        Command::Demo(demo) => show(demo),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(&format!("{error:#}")),
    }
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
            print!("{}", error.render().ansi());
            ExitCode::SUCCESS
        }
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => {
            eprint!("{}", error.render());
            ExitCode::FAILURE
        }
        _ => fail(&cli::one_line(error)),
    }
}

fn fail(what: &str) -> ExitCode {
    eprintln!("tandem: {}", what.replace('\n', "; "));
    ExitCode::FAILURE
}
