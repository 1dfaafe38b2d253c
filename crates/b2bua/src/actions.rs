//! Carries out the actions that the table names, and ends calls.

use std::time::Instant;

use media::command::{LegStats, MediaCommand, RecordingSpec, SessionId, SessionSpec, Side};
use sip::{HeaderField, Name, UsageId};

use crate::call::{Call, Facts, Kind};
use crate::cause::{Cause, NORMAL_CLEARING, Party};
use crate::cdr::{Cdr, CdrLeg, CdrMedia};
use crate::headers;
use crate::incoming::retry_after;
use crate::machine::{B2bua, Timer};
use crate::output::{CallId, Output};
use crate::table::Action;

impl B2bua {
    pub(crate) fn carry_out(&mut self, now: Instant, id: CallId, action: Action) {
        match action {
            Action::InviteB => self.invite_callee(now, id),
            Action::StopRinging => self.stop_ringing(id),
            Action::RingA => self.ring_caller(now, id),
            Action::Media => self.sync_media(id),
            Action::AcceptA => self.accept_caller(now, id),
            Action::AckB => self.ack_callee(now, id),
            Action::RejectA => self.reject_caller(now, id),
            Action::CancelB => self.cancel_branches(now, id),
            Action::ByeA => self.bye(now, id, Side::A),
            Action::ByeB => self.bye(now, id, Side::B),
            Action::Record => self.start_recording(id),
            Action::StopMedia => self.stop_media(now, id),
        }
    }

    fn stop_ringing(&mut self, id: CallId) {
        let deadline = self.call_mut(id).and_then(|call| call.deadline.take());
        if let Some(at) = deadline {
            self.timers.remove(&(at, id));
        }
    }

    fn ring_caller(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.call(id) else { return };
        let (usage, code) = (call.a.usage, call.a.provisional);
        let body = if call.kind.is_direct() {
            call.direct_body.clone()
        } else if call.b.is_some() && call.media[0].agreed.is_some() {
            call.media[0].local_bytes().map(headers::sdp)
        } else {
            None
        };
        let _ = self
            .endpoint
            .provisional(now, usage, code, None, Vec::new(), body);
    }

    fn accept_caller(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        call.facts.answer = Some(now);
        let usage = call.a.usage;
        call.deadline = call.longest.map(|longest| now + longest);
        let deadline = call.deadline;
        let body = if call.kind.is_direct() {
            call.direct_body.clone()
        } else {
            call.media[0].local_bytes().map(headers::sdp)
        };
        tracing::info!(call = %id, caller = %call.facts.caller, callee = %call.facts.callee, "answered");
        let _ = self.endpoint.accept(now, usage, Vec::new(), body);
        if let Some(at) = deadline {
            self.timers.insert((at, id), Timer::Longest);
        }
    }

    fn ack_callee(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let Some(usage) = call.usage(Side::B) else {
            return;
        };
        let offerless = headers::body(&call.a.invite).is_none();
        if call.kind.is_direct() && offerless && call.is_up() {
            call.ack_owed = Some(Side::B);
            return;
        }
        self.endpoint.ack(now, usage, None);
    }

    fn reject_caller(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.call(id) else { return };
        let usage = call.a.usage;
        let cause = call
            .cause
            .clone()
            .unwrap_or_else(|| Cause::from_status(Party::Server, 500, "fault"));
        let mut fields = vec![HeaderField::Known(Name::Reason, cause.reason_header())];
        if cause.sip == 503 {
            fields.push(retry_after());
        }
        if let Some(refusal) = call.refusal.as_ref().filter(|r| r.status == cause.sip) {
            let contacts = refusal.contacts.iter();
            fields.extend(contacts.map(|c| HeaderField::Known(Name::Contact, c.clone())));
        }
        self.reject_usage(now, usage, cause.sip, None, fields);
    }

    fn cancel_branches(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let answered = call.is_up();
        let fields = if answered {
            // RFC 3326 section 3.1: the phones that rang in vain need not show a missed call.
            let reason = "SIP;cause=200;text=\"Call completed elsewhere\"";
            vec![HeaderField::Known(Name::Reason, reason.to_owned())]
        } else {
            reason_fields(call)
        };
        let open: Vec<UsageId> = call
            .branches
            .iter_mut()
            .filter(|branch| branch.open)
            .map(|branch| {
                branch.open = false;
                branch.usage
            })
            .collect();
        for usage in open {
            self.usages.remove(&usage);
            self.endpoint.cancel(now, usage, fields.clone());
        }
    }

    fn bye(&mut self, now: Instant, id: CallId, side: Side) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let Some(usage) = call.usage(side) else {
            return;
        };
        let fields = reason_fields(call);
        let owes_ack = call.ack_owed.take_if(|owed| *owed == side).is_some();
        if owes_ack {
            self.endpoint.ack(now, usage, None);
        }
        self.usages.remove(&usage);
        self.endpoint.bye(now, usage, fields);
    }

    /// Brings the media plane to what has been negotiated. A call whose caller has not agreed to
    /// anything yet has no media.
    pub(crate) fn sync_media(&mut self, id: CallId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let program = match &call.kind {
            Kind::Local(program) => program.clone(),
            Kind::Bridge(_) => media::command::Program::Bridge,
        };
        let Some(caller) = call.media[0].spec() else {
            return;
        };
        let spec = SessionSpec {
            legs: [Some(caller), call.media[1].spec()],
            program,
        };
        let session = SessionId(id.as_u64());
        let command = if std::mem::replace(&mut call.media_started, true) {
            MediaCommand::Update { session, spec }
        } else {
            MediaCommand::Start { session, spec }
        };
        self.outputs.push_back(Output::Media(command));
        if self.call(id).is_some_and(Call::is_up) {
            self.start_recording(id);
        }
    }

    fn start_recording(&mut self, id: CallId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        if !call.media_started || call.recording {
            return;
        }
        let Some(record) = &call.record else { return };
        call.recording = true;
        let facts = &call.facts;
        let fields = [
            ("caller", facts.caller.clone()),
            ("callee", facts.callee.clone()),
            ("call_id", facts.call_id.clone()),
            ("call", id.to_string()),
        ];
        let recording = RecordingSpec {
            id: id.as_u64(),
            stereo: record.stereo,
            template: record.template.clone(),
            fields: fields.into_iter().map(|(k, v)| (k.to_owned(), v)).collect(),
        };
        let session = SessionId(id.as_u64());
        self.outputs
            .push_back(Output::Media(MediaCommand::StartRecording {
                session,
                recording,
            }));
    }

    fn stop_media(&mut self, now: Instant, id: CallId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        if call.media_started {
            let session = SessionId(id.as_u64());
            self.outputs
                .push_back(Output::Media(MediaCommand::Stop { session }));
        } else {
            self.finish(now, id, None);
        }
    }

    /// The end of a call: its ports go back, its record goes out, its place is free.
    pub(crate) fn finish(&mut self, now: Instant, id: CallId, stats: Option<&[LegStats; 2]>) {
        if self.call(id).is_none() {
            return;
        }
        self.stop_ringing(id);
        let call = self.calls.remove(id.key as usize);
        self.usages.remove(&call.a.usage);
        for branch in &call.branches {
            self.usages.remove(&branch.usage);
        }
        let ports: Vec<_> = call
            .media
            .iter()
            .filter_map(|leg| leg.port.map(|(port, _)| port))
            .collect();
        if !ports.is_empty() {
            self.outputs.push_back(Output::Release { ports });
        }
        let media = stats
            .map(|stats| [0, 1].map(|leg| CdrMedia::new(call.media[leg].codec(), &stats[leg])));
        let leg_b = call
            .branches
            .iter()
            .find(|branch| call.b.as_ref().is_some_and(|b| b.usage == branch.usage))
            .or_else(|| call.branches.last())
            .map(|branch| CdrLeg {
                target: branch.target.clone(),
                call_id: branch.call_id.clone(),
            });
        let cause = call
            .cause
            .unwrap_or_else(|| Cause::after_answer(Party::Server, NORMAL_CLEARING, "ended"));
        self.write_record(now, id.to_string(), call.facts, cause, leg_b, media);
    }

    /// The record of a call that the dialplan refused before it became one.
    pub(crate) fn record_refused(&mut self, now: Instant, facts: Facts, cause: Cause) {
        let id = self.next_call_id();
        self.write_record(now, id.to_string(), facts, cause, None, None);
    }

    fn write_record(
        &mut self,
        now: Instant,
        call: String,
        facts: Facts,
        cause: Cause,
        leg_b: Option<CdrLeg>,
        media: Option<[CdrMedia; 2]>,
    ) {
        let end = facts.end.unwrap_or(now);
        let talk = facts
            .answer
            .map_or_else(Default::default, |at| end.saturating_duration_since(at));
        let wall = |at| self.epoch.wall(at);
        let cdr = Cdr {
            call,
            leg_b,
            setup: wall(facts.setup),
            ringing: facts.ringing.map(wall),
            answer: facts.answer.map(wall),
            end: wall(end),
            talk_ms: u64::try_from(talk.as_millis()).unwrap_or(u64::MAX),
            acked: facts.acked,
            caller: facts.caller,
            callee: facts.callee,
            source: facts.source,
            call_id: facts.call_id,
            rule: facts.rule,
            action: facts.action,
            cause,
            media,
            recordings: facts.recordings,
        };
        tracing::info!(
            call = %cdr.call, caller = %cdr.caller, callee = %cdr.callee, talk_ms = cdr.talk_ms,
            sip = cdr.cause.sip, q850 = cdr.cause.q850, by = ?cdr.cause.by, why = cdr.cause.why,
            "ended"
        );
        self.outputs.push_back(Output::Cdr(Box::new(cdr)));
    }
}

/// The Reason header that tells a peer why its leg ends (RFC 3326).
fn reason_fields(call: &Call) -> sip::Fields {
    let header = call.cause.as_ref().map(Cause::reason_header);
    header
        .map(|value| HeaderField::Known(Name::Reason, value))
        .into_iter()
        .collect()
}
