//! RTP sockets: where they may be bound, who holds which port, and how a shard reads and sends.
//!
//! ```text
//! MediaAddresses --> PortPool::allocate() --> Lease { port id, rtp, rtcp }   (call set-up)
//!                        |  id
//!                        v
//!                    ShardSockets::attach(id) ; receive / send / flush       (every tick)
//! ```
//!
//! RFC 3550 section 11: RTP on an even port, RTCP on the next odd one. The pool keeps the pair
//! together but binds the RTCP socket **lazily**, that is: not before something wants to read it.
//! Nothing in the server reads RTCP yet, an unread socket only fills its buffer, and one
//! descriptor a leg instead of two doubles the calls that fit under the descriptor limit. The odd
//! port is never handed out for anything else.
//!
//! Sockets stay unconnected: a source behind a NAT is learned from its packets and may change.

mod addresses;
mod pool;
mod shard;

pub use addresses::{AddressError, MediaAddresses};
pub use pool::{Lease, PoolError, PortPool, PortRange, RangeError};
pub use shard::{ShardCounters, ShardSockets};
