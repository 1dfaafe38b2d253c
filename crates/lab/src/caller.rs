//! The caller: places calls on an open-loop schedule, speaks, listens, hangs up.
//!
//! ```text
//!   at its time    INVITE ---> 1xx ---> 2xx: ACK, speak ---talk---> last frames ---linger---> BYE
//!        |            |                  |
//!      no port     refused,          no media: BYE
//!                  timed out, given up (CANCEL)
//! ```
//!
//! A sans-IO machine on [`sip::Endpoint`], driven by [`crate::driver`] or by a test. Each call
//! is one [`CallRecord`]; media is behind [`MediaPlane`].

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use sip::{Endpoint, Event, Failure, UsageId};

use crate::agent::{self, Agent, EndpointSpec};
use crate::counters::Counters;
use crate::description::Description;
use crate::generator::{MediaPlane, OpenLeg};
use crate::plan::{CallPlan, caller_user};
use crate::record::{CallRecord, Ending};
use crate::stream::StreamSpec;

/// How long a caller lets it ring.
const PATIENCE: Duration = Duration::from_secs(60);

/// A caller of one server.
pub struct Caller<M> {
    endpoint: Endpoint,
    spec: EndpointSpec,
    server: SocketAddr,
    media: M,
    counters: Counters,
    planned: VecDeque<CallPlan>,
    started: Option<Instant>,
    calls: HashMap<UsageId, Call>,
    steps: BinaryHeap<Reverse<(Instant, UsageId, Step)>>,
    records: Vec<CallRecord>,
}

struct Call {
    record: CallRecord,
    leg: OpenLeg,
    description: Description,
}

#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Step {
    FinishSpeaking,
    HangUp,
    GiveUp,
}

impl<M: MediaPlane> Caller<M> {
    /// A caller that will place `plan` at `server`.
    #[must_use]
    pub fn new(
        spec: EndpointSpec,
        server: SocketAddr,
        mut plan: Vec<CallPlan>,
        media: M,
        counters: Counters,
    ) -> Self {
        plan.sort_by_key(|call| call.at);
        Self {
            endpoint: agent::endpoint(&spec),
            spec,
            server,
            media,
            counters,
            planned: plan.into(),
            started: None,
            calls: HashMap::new(),
            steps: BinaryHeap::new(),
            records: Vec::new(),
        }
    }

    /// What happened to each call that is over.
    #[must_use]
    pub fn into_records(self) -> Vec<CallRecord> {
        self.records
    }

    fn place(&mut self, now: Instant, intended: Instant, plan: CallPlan) {
        self.counters.note_placed();
        let mut record = CallRecord {
            intended,
            placed: now,
            ringing: None,
            answered: None,
            hung_up: None,
            ended: None,
            ending: Ending::Open,
            leg: None,
            law: None,
            plan,
        };
        let stream = StreamSpec {
            call: Some(record.plan.number),
            side: crate::mark::Side::Caller,
            speech: record.plan.expect.caller_speech(),
            listen: record.plan.expect.caller_listens(),
            stops_with_peer: false,
        };
        let Ok(leg) = self.media.open(stream) else {
            self.conclude(now, record, Ending::NoPort);
            return;
        };
        record.leg = Some(leg.id);
        let number = record.plan.number.into();
        let description = Description::offer(number, leg.address, &[record.plan.law]);
        let invite = self.spec.invite(
            &record.plan.user,
            &caller_user(&record.plan),
            self.server,
            description.body(),
        );
        match self.endpoint.invite(now, invite) {
            Ok(usage) => {
                self.steps
                    .push(Reverse((now + PATIENCE, usage, Step::GiveUp)));
                self.calls.insert(
                    usage,
                    Call {
                        record,
                        leg,
                        description,
                    },
                );
            }
            Err(_) => {
                self.media.close(leg.id);
                self.conclude(now, record, Ending::NotPlaced);
            }
        }
    }

    fn step(&mut self, now: Instant, usage: UsageId, step: Step) {
        let Some(call) = self.calls.get_mut(&usage) else {
            return;
        };
        match step {
            Step::FinishSpeaking => self.media.finish(call.leg.id),
            Step::HangUp => {
                call.record.hung_up = Some(now);
                self.endpoint.bye(now, usage, Vec::new());
            }
            Step::GiveUp if call.record.answered.is_none() => {
                self.endpoint.cancel(now, usage, Vec::new());
            }
            Step::GiveUp => {}
        }
    }

    fn answered(&mut self, now: Instant, usage: UsageId, message: &sip::Incoming) {
        self.endpoint.ack(now, usage, None);
        let Some(call) = self.calls.get_mut(&usage) else {
            self.endpoint.bye(now, usage, Vec::new());
            return;
        };
        call.record.answered = Some(now);
        self.counters.note_up();
        let Some(agreed) = call.description.accept(message) else {
            call.record.ending = Ending::NoMedia;
            self.endpoint.bye(now, usage, Vec::new());
            return;
        };
        call.record.law = Some(agreed.law);
        self.media.start(call.leg.id, agreed);
        let quiet = now + call.record.plan.talk;
        let end = quiet + call.record.plan.linger;
        self.steps
            .push(Reverse((quiet, usage, Step::FinishSpeaking)));
        self.steps.push(Reverse((end, usage, Step::HangUp)));
    }

    fn end(&mut self, now: Instant, usage: UsageId, ending: Ending) {
        if let Some(call) = self.calls.remove(&usage) {
            self.media.close(call.leg.id);
            self.conclude(now, call.record, ending);
        }
    }

    fn conclude(&mut self, now: Instant, mut record: CallRecord, ending: Ending) {
        record.ended = Some(now);
        if record.ending == Ending::Open {
            record.ending = ending;
        }
        let failed = !record.ending.is_orderly()
            && !matches!(
                (&record.plan.expect, record.ending),
                (crate::plan::Expect::Refused(due), Ending::Refused(code)) if *due == code
            );
        self.counters.note_ended(record.answered.is_some(), failed);
        self.records.push(record);
    }

    fn handle_event(&mut self, now: Instant, event: Event) {
        match event {
            Event::Provisional { usage, code, .. } => {
                if let Some(call) = self.calls.get_mut(&usage)
                    && matches!(code, 180 | 183)
                {
                    call.record.ringing.get_or_insert(now);
                }
            }
            Event::Answered { usage, message, .. } => self.answered(now, usage, &message),
            Event::Refused { usage, failure, .. } => self.end(now, usage, ending_of(&failure)),
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
                    if let Some(agreed) = agreed {
                        self.media.start(call.leg.id, agreed);
                    }
                }
            }
            other => agent::answer_other(&mut self.endpoint, now, other),
        }
    }

    fn drain(&mut self, now: Instant) {
        while let Some(event) = self.endpoint.poll_event() {
            self.handle_event(now, event);
        }
    }
}

impl<M: MediaPlane> Agent for Caller<M> {
    fn endpoint(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    fn handle_events(&mut self, now: Instant) {
        self.drain(now);
    }

    fn handle_due(&mut self, now: Instant) {
        let started = *self.started.get_or_insert(now);
        while let Some(plan) = self.planned.pop_front_if(|plan| started + plan.at <= now) {
            self.place(now, started + plan.at, plan);
        }
        while let Some(&Reverse((at, usage, step))) = self.steps.peek() {
            if at > now {
                break;
            }
            self.steps.pop();
            self.step(now, usage, step);
        }
        self.drain(now);
    }

    fn due(&self) -> Option<Instant> {
        let started = self.started?;
        let next = self.planned.front().map(|plan| started + plan.at);
        let step = self.steps.peek().map(|&Reverse((at, ..))| at);
        next.into_iter().chain(step).min()
    }

    fn is_idle(&self) -> bool {
        self.started.is_some() && self.planned.is_empty() && self.calls.is_empty()
    }
}

fn ending_of(failure: &Failure) -> Ending {
    match failure {
        Failure::Response(code) => Ending::Refused(*code),
        Failure::Timeout => Ending::TimedOut,
        Failure::Cancelled => Ending::GivenUp,
        _ => Ending::Undelivered,
    }
}
