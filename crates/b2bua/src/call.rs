//! One call: what it knows of its two legs, and nothing that decides ([`crate::table`] does).

use std::time::{Duration, Instant};

use dialplan::{Bridge, MediaMode, RecordSpec};
use media::command::{Program, Side};
use sip::{Failure, Flow, Incoming, UsageId};

use crate::cause::Cause;
use crate::headers::{self, Parties};
use crate::negotiate::LegMedia;
use crate::output::CallId;
use crate::table::State;

/// What is done with a call, once the dialplan has decided.
#[derive(Debug)]
pub(crate) enum Kind {
    /// Answered here, with this for the caller to hear.
    Local(Program),
    /// Bridged to leg B.
    Bridge(Bridge),
}

impl Kind {
    /// Whether the legs' media goes direct and descriptions pass through untouched.
    pub(crate) fn is_direct(&self) -> bool {
        matches!(self, Self::Bridge(bridge) if bridge.media == MediaMode::Direct)
    }
}

/// One call, from its INVITE to its record.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) id: CallId,
    pub(crate) state: State,
    pub(crate) kind: Kind,
    pub(crate) a: LegA,
    /// Every target of leg B that is or was called.
    pub(crate) branches: Vec<Branch>,
    pub(crate) b: Option<LegB>,
    /// Best refusal of the branches so far, with its Contacts where it redirects.
    pub(crate) refusal: Option<Refusal>,
    /// What each leg has negotiated, by [`Side`].
    pub(crate) media: [LegMedia; 2],
    pub(crate) media_started: bool,
    pub(crate) record: Option<RecordSpec>,
    /// The longest that the call may last, from its answer.
    pub(crate) longest: Option<Duration>,
    /// Headers that the dialplan adds towards leg B.
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) recording: bool,
    pub(crate) renegotiation: Option<Renegotiation>,
    /// Direct media without an offer in the INVITE: leg B's ACK waits for the answer in leg A's
    /// (RFC 3261 section 13.2.1).
    pub(crate) ack_owed: Option<Side>,
    /// Direct media: leg B's description on its way to leg A.
    pub(crate) direct_body: Option<sip::Body>,
    /// When the timer of this call fires, while one runs.
    pub(crate) deadline: Option<Instant>,
    pub(crate) cause: Option<Cause>,
    pub(crate) facts: Facts,
}

/// The caller's leg.
#[derive(Debug)]
pub(crate) struct LegA {
    pub(crate) usage: UsageId,
    pub(crate) invite: Box<Incoming>,
    /// The provisional response to be passed on next.
    pub(crate) provisional: u16,
}

/// The callee's leg, once a branch has answered or sends early media.
#[derive(Debug)]
pub(crate) struct LegB {
    pub(crate) usage: UsageId,
}

/// One target of leg B.
#[derive(Debug)]
pub(crate) struct Branch {
    pub(crate) usage: UsageId,
    pub(crate) target: String,
    pub(crate) call_id: String,
    pub(crate) open: bool,
}

/// A refusal that may be passed to the caller.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    pub(crate) failure: Failure,
    pub(crate) contacts: Vec<String>,
}

/// A re-INVITE of one side that waits for the other side's answer.
#[derive(Debug)]
pub(crate) struct Renegotiation {
    /// Who asked.
    pub(crate) from: Side,
    /// Its description as it came; `None` for an offerless re-INVITE on a direct bridge, and when
    /// the other side is only brought back to what stood before.
    pub(crate) offer: Option<sdp::Session>,
    /// The one who asked has taken it back.
    pub(crate) cancelled: bool,
}

/// What the record will tell.
#[derive(Debug)]
pub(crate) struct Facts {
    pub(crate) caller: String,
    pub(crate) callee: String,
    pub(crate) source: String,
    pub(crate) call_id: String,
    pub(crate) rule: String,
    pub(crate) action: &'static str,
    pub(crate) setup: Instant,
    pub(crate) ringing: Option<Instant>,
    pub(crate) answer: Option<Instant>,
    pub(crate) end: Option<Instant>,
    pub(crate) acked: bool,
    pub(crate) recordings: Vec<String>,
}

impl Facts {
    /// What is known when the INVITE comes.
    pub(crate) fn new(now: Instant, parties: &Parties, invite: &Incoming, flow: &Flow) -> Self {
        Self {
            caller: parties.caller_user.clone(),
            callee: parties.called_user.clone(),
            source: headers::source(flow),
            call_id: invite.call_id().unwrap_or_default().to_owned(),
            rule: "(not asked)".to_owned(),
            action: "refuse",
            setup: now,
            ringing: None,
            answer: None,
            end: None,
            acked: false,
            recordings: Vec::new(),
        }
    }
}

impl Call {
    /// The usage of one leg.
    pub(crate) fn usage(&self, side: Side) -> Option<UsageId> {
        match side {
            Side::A => Some(self.a.usage),
            Side::B => self.b.as_ref().map(|b| b.usage),
        }
    }

    /// Which leg a usage is; branches that did not win are leg B too.
    pub(crate) fn side(&self, usage: UsageId) -> Side {
        if usage == self.a.usage {
            Side::A
        } else {
            Side::B
        }
    }

    /// Whether leg A has been answered and not ended.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.state, State::Accepted | State::Talking)
    }

    /// Sets why the call ends; the first reason stays. An answered call was answered with 200,
    /// whatever ended it.
    pub(crate) fn ends_because(&mut self, mut cause: Cause) {
        if self.is_up() {
            cause.sip = 200;
        }
        self.cause.get_or_insert(cause);
    }
}
