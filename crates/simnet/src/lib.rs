//! A simulated network and clock for sans-IO machines.
//!
//! ```text
//!    host A                         World                          host B
//!   +---------+  poll_transmit  +-----------+  handle_datagram  +---------+
//!   | Machine | --------------> | filters,  | ----------------> | Machine |
//!   |         | <-------------- | link A->B |  handle_timeout   |         |
//!   +---------+                 +-----------+                   +---------+
//!                         clock, queue, trace, ladder
//! ```
//! A [`World`] owns hosts, each a [`Machine`] with some addresses, and moves simulated time from
//! one event to the next: a datagram arrives, a deadline passes, or a planned action of the test
//! runs. What a [`LinkModel`] does to a datagram (loss, delay, jitter, reordering, duplication) is
//! drawn from one ChaCha generator, so that a run is a function of its set-up and its seed. On top,
//! [`Filter`]s drop or delay chosen datagrams. Everything sent stands in the trace, and [`ladder`]
//! draws it.
//!
//! Units: probabilities from 0 to 1; time as `Duration` since the epoch `Instant` that the caller
//! hands in. The crate reads no clock: it doesn't even know whether the epoch is now.
#![forbid(unsafe_code)]

mod filter;
pub mod ladder;
mod link;
mod machine;
mod queue;
mod trace;
mod world;

pub use filter::{Filter, FilterId, Nth, Verdict};
pub use link::LinkModel;
pub use machine::{Datagram, Machine};
pub use trace::{Entry, Fate, Sent, Trace};
pub use world::{HostId, Stop, World};
