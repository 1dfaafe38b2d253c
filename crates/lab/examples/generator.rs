//! How many legs does one media thread carry on this machine, and at what cost?
//!
//!     cargo run --release -p lab --example generator -- 1000
//!
//! Opens that many pairs of legs on loopback, lets each speak marked frames to its peer for 5 s,
//! and prints lateness, loss and the thread's processor time per packet. No server, no SIP.

use std::time::Duration;

use lab::generator::{Generator, MediaPlane};
use lab::law::Law;
use lab::mark::{MarkKey, Side};
use lab::place::Loopback;
use lab::stream::{Agreement, Listen, Speech, StreamSpec};
use lab::watch::ProcessSample;
use net::rtp::{PortPool, PortRange};

fn main() -> anyhow::Result<()> {
    let pairs: u32 = std::env::args().nth(1).map_or(Ok(500), |n| n.parse())?;
    let pool = PortPool::new(
        Loopback::of_this_process().lab_media(),
        PortRange::default(),
    )?;
    let generator = Generator::start(MarkKey::new(1), pool)?;
    let mut media = generator.handle();
    let mut legs = Vec::new();
    for call in 0..pairs {
        let mut open = |side: Side| {
            media.open(StreamSpec {
                call: Some(call),
                side,
                speech: Speech::Marks,
                listen: Listen::Marks(side.other()),
                stops_with_peer: side == Side::Callee,
            })
        };
        legs.push((open(Side::Caller)?, open(Side::Callee)?));
    }
    let before = ProcessSample::take(std::process::id())?;
    for (caller, callee) in &legs {
        for (from, to) in [(caller, callee), (callee, caller)] {
            let agreed = Agreement {
                remote: to.address,
                law: Law::A,
            };
            media.start(from.id, agreed);
        }
        // Spread the legs over the 20 ms, as calls at a steady rate are.
        std::thread::sleep(Duration::from_micros(20_000 / u64::from(pairs)));
    }
    std::thread::sleep(Duration::from_secs(5));
    let after = ProcessSample::take(std::process::id())?;
    legs.iter().for_each(|(caller, _)| media.finish(caller.id));
    std::thread::sleep(Duration::from_millis(300));
    for (caller, callee) in &legs {
        media.close(caller.id);
        media.close(callee.id);
    }
    drop(media);
    let report = generator.stop();
    let sum = |of: fn(&lab::stream::LegReport) -> u64| -> u64 {
        report.legs.iter().map(|(_, leg)| of(leg)).sum()
    };
    let exact = report
        .legs
        .iter()
        .filter(|(_, leg)| leg.heard.is_exact())
        .count();
    println!("legs      {}, of which exact {exact}", report.legs.len());
    println!(
        "sent      {}, received {}",
        sum(|leg| leg.sent),
        sum(|leg| leg.received)
    );
    println!("timely    {:?}", report.timeliness);
    let cpu = after.cpu() - before.cpu();
    let share = cpu.as_secs_f64() / (after.at - before.at).as_secs_f64();
    let packets = report.timeliness.frames as f64;
    println!(
        "cpu       {:.0} % of a core, {:.1} us a packet out and in",
        share * 100.0,
        cpu.as_secs_f64() * 1e6 / packets
    );
    Ok(())
}
