//! The sockets of one shard: which are ready, read, send.
//!
//! ```text
//! receive():  epoll_wait(0) --ready--> recv once each --packet--> sink
//!                 ^                        |
//!                 +---- until the list is not full, or the tick's budget is spent
//! ```
//!
//! **Readiness** is epoll, level-triggered, with one `recv` per socket reported: what stays queued
//! is reported again at the next tick. Measured by `examples/readiness.rs` (CPU to look and read,
//! 1,000 streams of 20 ms on a 5 ms tick, AMD EPYC Zen 3): epoll 580 ns a packet; mio, which is
//! edge-triggered and must read until "would block", 676; reading every socket each tick 977.
//!
//! **Bounds**: a tick reads at most [`ShardSockets::BUDGET`] packets; a flood on one socket costs
//! one packet per tick per ready list and can't starve the others. A packet longer than
//! [`ShardSockets::MAX_PACKET`] is counted and dropped. Nothing is allocated per packet.
//!
//! Driven by a shard's tick, on one thread at a time.

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::event::{Timespec, epoll};

use super::PortPool;
use super::pool::slot_index;

/// The RTP sockets that one shard reads and sends on.
pub struct ShardSockets {
    pool: PortPool,
    epoll: OwnedFd,
    /// By slot of the port id; dense, so a packet finds its socket with one index.
    attached: Vec<Option<Attached>>,
    scratch: Box<[u8]>,
    counters: Arc<ShardCounters>,
}

#[derive(Debug)]
struct Attached {
    port: u32,
    socket: Arc<UdpSocket>,
}

/// What a shard's sockets did; written by the shard, read by anyone.
#[derive(Debug, Default)]
pub struct ShardCounters {
    /// Packets handed to the sink.
    pub received: AtomicU64,
    /// Packets longer than [`ShardSockets::MAX_PACKET`], dropped.
    pub oversize: AtomicU64,
    /// Reads that failed, ICMP errors among them; the socket goes on.
    pub receive_errors: AtomicU64,
    /// Packets the kernel took.
    pub sent: AtomicU64,
    /// Packets dropped because the socket's send buffer was full (EAGAIN).
    pub send_full: AtomicU64,
    /// Packets dropped because of any other send error, or because the port isn't attached.
    pub send_errors: AtomicU64,
}

impl ShardSockets {
    /// Longest packet taken, in bytes: an Ethernet frame's worth and room for 255 bytes of tunnel.
    pub const MAX_PACKET: usize = 1755;
    /// Most packets read in one tick. At 50 packets a second and a 5 ms tick 4,096 is what
    /// 16,000 streams bring.
    pub const BUDGET: usize = 4096;
    const EVENTS: usize = 512;

    /// An empty set over the pool that hands out the ports.
    ///
    /// # Errors
    /// When the system has no descriptor left for epoll.
    pub fn new(pool: PortPool) -> io::Result<Self> {
        Ok(Self {
            pool,
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            attached: Vec::new(),
            // One byte more than allowed, so that a longer packet is told from one that fits.
            scratch: vec![0; Self::MAX_PACKET + 1].into_boxed_slice(),
            counters: Arc::default(),
        })
    }

    /// Where this shard counts.
    pub fn counters(&self) -> Arc<ShardCounters> {
        Arc::clone(&self.counters)
    }

    /// Starts to read a port that the pool has handed out. Packets queued since then come first.
    ///
    /// # Errors
    /// `NotFound` for a port that isn't held, `AlreadyExists` for one attached here before, else
    /// what epoll says.
    pub fn attach(&mut self, port: u32) -> io::Result<()> {
        let socket = self.pool.socket(port).ok_or(io::ErrorKind::NotFound)?;
        let index = slot_index(port);
        if self.attached.len() <= index {
            self.attached.resize_with(index + 1, || None);
        }
        if let Some(older) = &self.attached[index] {
            if older.port == port {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            self.detach(older.port);
        }
        let data = epoll::EventData::new_u64(u64::from(port));
        epoll::add(&self.epoll, &socket, data, epoll::EventFlags::IN)?;
        self.attached[index] = Some(Attached { port, socket });
        Ok(())
    }

    /// Stops to read a port; its socket closes once the pool has released it too.
    pub fn detach(&mut self, port: u32) {
        let Some(entry) = self.attached.get_mut(slot_index(port)) else {
            return;
        };
        if let Some(attached) = entry.take_if(|attached| attached.port == port) {
            // The pool may keep the socket open, so closing doesn't take it out of epoll for us.
            // It can only fail for a socket that isn't in the set, and then there's nothing to do.
            let _ = epoll::delete(&self.epoll, &attached.socket);
        }
    }

    /// How many ports are attached.
    pub fn len(&self) -> usize {
        self.attached.iter().flatten().count()
    }

    /// Whether no port is attached.
    pub fn is_empty(&self) -> bool {
        self.attached.iter().all(Option::is_none)
    }

    /// Hands every packet that is ready to `sink`, up to [`Self::BUDGET`]: port, source, bytes
    /// (which the sink may rewrite in place). Never waits.
    pub fn receive(&mut self, mut sink: impl FnMut(u32, SocketAddr, &mut [u8])) {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let mut space = [const { MaybeUninit::uninit() }; Self::EVENTS];
        let mut budget = Self::BUDGET;
        while budget > 0 {
            // Interrupted is the only error that a valid set can give; the next tick looks again.
            let Ok((ready, _)) = epoll::wait(&self.epoll, &mut space, Some(&now)) else {
                return;
            };
            for event in ready.iter().take(budget) {
                self.receive_one(event.data.u64() as u32, &mut sink);
            }
            budget = budget.saturating_sub(ready.len());
            if ready.len() < Self::EVENTS {
                return;
            }
        }
    }

    /// Sends one packet from a port's socket. Never waits; what can't be sent is counted.
    pub fn send(&mut self, port: u32, to: SocketAddr, packet: &[u8]) {
        let counter = match self.socket(port).map(|socket| send(socket, to, packet)) {
            Some(Ok(())) => &self.counters.sent,
            Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                &self.counters.send_full
            }
            Some(Err(_)) | None => &self.counters.send_errors,
        };
        add_one(counter);
    }

    /// Sends what was held back. Nothing is, with one system call per packet; batching back ends
    /// fill this in.
    pub fn flush(&mut self) {}

    fn socket(&self, port: u32) -> Option<&UdpSocket> {
        let attached = self.attached.get(slot_index(port))?.as_ref()?;
        (attached.port == port).then_some(&*attached.socket)
    }

    fn receive_one(&mut self, port: u32, sink: &mut impl FnMut(u32, SocketAddr, &mut [u8])) {
        let Some(attached) = self.attached.get(slot_index(port)).and_then(Option::as_ref) else {
            return;
        };
        match attached.socket.recv_from(&mut self.scratch) {
            Ok((len, _)) if len > Self::MAX_PACKET => add_one(&self.counters.oversize),
            Ok((len, from)) => {
                add_one(&self.counters.received);
                sink(attached.port, from, &mut self.scratch[..len]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => add_one(&self.counters.receive_errors),
        }
    }
}

impl fmt::Debug for ShardSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShardSockets")
            .field("attached", &self.len())
            .finish_non_exhaustive()
    }
}

/// An ICMP error for an earlier packet is reported by the next send, which then sends nothing:
/// that packet deserves its own try.
fn send(socket: &UdpSocket, to: SocketAddr, packet: &[u8]) -> io::Result<()> {
    match socket.send_to(packet, to) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            socket.send_to(packet, to)
        }
        other => other,
    }
    .map(drop)
}

/// Only the shard writes, so a load and a store do; an atomic add would cost a locked instruction.
fn add_one(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::super::{MediaAddresses, PortRange};
    use super::*;

    /// Loopback address of this file's tests alone; the whole range is free there.
    fn pool(last: u8) -> PortPool {
        let address: MediaAddresses = format!("127.84.18.{last}").parse().expect("an address");
        PortPool::new(address, PortRange::default()).expect("loopback binds")
    }

    fn outsider() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").expect("loopback binds")
    }

    fn received(shard: &mut ShardSockets) -> Vec<(u32, SocketAddr, Vec<u8>)> {
        let mut all = Vec::new();
        shard.receive(|port, from, bytes| all.push((port, from, bytes.to_vec())));
        all
    }

    #[test]
    fn shards_may_move_between_threads() {
        fn is_send<T: Send>() {}
        is_send::<ShardSockets>();
    }

    #[test]
    fn packets_come_with_their_port_and_source_and_go_out_from_the_port() {
        let pool = pool(1);
        let mut shard = ShardSockets::new(pool.clone()).expect("epoll");
        let [a, b] = [(); 2].map(|()| pool.allocate().expect("free"));
        shard.attach(a.port).expect("held");
        shard.attach(b.port).expect("held");
        let peer = outsider();
        let peer_address = peer.local_addr().expect("bound");
        peer.send_to(b"to b", b.rtp).expect("loopback");
        assert_eq!(
            received(&mut shard),
            [(b.port, peer_address, b"to b".to_vec())]
        );

        shard.send(a.port, peer_address, b"from a");
        let mut buffer = [0; 16];
        let (len, from) = peer.recv_from(&mut buffer).expect("sent above");
        assert_eq!((&buffer[..len], from), (&b"from a"[..], a.rtp));
        assert_eq!(shard.counters.sent.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_burst_on_one_socket_is_read_one_a_tick_and_nothing_is_lost() {
        let pool = pool(2);
        let mut shard = ShardSockets::new(pool.clone()).expect("epoll");
        let [a, b] = [(); 2].map(|()| pool.allocate().expect("free"));
        shard.attach(a.port).expect("held");
        shard.attach(b.port).expect("held");
        let peer = outsider();
        for n in 0..3 {
            peer.send_to(&[n], a.rtp).expect("loopback");
        }
        peer.send_to(&[9], b.rtp).expect("loopback");
        let ticks: Vec<Vec<u8>> = (0..4)
            .map(|_| {
                received(&mut shard)
                    .into_iter()
                    .map(|(_, _, bytes)| bytes[0])
                    .collect()
            })
            .collect();
        assert_eq!(ticks, [vec![0, 9], vec![1], vec![2], vec![]]);
    }

    #[test]
    fn more_ready_sockets_than_one_look_reports_are_all_read_in_the_tick() {
        let pool = pool(3);
        let mut shard = ShardSockets::new(pool.clone()).expect("epoll");
        let peer = outsider();
        let count = ShardSockets::EVENTS + 20;
        for _ in 0..count {
            let lease = pool.allocate().expect("free");
            shard.attach(lease.port).expect("held");
            peer.send_to(b"x", lease.rtp).expect("loopback");
        }
        let mut ports: Vec<u32> = received(&mut shard)
            .iter()
            .map(|(port, ..)| *port)
            .collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), count);
    }

    #[test]
    fn an_icmp_error_stops_neither_reading_nor_sending() {
        let pool = pool(4);
        let mut shard = ShardSockets::new(pool.clone()).expect("epoll");
        let lease = pool.allocate().expect("free");
        shard.attach(lease.port).expect("held");
        let peer = outsider();
        let closed = outsider().local_addr().expect("bound");
        for _ in 0..3 {
            shard.send(lease.port, closed, b"nobody there");
        }
        peer.send_to(b"still here", lease.rtp).expect("loopback");
        let got: Vec<_> = (0..4).flat_map(|_| received(&mut shard)).collect();
        assert_eq!(got.len(), 1);
        assert_eq!(shard.counters.sent.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_is_too_long_or_belongs_to_no_port_is_counted_and_dropped() {
        let pool = pool(5);
        let mut shard = ShardSockets::new(pool.clone()).expect("epoll");
        let lease = pool.allocate().expect("free");
        shard.attach(lease.port).expect("held");
        assert_eq!(
            shard.attach(lease.port).map_err(|e| e.kind()),
            Err(io::ErrorKind::AlreadyExists)
        );
        let peer = outsider();
        peer.send_to(&[0; ShardSockets::MAX_PACKET + 1], lease.rtp)
            .expect("loopback");
        peer.send_to(&[0; ShardSockets::MAX_PACKET], lease.rtp)
            .expect("loopback");
        let got: Vec<_> = (0..2).flat_map(|_| received(&mut shard)).collect();
        assert_eq!(
            got.iter()
                .map(|(.., bytes)| bytes.len())
                .collect::<Vec<_>>(),
            [ShardSockets::MAX_PACKET]
        );
        assert_eq!(shard.counters.oversize.load(Ordering::Relaxed), 1);

        shard.detach(lease.port);
        assert!(shard.is_empty());
        shard.send(lease.port, peer.local_addr().expect("bound"), b"x");
        assert_eq!(shard.counters.send_errors.load(Ordering::Relaxed), 1);
        pool.release(lease.port);
        assert_eq!(
            shard.attach(lease.port).map_err(|e| e.kind()),
            Err(io::ErrorKind::NotFound)
        );
    }
}
