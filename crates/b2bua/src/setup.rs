//! From the INVITE of leg B to both sides talking and hanging up: what each event of that time means.
//!
//! Sources: RFC 3261 sections 13 and 9, RFC 3264, RFC 3960 (early media).

use std::time::Instant;

use media::command::Side;
use sip::{Failure, Incoming, Name, UsageId};

use crate::call::{Branch, Kind, LegB, Refusal};
use crate::cause::{self, Cause, Party};
use crate::headers;
use crate::machine::{B2bua, Timer};
use crate::negotiate;
use crate::output::CallId;
use crate::table::{Input, State};

impl B2bua {
    /// A branch of leg B rings, or sends early media.
    pub(crate) fn on_provisional(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        code: u16,
        message: &Incoming,
    ) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        if !matches!(call.state, State::Calling | State::Ringing) {
            return;
        }
        call.a.provisional = code;
        call.facts.ringing.get_or_insert(now);
        let early = self
            .take_answer(id, usage, message, Finality::Early)
            .unwrap_or(false);
        self.feed(
            now,
            id,
            if early {
                Input::EarlyMedia
            } else {
                Input::Ringing
            },
        );
    }

    /// A branch of leg B answered.
    pub(crate) fn on_answered(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        message: &Incoming,
    ) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        if !matches!(call.state, State::Calling | State::Ringing) {
            self.endpoint.ack(now, usage, None);
            self.endpoint.bye(now, usage, Vec::new());
            return;
        }
        call.branches
            .iter_mut()
            .filter(|b| b.usage == usage)
            .for_each(|b| b.open = false);
        match self.take_answer(id, usage, message, Finality::Final) {
            Ok(true) => self.feed(now, id, Input::Answered),
            Ok(false) | Err(_) => {
                if let Some(call) = self.call_mut(id) {
                    call.b = Some(LegB { usage });
                }
                let cause = Cause::from_status(Party::Callee, 488, "no usable answer");
                self.end_with(now, id, cause, Input::AnsweredUnusable);
            }
        }
    }

    /// A branch of leg B refused or failed.
    pub(crate) fn on_refused(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        failure: Failure,
        message: Option<&Incoming>,
    ) {
        self.usages.remove(&usage);
        let Some(call) = self.call_mut(id) else {
            return;
        };
        call.branches
            .iter_mut()
            .filter(|b| b.usage == usage)
            .for_each(|b| b.open = false);
        let status = cause::towards_caller(failure);
        let better = call
            .refusal
            .as_ref()
            .is_none_or(|kept| cause::better(kept.status, status) != kept.status);
        if better {
            let contacts = message
                .filter(|_| (300..400).contains(&status))
                .map(|m| m.values(Name::Contact).map(str::to_owned).collect());
            call.refusal = Some(Refusal {
                status,
                failure,
                contacts: contacts.unwrap_or_default(),
            });
        }
        if !matches!(call.state, State::Calling | State::Ringing)
            || call.branches.iter().any(|b| b.open)
        {
            return;
        }
        let refusal = call.refusal.as_ref().expect("set above");
        let (by, why) = match refusal.failure {
            Failure::Response(486 | 600) => (Party::Callee, "busy"),
            Failure::Response(_) => (Party::Callee, "refused"),
            Failure::Timeout => (Party::Callee, "callee does not respond"),
            Failure::Unresolved => (Party::Server, "callee's address is unknown"),
            _ => (Party::Callee, "callee is out of reach"),
        };
        let cause = Cause {
            by,
            sip: refusal.status,
            q850: match refusal.failure {
                Failure::Response(code) => cause::q850(code),
                _ => cause::q850(refusal.status),
            },
            why,
        };
        self.end_with(now, id, cause, Input::Refused);
    }

    /// The first ACK to our 2xx, of the INVITE or of a re-INVITE. It may carry the answer to an
    /// offer that our 2xx made.
    pub(crate) fn on_acked(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        message: &Incoming,
    ) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let side = call.side(usage);
        if side == Side::A {
            call.facts.acked = true;
        }
        if let Some(waiting) = call.ack_owed.take_if(|owed| *owed != side) {
            let target = call.usage(waiting);
            if let Some(target) = target {
                self.endpoint.ack(now, target, headers::body(message));
            }
        } else if call.media[side.index()].awaits_answer() {
            let answered = headers::description(message)
                .ok()
                .flatten()
                .is_some_and(|answer| call.media[side.index()].accept(answer).is_ok());
            if answered {
                self.sync_media(id);
            } else if side == Side::A && call.state == State::Accepted {
                let cause = Cause::after_answer(Party::Caller, 88, "no usable answer");
                self.feed(now, id, Input::CallerAcked);
                self.end_with(now, id, cause, Input::HangUp);
                return;
            }
        }
        if side == Side::A {
            self.feed(now, id, Input::CallerAcked);
        }
    }

    /// 64 x T1 went by without ACK; the endpoint ends that dialog itself (RFC 3261 section
    /// 13.3.1.4).
    pub(crate) fn on_ack_missing(&mut self, now: Instant, id: CallId, usage: UsageId) {
        let Some(call) = self.call(id) else { return };
        let (by, input) = match call.side(usage) {
            Side::A => (Party::Caller, Input::CallerAckMissing),
            Side::B => (Party::Callee, Input::CalleeBye),
        };
        let cause = Cause::after_answer(by, cause::TIMER_EXPIRY, "no ACK");
        self.end_with(now, id, cause, input);
    }

    /// A BYE, already answered.
    pub(crate) fn on_bye(&mut self, now: Instant, id: CallId, usage: UsageId, message: &Incoming) {
        self.usages.remove(&usage);
        let Some(call) = self.call(id) else { return };
        let (by, input) = match call.side(usage) {
            Side::A => (Party::Caller, Input::CallerBye),
            Side::B => (Party::Callee, Input::CalleeBye),
        };
        let q850 = message
            .headers(Name::Reason)
            .find_map(cause::q850_of_reason)
            .unwrap_or(cause::NORMAL_CLEARING);
        self.end_with(now, id, Cause::after_answer(by, q850, "hangup"), input);
    }

    /// Reads the description in a response of leg B and readies leg A's. `Ok(false)` says that the
    /// response carries none that matters.
    fn take_answer(
        &mut self,
        id: CallId,
        usage: UsageId,
        message: &Incoming,
        finality: Finality,
    ) -> Result<bool, u16> {
        let Some(call) = self.call_mut(id) else {
            return Ok(false);
        };
        let is_first_fork = call.b.as_ref().is_none_or(|b| b.usage == usage);
        if call.kind.is_direct() {
            let carries = !message.body().is_empty();
            if (carries && is_first_fork) || finality == Finality::Final {
                call.b = Some(LegB { usage });
                call.direct_body = headers::body(message).or_else(|| call.direct_body.take());
                return Ok(call.direct_body.is_some());
            }
            return Ok(false);
        }
        let description = headers::description(message)?;
        match (description, finality) {
            // Early media of a second branch would cut into the first's; its 2xx decides.
            (Some(_), Finality::Early) if !is_first_fork => return Ok(false),
            (Some(answer), _) => call.media[1].accept(answer).map_err(|_| 488_u16)?,
            // The answer may have come in a provisional response of the same branch.
            (None, Finality::Final) if is_first_fork && call.media[1].agreed.is_some() => {}
            (None, Finality::Final) => return Err(488),
            (None, Finality::Early) => return Ok(false),
        }
        call.b = Some(LegB { usage });
        self.answer_caller(id)?;
        Ok(true)
    }

    /// Makes leg A's description: the answer to its offer, or our own offer where it made none.
    /// What went out in a provisional response stays as it is (RFC 3261 section 13.2.1).
    pub(crate) fn answer_caller(&mut self, id: CallId) -> Result<(), u16> {
        let ours = self.config.codecs.clone();
        let Some(call) = self.call_mut(id) else {
            return Ok(());
        };
        let [a, b] = &mut call.media;
        if a.local.is_some() {
            return Ok(());
        }
        let (formats, direction) = match &b.agreed {
            Some(agreed) => (
                negotiate::formats_for_caller(&agreed.send_format, &ours),
                agreed.direction.reversed(),
            ),
            None => (
                own_in_callers_order(a.remote.as_ref(), &ours),
                sdp::Direction::SendRecv,
            ),
        };
        match a.remote.clone() {
            Some(offer) => a
                .answer(&offer, formats, direction)
                .map(drop)
                .map_err(|_| 488),
            None => {
                a.offer(formats, direction);
                Ok(())
            }
        }
    }

    /// The INVITE to every target of leg B.
    pub(crate) fn invite_callee(&mut self, now: Instant, id: CallId) {
        let ours = self.config.codecs.clone();
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let Kind::Bridge(bridge) = &call.kind else {
            return;
        };
        let bridge = bridge.clone();
        let invite = call.a.invite.clone();
        let added = call.fields.clone();
        let body = if call.kind.is_direct() {
            headers::body(&invite)
        } else {
            let [a, b] = &mut call.media;
            let formats = negotiate::formats_for_callee(&bridge.codecs, a.remote.as_ref(), &ours);
            let direction = a
                .remote
                .as_ref()
                .and_then(sdp::Session::audio)
                .map_or(sdp::Direction::SendRecv, |audio| audio.direction);
            Some(headers::sdp(b.offer(formats, direction)))
        };
        let template = match headers::towards_callee(&invite, &self.config, &added) {
            Ok(template) => template,
            Err(status) => {
                let cause = Cause::from_status(Party::Server, status, "too many hops");
                self.refuse_all(now, id, cause);
                return;
            }
        };
        let targets = self.targets(now, &bridge.targets);
        let mut sent = 0;
        for target in targets {
            let invite = template.invite(&target, body.clone());
            let Ok(usage) = self.endpoint.invite(now, invite) else {
                continue;
            };
            let call_id = self.endpoint.call_id(usage).unwrap_or_default().to_owned();
            self.usages.insert(usage, id);
            if let Some(call) = self.call_mut(id) {
                call.branches.push(Branch {
                    usage,
                    target: target.uri,
                    call_id,
                    open: true,
                });
            }
            sent += 1;
        }
        if sent == 0 {
            let cause = Cause::from_status(Party::Callee, 480, "nobody to call");
            self.refuse_all(now, id, cause);
            return;
        }
        self.timers
            .insert((now + bridge.ring_timeout, id), Timer::NoAnswer);
        if let Some(call) = self.call_mut(id) {
            call.deadline = Some(now + bridge.ring_timeout);
        }
    }

    fn refuse_all(&mut self, now: Instant, id: CallId, cause: Cause) {
        self.end_with(now, id, cause, Input::Refused);
    }
}

/// Our codecs in the order that the caller likes them (RFC 3264 section 6.1).
fn own_in_callers_order(offer: Option<&sdp::Session>, ours: &[(String, u32)]) -> Vec<sdp::Format> {
    let formats = negotiate::own_formats(ours);
    match offer.and_then(sdp::Session::audio) {
        Some(audio) => audio.in_this_order(formats),
        None => formats,
    }
}

/// Whether a response of leg B ends its INVITE.
#[derive(Copy, Clone, Eq, PartialEq)]
enum Finality {
    Early,
    Final,
}
