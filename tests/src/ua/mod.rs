//! A scripted SIP phone on the simulated network: an independent witness of what the server says.
//!
//! ```text
//!   test: call(), cancel(), bye(), reinvite(), ...      habits: what INVITEs get, which ACKs ...
//!                 |                                            |
//!        dialogs -+-> client transactions (A, B, E, F)         |
//!                 +-> server transactions (G, H, 2xx) <--------+
//!        log of everything heard and said, outcomes, complaints
//! ```
//! It builds its messages as text, reads with [`crate::message::Sip`], retransmits by its own timers (RFC 3261
//! section 17, T1 500 ms, T2 4 s), and shares no code with the server. What it finds wrong with
//! a message becomes a complaint; a scenario ends well only without any.

mod checks;
mod client;
mod dialog;
mod script;
mod server;

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use simnet::{Datagram, Machine};

use self::client::Client;
pub use self::client::{Outcome, Result};
pub use self::dialog::{Dialog, DialogState, Role};
pub use self::script::{Habits, OnCancel, Script, Step};
use self::server::Server;
use crate::description::Media;
use crate::message::Sip;

/// RFC 3261 section 17.1.1.1, T1.
pub const T1: Duration = Duration::from_millis(500);
/// RFC 3261 section 17.1.2.2, T2.
pub const T2: Duration = Duration::from_secs(4);

/// A message as it stands in a phone's log.
#[derive(Clone, Debug)]
pub struct Logged {
    /// When.
    pub at: Instant,
    /// Heard rather than said.
    pub incoming: bool,
    /// The same bytes stood in the log before.
    pub repeat: bool,
    /// The message.
    pub sip: Sip,
    bytes: Arc<[u8]>,
}

/// What the phone will do by itself.
#[derive(Clone, Debug)]
enum Todo {
    ClientResend(usize),
    ClientGiveUp(usize),
    ServerResend(usize),
    ServerGiveUp(usize),
    Step(usize, Step),
}

/// A phone.
#[derive(Debug)]
pub struct ScriptedUa {
    name: String,
    address: SocketAddr,
    server: SocketAddr,
    /// How it behaves.
    pub habits: Habits,
    /// The media of its next dialog.
    pub media: Media,
    dialogs: Vec<Dialog>,
    clients: Vec<Client>,
    servers: Vec<Server>,
    agenda: BTreeMap<(Instant, u64), Todo>,
    out: VecDeque<Datagram>,
    log: Vec<Logged>,
    outcomes: Vec<Outcome>,
    complaints: Vec<String>,
    serial: u64,
}

impl ScriptedUa {
    /// A phone called `name` (the user of its URI too) at `address`, with `server` as its outbound
    /// proxy. It rings after 10 ms and answers after 200 ms.
    #[must_use]
    pub fn new(name: &str, address: SocketAddr, server: SocketAddr) -> Self {
        Self {
            name: name.to_owned(),
            address,
            server,
            habits: Habits::default(),
            media: Media::new(address.ip().to_string(), 40_000),
            dialogs: Vec::new(),
            clients: Vec::new(),
            servers: Vec::new(),
            agenda: BTreeMap::new(),
            out: VecDeque::new(),
            log: Vec::new(),
            outcomes: Vec::new(),
            complaints: Vec::new(),
            serial: 0,
        }
    }

    /// Its address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where requests within its dialogs are to come to.
    #[must_use]
    pub fn contact_address(&self) -> SocketAddr {
        self.habits.contact.unwrap_or(self.address)
    }

    /// Its contact URI.
    #[must_use]
    pub fn contact(&self) -> String {
        format!("sip:{}@{}", self.name, self.contact_address())
    }

    /// Everything heard and said.
    #[must_use]
    pub fn log(&self) -> &[Logged] {
        &self.log
    }

    /// Every message heard for the first time, by name.
    #[must_use]
    pub fn heard(&self) -> Vec<String> {
        let heard = self
            .log
            .iter()
            .filter(|entry| entry.incoming && !entry.repeat);
        heard.map(|entry| entry.sip.to_string()).collect()
    }

    /// The messages of this name that were heard, repeats included.
    pub fn all<'a, 'n>(&'a self, label: &'n str) -> impl Iterator<Item = &'a Logged> + use<'a, 'n> {
        self.log
            .iter()
            .filter(move |entry| entry.incoming && entry.sip.to_string() == label)
    }

    /// How often a message of this name was heard, repeats included.
    #[must_use]
    pub fn count(&self, label: &str) -> usize {
        self.all(label).count()
    }

    /// The latest message of this name that was heard.
    ///
    /// # Panics
    /// When there is none.
    #[must_use]
    pub fn last(&self, label: &str) -> &Sip {
        let last = self.all(label).last();
        &last
            .unwrap_or_else(|| panic!("{} never heard {label}: {:?}", self.name, self.heard()))
            .sip
    }

    /// Its dialogs in order of their birth.
    #[must_use]
    pub fn dialogs(&self) -> &[Dialog] {
        &self.dialogs
    }

    /// A dialog, to change what it will say next.
    pub fn dialog_mut(&mut self, dialog: usize) -> &mut Dialog {
        &mut self.dialogs[dialog]
    }

    /// How its own requests ended, in the order of their ends.
    #[must_use]
    pub fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The final status of the latest request of this method; `None` when it timed out, or is
    /// still open, or never was.
    #[must_use]
    pub fn result(&self, method: &str) -> Option<u16> {
        let last = self
            .outcomes
            .iter()
            .rev()
            .find(|outcome| outcome.method == method)?;
        match last.result {
            Result::Final(code) => Some(code),
            Result::TimedOut => None,
        }
    }

    /// What it found wrong.
    #[must_use]
    pub fn complaints(&self) -> &[String] {
        &self.complaints
    }

    /// Whether it has nothing left to do or to wait for.
    #[must_use]
    pub fn idle(&self) -> bool {
        self.agenda.is_empty()
    }

    /// A word that no other message of this run has.
    fn unique(&mut self, what: &str) -> String {
        self.serial += 1;
        format!("{what}-{}-{}", self.name, self.serial)
    }

    fn plan(&mut self, at: Instant, todo: Todo) {
        self.serial += 1;
        self.agenda.insert((at, self.serial), todo);
    }

    fn send(&mut self, now: Instant, to: SocketAddr, bytes: Arc<[u8]>) {
        if let Some(sip) = Sip::read(&bytes) {
            self.note(now, false, sip, &bytes);
        }
        self.out.push_back(Datagram {
            from: self.address,
            to,
            bytes,
        });
    }

    fn note(&mut self, at: Instant, incoming: bool, sip: Sip, bytes: &[u8]) -> bool {
        let same = |entry: &Logged| entry.incoming == incoming && *entry.bytes == *bytes;
        let repeat = self.log.iter().any(same);
        self.log.push(Logged {
            at,
            incoming,
            repeat,
            sip,
            bytes: bytes.into(),
        });
        repeat
    }

    fn complain(&mut self, message: &Sip, what: impl std::fmt::Display) {
        self.complaints
            .push(format!("{} about {message}: {what}", self.name));
    }

    /// Sends a message as it stands, outside every transaction.
    pub fn send_raw(&mut self, now: Instant, text: &str) {
        let server = self.server;
        self.send(now, server, Arc::from(text.as_bytes()));
    }
}

impl Machine for ScriptedUa {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        let Some(sip) = Sip::read(bytes) else {
            let shown = String::from_utf8_lossy(bytes).into_owned();
            self.complaints
                .push(format!("{} can't read {shown:?}", self.name));
            return;
        };
        let repeat = self.note(now, true, sip.clone(), bytes);
        if !repeat {
            for fault in checks::faults(&sip) {
                self.complain(&sip, fault);
            }
        }
        // RFC 3261 section 12.2.1.1: to the remote target, or the first route, which has our address.
        let astray = sip.in_dialog()
            && sip.method() != Some("CANCEL")
            && self.habits.record_route.is_none()
            && to != self.contact_address();
        if astray {
            self.complain(&sip, format!("sent to {to}, which is not our Contact"));
        }
        if sip.status().is_some() {
            self.take_response(now, &sip);
        } else {
            self.take_request(now, from, &sip);
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        while let Some((&key, _)) = self
            .agenda
            .first_key_value()
            .filter(|((at, _), _)| *at <= now)
        {
            match self.agenda.remove(&key) {
                Some(Todo::ClientResend(client)) => self.client_resend(now, client),
                Some(Todo::ClientGiveUp(client)) => self.client_give_up(client),
                Some(Todo::ServerResend(server)) => self.server_resend(now, server),
                Some(Todo::ServerGiveUp(server)) => self.server_give_up(now, server),
                Some(Todo::Step(server, step)) => self.take_step(now, server, &step),
                None => {}
            }
        }
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.agenda.first_key_value().map(|((at, _), _)| *at)
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<Datagram> {
        self.out.pop_front()
    }
}
