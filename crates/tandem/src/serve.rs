//! Builds the server out of its parts, says that it is ready, and runs it.

use std::collections::VecDeque;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use audio::Registry;
use b2bua::{B2bua, Epoch};
use dialplan::Plan;
use engine::{Engine, EngineConfig, PacketIo};
use net::resolve::Resolver;
use net::rtp::{PortPool, ShardSockets};
use net::sip::{ListenSpec, SipSockets};
use recorder::{Recorder, RecorderConfig};
use rustix::rand::GetRandomFlags;
use tokio::sync::Notify;

use crate::clips::Clips;
use crate::config::Config;
use crate::driver::{Driver, State};
use crate::records::CdrLog;
use crate::shard_io::ShardIo;
use crate::signals::Signals;
use crate::storage::{self, Storage};
use crate::translate::{SipFramer, sip_transport};
use crate::{limits, logging, notify, plan};

/// Runs the server until it is stopped.
pub(crate) fn run(config: &Config) -> anyhow::Result<()> {
    logging::start(&config.log.filter)?;
    let descriptors = limits::raise_descriptors();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the event loop")?;
    runtime.block_on(async {
        let driver = build(config, descriptors)?;
        announce(driver.sip.bound());
        notify::tell(notify::READY);
        driver.run().await;
        Ok(())
    })
}

fn build(config: &Config, descriptors: Option<u64>) -> anyhow::Result<Driver> {
    let plan = plan::load(&config.dialplan)?;
    let storage = Storage::plan(&config.recordings)?;
    let records = CdrLog::open(&config.cdr.file)?;
    let ports = PortPool::new(config.media.address.clone(), config.media.rtp_ports)?;
    let signals = Signals::listen().context("cannot listen for signals")?;
    let limits = net::sip::Limits {
        connections: config.sip.max_connections,
        idle: Duration::from_secs(config.sip.idle_timeout_s),
        ..net::sip::Limits::default()
    };
    let sip = SipSockets::bind(
        &config.sip.listen,
        limits,
        SipFramer::make(sip::Limits::default()),
    )
    .context("start with --sip, or end what holds the port")?;

    let registry = Arc::new(codecs());
    let woken = Arc::new(Notify::new());
    let wake: Wake = {
        let woken = Arc::clone(&woken);
        Arc::new(move || woken.notify_one())
    };
    let engine = start_engine(
        config,
        &ports,
        &registry,
        &wake,
        u64::from_ne_bytes(random()?),
    )?;
    let recorder = start_recorder(&storage, &registry, &wake)?;
    let reload = {
        let settings = config.dialplan.clone();
        Box::new(move || plan::load(&settings))
    };
    say_what_is_in_force(config, &storage, &ports, descriptors, &sip);
    Ok(Driver {
        b2bua: signalling(config, sip.bound(), plan)?,
        sip,
        resolver: Resolver::new(net::resolve::Limits::default()),
        ports,
        engine,
        recorder,
        clips: Clips::default(),
        records,
        signals,
        woken,
        reload,
        drain_for: Duration::from_secs(config.shutdown.deadline_s),
        state: State::default(),
    })
}

/// The codecs built in.
pub(crate) fn codecs() -> Registry {
    let mut registry = Registry::default();
    registry.register(Box::new(g711::Pcma));
    registry.register(Box::new(g711::Pcmu));
    registry
}

fn signalling(config: &Config, bound: &[ListenSpec], plan: Arc<Plan>) -> anyhow::Result<B2bua> {
    let listeners = bound.iter().map(|listener| sip::Listener {
        transport: sip_transport(listener.transport),
        local: listener.address,
        advertised: None,
    });
    let sip = sip::Config {
        user_agent: config.sip.user_agent.clone(),
        listeners: listeners.collect(),
        ..sip::Config::default()
    };
    let settings = b2bua::Config {
        sip,
        max_calls: config.calls.max,
        ..b2bua::Config::default()
    };
    let unix = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let epoch = Epoch {
        instant: Instant::now(),
        unix,
    };
    Ok(B2bua::new(settings, plan, random()?, epoch))
}

/// Bytes that nobody can guess.
fn random<const N: usize>() -> anyhow::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        filled += rustix::rand::getrandom(&mut bytes[filled..], GetRandomFlags::empty())
            .context("the system gives no random bytes")?;
    }
    Ok(bytes)
}

fn start_engine(
    config: &Config,
    ports: &PortPool,
    registry: &Arc<Registry>,
    wake: &Wake,
    seed: u64,
) -> anyhow::Result<Engine> {
    let mut settings = EngineConfig {
        tick: Duration::from_millis(config.media.tick_ms),
        seed,
        ..EngineConfig::default()
    };
    if config.media.threads > 0 {
        settings.threads = config.media.threads;
        settings.shards = config.media.threads;
    }
    let sockets = (0..settings.shards).map(|_| ShardSockets::new(ports.clone()).map(ShardIo));
    let mut sockets = sockets
        .collect::<Result<VecDeque<_>, _>>()
        .context("cannot open the media engine's sockets")?;
    let make_io = |_| -> Box<dyn PacketIo> {
        Box::new(
            sockets
                .pop_front()
                .expect("one set of sockets for each shard"),
        )
    };
    Engine::start(settings, Arc::clone(registry), make_io, Arc::clone(wake))
        .context("cannot start the media engine")
}

/// Wakes the driver's task from another thread.
type Wake = Arc<dyn Fn() + Send + Sync>;

fn start_recorder(
    storage: &Storage,
    registry: &Arc<Registry>,
    wake: &Wake,
) -> anyhow::Result<Recorder> {
    let settings = RecorderConfig {
        directory: storage.directory.clone(),
        max_bytes: storage.max_bytes,
        ..RecorderConfig::default()
    };
    Recorder::start(settings, Arc::clone(registry), Arc::clone(wake))
        .with_context(|| storage::advice(&storage.directory))
}

fn say_what_is_in_force(
    config: &Config,
    storage: &Storage,
    ports: &PortPool,
    descriptors: Option<u64>,
    sip: &SipSockets,
) {
    tracing::info!(
        sip = %join(sip.bound()),
        media = %config.media.address,
        rtp_ports = %config.media.rtp_ports,
        port_pairs = ports.pairs(),
        descriptors,
        "listening"
    );
    tracing::info!(
        dialplan = %config.dialplan.file,
        recordings = %storage.directory.display(),
        on = %storage.kind,
        max_mib = storage.max_bytes >> 20,
        "in force"
    );
}

/// The line that scripts wait for. Nobody has to read it, so a closed stdout is no failure.
fn announce(bound: &[ListenSpec]) {
    let line = format!("ready sip={} pid={}\n", join(bound), std::process::id());
    let mut stdout = std::io::stdout().lock();
    let _ = stdout
        .write_all(line.as_bytes())
        .and_then(|()| stdout.flush());
}

/// Listeners as one word.
pub(crate) fn join(listeners: &[ListenSpec]) -> String {
    listeners
        .iter()
        .map(ToString::to_string)
        .collect::<Vec<_>>()
        .join(",")
}
