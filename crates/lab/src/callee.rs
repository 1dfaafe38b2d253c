//! The callee: answers calls, speaks, listens, until the other side hangs up.
//!
//! ```text
//!   REGISTER (if asked to) ---> ready
//!   INVITE ---> 180 ---ring---> 200 ---> ACK: speak ---> BYE: leg closed
//!      |                          |
//!    488: no law of ours        no ACK: the endpoint hangs up
//! ```
//!
//! Who calls is read from the caller's user part (see [`crate::plan::caller_user`]); when a
//! server hides it, the callee learns the call from the first mark it hears.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::{Duration, Instant};

use sip::{Endpoint, Event, UsageId};

use crate::agent::{self, Agent, EndpointSpec};
use crate::description::Description;
use crate::generator::{MediaPlane, OpenLeg};
use crate::law::Law;
use crate::mark::Side;
use crate::plan::{TONE_LEVEL_DBM0, parse_caller_user};
use crate::record::{AnswerRecord, Ending};
use crate::stream::{Agreement, Listen, Speech, StreamSpec};

/// How a callee answers.
#[derive(Clone, Debug)]
pub struct CalleeSpec {
    /// Laws it takes, the preferred one first.
    pub laws: Vec<Law>,
    /// Time from 180 to 200.
    pub ring: Duration,
    /// Registers as this user at this registrar.
    pub register: Option<(String, SocketAddr)>,
}

/// A callee.
pub struct Callee<M> {
    endpoint: Endpoint,
    endpoint_spec: EndpointSpec,
    spec: CalleeSpec,
    media: M,
    readiness: Readiness,
    calls: HashMap<UsageId, Call>,
    ringing: BinaryHeap<Reverse<(Instant, UsageId)>>,
    records: Vec<AnswerRecord>,
}

/// How far a callee's registration is; clones share it.
#[derive(Clone, Debug)]
pub struct Readiness(Arc<AtomicU8>);

impl Readiness {
    /// Whether the callee can be called.
    ///
    /// # Errors
    /// [`NotRegistered`] when the registrar refused or did not answer.
    pub fn is_ready(&self) -> Result<bool, NotRegistered> {
        match self.0.load(Ordering::Acquire) {
            DONE => Ok(true),
            FAILED => Err(NotRegistered),
            _ => Ok(false),
        }
    }

    fn is(&self, state: u8) -> bool {
        self.0.load(Ordering::Acquire) == state
    }

    fn set(&self, state: u8) {
        self.0.store(state, Ordering::Release);
    }
}

const DUE: u8 = 0;
const ASKED: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;

struct Call {
    record: AnswerRecord,
    leg: OpenLeg,
    description: Description,
    agreed: Agreement,
}

impl<M: MediaPlane> Callee<M> {
    /// A callee that listens where `endpoint` says.
    #[must_use]
    pub fn new(endpoint: EndpointSpec, spec: CalleeSpec, media: M) -> Self {
        Self {
            endpoint: agent::endpoint(&endpoint),
            endpoint_spec: endpoint,
            readiness: Readiness(Arc::new(AtomicU8::new(match spec.register {
                Some(_) => DUE,
                None => DONE,
            }))),
            spec,
            media,
            calls: HashMap::new(),
            ringing: BinaryHeap::new(),
            records: Vec::new(),
        }
    }

    /// How far its registration is, to be looked at while it runs.
    #[must_use]
    pub fn readiness(&self) -> Readiness {
        self.readiness.clone()
    }

    /// What happened to each call, those still open last.
    #[must_use]
    pub fn into_records(mut self) -> Vec<AnswerRecord> {
        for (_, call) in self.calls.drain() {
            self.media.close(call.leg.id);
            self.records.push(call.record);
        }
        self.records
    }

    fn invited(&mut self, now: Instant, usage: UsageId, message: &sip::Incoming) {
        let user = agent::from_user(message);
        let known = user.as_deref().and_then(parse_caller_user);
        let number = known.map(|(number, _)| number);
        let (speech, listen) = match known.and_then(|(_, hz)| hz) {
            Some(hz) => {
                let level_dbm0 = TONE_LEVEL_DBM0;
                (Speech::Tone { hz, level_dbm0 }, Listen::Capture)
            }
            None => (Speech::Marks, Listen::Marks(Side::Caller)),
        };
        let mut record = AnswerRecord {
            number,
            arrived: now,
            acknowledged: None,
            ended: None,
            ending: Ending::Open,
            leg: None,
            law: None,
        };
        let stream = StreamSpec {
            call: number,
            side: Side::Callee,
            speech,
            listen,
            stops_with_peer: true,
        };
        let Ok(leg) = self.media.open(stream) else {
            self.refuse(now, usage, 503, record, Ending::NoPort);
            return;
        };
        record.leg = Some(leg.id);
        let session = self.records.len() as u64;
        let answer = Description::answer(message, session, leg.address, &self.spec.laws);
        let Some((description, agreed)) = answer else {
            self.media.close(leg.id);
            self.refuse(now, usage, 488, record, Ending::NoMedia);
            return;
        };
        record.law = Some(agreed.law);
        let rings = self
            .endpoint
            .provisional(now, usage, 180, None, Vec::new(), None);
        if rings.is_err() {
            self.media.close(leg.id);
            return;
        }
        self.ringing.push(Reverse((now + self.spec.ring, usage)));
        let call = Call {
            record,
            leg,
            description,
            agreed,
        };
        self.calls.insert(usage, call);
    }

    fn refuse(
        &mut self,
        now: Instant,
        usage: UsageId,
        code: u16,
        mut record: AnswerRecord,
        ending: Ending,
    ) {
        // The caller may have cancelled meanwhile: then there is nothing left to refuse.
        let _ = self
            .endpoint
            .reject(now, usage, code, None, Vec::new(), None);
        record.ended = Some(now);
        record.ending = ending;
        self.records.push(record);
    }

    fn answer(&mut self, now: Instant, usage: UsageId) {
        if let Some(call) = self.calls.get(&usage) {
            let body = Some(call.description.body());
            if self.endpoint.accept(now, usage, Vec::new(), body).is_err() {
                self.end(now, usage, Ending::NotPlaced);
            }
        }
    }

    fn end(&mut self, now: Instant, usage: UsageId, ending: Ending) {
        if let Some(mut call) = self.calls.remove(&usage) {
            self.media.close(call.leg.id);
            call.record.ended = Some(now);
            if call.record.ending == Ending::Open {
                call.record.ending = ending;
            }
            self.records.push(call.record);
        }
    }

    fn handle_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Invite { usage, message, .. } => self.invited(now, usage, &message),
            Event::Cancelled { usage, .. } => self.end(now, usage, Ending::Cancelled),
            Event::Acked { usage, .. } => {
                if let Some(call) = self.calls.get_mut(&usage) {
                    call.record.acknowledged.get_or_insert(now);
                    self.media.start(call.leg.id, call.agreed);
                }
            }
            Event::AckMissing { usage } => {
                if let Some(call) = self.calls.get_mut(&usage) {
                    call.record.ending = Ending::NotAcknowledged;
                }
            }
            Event::Bye { usage, .. } => self.end(now, usage, Ending::HungUpByPeer),
            Event::Ended { usage } => self.end(now, usage, Ending::HungUp),
            Event::Reinvite { usage, message } => {
                if let Some(call) = self.calls.get_mut(&usage) {
                    let agreed = agent::answer_reinvite(
                        &mut self.endpoint,
                        now,
                        usage,
                        &message,
                        &mut call.description,
                    );
                    call.agreed = agreed.unwrap_or(call.agreed);
                }
            }
            Event::Response { outcome, .. } if self.readiness.is(ASKED) => {
                match outcome.ok().and_then(|message| message.status()) {
                    Some(100..=199) => {}
                    Some(200..=299) => self.readiness.set(DONE),
                    _ => self.readiness.set(FAILED),
                }
            }
            other => agent::answer_other(&mut self.endpoint, now, other),
        }
    }

    fn register(&mut self, now: Instant) {
        let Some((user, registrar)) = &self.spec.register else {
            return;
        };
        let request = self.endpoint_spec.register(user, *registrar);
        let asked = self.endpoint.request(now, request).is_ok();
        self.readiness.set(if asked { ASKED } else { FAILED });
    }
}

/// The registrar refused, or did not answer.
#[derive(Copy, Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the registrar refused the callee or did not answer")]
pub struct NotRegistered;

impl<M: MediaPlane> Agent for Callee<M> {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn handle_events(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            self.handle_event(now, event);
        }
    }

    fn handle_due(&mut self, now: Instant) {
        if self.readiness.is(DUE) {
            self.register(now);
        }
        while let Some(&Reverse((at, usage))) = self.ringing.peek() {
            if at > now {
                break;
            }
            self.ringing.pop();
            self.answer(now, usage);
        }
        self.handle_events(now);
    }

    fn due(&self) -> Option<Instant> {
        self.ringing.peek().map(|&Reverse((at, _))| at)
    }

    fn is_idle(&self) -> bool {
        self.calls.is_empty()
    }
}
