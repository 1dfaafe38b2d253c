//! The server's signalling as a host of the simulated network, with a shell that pretends.
//!
//! ```text
//!   datagram --> B2bua --Output--+--> datagram
//!                  ^             +--> Prepare --(after a while)--> ports, clips
//!                  |             +--> Media   --(after a while)--> Started, Stopped
//!                  +-------------+--> Resolve --(after a while)--> addresses
//! ```
//! The shell lends ports from a counter and takes them back, runs no media but remembers every
//! command, and complains about what a real one would choke on: a session started twice, a port
//! given back while a session uses it, a recording of nothing.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use b2bua::{B2bua, CallId, Cdr, Config, Epoch, Output, Prepare, PrepareError, Prepared};
use dialplan::Plan;
use media::command::{
    ClipId, FailReason, LegSpec, LegStats, MediaCommand, MediaEvent, PortId, SessionId,
    SessionSpec, Side,
};
use simnet::{Datagram, Machine};
use sip::{FailedFlow, Flow, Resolve, ResolveError, Transport};

/// What the shell answers later.
#[derive(Debug)]
enum Later {
    Prepared(Prepare),
    Media(Box<MediaEvent>),
    Resolved(Resolve),
}

/// The server as a host.
#[derive(Debug)]
pub struct Server {
    b2bua: B2bua,
    address: SocketAddr,
    /// How long the shell takes for whatever it is asked.
    pub shell_delay: Duration,
    /// Names that resolve; every other one doesn't.
    pub names: BTreeMap<String, SocketAddr>,
    /// Most ports lent at a time.
    pub max_ports: usize,
    /// Whether there is a recording to play.
    pub has_clips: bool,
    out: VecDeque<Datagram>,
    later: BTreeMap<(Instant, u64), Later>,
    serial: u64,
    next_port: u32,
    lent: BTreeSet<PortId>,
    sessions: BTreeMap<SessionId, SessionSpec>,
    taps: BTreeSet<SessionId>,
    commands: Vec<(Instant, MediaCommand)>,
    cdrs: Vec<Cdr>,
    complaints: Vec<String>,
    busy_until: Option<Instant>,
    empty: bool,
}

/// The RTP port behind a lent port's number.
const FIRST_PORT: u16 = 20_000;

impl Server {
    /// A server that listens on this address, UDP, with this dialplan.
    #[must_use]
    pub fn new(
        address: SocketAddr,
        mut config: Config,
        plan: Arc<Plan>,
        seed: u64,
        epoch: Epoch,
    ) -> Self {
        let transport = Transport::Udp;
        let listener = sip::Listener {
            transport,
            local: address,
            advertised: None,
        };
        config.sip.listeners = vec![listener];
        config.registrar_trusts = |_| true;
        let mut bytes = [0; 32];
        bytes[..8].copy_from_slice(&seed.to_le_bytes());
        Self {
            b2bua: B2bua::new(config, plan, bytes, epoch),
            address,
            shell_delay: Duration::ZERO,
            names: BTreeMap::new(),
            max_ports: 1_000,
            has_clips: true,
            out: VecDeque::new(),
            later: BTreeMap::new(),
            serial: 0,
            next_port: 0,
            lent: BTreeSet::new(),
            sessions: BTreeMap::new(),
            taps: BTreeSet::new(),
            commands: Vec::new(),
            cdrs: Vec::new(),
            complaints: Vec::new(),
            busy_until: None,
            empty: true,
        }
    }

    /// The machine, for what an operator can do.
    pub fn machine(&mut self) -> &mut B2bua {
        &mut self.b2bua
    }

    /// Sends what the machine has to say after an operator's order.
    pub fn ordered(&mut self, now: Instant) {
        self.drain(now);
    }

    /// Every clip that plays has come to its end.
    pub fn finish_clips(&mut self, now: Instant) {
        for session in self.sessions.keys() {
            self.b2bua
                .handle_media(now, &MediaEvent::PlayFinished { session: *session });
        }
    }

    /// The media plane gives up on every session.
    pub fn fail_media(&mut self, now: Instant) {
        for (session, _) in std::mem::take(&mut self.sessions) {
            let reason = FailReason::Overload;
            self.b2bua
                .handle_media(now, &MediaEvent::Failed { session, reason });
        }
    }

    /// Records of calls that are over.
    #[must_use]
    pub fn cdrs(&self) -> &[Cdr] {
        &self.cdrs
    }

    /// Every media command so far.
    #[must_use]
    pub fn commands(&self) -> &[(Instant, MediaCommand)] {
        &self.commands
    }

    /// What sessions were told to be, one after another.
    pub fn specs(&self) -> impl Iterator<Item = (Instant, &SessionSpec)> {
        self.commands
            .iter()
            .filter_map(|(at, command)| match command {
                MediaCommand::Start { spec, .. } | MediaCommand::Update { spec, .. } => {
                    Some((*at, spec))
                }
                _ => None,
            })
    }

    /// One leg of what a session was told to be at last.
    ///
    /// # Panics
    /// When there is no such leg.
    #[must_use]
    pub fn leg(&self, side: Side) -> &LegSpec {
        let last = self.specs().last();
        let leg = last.and_then(|(_, spec)| spec.leg(side));
        leg.unwrap_or_else(|| panic!("no media on leg {side:?}: {:?}", self.commands))
    }

    /// How many calls there are.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.b2bua.counts().calls
    }

    /// What is still held, by name; empty when all is over.
    #[must_use]
    pub fn leftovers(&self) -> Vec<String> {
        let counts = self.b2bua.counts();
        let held = [
            ("calls", counts.calls),
            ("legs", counts.legs),
            ("relayed requests", counts.relayed),
            ("call timers", counts.call_timers),
            ("ports of calls", counts.ports),
            ("outputs", counts.outputs),
            ("server transactions", counts.sip.server_transactions),
            ("client transactions", counts.sip.client_transactions),
            ("usages", counts.sip.usages),
            ("SIP timers", counts.sip.timers),
            ("ports lent", self.lent.len()),
            ("media sessions", self.sessions.len()),
            ("taps", self.taps.len()),
            ("answers of the shell", self.later.len()),
        ];
        held.iter()
            .filter(|(_, n)| *n > 0)
            .map(|(what, n)| format!("{n} {what}"))
            .collect()
    }

    /// When the last of what it held was gone; `None` when it never held anything.
    #[must_use]
    pub fn busy_until(&self) -> Option<Instant> {
        self.busy_until
    }

    /// What the shell found wrong.
    #[must_use]
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// The address behind a lent port.
    #[must_use]
    pub fn port_address(&self, port: PortId) -> SocketAddr {
        let number = u16::try_from(port.0 * 2).expect("a scenario lends few ports");
        SocketAddr::new(self.address.ip(), FIRST_PORT + number)
    }

    fn plan(&mut self, now: Instant, later: Later) {
        self.serial += 1;
        self.later
            .insert((now + self.shell_delay, self.serial), later);
    }

    fn drain(&mut self, now: Instant) {
        while let Some(output) = self.b2bua.poll_output() {
            match output {
                Output::Transmit(transmit) => self.out.push_back(Datagram {
                    from: transmit.local.unwrap_or(self.address),
                    to: transmit.remote,
                    bytes: transmit.bytes,
                }),
                Output::Resolve(resolve) => self.plan(now, Later::Resolved(resolve)),
                Output::Prepare(prepare) => self.plan(now, Later::Prepared(prepare)),
                Output::Release { ports } => self.release(&ports),
                Output::Media(command) => self.command(now, command),
                Output::Cdr(cdr) => self.cdrs.push(*cdr),
                _ => self
                    .complaints
                    .push("an output that the shell doesn't know".to_owned()),
            }
        }
        // The moment at which it is found empty for the first time is the end of what it held.
        let empty = self.leftovers().is_empty();
        if !(empty && self.empty) {
            self.busy_until = Some(now);
        }
        self.empty = empty;
    }

    fn release(&mut self, ports: &[PortId]) {
        for port in ports {
            if !self.lent.remove(port) {
                self.complaints
                    .push(format!("{port:?} was given back but not lent"));
            }
            let used = |spec: &SessionSpec| {
                Side::BOTH
                    .iter()
                    .any(|side| spec.leg(*side).is_some_and(|leg| leg.port == *port))
            };
            if self.sessions.values().any(used) {
                self.complaints
                    .push(format!("{port:?} was given back while a session uses it"));
            }
        }
    }

    fn command(&mut self, now: Instant, command: MediaCommand) {
        self.commands.push((now, command.clone()));
        let fault = match command {
            MediaCommand::Start { session, spec } => {
                let fault = self.fault_of(&spec);
                self.plan(now, Later::Media(Box::new(MediaEvent::Started { session })));
                let twice = self.sessions.insert(session, spec).is_some();
                fault.or_else(|| twice.then(|| "started twice".to_owned()))
            }
            MediaCommand::Update { session, spec } => {
                let fault = self.fault_of(&spec);
                let known = self.sessions.insert(session, spec).is_some();
                fault.or_else(|| (!known).then(|| "changed before it began".to_owned()))
            }
            MediaCommand::Stop { session } => {
                self.taps.remove(&session);
                let stats = [LegStats::default(); 2];
                self.plan(
                    now,
                    Later::Media(Box::new(MediaEvent::Stopped { session, stats })),
                );
                let known = self.sessions.remove(&session).is_some();
                (!known).then(|| "stopped before it began".to_owned())
            }
            MediaCommand::StartRecording { session, .. } => {
                let known = self.sessions.contains_key(&session) && self.taps.insert(session);
                (!known).then(|| "a recording of nothing, or a second one".to_owned())
            }
            MediaCommand::StopRecording { session } => {
                let known = self.taps.remove(&session);
                (!known).then(|| "no recording to stop".to_owned())
            }
            _ => Some("a media command that the shell doesn't know".to_owned()),
        };
        self.complaints
            .extend(fault.map(|fault| format!("media session: {fault}")));
    }

    fn fault_of(&self, spec: &SessionSpec) -> Option<String> {
        let legs = Side::BOTH.iter().filter_map(|side| spec.leg(*side));
        let not_lent = |leg: &&LegSpec| !self.lent.contains(&leg.port);
        let zero = |leg: &&LegSpec| leg.remote.is_some_and(|to| to.ip().is_unspecified());
        let mut legs = legs.filter(|leg| not_lent(leg) || zero(leg));
        legs.next()
            .map(|leg| format!("port not lent, or media for nowhere: {leg:?}"))
    }

    fn prepare(&mut self, now: Instant, prepare: &Prepare) {
        let result = if self.lent.len() + prepare.ports > self.max_ports {
            Err(PrepareError::NoPort)
        } else if prepare.clip.is_some() && !self.has_clips {
            Err(PrepareError::NoClip)
        } else {
            let ports = (0..prepare.ports)
                .map(|_| {
                    let port = PortId(self.next_port);
                    self.next_port += 1;
                    self.lent.insert(port);
                    (port, self.port_address(port))
                })
                .collect();
            let clip = prepare.clip.as_ref().map(|_| ClipId(1));
            Ok(Prepared { ports, clip })
        };
        self.b2bua.handle_prepared(now, prepare.call, result);
    }

    fn resolve(&mut self, now: Instant, resolve: &Resolve) {
        let found = self.names.get(&resolve.host);
        let result = found
            .map(|address| vec![(resolve.transport.unwrap_or(Transport::Udp), *address)])
            .ok_or(ResolveError);
        self.b2bua.handle_resolved(now, resolve.id, result);
    }

    /// The call of a session.
    #[must_use]
    pub fn call_of(session: SessionId) -> CallId {
        CallId::from_u64(session.0)
    }
}

impl Machine for Server {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let flow = Flow {
            transport: Transport::Udp,
            local: to,
            remote: from,
            connection: 0,
        };
        self.b2bua.handle_message(now, flow, bytes);
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some(entry) = self
            .later
            .first_entry()
            .filter(|entry| entry.key().0 <= now)
        {
            match entry.remove() {
                Later::Prepared(prepare) => self.prepare(now, &prepare),
                Later::Media(event) => self.b2bua.handle_media(now, &event),
                Later::Resolved(resolve) => self.resolve(now, &resolve),
            }
            self.drain(now);
        }
        if self.b2bua.poll_timeout().is_some_and(|at| at <= now) {
            self.b2bua.handle_timeout(now);
            self.drain(now);
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        let later = self.later.first_key_value().map(|((at, _), _)| *at);
        later.into_iter().chain(self.b2bua.poll_timeout()).min()
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        self.out.pop_front()
    }

    fn handle_unreachable(&mut self, now: Instant, _from: SocketAddr, to: SocketAddr) {
        let failed = FailedFlow {
            transport: Transport::Udp,
            remote: to,
        };
        self.b2bua.handle_flow_failed(now, &failed);
        self.drain(now);
    }
}
