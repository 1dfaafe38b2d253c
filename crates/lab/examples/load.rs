//! Puts one of the lab's loads on a running server and prints the table.
//!
//!     cargo run --release -p lab --example load -- bridged --target 127.0.0.1:5060 --pid 4711
//!
//! `bridged` (200 calls at 50/s held 20 s), `converted` (the same, A-law to mu-law), `echo`, or
//! `growth` (10,000 short calls, or 1,000 and `--others N`, at `--rate R`; memory and sockets before
//! and after). The server must bridge to
//! the address printed first (`--set callee=...`). With `--target callee` the caller calls the
//! callee straight: what the lab itself can do.

use std::net::SocketAddr;

use anyhow::Context as _;
use lab::load::{Load, growth};
use lab::machine::Facts;
use lab::place::Loopback;
use lab::plan::Expect;
use lab::report::{Row, table};
use lab::run::RunOutcome;
use lab::watch::Steady;

fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let value = |name: &str| {
        let at = args.iter().position(|arg| arg == name)?;
        args.get(at + 1)
    };
    let number = |name: &str, default: u32| value(name).map_or(Ok(default), |n| n.parse());
    let place = Loopback::fixed();
    println!("callee    sip:uas@{}", place.callee(0));
    let target = value("--target").context("--target ADDRESS:PORT is missing")?;
    let target: SocketAddr = match target.as_str() {
        "callee" => place.callee(0),
        address => address.parse().context("--target is no ADDRESS:PORT")?,
    };
    let pid: Option<u32> = value("--pid").map(|pid| pid.parse()).transpose()?;
    let load = match args.first().map(String::as_str) {
        Some("bridged") => Load::bridged(),
        Some("converted") => Load::converted(),
        Some("echo") => Load {
            user: "echo".into(),
            expect: Expect::Echo {
                delay: std::time::Duration::ZERO,
            },
            ..Load::bridged()
        },
        Some("growth") => {
            let pid = pid.context("--pid is missing")?;
            let growth = growth(
                target,
                pid,
                place,
                SEED,
                (
                    1000,
                    number("--others", 9000)?,
                    f64::from(number("--rate", 100)?),
                ),
            )?;
            println!(
                "before    {:?}\nafter     {:?}",
                growth.before, growth.after
            );
            println!(
                "growth    {} kB ({:.1} bytes a call), {} sockets",
                growth.kb(),
                growth.bytes_per_call(),
                growth.sockets()
            );
            print("first", &growth.first);
            print("others", &growth.others);
            return Ok(());
        }
        _ => anyhow::bail!("bridged, converted, echo or growth?"),
    };
    let outcome = load.run(target, pid, place, SEED)?;
    print(&load.user, &outcome);
    Ok(())
}

const SEED: u64 = 1;

fn print(label: &str, outcome: &RunOutcome) {
    let row = Row::of(label, &outcome.calls, Steady::find(&outcome.load));
    println!("\n{}\n{}", table(&[row]), Facts::gather(SEED));
    for why in &outcome.invalid {
        println!("INVALID   {why}");
    }
    for call in outcome
        .calls
        .iter()
        .filter(|call| !call.faults.is_empty())
        .take(10)
    {
        for fault in &call.faults {
            println!("FAULT     call {}: {fault}", call.call.plan.number);
        }
    }
}
