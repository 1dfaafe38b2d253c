//! [`SipSockets`]: the listeners, the connection table, and the one queue of events.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::net::{SocketAddr, TcpListener as StdListener};

use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Duration, sleep, timeout};

use super::connection::{self, Connection};
use super::udp::UdpListener;
use super::{
    BindError, CloseReason, Flow, Inner, Limits, ListenSpec, MakeFramer, NetEvent, Outgoing,
    Transport,
};

/// All SIP sockets of the server.
pub struct SipSockets {
    limits: Limits,
    make_framer: MakeFramer,
    bound: Vec<ListenSpec>,
    udp: Vec<UdpListener>,
    connections: HashMap<u64, Connection>,
    /// The connection that serves a remote address, the newest when there are several.
    by_remote: BTreeMap<SocketAddr, u64>,
    last_connection: u64,
    refused: u64,
    sender: mpsc::Sender<Inner>,
    receiver: mpsc::Receiver<Inner>,
    /// Events that `send` itself gave rise to; at most one a call.
    own: VecDeque<NetEvent>,
    tasks: JoinSet<()>,
}

/// Most events handed over by one [`SipSockets::receive`], so that timers and media get their turn.
const BATCH: usize = 256;

impl SipSockets {
    /// Opens every listener and starts to read.
    ///
    /// # Errors
    /// [`BindError`] for the first listener that can't be had.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub fn bind(
        listen: &[ListenSpec],
        limits: Limits,
        make_framer: MakeFramer,
    ) -> Result<Self, BindError> {
        let (sender, receiver) = mpsc::channel(limits.events);
        let mut sockets = Self {
            limits,
            make_framer,
            bound: Vec::new(),
            udp: Vec::new(),
            connections: HashMap::new(),
            by_remote: BTreeMap::new(),
            last_connection: 0,
            refused: 0,
            sender,
            receiver,
            own: VecDeque::new(),
            tasks: JoinSet::new(),
        };
        for spec in listen {
            sockets.listen(*spec).map_err(|source| BindError {
                spec: *spec,
                source,
            })?;
        }
        Ok(sockets)
    }

    /// The listeners in the order asked for, with the ports they got.
    pub fn bound(&self) -> &[ListenSpec] {
        &self.bound
    }

    /// Stream connections that are open or opening.
    pub fn connections(&self) -> usize {
        self.connections.len()
    }

    /// Connections closed on accept because of [`Limits::connections`].
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Waits until something has happened and appends it to `events`, with what else is there
    /// already. Dropping the future loses nothing.
    pub async fn receive(&mut self, events: &mut Vec<NetEvent>) {
        let before = events.len();
        events.extend(self.own.drain(..));
        while events.len() == before {
            // We hold a sender ourselves, so the channel never ends.
            if let Some(inner) = self.receiver.recv().await {
                self.take(inner, events);
            }
        }
        for _ in 1..BATCH {
            let Ok(inner) = self.receiver.try_recv() else {
                break;
            };
            self.take(inner, events);
        }
        while self.tasks.try_join_next().is_some() {}
    }

    /// Sends one message; never waits. What goes wrong comes out of [`Self::receive`].
    pub fn send(&mut self, outgoing: Outgoing) {
        let (transport, remote) = (outgoing.transport, outgoing.remote);
        let sent = match transport {
            Transport::Udp => self.send_datagram(outgoing),
            Transport::Tcp => self.send_on_stream(outgoing),
        };
        if let Err(error) = sent {
            let error = error.kind();
            self.own.push_back(NetEvent::SendFailed {
                transport,
                remote,
                error,
            });
        }
    }

    /// Waits until every stream has taken what was sent, or the time is over: the last thing
    /// before the sockets are dropped. Datagrams are gone by then, save under a full send buffer.
    pub async fn flush(&self, limit: Duration) {
        let all = async {
            for connection in self.connections.values() {
                connection.flushed().await;
            }
        };
        // A peer that does not read loses what it did not read.
        let _ = timeout(limit, all).await;
    }

    fn listen(&mut self, spec: ListenSpec) -> io::Result<()> {
        let address = match spec.transport {
            Transport::Udp => {
                let (buffer, sender) = (self.limits.udp_buffer, self.sender.clone());
                let listener = UdpListener::start(spec.address, buffer, sender, &mut self.tasks)?;
                let local = listener.local();
                self.udp.push(listener);
                local
            }
            Transport::Tcp => {
                let listener = listen_tcp(spec.address)?;
                let local = listener.local_addr()?;
                self.tasks.spawn(accept(listener, self.sender.clone()));
                local
            }
        };
        self.bound.push(ListenSpec { address, ..spec });
        Ok(())
    }

    fn take(&mut self, inner: Inner, events: &mut Vec<NetEvent>) {
        match inner {
            Inner::Accepted {
                stream,
                local,
                remote,
            } => {
                if self.connections.len() >= self.limits.connections {
                    self.refused += 1;
                    return;
                }
                let task = self.add_connection(local, remote);
                self.tasks.spawn(task.serve(stream));
            }
            Inner::Event(event) => {
                match &event {
                    NetEvent::Closed { flow, .. } if !self.remove(flow.connection) => return,
                    // Left over from a connection that was given up in the meantime.
                    NetEvent::Message { flow, .. }
                        if flow.connection != 0
                            && !self.connections.contains_key(&flow.connection) =>
                    {
                        return;
                    }
                    _ => {}
                }
                events.push(event);
            }
        }
    }

    fn add_connection(&mut self, local: SocketAddr, remote: SocketAddr) -> connection::Task {
        self.last_connection += 1;
        let id = self.last_connection;
        let flow = Flow {
            transport: Transport::Tcp,
            local,
            remote,
            connection: id,
        };
        let framer = (self.make_framer)(remote);
        let (connection, task) = connection::new(flow, self.limits, framer, self.sender.clone());
        self.connections.insert(id, connection);
        self.by_remote.insert(remote, id);
        task
    }

    fn remove(&mut self, id: u64) -> bool {
        let Some(connection) = self.connections.remove(&id) else {
            return false;
        };
        if self.by_remote.get(&connection.remote) == Some(&id) {
            self.by_remote.remove(&connection.remote);
        }
        true
    }

    fn send_datagram(&self, outgoing: Outgoing) -> io::Result<()> {
        let fits = |udp: &&UdpListener| udp.local().is_ipv4() == outgoing.remote.is_ipv4();
        let named = self
            .udp
            .iter()
            .find(|udp| Some(udp.local()) == outgoing.local);
        let listener = named.filter(fits).or_else(|| self.udp.iter().find(fits));
        let listener = listener.ok_or(io::ErrorKind::AddrNotAvailable)?;
        listener.send(outgoing.remote, outgoing.bytes)
    }

    fn send_on_stream(&mut self, outgoing: Outgoing) -> io::Result<()> {
        let named = outgoing
            .connection
            .filter(|id| self.connections.contains_key(id));
        let open = named.or_else(|| self.by_remote.get(&outgoing.remote).copied());
        let id = match open {
            Some(id) => id,
            None => self.open(outgoing.local, outgoing.remote)?,
        };
        let connection = &self.connections[&id];
        if connection.send(outgoing.bytes).is_err() {
            let remote = connection.remote;
            let local = outgoing.local.unwrap_or(remote);
            self.remove(id);
            let flow = Flow {
                transport: Transport::Tcp,
                local,
                remote,
                connection: id,
            };
            self.own.push_back(NetEvent::Closed {
                flow,
                reason: CloseReason::SlowReader,
            });
        }
        Ok(())
    }

    fn open(&mut self, local: Option<SocketAddr>, remote: SocketAddr) -> io::Result<u64> {
        if self.connections.len() >= self.limits.connections {
            return Err(io::ErrorKind::QuotaExceeded.into());
        }
        let task = self.add_connection(local.unwrap_or(remote), remote);
        self.tasks.spawn(task.connect(local));
        Ok(self.last_connection)
    }
}

impl fmt::Debug for SipSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SipSockets")
            .field("bound", &self.bound)
            .field("connections", &self.connections.len())
            .finish_non_exhaustive()
    }
}

fn listen_tcp(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::STREAM,
        Some(Protocol::TCP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    // Connections of an earlier run in TIME-WAIT must not keep the port; a live listener does.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(1024)?;
    TcpListener::from_std(StdListener::from(socket))
}

async fn accept(listener: TcpListener, events: mpsc::Sender<Inner>) {
    let Ok(local) = listener.local_addr() else {
        return;
    };
    loop {
        match listener.accept().await {
            Ok((stream, remote)) => {
                let local = stream.local_addr().unwrap_or(local);
                if events
                    .send(Inner::Accepted {
                        stream,
                        local,
                        remote,
                    })
                    .await
                    .is_err()
                {
                    return;
                }
            }
            // Out of descriptors, or a peer that was gone before we looked: try again, not hot.
            Err(error) => {
                tracing::warn!(%local, %error, "accepting a connection failed");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}
