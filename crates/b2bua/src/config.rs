//! What the machine is told at its making.

use std::net::IpAddr;
use std::time::Duration;

use crate::registrar::RegistrarConfig;

/// Settings of [`crate::B2bua`]. The defaults serve a server on loopback.
#[derive(Clone, Debug)]
pub struct Config {
    /// The SIP endpoint: listeners, timers, limits.
    pub sip: sip::Config,
    /// Most calls at one time; one more is answered 503 with Retry-After (RFC 3261 section 21.5.4).
    pub max_calls: usize,
    /// Codecs that the media plane can convert between, best liked first, as (encoding name, RTP
    /// clock in Hz). A codec that is not among them is still relayed between two legs that share it.
    pub codecs: Vec<(String, u32)>,
    /// The registrar's limits.
    pub registrar: RegistrarConfig,
    /// Who may register without credentials: every user from these addresses. Others get 403.
    pub registrar_trusts: fn(IpAddr) -> bool,
    /// Headers of leg A's INVITE passed on to leg B, besides those that the call itself needs.
    pub pass_headers: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            sip: sip::Config::default(),
            max_calls: 20_000,
            codecs: vec![("PCMA".to_owned(), 8_000), ("PCMU".to_owned(), 8_000)],
            registrar: RegistrarConfig::default(),
            registrar_trusts: |address| address.to_canonical().is_loopback(),
            pass_headers: PASS_HEADERS.iter().map(|name| (*name).to_owned()).collect(),
        }
    }
}

/// End-to-end headers that a callee expects to see although two dialogs lie between: what the call
/// is about (RFC 3261 section 20), where it was diverted (RFC 5806, 7044), what the users tell each
/// other (RFC 7433), and how to ring (RFC 3261 section 20.4).
const PASS_HEADERS: [&str; 9] = [
    "Subject",
    "Priority",
    "Alert-Info",
    "Accept-Language",
    "Privacy",
    "Diversion",
    "History-Info",
    "User-to-User",
    "Answer-Mode",
];

/// How long clients are told to stay away when the server is full or draining.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(5);
