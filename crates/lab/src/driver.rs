//! Drives a caller or a callee with real SIP sockets, on a thread of its own.
//!
//! ```text
//!   SipSockets::receive --> Endpoint::handle_message --+
//!   timer (earliest due) --> handle_timeout, handle_due +--> handle_events --> poll_transmit --> send
//!   stop --------------> until idle, at most FAREWELL --+
//! ```

use std::io;
use std::net::SocketAddr;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::sip::{Limits, ListenSpec, NetEvent, Outgoing, SipSockets};
use sip::FailedFlow;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use crate::agent::Agent;
use crate::framing::{self, net_transport, sip_flow, sip_transport};

/// How long calls may still take to end after a driver was told to stop.
const FAREWELL: Duration = Duration::from_secs(5);

/// A machine on its thread.
#[derive(Debug)]
pub struct Driver<A> {
    local: SocketAddr,
    stop: oneshot::Sender<()>,
    thread: JoinHandle<A>,
}

/// When a driver ends by itself.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub enum Until {
    /// As soon as its machine is idle: a caller.
    Idle,
    /// Only when stopped: a callee.
    Stopped,
}

impl<A: Agent + Send + 'static> Driver<A> {
    /// Opens a UDP socket at `local` (port 0 takes a free one), makes the machine for the
    /// address it got, and runs it.
    ///
    /// # Errors
    /// When the socket or a thread cannot be had.
    pub fn start(
        local: SocketAddr,
        until: Until,
        make: impl FnOnce(SocketAddr) -> A,
    ) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let listen = ListenSpec {
            transport: net::sip::Transport::Udp,
            address: local,
        };
        let sockets = {
            let _inside = runtime.enter();
            SipSockets::bind(&[listen], Limits::default(), framing::maker())
                .map_err(io::Error::other)?
        };
        let local = sockets.bound()[0].address;
        let agent = make(local);
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("lab-sip".into())
            .spawn(move || runtime.block_on(run(agent, sockets, until, stopped)))?;
        Ok(Self {
            local,
            stop,
            thread,
        })
    }

    /// Where it listens.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.local
    }

    /// Whether it has ended by itself.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits for its last calls to end, at most some seconds, and returns the machine.
    ///
    /// # Panics
    /// When its thread has.
    #[must_use]
    pub fn stop(self) -> A {
        // It may have ended by itself.
        let _ = self.stop.send(());
        self.thread.join().expect("the machine does not panic")
    }
}

async fn run<A: Agent>(
    mut agent: A,
    mut sockets: SipSockets,
    until: Until,
    mut stopped: oneshot::Receiver<()>,
) -> A {
    let mut events = Vec::new();
    let mut farewell = None;
    loop {
        let now = Instant::now();
        for event in events.drain(..) {
            take(&mut agent, now, event);
        }
        if agent.endpoint().poll_timeout().is_some_and(|at| at <= now) {
            agent.endpoint().handle_timeout(now);
        }
        agent.handle_events(now);
        agent.handle_due(now);
        flush(&mut agent, now, &mut sockets);
        let ending = until == Until::Idle || farewell.is_some();
        if ending && agent.is_idle() || farewell.is_some_and(|at| at <= now) {
            return agent;
        }
        let due = [agent.endpoint().poll_timeout(), agent.due(), farewell];
        let wake = due.into_iter().flatten().min();
        tokio::select! {
            () = sockets.receive(&mut events) => {}
            () = until_instant(wake) => {}
            _ = &mut stopped, if farewell.is_none() => farewell = Some(now + FAREWELL),
        }
    }
}

async fn until_instant(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at.into()).await,
        None => std::future::pending().await,
    }
}

fn take<A: Agent>(agent: &mut A, now: Instant, event: NetEvent) {
    match event {
        NetEvent::Message { flow, bytes } => {
            agent.endpoint().handle_message(now, sip_flow(flow), &bytes);
        }
        NetEvent::SendFailed {
            transport, remote, ..
        } => {
            let failed = FailedFlow {
                transport: sip_transport(transport),
                remote,
            };
            agent.endpoint().handle_flow_failed(now, &failed);
        }
        // Over UDP there is no connection to lose.
        _ => {}
    }
    agent.handle_events(now);
}

fn flush<A: Agent>(agent: &mut A, now: Instant, sockets: &mut SipSockets) {
    // The lab calls addresses, not names.
    while let Some(resolve) = agent.endpoint().poll_resolve() {
        agent
            .endpoint()
            .handle_resolved(now, resolve.id, Err(sip::ResolveError));
        agent.handle_events(now);
    }
    while let Some(transmit) = agent.endpoint().poll_transmit() {
        sockets.send(Outgoing {
            transport: net_transport(transmit.transport),
            local: transmit.local,
            remote: transmit.remote,
            connection: transmit.connection,
            bytes: transmit.bytes,
        });
    }
}
