//! One stream connection: a reader and a writer in one task, and the bounded queue into it.
//!
//! ```text
//! peer --> read --> Framer --> NetEvent::Message      a message begun must end within `message`,
//!                     | ping                          silence ends the connection after `idle`
//! peer <-- write <-- queue <-- Connection::send       full queue or stalled write: SlowReader
//! ```
//!
//! Whichever half ends first ends the task, which reports [`NetEvent::Closed`] exactly once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout, timeout_at};

use super::{CloseReason, Flow, Frame, Framer, Inner, Limits, NetEvent};

/// Our hold on a connection's task.
#[derive(Debug)]
pub(super) struct Connection {
    pub(super) remote: SocketAddr,
    queue: Queue,
    /// Dropped to end the task at once.
    _stop: oneshot::Sender<()>,
}

/// The messages that wait for the peer, bounded in number and bytes.
#[derive(Debug, Clone)]
struct Queue {
    messages: mpsc::Sender<Arc<[u8]>>,
    bytes: Arc<AtomicUsize>,
    max_bytes: usize,
    /// Told by the writer when nothing is queued any more.
    emptied: Arc<Notify>,
}

/// How long a closing connection waits for its last words to be written.
const FAREWELL: Duration = Duration::from_secs(1);

/// The peer's queue has no room.
pub(super) struct Full;

impl Connection {
    pub(super) fn send(&self, bytes: Arc<[u8]>) -> Result<(), Full> {
        self.queue.push(bytes)
    }

    /// Waits until the peer's socket has taken all that was sent.
    pub(super) async fn flushed(&self) {
        self.queue.flushed().await;
    }
}

impl Queue {
    fn push(&self, bytes: Arc<[u8]>) -> Result<(), Full> {
        let len = bytes.len();
        if self.bytes.fetch_add(len, Ordering::Relaxed) + len > self.max_bytes {
            return Err(Full);
        }
        self.messages.try_send(bytes).map_err(|_| Full)
    }

    async fn say_farewell(&self, words: Vec<u8>) {
        if !words.is_empty() && self.push(words.into()).is_ok() {
            // Nobody is owed more than this try.
            let _ = timeout(FAREWELL, self.flushed()).await;
        }
    }

    async fn flushed(&self) {
        loop {
            // Made before the look, so that a queue emptied in between still wakes it.
            let emptied = self.emptied.notified();
            if self.bytes.load(Ordering::Relaxed) == 0 {
                return;
            }
            emptied.await;
        }
    }
}

/// The parts of a connection that its task owns.
pub(super) struct Task {
    pub(super) flow: Flow,
    pub(super) limits: Limits,
    framer: Box<dyn Framer>,
    events: mpsc::Sender<Inner>,
    queue: Queue,
    waiting: mpsc::Receiver<Arc<[u8]>>,
    stop: oneshot::Receiver<()>,
}

/// A connection and the task that serves it, not spawned yet.
pub(super) fn new(
    flow: Flow,
    limits: Limits,
    framer: Box<dyn Framer>,
    events: mpsc::Sender<Inner>,
) -> (Connection, Task) {
    let (messages, waiting) = mpsc::channel(limits.queued_messages);
    let queue = Queue {
        messages,
        bytes: Arc::default(),
        max_bytes: limits.queued_bytes,
        emptied: Arc::default(),
    };
    let (stopper, stop) = oneshot::channel();
    let connection = Connection {
        remote: flow.remote,
        queue: queue.clone(),
        _stop: stopper,
    };
    (
        connection,
        Task {
            flow,
            limits,
            framer,
            events,
            queue,
            waiting,
            stop,
        },
    )
}

impl Task {
    /// Serves an accepted connection to its end.
    pub(super) async fn serve(self, stream: TcpStream) {
        // Small messages go out at once. A socket that refuses this is dead and says so below.
        let _ = stream.set_nodelay(true);
        let (reading, writing) = stream.into_split();
        let Self {
            flow,
            limits,
            framer,
            events,
            queue,
            waiting,
            stop,
        } = self;
        let reason = tokio::select! {
            reason = read(reading, framer, flow, limits, &events, &queue) => reason,
            reason = write(writing, waiting, limits, &queue) => reason,
            // Our side has given the connection up and has reported it.
            _ = stop => return,
        };
        let _ = events
            .send(Inner::Event(NetEvent::Closed { flow, reason }))
            .await;
    }

    /// Opens a connection, from `local`'s address when there is one, and serves it.
    pub(super) async fn connect(mut self, local: Option<SocketAddr>) {
        let connecting = timeout(self.limits.connect, connect(local, self.flow.remote));
        let opened = tokio::select! {
            opened = connecting => opened.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())),
            _ = &mut self.stop => return,
        };
        match opened {
            Ok(stream) => {
                if let Ok(local) = stream.local_addr() {
                    self.flow.local = local;
                }
                self.serve(stream).await;
            }
            Err(error) => {
                let reason = CloseReason::NotConnected(error.kind());
                let closed = NetEvent::Closed {
                    flow: self.flow,
                    reason,
                };
                let _ = self.events.send(Inner::Event(closed)).await;
            }
        }
    }
}

async fn connect(local: Option<SocketAddr>, remote: SocketAddr) -> io::Result<TcpStream> {
    let socket = if remote.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    if let Some(mut local) = local.filter(|local| local.is_ipv4() == remote.is_ipv4()) {
        local.set_port(0);
        socket.bind(local)?;
    }
    socket.connect(remote).await
}

async fn read(
    mut stream: impl AsyncRead + Unpin,
    mut framer: Box<dyn Framer>,
    flow: Flow,
    limits: Limits,
    events: &mpsc::Sender<Inner>,
    queue: &Queue,
) -> CloseReason {
    let mut buffer = vec![0; 16 * 1024];
    // A message owed: the first one from accept on, later ones from their first byte on.
    let mut message_due = Some(Instant::now() + limits.message);
    loop {
        let idle_due = Instant::now() + limits.idle;
        let due = message_due.map_or(idle_due, |due| due.min(idle_due));
        let len = match timeout_at(due, stream.read(&mut buffer)).await {
            Err(_) if message_due.is_some() => return CloseReason::SlowSender,
            Err(_) => return CloseReason::Idle,
            Ok(Err(error)) => return CloseReason::Failed(error.kind()),
            Ok(Ok(0)) => return CloseReason::ByPeer,
            Ok(Ok(len)) => len,
        };
        framer.push(&buffer[..len]);
        let mut whole = false;
        loop {
            let event = match framer.next() {
                Err(error) => {
                    queue.say_farewell(error.farewell).await;
                    return CloseReason::Framing;
                }
                Ok(None) => break,
                Ok(Some(Frame::KeepAlivePing)) => {
                    if queue.push(Arc::from(*b"\r\n")).is_err() {
                        return CloseReason::SlowReader;
                    }
                    whole = true;
                    continue;
                }
                Ok(Some(Frame::Message(bytes))) => NetEvent::Message { flow, bytes },
            };
            whole = true;
            if events.send(Inner::Event(event)).await.is_err() {
                return CloseReason::ByPeer;
            }
        }
        message_due = match (framer.is_partial(), whole) {
            (false, true) => None,
            (true, true) => Some(Instant::now() + limits.message),
            (_, false) => message_due.or_else(|| Some(Instant::now() + limits.message)),
        };
    }
}

async fn write(
    mut stream: impl AsyncWrite + Unpin,
    mut waiting: mpsc::Receiver<Arc<[u8]>>,
    limits: Limits,
    queue: &Queue,
) -> CloseReason {
    // The reader keeps a sender of this channel, so it never ends before the task does.
    while let Some(bytes) = waiting.recv().await {
        match timeout(limits.write, stream.write_all(&bytes)).await {
            Err(_) => return CloseReason::SlowReader,
            Ok(Err(error)) => return CloseReason::Failed(error.kind()),
            Ok(Ok(())) => {}
        }
        if queue.bytes.fetch_sub(bytes.len(), Ordering::Relaxed) == bytes.len() {
            queue.emptied.notify_waiters();
        }
    }
    CloseReason::ByPeer
}
