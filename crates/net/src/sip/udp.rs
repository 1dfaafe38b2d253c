//! One UDP listener: a reader task that drains the socket each time it wakes, and sends that only
//! wait (in a second task) while the kernel's buffer is full.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use socket2::{Domain, Protocol, Socket, Type};
use tokio::io::Interest;
use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Flow, Inner, NetEvent, Transport, icmp};

/// Longest UDP payload (RFC 768: a length field of 16 bits).
const MAX_DATAGRAM: usize = 65_535;
/// Datagrams that may wait for a full send buffer.
const BACKLOG: usize = 1024;

type Datagram = (SocketAddr, Arc<[u8]>);

#[derive(Debug)]
pub(super) struct UdpListener {
    socket: Arc<UdpSocket>,
    local: SocketAddr,
    backlog: mpsc::Sender<Datagram>,
}

impl UdpListener {
    /// Binds and starts the listener's tasks.
    pub(super) fn start(
        address: SocketAddr,
        buffer: usize,
        events: mpsc::Sender<Inner>,
        tasks: &mut JoinSet<()>,
    ) -> io::Result<Self> {
        let socket = Arc::new(bind(address, buffer)?);
        let local = socket.local_addr()?;
        let (backlog, waiting) = mpsc::channel(BACKLOG);
        tasks.spawn(read(Arc::clone(&socket), local, events.clone()));
        tasks.spawn(write(Arc::clone(&socket), waiting, events));
        Ok(Self {
            socket,
            local,
            backlog,
        })
    }

    pub(super) fn local(&self) -> SocketAddr {
        self.local
    }

    /// Sends now, or queues while the kernel's buffer is full.
    pub(super) fn send(&self, remote: SocketAddr, bytes: Arc<[u8]>) -> io::Result<()> {
        match self.socket.try_send_to(&bytes, remote) {
            // An ICMP error for an earlier datagram; this one deserves its own try.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                self.socket.try_send_to(&bytes, remote).map(drop)
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.backlog.try_send((remote, bytes)).map_err(|_| error)
            }
            other => other.map(drop),
        }
    }
}

fn bind(address: SocketAddr, buffer: usize) -> io::Result<UdpSocket> {
    let socket = Socket::new(
        Domain::for_address(address),
        Type::DGRAM,
        Some(Protocol::UDP),
    )?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    grow_buffers(&socket, buffer)?;
    icmp::enable(&socket, address)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    UdpSocket::from_std(socket.into())
}

/// The forced sizes need CAP_NET_ADMIN; without it the kernel grants up to its own maximum.
fn grow_buffers(socket: &Socket, bytes: usize) -> io::Result<()> {
    use rustix::net::sockopt;
    if sockopt::set_socket_recv_buffer_size_force(socket, bytes).is_err() {
        socket.set_recv_buffer_size(bytes)?;
    }
    socket.set_send_buffer_size(bytes)
}

async fn read(socket: Arc<UdpSocket>, local: SocketAddr, events: mpsc::Sender<Inner>) {
    let mut buffer = vec![0; MAX_DATAGRAM];
    while let Ok(ready) = socket.ready(Interest::READABLE | Interest::ERROR).await {
        if ready.is_error() && report_unreachable(&socket, &events).await.is_err() {
            return;
        }
        loop {
            match socket.try_recv_from(&mut buffer) {
                Ok((len, remote)) => {
                    let bytes = &buffer[..len];
                    if is_keep_alive(bytes) {
                        continue;
                    }
                    let flow = Flow {
                        transport: Transport::Udp,
                        local,
                        remote,
                        connection: 0,
                    };
                    let event = NetEvent::Message {
                        flow,
                        bytes: bytes.to_vec(),
                    };
                    if events.send(Inner::Event(event)).await.is_err() {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                // An ICMP error for something sent earlier says nothing about this socket; it is
                // reported once, so reading on can't spin.
                Err(error) => tracing::trace!(%local, %error, "udp read failed"),
            }
        }
    }
}

/// Empties the socket's error queue. Fails when nobody wants events any more.
async fn report_unreachable(
    socket: &UdpSocket,
    events: &mpsc::Sender<Inner>,
) -> Result<(), mpsc::error::SendError<Inner>> {
    // Ends with `WouldBlock`, which also makes tokio wait for the next error.
    while let Ok(next) = socket.try_io(Interest::ERROR, || icmp::next_unreachable(socket)) {
        let Some((remote, error)) = next else {
            continue;
        };
        let error = error.kind();
        let failed = NetEvent::SendFailed {
            transport: Transport::Udp,
            remote,
            error,
        };
        events.send(Inner::Event(failed)).await?;
    }
    Ok(())
}

async fn write(
    socket: Arc<UdpSocket>,
    mut waiting: mpsc::Receiver<Datagram>,
    events: mpsc::Sender<Inner>,
) {
    while let Some((remote, bytes)) = waiting.recv().await {
        if let Err(error) = socket.send_to(&bytes, remote).await {
            let error = error.kind();
            let failed = NetEvent::SendFailed {
                transport: Transport::Udp,
                remote,
                error,
            };
            if events.send(Inner::Event(failed)).await.is_err() {
                return;
            }
        }
    }
}

/// Phones keep a NAT's binding open with an empty datagram, a CRLF or two, or zero bytes.
fn is_keep_alive(bytes: &[u8]) -> bool {
    bytes.len() <= 4
        && bytes
            .iter()
            .all(|byte| matches!(byte, b'\r' | b'\n' | b' ' | 0))
}
