//! The media thread: drives [`Streams`] with real sockets, on time, and watches itself.
//!
//! ```text
//!   MediaHandle (caller, callee) --commands--> thread: every 2 ms at the latest
//!                                               receive all that is ready
//!                                               send all that is due
//!                                               wait for the next frame, or a command
//!   Generator::stop <---------- LegReports, timeliness, socket counters
//! ```
//!
//! One thread carries some thousands of legs: a packet costs a few microseconds, most of them
//! the kernel's. When it falls behind, [`MediaReport::timeliness`] says so and the run is void.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use net::rtp::{PoolError, PortPool, ShardSockets};

use crate::mark::MarkKey;
use crate::stream::{Agreement, LegReport, StreamSpec};
use crate::streams::{Streams, Timeliness};

/// Longest wait between two looks at the sockets.
const TICK: Duration = Duration::from_millis(2);

/// One leg's media, as callers and callees name it.
#[derive(Copy, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LegId {
    number: u64,
    port: u32,
}

impl LegId {
    /// A name: a number of its own within the run, and the port it is on.
    #[must_use]
    pub fn new(number: u64, port: u32) -> Self {
        Self { number, port }
    }

    /// Its port, by the number that [`Streams`] knows it by.
    #[must_use]
    pub fn port(self) -> u32 {
        self.port
    }
}

/// A leg that is open, and where it hears.
#[derive(Copy, Clone, Debug)]
pub struct OpenLeg {
    /// Its name.
    pub id: LegId,
    /// The address to put into SDP.
    pub address: SocketAddr,
}

/// Where callers and callees get their media from.
pub trait MediaPlane {
    /// Opens a leg: from now on what comes to its address is heard.
    ///
    /// # Errors
    /// When no port can be had.
    fn open(&mut self, spec: StreamSpec) -> Result<OpenLeg, PoolError>;
    /// Lets it speak.
    fn start(&mut self, leg: LegId, agreed: Agreement);
    /// Lets it say its last frames.
    fn finish(&mut self, leg: LegId);
    /// Ends it; its report is kept.
    fn close(&mut self, leg: LegId);
}

#[derive(Copy, Clone)]
enum Command {
    Open(LegId, StreamSpec),
    Start(LegId, Agreement),
    Finish(LegId),
    Close(LegId),
}

/// The media plane of a [`Generator`]; clones share it.
#[derive(Clone)]
pub struct MediaHandle {
    pool: PortPool,
    numbers: Arc<AtomicU64>,
    commands: Sender<Command>,
}

impl MediaHandle {
    fn send(&self, command: Command) {
        // The thread ends only when every handle is gone, or by a panic that `stop` reports.
        let _ = self.commands.send(command);
    }
}

impl MediaPlane for MediaHandle {
    fn open(&mut self, spec: StreamSpec) -> Result<OpenLeg, PoolError> {
        let lease = self.pool.allocate()?;
        let number = self.numbers.fetch_add(1, Ordering::Relaxed);
        let id = LegId::new(number, lease.port);
        self.send(Command::Open(id, spec));
        Ok(OpenLeg {
            id,
            address: lease.rtp,
        })
    }

    fn start(&mut self, leg: LegId, agreed: Agreement) {
        self.send(Command::Start(leg, agreed));
    }

    fn finish(&mut self, leg: LegId) {
        self.send(Command::Finish(leg));
    }

    fn close(&mut self, leg: LegId) {
        self.send(Command::Close(leg));
    }
}

impl fmt::Debug for MediaHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaHandle").finish_non_exhaustive()
    }
}

/// What the media thread did.
#[derive(Debug, Default)]
pub struct MediaReport {
    /// Every leg that was closed.
    pub legs: Vec<(LegId, LegReport)>,
    /// How timely frames left.
    pub timeliness: Timeliness,
    /// Datagrams for legs that were closed already.
    pub strays: u64,
    /// Packets that the kernel refused to send.
    pub send_errors: u64,
    /// Reads that failed.
    pub receive_errors: u64,
    /// Legs whose socket could not be read.
    pub unattached: u64,
}

/// The media thread.
#[derive(Debug)]
pub struct Generator {
    handle: MediaHandle,
    thread: JoinHandle<MediaReport>,
}

impl Generator {
    /// Starts the thread over a pool of ports.
    ///
    /// # Errors
    /// When the system has no descriptor or thread left.
    pub fn start(key: MarkKey, pool: PortPool) -> io::Result<Self> {
        let (commands, receiver) = mpsc::channel();
        let (ready, is_ready) = mpsc::channel();
        let ports = pool.clone();
        let thread = std::thread::Builder::new()
            .name("lab-media".into())
            .spawn(move || {
                // The set of sockets stays on the thread that made it.
                let sockets = match ShardSockets::new(ports.clone()) {
                    Ok(sockets) => sockets,
                    Err(error) => {
                        let _ = ready.send(Err(error));
                        return MediaReport::default();
                    }
                };
                let _ = ready.send(Ok(()));
                let worker = Worker {
                    commands: receiver,
                    sockets,
                    pool: ports,
                    streams: Streams::new(key),
                    report: MediaReport::default(),
                };
                worker.run()
            })?;
        is_ready.recv().map_err(io::Error::other)??;
        let handle = MediaHandle {
            pool,
            numbers: Arc::default(),
            commands,
        };
        Ok(Self { handle, thread })
    }

    /// A media plane for a caller or a callee.
    #[must_use]
    pub fn handle(&self) -> MediaHandle {
        self.handle.clone()
    }

    /// Waits until every other handle is gone and returns what was said and heard.
    ///
    /// # Panics
    /// When the media thread has.
    #[must_use]
    pub fn stop(self) -> MediaReport {
        drop(self.handle);
        self.thread.join().expect("the media thread does not panic")
    }
}

struct Worker {
    commands: Receiver<Command>,
    sockets: ShardSockets,
    pool: PortPool,
    streams: Streams,
    report: MediaReport,
}

impl Worker {
    fn run(mut self) -> MediaReport {
        loop {
            match self.commands.recv_timeout(self.pause()) {
                Ok(command) => {
                    self.carry_out(command);
                    while let Ok(command) = self.commands.try_recv() {
                        self.carry_out(command);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.receive();
            self.send();
        }
        self.report.timeliness = self.streams.timeliness();
        self.report.strays = self.streams.strays();
        let counters = self.sockets.counters();
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        self.report.send_errors = of(&counters.send_errors) + of(&counters.send_full);
        self.report.receive_errors = of(&counters.receive_errors);
        self.report
    }

    fn pause(&self) -> Duration {
        let due = self.streams.poll_timeout();
        due.map_or(TICK, |due| {
            due.saturating_duration_since(Instant::now()).min(TICK)
        })
    }

    fn carry_out(&mut self, command: Command) {
        match command {
            Command::Open(leg, spec) => {
                self.report.unattached += u64::from(self.sockets.attach(leg.port).is_err());
                self.streams.open(leg.port, spec);
            }
            Command::Start(leg, agreed) => {
                self.streams.start(Instant::now(), leg.port, agreed);
            }
            Command::Finish(leg) => self.streams.finish(leg.port),
            Command::Close(leg) => {
                // What has arrived belongs to the leg.
                self.receive();
                self.sockets.detach(leg.port);
                self.pool.release(leg.port);
                let closed = self.streams.close(leg.port);
                self.report.legs.extend(closed.map(|report| (leg, report)));
            }
        }
    }

    /// Reads until nothing is there: one look reads one packet of each socket.
    fn receive(&mut self) {
        let streams = &mut self.streams;
        loop {
            let now = Instant::now();
            let mut any = false;
            self.sockets.receive(|port, _, packet| {
                streams.handle_packet(now, port, packet);
                any = true;
            });
            if !any {
                break;
            }
        }
    }

    fn send(&mut self) {
        let sockets = &mut self.sockets;
        let counters = sockets.counters();
        self.streams
            .handle_timeout(Instant::now(), |port, to, packet| {
                let before = counters.sent.load(Ordering::Relaxed);
                sockets.send(port, to, packet);
                counters.sent.load(Ordering::Relaxed) > before
            });
        self.sockets.flush();
    }
}
