//! Which readiness mechanism costs a shard least per packet, at a 5 ms tick?
//!
//! 1,000 sockets on loopback; every 5 ms another quarter of them gets one packet (so each carries
//! a 20 ms stream), then the receiving side looks and reads. Only looking and reading is timed, as
//! CPU time of this thread: every packet's share of it, empty looks and all.
//!
//!     cargo run --release -p net --example readiness
//!
//! Ways: `epoll` level-triggered with one read per event (what `net::rtp::ShardSockets` does),
//! `mio` edge-triggered, read until "would block", and `scan`, which reads every socket every tick
//! and asks nobody. (`polling` is out: its registration is an unsafe function.)

use std::net::UdpSocket;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::event::{Timespec, epoll};
use rustix::time::{ClockId, clock_gettime};

const SOCKETS: usize = 1000;
const TICKS: usize = 400;
const ROUNDS: usize = 5;

fn main() -> std::io::Result<()> {
    println!("ns per packet, {SOCKETS} streams, {TICKS} ticks, {ROUNDS} alternated rounds");
    let mut rows = [("epoll", vec![]), ("mio", vec![]), ("scan", vec![])];
    for _ in 0..ROUNDS {
        rows[0].1.push(measure(Epoll::new)?);
        rows[1].1.push(measure(Mio::new)?);
        rows[2].1.push(measure(|sockets| Ok(Scan(sockets)))?);
    }
    for (name, mut times) in rows {
        times.sort_by(f64::total_cmp);
        println!(
            "{name:8} median {:6.0}  least {:6.0}",
            times[ROUNDS / 2],
            times[0]
        );
    }
    Ok(())
}

trait Look {
    /// Reads what is ready; how many packets.
    fn look(&mut self, buffer: &mut [u8]) -> usize;
}

fn measure<L: Look>(
    make: impl FnOnce(Vec<UdpSocket>) -> std::io::Result<L>,
) -> std::io::Result<f64> {
    let sender = UdpSocket::bind("127.0.0.1:0")?;
    let mut sockets = Vec::new();
    let mut addresses = Vec::new();
    for _ in 0..SOCKETS {
        let socket = UdpSocket::bind("127.0.0.1:0")?;
        socket.set_nonblocking(true)?;
        addresses.push(socket.local_addr()?);
        sockets.push(socket);
    }
    let mut look = make(sockets)?;
    let (mut buffer, mut packets, mut spent) = ([0; 2048], 0, Duration::ZERO);
    for tick in 0..TICKS {
        for address in addresses.iter().skip(tick % 4).step_by(4) {
            sender.send_to(&[0; 172], address)?;
        }
        let before = cpu();
        packets += look.look(&mut buffer);
        spent += cpu() - before;
    }
    assert!(
        packets >= SOCKETS * TICKS / 4 * 99 / 100,
        "only {packets} packets were read"
    );
    Ok(spent.as_nanos() as f64 / packets as f64)
}

fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

struct Epoll(Vec<UdpSocket>, OwnedFd, Vec<epoll::Event>);

impl Epoll {
    fn new(sockets: Vec<UdpSocket>) -> std::io::Result<Self> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (index, socket) in sockets.iter().enumerate() {
            let data = epoll::EventData::new_u64(index as u64);
            epoll::add(&set, socket, data, epoll::EventFlags::IN)?;
        }
        Ok(Self(sockets, set, Vec::with_capacity(512)))
    }
}

impl Look for Epoll {
    fn look(&mut self, buffer: &mut [u8]) -> usize {
        let now = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        self.2.clear();
        let spare = rustix::buffer::spare_capacity(&mut self.2);
        let _ = epoll::wait(&self.1, spare, Some(&now));
        let mut packets = 0;
        for event in &self.2 {
            packets += usize::from(self.0[event.data.u64() as usize].recv_from(buffer).is_ok());
        }
        packets
    }
}

struct Mio(Vec<mio::net::UdpSocket>, mio::Poll, mio::Events);

impl Mio {
    fn new(sockets: Vec<UdpSocket>) -> std::io::Result<Self> {
        let poll = mio::Poll::new()?;
        let mut sockets: Vec<_> = sockets
            .into_iter()
            .map(mio::net::UdpSocket::from_std)
            .collect();
        for (index, socket) in sockets.iter_mut().enumerate() {
            poll.registry()
                .register(socket, mio::Token(index), mio::Interest::READABLE)?;
        }
        Ok(Self(sockets, poll, mio::Events::with_capacity(512)))
    }
}

impl Look for Mio {
    fn look(&mut self, buffer: &mut [u8]) -> usize {
        let _ = self.1.poll(&mut self.2, Some(Duration::ZERO));
        let mut packets = 0;
        for event in &self.2 {
            while self.0[event.token().0].recv_from(buffer).is_ok() {
                packets += 1;
            }
        }
        packets
    }
}

struct Scan(Vec<UdpSocket>);

impl Look for Scan {
    fn look(&mut self, buffer: &mut [u8]) -> usize {
        let mut packets = 0;
        for socket in &self.0 {
            packets += usize::from(socket.recv_from(buffer).is_ok());
        }
        packets
    }
}
