//! Bytes only: SIP over UDP and TCP, RTP ports and batched I/O, resolver.
//!
//! Nothing here knows what a message or a packet means. The three rooms share nothing:
//!
//! ```text
//! sip      UDP listeners, TCP connections  --NetEvent-->  the driver  --Outgoing-->  sip
//! rtp      PortPool (one, hands out ports) --id-->  ShardSockets (one a shard, epoll)
//! resolve  host names to addresses, bounded in time and in number
//! ```
//!
//! `sip` and `resolve` live on the driver's tokio runtime (a current-thread one is enough); `rtp`
//! never touches tokio: a shard asks its own epoll instance once a tick.
//!
//! Limits are values handed in by the caller, each with a default that its field documents. What
//! is lost is reported as an event or counted, never silently dropped.
#![forbid(unsafe_code)]

pub mod resolve;
pub mod rtp;
pub mod sip;
