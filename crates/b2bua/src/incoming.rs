//! A new INVITE: refused, or decided by the dialplan and made a call, and what the shell's answer
//! makes of it.

use std::time::{Duration, Instant};

use dialplan::{Action as Plan, Query};
use media::command::Program;
use sip::{Flow, HeaderField, Incoming, Name, UsageId};

use crate::call::{Call, Facts, Kind, LegA};
use crate::cause::{Cause, Party};
use crate::config::RETRY_AFTER;
use crate::headers;
use crate::machine::B2bua;
use crate::negotiate::LegMedia;
use crate::output::{CallId, Output, Prepare, PrepareError, Prepared};
use crate::table::{Input, State};

impl B2bua {
    /// A new INVITE outside any dialog: refused here, or made a call by the dialplan.
    pub(crate) fn on_invite(
        &mut self,
        now: Instant,
        usage: UsageId,
        message: Box<Incoming>,
        flow: Flow,
    ) {
        let parties = headers::Parties::of(&message);
        let mut facts = Facts::new(now, &parties, &message, &flow);
        if self.draining || self.calls.len() >= self.config.max_calls {
            let why = if self.draining { "draining" } else { "full" };
            let cause = Cause::from_status(Party::Server, 503, why);
            self.refuse(now, usage, facts, cause, None, vec![retry_after()]);
            return;
        }
        let offer = match headers::description(&message) {
            Ok(offer) => offer,
            Err(status) => {
                let accept = HeaderField::Known(Name::Accept, "application/sdp".to_owned());
                let fields = if status == 415 {
                    vec![accept]
                } else {
                    Vec::new()
                };
                let cause = Cause::from_status(Party::Caller, status, "unusable body");
                self.refuse(now, usage, facts, cause, None, fields);
                return;
            }
        };
        let decision = self.plan.decide(&Query {
            called_user: &parties.called_user,
            called_host: &parties.called_host,
            caller_user: &parties.caller_user,
            caller_host: &parties.caller_host,
            source: flow.remote.ip(),
            method: "INVITE",
            header: &|name| message.header_named(name).map(str::to_owned),
        });
        facts.rule = decision.rule_name();
        facts.action = decision.action.name();
        match decision.action {
            Plan::Reject { code, reason } => {
                let cause = Cause::from_status(Party::Server, code, "rejected");
                self.refuse(now, usage, facts, cause, reason.as_deref(), Vec::new());
            }
            Plan::Redirect { code, contacts } => {
                let contacts = contacts
                    .into_iter()
                    .map(|c| HeaderField::Known(Name::Contact, c));
                let cause = Cause::from_status(Party::Server, code, "redirected");
                self.refuse(now, usage, facts, cause, None, contacts.collect());
            }
            action => {
                let (kind, clip, longest) = plan_of(action);
                let call = self.new_call(usage, message, facts, kind);
                let call = Call {
                    longest,
                    record: decision.record,
                    fields: decision.fields,
                    ..call
                };
                self.open(now, call, offer, clip);
            }
        }
    }

    /// Takes a call in and asks the shell for what it needs.
    fn open(
        &mut self,
        now: Instant,
        mut call: Call,
        offer: Option<sdp::Session>,
        clip: Option<dialplan::Clip>,
    ) {
        let (id, usage, caller_user) = (call.id, call.a.usage, call.facts.caller.clone());
        tracing::info!(
            call = %id, caller = %call.facts.caller, callee = %call.facts.callee,
            source = %call.facts.source, rule = %call.facts.rule, action = call.facts.action, "call"
        );
        let ports = match &call.kind {
            Kind::Local(_) => 1,
            kind if kind.is_direct() => 0,
            Kind::Bridge(_) => 2,
        };
        call.media[0].remote = offer;
        let key = self.calls.insert(call);
        debug_assert_eq!(
            key, id.key as usize,
            "the slab fills the place it announced"
        );
        self.usages.insert(usage, id);
        if ports == 0 && clip.is_none() {
            self.prepared(now, id, Ok(Prepared::default()));
        } else {
            let prepare = Prepare {
                call: id,
                ports,
                clip,
                caller_user,
            };
            self.outputs.push_back(Output::Prepare(prepare));
        }
    }

    fn new_call(
        &mut self,
        usage: UsageId,
        invite: Box<Incoming>,
        facts: Facts,
        kind: Kind,
    ) -> Call {
        Call {
            id: self.next_call_id(),
            state: State::Preparing,
            kind,
            a: LegA {
                usage,
                invite,
                provisional: 180,
            },
            branches: Vec::new(),
            b: None,
            refusal: None,
            // Session ids stay below 2^62: some readers take them as signed.
            media: [0, 1].map(|_| LegMedia::new(self.rng.next_u64() >> 2)),
            media_started: false,
            record: None,
            longest: None,
            fields: Vec::new(),
            recording: false,
            renegotiation: None,
            ack_owed: None,
            direct_body: None,
            deadline: None,
            cause: None,
            facts,
        }
    }

    /// Refuses an INVITE that does not become a call, and writes its record.
    fn refuse(
        &mut self,
        now: Instant,
        usage: UsageId,
        facts: Facts,
        cause: Cause,
        reason: Option<&str>,
        fields: sip::Fields,
    ) {
        self.reject_usage(now, usage, cause.sip, reason, fields);
        self.record_refused(now, facts, cause);
    }

    /// The shell's answer to what a call needs.
    pub(crate) fn prepared(
        &mut self,
        now: Instant,
        id: CallId,
        result: Result<Prepared, PrepareError>,
    ) {
        let waiting = self
            .call(id)
            .is_some_and(|call| call.state == State::Preparing);
        let prepared = match result {
            Ok(prepared) if !waiting => {
                if !prepared.ports.is_empty() {
                    let ports = prepared.ports.into_iter().map(|(port, _)| port).collect();
                    self.outputs.push_back(Output::Release { ports });
                }
                return;
            }
            Ok(prepared) => prepared,
            Err(error) => {
                let why = if error == PrepareError::NoClip {
                    "no such clip"
                } else {
                    "no port"
                };
                let cause = Cause::from_status(Party::Server, error.status(), why);
                self.end_with(now, id, cause, Input::PrepareFailed);
                return;
            }
        };
        let Some(call) = self.call_mut(id) else {
            return;
        };
        for (leg, port) in call.media.iter_mut().zip(prepared.ports) {
            leg.port = Some(port);
        }
        if let (Kind::Local(Program::Play { clip, .. }), Some(found)) =
            (&mut call.kind, prepared.clip)
        {
            *clip = found;
        }
        if matches!(call.kind, Kind::Bridge(_)) {
            self.feed(now, id, Input::PreparedBridge);
            return;
        }
        match self.answer_caller(id) {
            Ok(()) => self.feed(now, id, Input::PreparedLocal),
            Err(status) => {
                let cause = Cause::from_status(Party::Server, status, "no common codec");
                self.end_with(now, id, cause, Input::PrepareFailed);
            }
        }
    }

    pub(crate) fn reject_usage(
        &mut self,
        now: Instant,
        usage: UsageId,
        code: u16,
        reason: Option<&str>,
        fields: sip::Fields,
    ) {
        // The only error is that the caller has gone meanwhile, which is what we want.
        let _ = self.endpoint.reject(now, usage, code, reason, fields, None);
    }
}

/// What a call does by the dialplan's action, the clip that it needs, and its longest duration.
fn plan_of(action: Plan) -> (Kind, Option<dialplan::Clip>, Option<Duration>) {
    let local = |program| (Kind::Local(program), None, None);
    match action {
        Plan::Bridge(bridge) => (Kind::Bridge(bridge), None, None),
        Plan::Echo { delay } => local(Program::Echo { delay }),
        Plan::Tone { hz, level_dbm0 } => local(Program::Tone { hz, level_dbm0 }),
        Plan::Record { beep, max } => (Kind::Local(Program::Record { beep }), None, max),
        Plan::Play { clip, repeat } => {
            // The shell puts its number for the clip here.
            let program = Program::Play {
                clip: media::command::ClipId(0),
                repeat,
            };
            (Kind::Local(program), Some(clip), None)
        }
        Plan::Answer | Plan::Reject { .. } | Plan::Redirect { .. } => local(Program::Silence),
    }
}

/// `Retry-After` for a server that is full or draining.
pub(crate) fn retry_after() -> HeaderField {
    HeaderField::Known(Name::RetryAfter, RETRY_AFTER.as_secs().to_string())
}
