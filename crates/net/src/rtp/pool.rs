//! The port pool: one for the server, asked at call set-up, shared with every shard.
//!
//! ```text
//!          fresh pairs, in order          released pairs, oldest first
//! allocate <---- cursor .. end      then  <---- front [ r r r r ] back <---- release
//! ```
//!
//! A pair that was used comes back only after every other pair has been used once, so that late
//! packets of an old call find a closed socket and not a new call. A port that somebody else holds
//! goes to the back of the queue and the next one is tried: a busy port never fails a call while
//! any other is free.
//!
//! Driven by the driver (`allocate`, `release`) and by shards (`socket`), all rare. The table is
//! behind one mutex because shards look ports up on their own threads; it is held for a bind at
//! the longest, no other lock is taken inside it, and no packet passes it.

use std::collections::VecDeque;
use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::MediaAddresses;

/// The local ports that RTP may use; both ends included.
///
/// The default, 16384-32767, ends below Linux's ephemeral range (32768-60999): a range inside it
/// loses about one bind in 400 to somebody's outgoing connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortRange {
    first: u16,
    last: u16,
}

/// Why a port range is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RangeError {
    /// Not of the form `16384-32767`.
    #[error("`{0}` is not a port range such as 16384-32767")]
    Unreadable(Box<str>),
    /// No even port with an odd one after it is inside.
    #[error("the range {first}-{last} holds no pair of an even and the next odd port")]
    NoPair {
        /// First port asked for.
        first: u16,
        /// Last port asked for.
        last: u16,
    },
}

impl PortRange {
    /// A range from `first` to `last`, both included.
    ///
    /// # Errors
    /// [`RangeError::NoPair`] when it holds no even and odd pair; port 0 is never part of one.
    pub fn new(first: u16, last: u16) -> Result<Self, RangeError> {
        let range = Self { first, last };
        if first == 0 || range.pairs() == 0 {
            Err(RangeError::NoPair { first, last })
        } else {
            Ok(range)
        }
    }

    /// How many pairs of an even and the next odd port the range holds.
    pub fn pairs(&self) -> u32 {
        let first = u32::from(self.first).next_multiple_of(2);
        (u32::from(self.last) + 1).saturating_sub(first) / 2
    }

    /// The even port of the pair with this index.
    fn rtp_port(&self, pair: u32) -> u16 {
        let port = u32::from(self.first).next_multiple_of(2) + 2 * pair;
        u16::try_from(port).expect("a pair index is below pairs(), so its port is in the range")
    }
}

impl Default for PortRange {
    fn default() -> Self {
        Self {
            first: 16_384,
            last: 32_767,
        }
    }
}

impl FromStr for PortRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let unreadable = || RangeError::Unreadable(text.into());
        let (first, last) = text.split_once('-').ok_or_else(unreadable)?;
        let port = |text: &str| text.trim().parse::<u16>().map_err(|_| unreadable());
        Self::new(port(first)?, port(last)?)
    }
}

impl fmt::Display for PortRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

/// A bound port pair, held until [`PortPool::release`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// What commands and shards call it: a place, dense from 0, in the low 20 bits, and above it
    /// how often that place was lent, so that an old id never means a new lease.
    pub port: u32,
    /// Where RTP is received: an even port.
    pub rtp: SocketAddr,
    /// The odd port after it, kept free for RTCP.
    pub rtcp: SocketAddr,
}

/// Why no port could be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// Every pair is held by a call or by another program.
    #[error("all {pairs} RTP port pairs are in use ({held} by calls)")]
    Exhausted {
        /// Pairs in the pool.
        pairs: u64,
        /// Pairs that calls hold.
        held: usize,
    },
    /// The system refused the socket; the address isn't this machine's, or descriptors ran out.
    #[error("cannot bind RTP on {address}: {source}")]
    Bind {
        /// The address that was tried.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
}

/// The pool of RTP ports; clones share it.
#[derive(Debug, Clone)]
pub struct PortPool(Arc<Mutex<Pool>>);

#[derive(Debug)]
struct Pool {
    addresses: MediaAddresses,
    range: PortRange,
    /// Pairs from here on were never used.
    fresh: u64,
    released: VecDeque<u64>,
    slots: Vec<Slot>,
    free_slots: VecDeque<u32>,
}

#[derive(Debug, Default)]
struct Slot {
    generation: u32,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    pair: u64,
    socket: Arc<UdpSocket>,
}

/// Bits of a port id that say which slot; the rest counts how often the slot was lent.
const SLOT_BITS: u32 = 20;
const SLOT_MASK: u32 = (1 << SLOT_BITS) - 1;

/// Which entry of a dense table belongs to a port id.
pub(super) fn slot_index(port: u32) -> usize {
    (port & SLOT_MASK) as usize
}

impl PortPool {
    /// A pool over every address and every pair of the range. Binds nothing but a probe socket
    /// per address, so that an address of another machine is found at start-up.
    ///
    /// # Errors
    /// [`PoolError::Bind`] for the first address that isn't usable.
    pub fn new(addresses: MediaAddresses, range: PortRange) -> Result<Self, PoolError> {
        for address in addresses.as_slice() {
            bind(SocketAddr::new(*address, 0))?;
        }
        Ok(Self(Arc::new(Mutex::new(Pool {
            addresses,
            range,
            fresh: 0,
            released: VecDeque::new(),
            slots: Vec::new(),
            free_slots: VecDeque::new(),
        }))))
    }

    /// Binds the next free pair's RTP socket and hands it out.
    ///
    /// # Cost
    /// One socket and one bind; one more per busy port passed over.
    ///
    /// # Errors
    /// [`PoolError::Exhausted`] when every pair was tried, [`PoolError::Bind`] when the system
    /// refuses for a reason other than a busy port.
    pub fn allocate(&self) -> Result<Lease, PoolError> {
        self.lock().allocate()
    }

    /// Gives a pair back. The socket closes when the last shard has detached it. Ids that were
    /// released before are ignored.
    pub fn release(&self, port: u32) {
        self.lock().release(port);
    }

    /// Pairs that calls hold now.
    pub fn held(&self) -> usize {
        let pool = self.lock();
        pool.slots.len() - pool.free_slots.len()
    }

    /// Pairs in all.
    pub fn pairs(&self) -> u64 {
        self.lock().pairs()
    }

    /// The RTP socket of a pair that is held.
    pub fn socket(&self, port: u32) -> Option<Arc<UdpSocket>> {
        self.lock().held(port).map(|held| Arc::clone(&held.socket))
    }

    fn lock(&self) -> MutexGuard<'_, Pool> {
        // Nothing inside can panic half-way, so a poisoned table is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Pool {
    fn allocate(&mut self) -> Result<Lease, PoolError> {
        let exhausted = |pool: &Self| PoolError::Exhausted {
            pairs: pool.pairs(),
            held: pool.slots.len() - pool.free_slots.len(),
        };
        let slot = self.free_slot().ok_or_else(|| exhausted(self))?;
        let free = self.pairs() - self.fresh + self.released.len() as u64;
        for _ in 0..free {
            let Some(pair) = self.next_pair() else { break };
            let rtp = self.rtp_address(pair);
            match bind(rtp) {
                Ok(socket) => return Ok(self.hold(slot, pair, rtp, socket)),
                Err(PoolError::Bind { source, .. })
                    if source.kind() == io::ErrorKind::AddrInUse =>
                {
                    self.released.push_back(pair);
                }
                Err(error) => {
                    self.released.push_front(pair);
                    self.free_slots.push_back(slot);
                    return Err(error);
                }
            }
        }
        self.free_slots.push_back(slot);
        Err(exhausted(self))
    }

    fn hold(&mut self, slot: u32, pair: u64, rtp: SocketAddr, socket: UdpSocket) -> Lease {
        let entry = &mut self.slots[slot as usize];
        entry.held = Some(Held {
            pair,
            socket: Arc::new(socket),
        });
        let mut rtcp = rtp;
        rtcp.set_port(rtp.port() + 1);
        Lease {
            port: (entry.generation << SLOT_BITS) | slot,
            rtp,
            rtcp,
        }
    }

    fn release(&mut self, port: u32) {
        if self.held(port).is_none() {
            return;
        }
        let slot = port & SLOT_MASK;
        let entry = &mut self.slots[slot as usize];
        entry.generation = (entry.generation + 1) & (u32::MAX >> SLOT_BITS);
        if let Some(held) = entry.held.take() {
            self.released.push_back(held.pair);
        }
        self.free_slots.push_back(slot);
    }

    fn held(&self, port: u32) -> Option<&Held> {
        let slot = self.slots.get(slot_index(port))?;
        if slot.generation == port >> SLOT_BITS {
            slot.held.as_ref()
        } else {
            None
        }
    }

    fn free_slot(&mut self) -> Option<u32> {
        if let Some(slot) = self.free_slots.pop_front() {
            return Some(slot);
        }
        let slot = u32::try_from(self.slots.len())
            .ok()
            .filter(|slot| *slot <= SLOT_MASK)?;
        self.slots.push(Slot::default());
        Some(slot)
    }

    fn next_pair(&mut self) -> Option<u64> {
        if self.fresh < self.pairs() {
            self.fresh += 1;
            return Some(self.fresh - 1);
        }
        self.released.pop_front()
    }

    fn pairs(&self) -> u64 {
        u64::from(self.range.pairs()) * self.addresses.as_slice().len() as u64
    }

    /// Neighbouring pair numbers lie on different addresses, so load spreads from the first call.
    fn rtp_address(&self, pair: u64) -> SocketAddr {
        let addresses = self.addresses.as_slice();
        let count = addresses.len() as u64;
        let address = addresses[(pair % count) as usize];
        SocketAddr::new(address, self.range.rtp_port((pair / count) as u32))
    }
}

fn bind(address: SocketAddr) -> Result<UdpSocket, PoolError> {
    let bound = || {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        Ok(socket)
    };
    bound().map_err(|source| PoolError::Bind { address, source })
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    /// A range whose `pairs` pairs are free on `address` at this moment, found by asking the
    /// kernel for a port and looking at its neighbours.
    fn free_range(address: IpAddr, pairs: u16) -> PortRange {
        loop {
            let asked = UdpSocket::bind(SocketAddr::new(address, 0)).expect("loopback binds");
            let first = asked.local_addr().expect("bound").port() & !1;
            drop(asked);
            let Some(last) = first.checked_add(2 * pairs - 1) else {
                continue;
            };
            let all: Vec<_> = (first..=last)
                .map(|port| UdpSocket::bind((address, port)))
                .collect();
            if all.iter().all(Result::is_ok) {
                return PortRange::new(first, last).expect("at least one pair");
            }
        }
    }

    /// An address of 127/8 that only this test uses, so that parallel tests don't meet.
    fn own(last: u8) -> IpAddr {
        IpAddr::from([127, 84, 17, last])
    }

    fn pool(address: IpAddr, range: PortRange) -> PortPool {
        PortPool::new(address.into(), range).expect("loopback binds")
    }

    #[test]
    fn ranges_are_read_and_pairs_counted() {
        for (text, pairs) in [
            ("16384-32767", 8192),
            ("10000-10001", 1),
            ("10001-10003", 1),
            ("65534-65535", 1),
        ] {
            let range: PortRange = text.parse().expect(text);
            assert_eq!((range.pairs(), range.to_string().as_str()), (pairs, text));
        }
        for text in ["", "1", "5-4", "10001-10002", "0-9", "x-y", "1-65536"] {
            assert!(text.parse::<PortRange>().is_err(), "{text}");
        }
        assert_eq!("16384-32767".parse(), Ok(PortRange::default()));
    }

    #[test]
    fn pairs_are_even_and_odd_and_the_oldest_released_comes_back_last() {
        let range = free_range(own(1), 3);
        let pool = pool(own(1), range);
        let a = pool.allocate().expect("first");
        assert_eq!(
            (a.rtp.port() % 2, a.rtcp.port(), a.rtp.ip()),
            (0, a.rtp.port() + 1, own(1))
        );
        pool.release(a.port);
        let order: Vec<u16> = (0..3)
            .map(|_| pool.allocate().expect("free").rtp.port())
            .collect();
        assert_eq!(order, [a.rtp.port() + 2, a.rtp.port() + 4, a.rtp.port()]);
        assert!(matches!(
            pool.allocate(),
            Err(PoolError::Exhausted { pairs: 3, held: 3 })
        ));
        assert_eq!(pool.held(), 3);
    }

    #[test]
    fn a_busy_port_is_skipped_and_used_when_it_is_free_again() {
        let range = free_range(own(2), 3);
        let pool = pool(own(2), range);
        let foreign = UdpSocket::bind((own(2), range.rtp_port(0))).expect("free");
        let held = [
            pool.allocate().expect("second pair"),
            pool.allocate().expect("third pair"),
        ];
        assert_eq!(
            held.map(|lease| lease.rtp.port()),
            [range.rtp_port(1), range.rtp_port(2)]
        );
        assert!(matches!(pool.allocate(), Err(PoolError::Exhausted { .. })));
        drop(foreign);
        assert_eq!(
            pool.allocate().expect("free again").rtp.port(),
            range.rtp_port(0)
        );
    }

    #[test]
    fn an_id_is_dead_after_release_even_when_its_slot_lives_again() {
        let pool = pool(own(3), free_range(own(3), 2));
        let old = pool.allocate().expect("free");
        pool.release(old.port);
        let new = pool.allocate().expect("free");
        assert_eq!(slot_index(old.port), slot_index(new.port));
        assert!(pool.socket(old.port).is_none());
        pool.release(old.port);
        assert_eq!(pool.held(), 1);
        assert!(pool.socket(new.port).is_some());
    }

    #[test]
    fn a_pair_whose_socket_a_shard_still_holds_is_passed_over() {
        let pool = pool(own(4), free_range(own(4), 1));
        let lease = pool.allocate().expect("free");
        let shard = pool.socket(lease.port);
        pool.release(lease.port);
        assert!(matches!(
            pool.allocate(),
            Err(PoolError::Exhausted { held: 0, .. })
        ));
        drop(shard);
        assert_eq!(pool.allocate().expect("closed by now").rtp, lease.rtp);
    }

    #[test]
    fn several_addresses_take_turns() {
        let range = free_range(own(5), 2);
        let both = MediaAddresses::from_list(["127.84.17.5,127.84.17.6"]).expect("two");
        let pool = PortPool::new(both, range).expect("loopback binds");
        assert_eq!(pool.pairs(), 4);
        let ips: Vec<IpAddr> = (0..4)
            .map(|_| pool.allocate().expect("free").rtp.ip())
            .collect();
        assert_eq!(ips, [own(5), own(6), own(5), own(6)]);
    }

    #[test]
    fn an_address_of_another_machine_is_refused_at_start() {
        // RFC 5737, TEST-NET-1: never assigned to an interface.
        let address = IpAddr::from([192, 0, 2, 1]);
        let error = PortPool::new(address.into(), PortRange::default()).expect_err("not ours");
        assert!(
            error
                .to_string()
                .starts_with("cannot bind RTP on 192.0.2.1:0: "),
            "{error}"
        );
    }
}
