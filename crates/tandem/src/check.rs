//! `tandem check`: what would be in force, or the first thing that is wrong.
//!
//! Nothing is changed: no listener is opened (the server may be running), no directory made.

use std::net::UdpSocket;

use anyhow::Context;
use net::rtp::PortPool;

use crate::config::Config;
use crate::storage::Storage;
use crate::{limits, logging, plan, serve};

/// Prints the table, or fails.
pub(crate) fn run(config: &Config) -> anyhow::Result<()> {
    print!("{}", describe(config)?);
    Ok(())
}

fn describe(config: &Config) -> anyhow::Result<String> {
    logging::check(&config.log.filter)?;
    let plan = plan::load(&config.dialplan)?;
    let storage = Storage::plan(&config.recordings)?;
    storage.check()?;
    let ports = PortPool::new(config.media.address.clone(), config.media.rtp_ports)?;
    for listener in &config.sip.listen {
        UdpSocket::bind((listener.address.ip(), 0))
            .with_context(|| format!("cannot listen on {listener}"))?;
    }
    let codecs = serve::codecs();
    let codecs: Vec<_> = codecs
        .iter()
        .map(|codec| format!("{}/{}", codec.info().name, codec.info().clock_rate))
        .collect();
    let records = match config.cdr.file.display().to_string() {
        none if none.is_empty() => "no file".to_owned(),
        file => file,
    };
    let rows = [
        ("sip", serve::join(&config.sip.listen)),
        (
            "media",
            format!("{}, ports {}", config.media.address, config.media.rtp_ports),
        ),
        ("capacity", capacity(&ports)),
        (
            "dialplan",
            format!("{}, {} rules", config.dialplan.file, plan.rules().count()),
        ),
        ("recordings", recordings(&storage)),
        ("codecs", codecs.join(", ")),
        ("records", records),
        ("log", config.log.filter.clone()),
        (
            "stop",
            format!("calls may go on for {} s", config.shutdown.deadline_s),
        ),
    ];
    Ok(rows
        .iter()
        .map(|(name, value)| format!("{name:11} {value}\n"))
        .collect())
}

/// A bridged call holds two port pairs and two descriptors.
fn capacity(ports: &PortPool) -> String {
    let by_ports = ports.pairs() / 2;
    let by_descriptors = limits::raise_descriptors().map(|limit| limit.saturating_sub(64) / 2);
    let bridged = by_descriptors.map_or(by_ports, |limit| limit.min(by_ports));
    let limited = if bridged < by_ports {
        " by the limit of open files"
    } else {
        ""
    };
    format!(
        "{} port pairs, {bridged} bridged calls{limited}",
        ports.pairs()
    )
}

fn recordings(storage: &Storage) -> String {
    let max = storage.max_bytes >> 20;
    format!(
        "{}, on {}, at most {max} MiB",
        storage.directory.display(),
        storage.kind
    )
}
