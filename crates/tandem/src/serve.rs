//! Builds the server out of its parts, says that it is ready, and runs it.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context;
use audio::Registry;
use b2bua::{B2bua, Epoch};
use dialplan::Plan;
use engine::{Engine, EngineConfig};
use net::resolve::Resolver;
use net::rtp::{PortPool, ShardSockets};
use net::sip::{ListenSpec, SipSockets};
use recorder::{Recorder, RecorderConfig};
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
    let sip = SipSockets::bind(&config.sip.listen, limits, SipFramer::make(sip::Limits::default()))
        .context("start with --sip, or end what holds the port")?;

    let registry = Arc::new(codecs());
    let woken = Arc::new(Notify::new());
    let engine = start_engine(config, &ports, &registry, &woken)?;
    let recorder = start_recorder(&storage, &registry, &woken)?;
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
    let settings = b2bua::Config { sip, max_calls: config.calls.max, ..b2bua::Config::default() };
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let epoch = Epoch { instant: Instant::now(), unix };
    Ok(B2bua::new(settings, plan, seed()?, epoch))
}

/// 32 bytes from the system.
fn seed() -> anyhow::Result<[u8; 32]> {
    let mut seed = [0; 32];
    let mut filled = 0;
    while filled < seed.len() {
        let flags = rustix::rand::GetRandomFlags::empty();
        filled += rustix::rand::getrandom(&mut seed[filled..], flags)
            .context("the system gives no random bytes")?;
    }
    Ok(seed)
}

fn start_engine(
    config: &Config,
    ports: &PortPool,
    registry: &Arc<Registry>,
    woken: &Arc<Notify>,
) -> anyhow::Result<Engine> {
    let threads = match config.media.threads {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        given => given,
    };
    let mut sockets = (0..threads)
        .map(|_| ShardSockets::new(ports.clone()).map(ShardIo))
        .collect::<Result<Vec<_>, _>>()
        .context("cannot open the media engine's sockets")?;
    let settings = EngineConfig {
        shards: threads,
        threads,
        tick: Duration::from_millis(config.media.tick_ms),
        ..EngineConfig::default()
    };
    let woken = Arc::clone(woken);
    let make_io = |_| -> Box<dyn engine::PacketIo> {
        Box::new(sockets.pop().expect("one set of sockets for each shard"))
    };
    let wake = Arc::new(move || woken.notify_one());
    Engine::start(settings, Arc::clone(registry), make_io, wake).context("cannot start the media engine")
}

fn start_recorder(
    storage: &Storage,
    registry: &Arc<Registry>,
    woken: &Arc<Notify>,
) -> anyhow::Result<Recorder> {
    let settings = RecorderConfig {
        directory: storage.directory.clone(),
        max_bytes: storage.max_bytes,
        ..RecorderConfig::default()
    };
    let woken = Arc::clone(woken);
    let wake = Arc::new(move || woken.notify_one());
    Recorder::start(settings, Arc::clone(registry), wake)
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
    let _ = stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush());
}

/// Listeners as one word.
pub(crate) fn join(listeners: &[ListenSpec]) -> String {
    listeners.iter().map(ToString::to_string).collect::<Vec<_>>().join(",")
}
