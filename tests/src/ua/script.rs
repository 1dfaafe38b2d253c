//! How a phone behaves.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

/// One response of a script.
#[derive(Clone, Debug)]
pub struct Step {
    /// How long after the INVITE.
    pub after: Duration,
    /// Status code.
    pub code: u16,
    /// Whether it carries a session description (the answer, or an offer where none came).
    pub sdp: bool,
    /// Further header lines.
    pub fields: Vec<String>,
    /// Another To tag than the phone's own: a branch of a fork downstream.
    pub fork: Option<String>,
}

/// What an INVITE gets, response by response; a final response ends it.
#[derive(Clone, Debug, Default)]
pub struct Script {
    pub(super) steps: Vec<Step>,
}

impl Script {
    /// Nothing at all.
    #[must_use]
    pub fn silence() -> Self {
        Self::default()
    }

    /// 180 after 10 ms, 200 after so many milliseconds.
    #[must_use]
    pub fn answer_after(ms: u64) -> Self {
        Self::default().then(10, 180).then_sdp(ms, 200)
    }

    /// 180 after 10 ms, and it rings on.
    #[must_use]
    pub fn ring() -> Self {
        Self::default().then(10, 180)
    }

    /// This code at once.
    #[must_use]
    pub fn refuse(code: u16) -> Self {
        Self::default().then(10, code)
    }

    /// Then, so many milliseconds after the INVITE, a response without a body.
    #[must_use]
    pub fn then(self, ms: u64, code: u16) -> Self {
        self.step(ms, code, false, None, &[])
    }

    /// Then a response with a session description.
    #[must_use]
    pub fn then_sdp(self, ms: u64, code: u16) -> Self {
        self.step(ms, code, true, None, &[])
    }

    /// Then a response with these header lines.
    #[must_use]
    pub fn then_with(self, ms: u64, code: u16, fields: &[&str]) -> Self {
        self.step(ms, code, false, None, fields)
    }

    /// Then a response with a session description from another branch of a fork.
    #[must_use]
    pub fn then_fork(self, ms: u64, code: u16, tag: &str) -> Self {
        self.step(ms, code, true, Some(tag.to_owned()), &[])
    }

    fn step(
        mut self,
        ms: u64,
        code: u16,
        sdp: bool,
        fork: Option<String>,
        fields: &[&str],
    ) -> Self {
        let fields = fields.iter().map(|field| (*field).to_owned()).collect();
        self.steps.push(Step {
            after: Duration::from_millis(ms),
            code,
            sdp,
            fields,
            fork,
        });
        self
    }
}

/// What a phone does when a CANCEL meets its open INVITE.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum OnCancel {
    /// 200 to the CANCEL, 487 to the INVITE (RFC 3261 section 9.2).
    Refuse,
    /// 200 to the CANCEL, and 200 to the INVITE all the same: it was just being answered.
    Answer,
    /// 200 to the CANCEL, and nothing more.
    Acknowledge,
    /// Nothing.
    Ignore,
}

/// How a phone behaves.
#[derive(Clone, Debug)]
pub struct Habits {
    /// What an INVITE outside any dialog gets.
    pub invite: Script,
    /// What the next re-INVITEs get; 200 after 5 ms when this is empty.
    pub reinvites: VecDeque<Script>,
    /// What it does about a CANCEL.
    pub on_cancel: OnCancel,
    /// Whether its own INVITEs carry an offer.
    pub offers: bool,
    /// Whether it acknowledges 2xx responses.
    pub acks_2xx: bool,
    /// Whether it acknowledges refusals.
    pub acks_refusals: bool,
    /// So many ACKs are not heard, as if lost just before it.
    pub deaf_to_acks: usize,
    /// Requests that are never answered.
    pub ignored: Vec<&'static str>,
    /// Its Contact, where that isn't the address it is called at.
    pub contact: Option<SocketAddr>,
    /// Max-Forwards of its requests.
    pub max_forwards: u8,
    /// Record-Route that it, as if behind a proxy, puts into responses to INVITE.
    pub record_route: Option<String>,
    /// Header lines for its INVITEs.
    pub invite_fields: Vec<String>,
    /// Content type and body for its INVITEs, instead of an offer.
    pub invite_body: Option<(&'static str, String)>,
}

impl Default for Habits {
    fn default() -> Self {
        Self {
            invite: Script::answer_after(200),
            reinvites: VecDeque::new(),
            on_cancel: OnCancel::Refuse,
            offers: true,
            acks_2xx: true,
            acks_refusals: true,
            deaf_to_acks: 0,
            ignored: Vec::new(),
            contact: None,
            max_forwards: 70,
            record_route: None,
            invite_fields: Vec::new(),
            invite_body: None,
        }
    }
}
