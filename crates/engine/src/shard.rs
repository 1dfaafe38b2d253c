//! A shard: sessions, their ports and deadlines, and one tick after the other.
//!
//! ```text
//! handle_command -> sessions        tick(now):  io.receive -> owner of the port -> Session -+
//!                                               timers due ------------------> Session -+  |
//! poll_event <----- events <--------------------------------------------------------------- +
//!                                               io.send, io.flush <- outgoing <- packets ---+
//! ```
//!
//! Sequential and without a clock of its own: the engine ticks shards on threads, a simulation in a
//! loop, and the same inputs give the same packets. A tick in which only packets pass allocates
//! nothing and takes no lock.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use audio::Registry;
use audio::clip::Clip;
use audio::tap::TapWriter;
use media::Session;
use media::command::{FailReason, MediaEvent, PortId, SessionId, SessionSpec, Side};
use slab::Slab;

use crate::io::{Outgoing, PacketIo};
use crate::ports::Ports;
use crate::timers::Timers;

/// Events of little consequence (keys, learned addresses) that wait at most.
const MAX_MINOR_EVENTS: usize = 4096;

/// What a shard is asked to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum EngineCommand {
    /// Begin a session; `Started` or `Failed` follows.
    Start {
        /// Which.
        session: SessionId,
        /// What it is.
        spec: SessionSpec,
        /// What it plays.
        clip: Option<Clip>,
        /// Where its frames go to be recorded.
        tap: Option<TapWriter>,
    },
    /// Change a session; `Failed` follows, and the session is over, when that can't be done.
    Update {
        /// Which.
        session: SessionId,
        /// What it is from now on.
        spec: SessionSpec,
        /// What it plays, if that is new.
        clip: Option<Clip>,
    },
    /// End a session; `Stopped` follows, unless it had failed before.
    Stop {
        /// Which.
        session: SessionId,
    },
    /// Begin (or, with `None`, end) handing frames to a recorder.
    SetTap {
        /// Of which session.
        session: SessionId,
        /// The tap.
        tap: Option<TapWriter>,
    },
}

impl EngineCommand {
    /// The session that the command is about.
    pub fn session(&self) -> SessionId {
        match self {
            Self::Start { session, .. }
            | Self::Update { session, .. }
            | Self::Stop { session }
            | Self::SetTap { session, .. } => *session,
        }
    }
}

/// What a tick did.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Work {
    /// Datagrams that came in for a session.
    pub received: u64,
    /// Datagrams that came in for a port without one.
    pub unowned: u64,
    /// Datagrams sent.
    pub sent: u64,
    /// Deadlines served.
    pub timeouts: u64,
}

struct Entry {
    id: SessionId,
    /// Distinguishes this session from a former one with the same key.
    serial: u64,
    session: Session,
    ports: [Option<PortId>; 2],
    /// The deadline of this session that waits in the heap.
    armed: Option<Instant>,
}

/// Sessions that are served by one thread at a time.
pub struct Shard {
    io: Box<dyn PacketIo>,
    registry: Arc<Registry>,
    seed: u64,
    serial: u64,
    sessions: Slab<Entry>,
    keys: HashMap<SessionId, u32>,
    ports: Ports,
    timers: Timers,
    outgoing: Outgoing,
    events: Events,
    /// The session being served, for whoever has to clear up after a panic.
    serving: Option<u32>,
}

/// Events that wait to be polled.
#[derive(Debug, Default)]
struct Events {
    queue: VecDeque<MediaEvent>,
    dropped: u64,
}

impl Events {
    /// Keeps an event. The beginning and end of a session and of a clip are never lost; there are
    /// no more of them than commands that the owner of the shard has let in.
    fn push(&mut self, event: MediaEvent) {
        let minor = matches!(
            event,
            MediaEvent::Digit { .. } | MediaEvent::SourceLearned { .. }
        );
        if minor && self.queue.len() >= MAX_MINOR_EVENTS {
            self.dropped += 1;
        } else {
            self.queue.push_back(event);
        }
    }

    fn take_from(&mut self, session: &mut Session) {
        while let Some(event) = session.poll_event() {
            self.push(event);
        }
    }
}

impl Shard {
    /// A shard without sessions. From `seed` and a session's number comes what that session draws
    /// by lot (SSRC, first sequence number and timestamp: RFC 3550, 5.1).
    pub fn new(io: Box<dyn PacketIo>, registry: Arc<Registry>, seed: u64) -> Self {
        Self {
            io,
            registry,
            seed,
            serial: 0,
            sessions: Slab::new(),
            keys: HashMap::new(),
            ports: Ports::default(),
            timers: Timers::default(),
            outgoing: Outgoing::default(),
            events: Events::default(),
            serving: None,
        }
    }

    /// Does what is asked for. Cost: may allocate.
    pub fn handle_command(&mut self, now: Instant, command: EngineCommand) {
        match command {
            EngineCommand::Start {
                session,
                spec,
                clip,
                tap,
            } => {
                if let Err(reason) = self.start(now, session, &spec, clip, tap) {
                    self.events.push(MediaEvent::Failed { session, reason });
                }
            }
            EngineCommand::Update {
                session,
                spec,
                clip,
            } => {
                if let Some(key) = self.keys.get(&session).copied()
                    && let Err(reason) = self.update(now, key, &spec, clip)
                {
                    self.remove(now, key);
                    self.events.push(MediaEvent::Failed { session, reason });
                }
            }
            EngineCommand::Stop { session } => {
                if let Some(key) = self.keys.get(&session).copied() {
                    self.stop(now, key);
                }
            }
            EngineCommand::SetTap { session, tap } => {
                if let Some(key) = self.keys.get(&session) {
                    self.sessions[*key as usize].session.set_tap(now, tap);
                }
            }
        }
    }

    /// Takes in what has arrived, serves what is due, and sends what that gives.
    ///
    /// Cost: proportional to packets and due deadlines, not to sessions; no allocation once the
    /// buffers have grown to their usual size.
    pub fn tick(&mut self, now: Instant) -> Work {
        let mut work = Work::default();
        self.receive(now, &mut work);
        self.fire(now, &mut work);
        work.sent = self.outgoing.drain_into(&mut *self.io);
        self.io.flush();
        work
    }

    /// The next event, if there is one.
    pub fn poll_event(&mut self) -> Option<MediaEvent> {
        self.events.queue.pop_front()
    }

    /// Puts back an event that there was no room for.
    pub(crate) fn unpoll_event(&mut self, event: MediaEvent) {
        self.events.queue.push_front(event);
    }

    /// The earliest deadline of a session, or a moment before it. Packets come in between.
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.timers.next()
    }

    /// Ends all sessions, as if each had been stopped.
    pub fn stop_all(&mut self, now: Instant) {
        for id in self
            .sessions
            .iter()
            .map(|(_, entry)| entry.id)
            .collect::<Vec<_>>()
        {
            self.handle_command(now, EngineCommand::Stop { session: id });
        }
    }

    /// Sessions.
    pub fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Events that wait to be polled.
    pub fn backlog(&self) -> usize {
        self.events.queue.len()
    }

    /// Events of little consequence that were dropped because nobody polled.
    pub fn events_dropped(&self) -> u64 {
        self.events.dropped
    }

    /// Deadlines in the heap, stale ones included.
    pub fn timers(&self) -> usize {
        self.timers.len()
    }

    /// After a panic in `tick` or `handle_command`: lets go of the session being served. Returns it.
    pub(crate) fn abandon(&mut self) -> Option<SessionId> {
        let key = self.serving.take()?;
        let session = self.release(key)?.id;
        self.events.push(MediaEvent::Failed {
            session,
            reason: FailReason::Session,
        });
        Some(session)
    }

    fn start(
        &mut self,
        now: Instant,
        id: SessionId,
        spec: &SessionSpec,
        clip: Option<Clip>,
        tap: Option<TapWriter>,
    ) -> Result<(), FailReason> {
        if self.keys.contains_key(&id) {
            return Err(FailReason::Session);
        }
        let seed = mix(self.seed ^ mix(id.0));
        let mut session = Session::new(id, spec, &self.registry, clip, seed, now)?;
        if tap.is_some() {
            session.set_tap(now, tap);
        }
        self.serial += 1;
        let entry = Entry {
            id,
            serial: self.serial,
            session,
            ports: [None; 2],
            armed: None,
        };
        let key = u32::try_from(self.sessions.insert(entry)).map_err(|_| FailReason::Overload)?;
        self.keys.insert(id, key);
        if let Err(reason) = self.bind(key, spec) {
            self.release(key);
            return Err(reason);
        }
        self.events.push(MediaEvent::Started { session: id });
        let entry = &mut self.sessions[key as usize];
        self.events.take_from(&mut entry.session);
        arm(&mut self.timers, entry, key, now);
        Ok(())
    }

    fn update(
        &mut self,
        now: Instant,
        key: u32,
        spec: &SessionSpec,
        clip: Option<Clip>,
    ) -> Result<(), FailReason> {
        self.bind(key, spec)?;
        let entry = &mut self.sessions[key as usize];
        if clip.is_some() {
            entry.session.set_clip(clip);
        }
        self.serving = Some(key);
        let updated = entry.session.update(now, spec);
        self.serving = None;
        updated?;
        self.events.take_from(&mut entry.session);
        arm(&mut self.timers, entry, key, now);
        Ok(())
    }

    /// Attaches the ports that a specification names and detaches those that it no longer does.
    fn bind(&mut self, key: u32, spec: &SessionSpec) -> Result<(), FailReason> {
        let wanted = Side::BOTH.map(|side| spec.leg(side).map(|leg| leg.port));
        let held = &mut self.sessions[key as usize].ports;
        // First all that is given up, since a port may change sides.
        for (held, wanted) in held.iter_mut().zip(wanted) {
            if *held != wanted
                && let Some(port) = held.take()
            {
                self.ports.free(port);
                self.io.detach(port);
            }
        }
        for side in Side::BOTH {
            let held = &mut held[side.index()];
            let Some(port) = wanted[side.index()].filter(|_| held.is_none()) else {
                continue;
            };
            if !self.ports.take(port, (key, side)) {
                return Err(FailReason::Port(port));
            }
            if let Err(error) = self.io.attach(port) {
                self.ports.free(port);
                tracing::warn!(port = port.0, %error, "media port can't be attached");
                return Err(FailReason::Port(port));
            }
            *held = Some(port);
        }
        Ok(())
    }

    fn stop(&mut self, now: Instant, key: u32) {
        if let Some(mut entry) = self.remove(now, key) {
            self.events.take_from(&mut entry.session);
            let (session, stats) = (entry.id, entry.session.stats());
            self.events.push(MediaEvent::Stopped { session, stats });
        }
    }

    /// Takes a session out; its recording ends now.
    fn remove(&mut self, now: Instant, key: u32) -> Option<Entry> {
        let mut entry = self.release(key)?;
        entry.session.set_tap(now, None);
        Some(entry)
    }

    /// Takes a session out of every table. Its deadlines go stale in the heap.
    fn release(&mut self, key: u32) -> Option<Entry> {
        let mut entry = self.sessions.try_remove(key as usize)?;
        self.keys.remove(&entry.id);
        for port in entry.ports.iter_mut().filter_map(Option::take) {
            self.ports.free(port);
            self.io.detach(port);
        }
        Some(entry)
    }

    fn receive(&mut self, now: Instant, work: &mut Work) {
        let Self {
            io,
            sessions,
            ports,
            timers,
            outgoing,
            events,
            serving,
            ..
        } = self;
        io.receive(&mut |port, from, packet| {
            let Some((key, side)) = ports.owner(port) else {
                work.unowned += 1;
                return;
            };
            let Some(entry) = sessions.get_mut(key as usize) else {
                return;
            };
            work.received += 1;
            *serving = Some(key);
            entry
                .session
                .handle_packet(now, side, from, packet, outgoing);
            events.take_from(&mut entry.session);
            arm(timers, entry, key, now);
            *serving = None;
        });
    }

    fn fire(&mut self, now: Instant, work: &mut Work) {
        let Self {
            sessions,
            timers,
            outgoing,
            events,
            serving,
            ..
        } = self;
        while let Some((at, key, serial)) = timers.pop_due(now) {
            let Some(entry) = sessions.get_mut(key as usize) else {
                continue;
            };
            if entry.serial != serial || entry.armed != Some(at) {
                continue;
            }
            entry.armed = None;
            if entry.session.poll_timeout().is_some_and(|due| due <= now) {
                work.timeouts += 1;
                *serving = Some(key);
                entry.session.handle_timeout(now, outgoing);
                events.take_from(&mut entry.session);
                *serving = None;
            }
            // What is still due comes up at the next tick: one visit each.
            arm(timers, entry, key, now + Duration::from_nanos(1));
        }
    }
}

/// Enters the session's deadline, not before `earliest`, unless one as early waits already.
fn arm(timers: &mut Timers, entry: &mut Entry, key: u32, earliest: Instant) {
    if let Some(at) = entry.session.poll_timeout().map(|at| at.max(earliest))
        && entry.armed.is_none_or(|armed| at < armed)
    {
        entry.armed = Some(at);
        timers.arm((at, key, entry.serial));
    }
}

/// The finaliser of SplitMix64: neighbouring numbers become unrelated ones.
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
