//! What `tandem demo` runs: every destination called, every call's audio checked.
//!
//! ```text
//!   default.toml   echo, 9195, tone, music, record then 9199, 1000 (a registered phone), reject-486
//!   lab.toml       echo, nomedia, recorded tones; then bridge, pcmu, bridge-record under watch
//! ```
//!
//! Each part has a server of its own: a child process on loopback, with free ports and its
//! recordings in memory. Progress goes to standard error, the table and the verdict to standard
//! output.

mod parts;
mod recorded;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;

use crate::counters::Counters;
use crate::machine::Facts;
use crate::place::{Loopback, directory};
use crate::progress::Progress;
use crate::report::{Row, table};
use crate::run::{RunOutcome, RunSpec, run};
use crate::server::Server;
use crate::watch::Steady;

use parts::Part;
use recorded::{Kept, check};

/// How a demo is to run.
#[derive(Clone, Debug)]
pub struct DemoOptions {
    /// The `tandem` program.
    pub server_binary: PathBuf,
    /// Fewer calls, held for less time.
    pub quick: bool,
    /// Where recordings and logs go; a new directory in memory by default.
    pub directory: Option<PathBuf>,
    /// Seed of the marks.
    pub seed: u64,
}

/// What a demo found.
#[derive(Clone, Debug)]
pub struct DemoReport {
    /// The table's rows.
    pub rows: Vec<Row>,
    /// What is not as it should be, one line each; empty when all is.
    pub faults: Vec<String>,
    /// Why the figures are void; empty when they are not.
    pub invalid: Vec<String>,
    /// Recordings to listen to, one tone a side, whole and right.
    pub recordings: Vec<PathBuf>,
    /// Recordings whose every frame was found in its place; they sound like noise.
    pub marked_recordings: Vec<PathBuf>,
    /// Running time.
    pub elapsed: Duration,
    /// Where it was made.
    pub facts: Facts,
}

impl DemoReport {
    /// Whether every call was as planned.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.faults.is_empty()
    }

    /// Calls placed.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.rows.iter().map(|row| row.calls).sum()
    }
}

/// Runs the demo and prints what it finds.
///
/// # Errors
/// When the server cannot be run, or sockets or files cannot be had. Calls that fail are no
/// error: they are in the report.
pub fn run_demo(options: &DemoOptions) -> anyhow::Result<DemoReport> {
    let started = Instant::now();
    let directory = match &options.directory {
        Some(directory) => {
            std::fs::create_dir_all(directory)?;
            directory.clone()
        }
        None => directory(&format!("tandem-demo-{}", std::process::id()))?,
    };
    let mut report = DemoReport {
        rows: Vec::new(),
        faults: Vec::new(),
        invalid: Vec::new(),
        recordings: Vec::new(),
        marked_recordings: Vec::new(),
        elapsed: Duration::ZERO,
        facts: Facts::gather(options.seed),
    };
    let mut progress = Progress::on_stderr();
    let place = Loopback::of_this_process();
    for part in parts::all(options.quick, place) {
        play(
            options,
            &directory,
            place,
            &part,
            &mut report,
            &mut progress,
        )
        .with_context(|| format!("demo, part {}", part.name))?;
    }
    report.elapsed = started.elapsed();
    print(&report, &directory);
    Ok(report)
}

/// Runs one part on a server of its own.
fn play(
    options: &DemoOptions,
    directory: &Path,
    place: Loopback,
    part: &Part,
    report: &mut DemoReport,
    progress: &mut Progress<std::io::Stderr>,
) -> anyhow::Result<()> {
    let recordings = directory.join(part.name);
    std::fs::create_dir_all(&recordings)?;
    let log = directory.join(format!("server-{}.log", part.name));
    let server = Server::start(
        &options.server_binary,
        &arguments(part, place, &recordings),
        &log,
    )?;
    let spec = RunSpec {
        server: server.sip(),
        pid: Some(server.pid()),
        plan: part.calls.clone(),
        callees: part.callees(server.sip()),
        caller: place.caller(),
        media: place.lab_media(),
        seed: options.seed,
    };
    let total = part.calls.len();
    let outcome = run(&spec, |counters| {
        progress.show(Instant::now(), &line(part.name, total, counters));
    })?;
    let kept = check(&outcome, &recordings);
    let stopped = server.stop();
    if let Err(error) = &stopped {
        report.faults.push(format!("{}: {error:#}", part.name));
    }
    progress.settle(&format!(
        "{:<14} {total} calls, {} with faults, {:.1} s",
        part.name,
        outcome.faulty(),
        outcome.elapsed.as_secs_f64()
    ));
    add(report, part, &outcome, kept);
    Ok(())
}

fn arguments(part: &Part, place: Loopback, recordings: &Path) -> Vec<String> {
    let callee: SocketAddr = place.callee(0);
    let mut args: Vec<String> = [
        "serve",
        "--sip",
        "udp:127.0.0.1:0",
        "--dialplan",
        part.dialplan,
    ]
    .map(str::to_owned)
    .into();
    args.extend(["--media-address".into(), place.server_media().to_string()]);
    args.extend(["--recordings".into(), recordings.display().to_string()]);
    if part.dialplan == "lab" {
        args.extend(["--set".into(), format!("callee=sip:uas@{callee}")]);
    }
    args
}

fn line(part: &str, total: usize, counters: &Counters) -> String {
    format!(
        "{part:<14} placed {}/{total}  up {}  over {}  failed {}",
        counters.placed(),
        counters.up(),
        counters.ended(),
        counters.failed()
    )
}

fn add(report: &mut DemoReport, part: &Part, outcome: &RunOutcome, kept: Kept) {
    let steady = part.measured.then(|| Steady::find(&outcome.load)).flatten();
    for user in part.users() {
        let calls = outcome
            .calls
            .iter()
            .filter(|call| call.call.plan.user == user);
        let label = format!("{} {user}", part.dialplan);
        report.rows.push(Row::of(&label, calls, steady));
    }
    for call in &outcome.calls {
        let plan = &call.call.plan;
        report.faults.extend(call.faults.iter().map(|fault| {
            format!(
                "{} call {} to {}: {fault}",
                part.name, plan.number, plan.user
            )
        }));
    }
    report.faults.extend(kept.faults);
    report.recordings.extend(kept.tones);
    report.marked_recordings.extend(kept.marks);
    let invalid = outcome.invalid.iter();
    report
        .invalid
        .extend(invalid.map(|why| format!("{}: {why}", part.name)));
}

fn print(report: &DemoReport, directory: &Path) {
    println!("\n{}\n", table(&report.rows));
    println!("{}", report.facts);
    println!("logs      {}", directory.display());
    if !report.recordings.is_empty() {
        println!("recordings to listen to (left 440 Hz, right 660 Hz):");
    }
    for path in &report.recordings {
        println!("  {}", path.display());
    }
    if !report.marked_recordings.is_empty() {
        println!(
            "and {} of marked noise, every frame found in its place",
            report.marked_recordings.len()
        );
    }
    for why in &report.invalid {
        println!("INVALID   {why}");
    }
    for fault in report.faults.iter().take(MOST_FAULTS) {
        println!("FAULT     {fault}");
    }
    if report.faults.len() > MOST_FAULTS {
        println!("... and {} faults more", report.faults.len() - MOST_FAULTS);
    }
    let verdict = if report.is_good() {
        "every call was as planned and its audio right".to_owned()
    } else {
        format!("{} faults", report.faults.len())
    };
    let seconds = report.elapsed.as_secs_f64();
    println!("{} calls in {seconds:.0} s: {verdict}", report.calls());
}

/// Faults printed one by one.
const MOST_FAULTS: usize = 30;
