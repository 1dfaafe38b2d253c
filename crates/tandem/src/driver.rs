//! The driver: one task that shovels between the network, the signalling machine, the media
//! engine and the recorder. It decides nothing about calls.
//!
//! ```text
//!  net::sip ----messages, failures---->|         |--Transmit-----> net::sip
//!  net::resolve ------addresses------->|         |--Resolve------> net::resolve
//!  clips -------------audio read------>|  B2bua  |--Prepare------> port pool, clips (answered)
//!  engine ----------MediaEvent-------->|         |--Release------> port pool
//!  clock, at poll_timeout() ---------->|         |--Media--------> engine (a tap to the recorder)
//!  signals ---------drain, reload----->|         |--Cdr----------> log, file
//! ```
//!
//! After every input all outputs are drained. The clock is read once per turn; timers that are due
//! run every turn, so a flood of messages can't hold them up.

mod media_plane;
mod queue;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use b2bua::{B2bua, CallId, Output, Prepare};
use dialplan::Plan;
use engine::Engine;
use media::command::PortId;
use net::resolve::{ResolveError, Resolver};
use net::rtp::PortPool;
use net::sip::{NetEvent, SipSockets};
use recorder::Recorder;
use tokio::sync::Notify;

use self::queue::CommandQueue;
use crate::clips::Clips;
use crate::records::CdrLog;
use crate::signals::{Signal, Signals};
use crate::{memory, notify, translate};

/// Where SIP is spoken when nobody says otherwise (RFC 3261 section 19.1.2).
const SIP_PORT: u16 = 5060;
/// How long a full engine queue is left alone before the next try.
const RETRY: Duration = Duration::from_millis(5);
/// Calls after which an idle server looks whether memory can go back.
const WORTH_TRIMMING: u32 = 100;
/// What calls that were hung up at the deadline get for their BYEs.
const FAREWELL: Duration = Duration::from_secs(2);
/// What slow streams get to take the last messages.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Everything the running server is made of.
pub(crate) struct Driver {
    pub(crate) b2bua: B2bua,
    pub(crate) sip: SipSockets,
    pub(crate) resolver: Resolver<(sip::ResolveId, sip::Transport)>,
    pub(crate) ports: PortPool,
    pub(crate) engine: Engine,
    pub(crate) recorder: Recorder,
    pub(crate) clips: Clips,
    pub(crate) records: CdrLog,
    pub(crate) signals: Signals,
    /// Notified by the engine and the recorder when they have something to say.
    pub(crate) woken: Arc<Notify>,
    pub(crate) reload: Box<dyn Fn() -> Result<Arc<Plan>>>,
    /// How long calls may go on after the first signal to stop.
    pub(crate) drain_for: Duration,
    pub(crate) state: State,
}

/// What the driver itself remembers.
#[derive(Debug, Default)]
pub(crate) struct State {
    phase: Phase,
    /// Commands that the engine had no room for, in order.
    waiting: CommandQueue,
    /// Calls whose clip is being read, with what they asked for.
    preparing: BTreeMap<CallId, Prepare>,
    holders: BTreeMap<PortId, CallId>,
    /// Calls since memory was given back.
    since_trim: u32,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Phase {
    #[default]
    Running,
    /// No new calls; at this moment those that are left are hung up.
    Draining(Instant),
    /// Every call was hung up; at this moment nobody is waited for any longer.
    Parting(Instant),
    Stopped,
}

impl Driver {
    /// Runs until the server has been stopped by signals.
    pub(crate) async fn run(mut self) {
        let mut events = Vec::new();
        loop {
            let now = Instant::now();
            self.on_time(now);
            self.drain(now);
            if self.is_over(now) {
                break;
            }
            let due = self.next_due(now).map(tokio::time::Instant::from_std);
            tokio::select! {
                () = self.sip.receive(&mut events) => {
                    let now = Instant::now();
                    for event in events.drain(..) {
                        self.on_net(now, event);
                        self.drain(now);
                    }
                }
                (id, answer) = self.resolver.next() => self.on_resolved(Instant::now(), id, answer),
                (call, read) = self.clips.loaded() => {
                    if let Err(error) = &read {
                        tracing::warn!(%call, %error, "a clip cannot be played");
                    }
                    self.on_clip(Instant::now(), call, read.is_ok());
                }
                () = self.woken.notified() => {}
                signal = self.signals.next() => self.on_signal(Instant::now(), signal),
                () = at(due) => {}
            }
        }
        self.part().await;
    }

    /// Whoever is still in a call is told, nobody is waited for, and every call gets its record.
    async fn part(&mut self) {
        let now = Instant::now();
        self.b2bua.hang_up_all(now);
        self.drain(now);
        self.sip.flush(LAST_WORDS).await;
        self.engine.shutdown();
        self.drain(now);
        self.recorder.shutdown();
    }

    /// Whatever is due by the clock.
    fn on_time(&mut self, now: Instant) {
        if self.b2bua.poll_timeout().is_some_and(|due| due <= now) {
            self.b2bua.handle_timeout(now);
        }
        self.give_memory_back();
        if matches!(self.state.phase, Phase::Draining(end) if end <= now) {
            let calls = self.b2bua.counts().calls;
            if calls > 0 {
                tracing::warn!(calls, "the deadline is here: hanging up");
            }
            self.b2bua.hang_up_all(now);
            self.state.phase = Phase::Parting(now + FAREWELL);
        }
    }

    /// When nothing goes on any more, the room of the busy time goes back to the system.
    fn give_memory_back(&mut self) {
        if self.state.since_trim >= WORTH_TRIMMING && self.b2bua.counts().is_idle() {
            self.state.since_trim = 0;
            self.b2bua.shrink();
            memory::trim();
        }
    }

    /// Whether the server has been stopped and owes nobody anything: no call is left and no BYE
    /// waits for its answer. Asked when every queue has been emptied: what was in one may have
    /// been the last thing to wait for.
    fn is_over(&self, now: Instant) -> bool {
        let counts = self.b2bua.counts();
        let is_idle = counts.calls == 0 && counts.sip.usages == 0;
        match self.state.phase {
            Phase::Running => false,
            Phase::Draining(_) => is_idle,
            Phase::Parting(end) => is_idle || end <= now,
            Phase::Stopped => true,
        }
    }

    fn next_due(&self, now: Instant) -> Option<Instant> {
        let phase = match self.state.phase {
            Phase::Draining(end) | Phase::Parting(end) => Some(end),
            Phase::Running | Phase::Stopped => None,
        };
        let retry = (!self.state.waiting.is_empty()).then(|| now + RETRY);
        [self.b2bua.poll_timeout(), phase, retry]
            .into_iter()
            .flatten()
            .min()
    }

    fn on_signal(&mut self, now: Instant, signal: Signal) {
        match (signal, self.state.phase) {
            (Signal::Stop, Phase::Running) => {
                let calls = self.b2bua.counts().calls;
                tracing::info!(
                    calls,
                    "stopping: no new calls; a second signal stops at once"
                );
                self.b2bua.drain();
                notify::tell(notify::STOPPING);
                self.state.phase = Phase::Draining(now + self.drain_for);
            }
            (Signal::Stop, _) => self.state.phase = Phase::Stopped,
            (Signal::Reload, _) => match (self.reload)() {
                Ok(plan) => {
                    self.b2bua.replace_plan(plan);
                    tracing::info!("the dialplan was read again");
                }
                Err(error) => tracing::error!("the old dialplan stays in force: {error:#}"),
            },
        }
    }

    fn on_net(&mut self, now: Instant, event: NetEvent) {
        match event {
            NetEvent::Message { flow, bytes } => {
                self.b2bua
                    .handle_message(now, translate::flow(flow), &bytes);
            }
            NetEvent::Closed { flow, reason } => {
                tracing::debug!(remote = %flow.remote, ?reason, "connection closed");
                if let Some(failed) = translate::cut_off(flow, reason) {
                    self.b2bua.handle_flow_failed(now, &failed);
                }
            }
            NetEvent::SendFailed {
                transport,
                remote,
                error,
            } => {
                tracing::debug!(%transport, %remote, %error, "sending failed");
                self.b2bua
                    .handle_flow_failed(now, &translate::unreachable(transport, remote));
            }
            _ => {}
        }
    }

    fn on_resolved(
        &mut self,
        now: Instant,
        (id, transport): (sip::ResolveId, sip::Transport),
        answer: std::result::Result<Vec<SocketAddr>, ResolveError>,
    ) {
        let answer = match answer {
            Ok(addresses) => Ok(addresses
                .into_iter()
                .map(|address| (transport, address))
                .collect()),
            Err(error) => {
                tracing::debug!(%error, "a name does not resolve");
                Err(sip::ResolveError)
            }
        };
        self.b2bua.handle_resolved(now, id, answer);
    }

    /// Empties every queue that has something for us, until nothing gives rise to more.
    fn drain(&mut self, now: Instant) {
        self.retry_commands();
        loop {
            while let Some(output) = self.b2bua.poll_output() {
                self.carry_out(now, output);
            }
            while let Some(event) = self.recorder.poll_event() {
                self.on_recorder(event);
            }
            match self.engine.poll_event() {
                Some(event) => self.b2bua.handle_media(now, &event),
                None => break,
            }
        }
    }

    fn carry_out(&mut self, now: Instant, output: Output) {
        match output {
            Output::Transmit(transmit) => self.transmit(now, transmit),
            Output::Resolve(resolve) => {
                let transport = resolve.transport.unwrap_or(sip::Transport::Udp);
                let port = resolve.port.unwrap_or(SIP_PORT);
                self.resolver
                    .start((resolve.id, transport), resolve.host, port);
            }
            Output::Prepare(prepare) => self.prepare(now, prepare),
            Output::Release { ports } => self.release(&ports),
            Output::Media(command) => self.command(command),
            Output::Cdr(cdr) => {
                self.state.since_trim = self.state.since_trim.saturating_add(1);
                self.records.write(|| cdr.to_json());
            }
            _ => {}
        }
    }

    fn transmit(&mut self, now: Instant, transmit: sip::Transmit) {
        let (transport, remote) = (transmit.transport, transmit.remote);
        match translate::outgoing(transmit) {
            Some(outgoing) => self.sip.send(outgoing),
            None => {
                tracing::debug!(?transport, %remote, "no such transport is built in");
                self.b2bua
                    .handle_flow_failed(now, &sip::FailedFlow { transport, remote });
            }
        }
    }
}

/// Waits for a moment, or for ever.
async fn at(due: Option<tokio::time::Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}
