//! Re-INVITEs of a call that is up (RFC 3261 section 14, RFC 3264 section 8).
//!
//! Media passes through us, so most of what one side changes (its address, its port, its codec)
//! is answered here and the other side never hears of it. What the other side must know, that it
//! is put on hold or taken off it, is offered to it, and the first side's answer waits for its
//! answer. With direct media every description is passed on as it is.

use std::time::Instant;

use media::command::Side;
use sip::{Failure, Incoming, UsageId};

use crate::call::{Call, Kind, Renegotiation};
use crate::cause::{Cause, Party, TIMER_EXPIRY};
use crate::headers;
use crate::machine::B2bua;
use crate::negotiate;
use crate::output::CallId;
use crate::table::Input;

impl B2bua {
    /// One side asks to change the session.
    pub(crate) fn on_reinvite(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        message: &Incoming,
    ) {
        let Some(call) = self.call(id) else { return };
        if !call.is_up() || call.renegotiation.is_some() {
            self.respond_reinvite(now, usage, 491, None);
            return;
        }
        let side = call.side(usage);
        if call.kind.is_direct() {
            self.pass_reinvite(now, id, side, message);
            return;
        }
        match headers::description(message) {
            Err(status) => self.respond_reinvite(now, usage, status, None),
            Ok(None) => {
                let body = self.offer_again(id, side);
                self.respond_reinvite(now, usage, 200, body.map(headers::sdp));
            }
            Ok(Some(offer)) => self.take_offer(now, id, side, usage, offer),
        }
    }

    /// The other side agreed to what was asked of it.
    pub(crate) fn on_reinvite_answered(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        message: &Incoming,
    ) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let renegotiation = call.renegotiation.take();
        let answered = call.side(usage);
        let Some(asked) = renegotiation else {
            self.endpoint.ack(now, usage, None);
            return;
        };
        let Some(first) = call.usage(asked.from) else {
            return;
        };
        let direct = call.kind.is_direct();
        if direct {
            if asked.offer.is_none() {
                call.ack_owed = Some(answered);
            } else {
                self.endpoint.ack(now, usage, None);
            }
            self.respond_reinvite(now, first, 200, headers::body(message));
            return;
        }
        let taken = headers::description(message)
            .ok()
            .flatten()
            .is_some_and(|answer| call.media[answered.index()].accept(answer).is_ok());
        self.endpoint.ack(now, usage, None);
        if asked.cancelled {
            self.restore(now, id, answered, &asked);
            return;
        }
        let body = if taken {
            self.answer_again(id, asked)
        } else {
            Err(488)
        };
        match body {
            Ok(body) => {
                self.respond_reinvite(now, first, 200, Some(headers::sdp(body)));
                self.sync_media(id);
            }
            Err(status) => self.respond_reinvite(now, first, status, None),
        }
    }

    /// The one who asked took its re-INVITE back; the other side's answer is still to come.
    pub(crate) fn on_reinvite_cancelled(&mut self, id: CallId, usage: UsageId) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let side = call.side(usage);
        if let Some(asked) = call
            .renegotiation
            .as_mut()
            .filter(|asked| asked.from == side)
        {
            asked.cancelled = true;
        }
    }

    /// The other side has agreed to what was taken back meanwhile: it is offered what stood before.
    fn restore(&mut self, now: Instant, id: CallId, side: Side, asked: &Renegotiation) {
        self.sync_media(id);
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let first = call.media[asked.from.index()].agreed.as_ref();
        let direction = first.map(|agreed| agreed.direction.reversed());
        if let (Some(direction), true) = (direction, asked.offer.is_some()) {
            let nobody = Renegotiation {
                from: asked.from,
                offer: None,
                cancelled: true,
            };
            self.ask_other(now, id, side, direction, nobody);
        }
    }

    /// The other side refused, or does not answer.
    pub(crate) fn on_reinvite_refused(
        &mut self,
        now: Instant,
        id: CallId,
        usage: UsageId,
        failure: Failure,
    ) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let side = call.side(usage);
        call.media[side.index()].withdraw();
        let waiting = call
            .renegotiation
            .take()
            .and_then(|asked| call.usage(asked.from));
        let gone = matches!(failure, Failure::Response(481 | 408) | Failure::Timeout);
        let status = match failure {
            Failure::Response(code @ 400..) => code,
            _ => 500,
        };
        if let Some(first) = waiting {
            self.respond_reinvite(now, first, status, None);
        }
        if gone {
            self.leg_gone(now, id, side);
        }
    }

    /// A dialog that answers 408 or 481, or nothing at all, is over (RFC 3261 section 12.2.1.2).
    pub(crate) fn leg_gone(&mut self, now: Instant, id: CallId, side: Side) {
        let Some(call) = self.call(id) else { return };
        let (by, input) = match side {
            Side::A => (Party::Caller, Input::CallerBye),
            Side::B => (Party::Callee, Input::CalleeBye),
        };
        if let Some(usage) = call.usage(side) {
            self.usages.remove(&usage);
            self.endpoint.bye(now, usage, Vec::new());
        }
        self.end_with(
            now,
            id,
            Cause::after_answer(by, TIMER_EXPIRY, "does not respond"),
            input,
        );
    }

    /// An offer of one side: answered here, or asked of the other side first.
    fn take_offer(
        &mut self,
        now: Instant,
        id: CallId,
        side: Side,
        usage: UsageId,
        offer: sdp::Session,
    ) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let other = side.other();
        let asked = offer.audio().map(|audio| audio.direction);
        let told = call.media[other.index()]
            .agreed
            .as_ref()
            .map(|agreed| agreed.direction);
        let concerns_other = matches!(call.kind, Kind::Bridge(_))
            && told.is_some()
            && asked.is_some_and(|asked| Some(asked) != told && is_change(call, side, asked));
        let renegotiation = Renegotiation {
            from: side,
            offer: Some(offer),
            cancelled: false,
        };
        if let (Some(asked), true) = (asked, concerns_other) {
            if !self.ask_other(now, id, other, asked, renegotiation) {
                self.respond_reinvite(now, usage, 491, None);
            }
            return;
        }
        match self.answer_again(id, renegotiation) {
            Ok(body) => {
                self.respond_reinvite(now, usage, 200, Some(headers::sdp(body)));
                self.sync_media(id);
            }
            Err(status) => self.respond_reinvite(now, usage, status, None),
        }
    }

    /// Offers the other side its own formats in a new direction; false where that has to wait.
    fn ask_other(
        &mut self,
        now: Instant,
        id: CallId,
        other: Side,
        direction: sdp::Direction,
        asked: Renegotiation,
    ) -> bool {
        let Some(call) = self.call_mut(id) else {
            return true;
        };
        let Some(target) = call.usage(other) else {
            return true;
        };
        let agreed = call.media[other.index()].agreed.as_ref();
        let formats = agreed
            .map(sdp::Agreed::recv_formats_with_events)
            .unwrap_or_default();
        let body = headers::sdp(call.media[other.index()].offer(formats, direction));
        call.renegotiation = Some(asked);
        let sent = self
            .endpoint
            .reinvite(now, target, Vec::new(), Some(body))
            .is_ok();
        if let (false, Some(call)) = (sent, self.call_mut(id)) {
            call.renegotiation = None;
            call.media[other.index()].withdraw();
        }
        sent
    }

    /// Our answer to one side's offer, with the direction that the other side allows.
    fn answer_again(&mut self, id: CallId, asked: Renegotiation) -> Result<Vec<u8>, u16> {
        let ours = self.config.codecs.clone();
        let Some(call) = self.call_mut(id) else {
            return Err(481);
        };
        let other = call.media[asked.from.other().index()].agreed.as_ref();
        let (formats, direction) = match other {
            Some(agreed) => (
                negotiate::formats_for_caller(&agreed.send_format, &ours),
                agreed.direction.reversed(),
            ),
            None => (negotiate::own_formats(&ours), sdp::Direction::SendRecv),
        };
        let offer = asked.offer.ok_or(488_u16)?;
        call.media[asked.from.index()]
            .answer(&offer, formats, direction)
            .map_err(|_| 488)
    }

    /// Our offer in the 2xx to a re-INVITE that brought none: what stands, with hold lifted where
    /// the other side allows it. The answer comes in the ACK.
    fn offer_again(&mut self, id: CallId, side: Side) -> Option<Vec<u8>> {
        let ours = self.config.codecs.clone();
        let call = self.call_mut(id)?;
        let other = call.media[side.other() as usize].agreed.as_ref();
        let direction = other.map_or(sdp::Direction::SendRecv, |agreed| {
            agreed.direction.reversed()
        });
        let formats = match other {
            Some(agreed) => negotiate::formats_for_caller(&agreed.send_format, &ours),
            None => negotiate::own_formats(&ours),
        };
        Some(call.media[side.index()].offer(formats, direction))
    }

    /// Direct media: the other side is asked with the very same description.
    fn pass_reinvite(&mut self, now: Instant, id: CallId, side: Side, message: &Incoming) {
        let offer = headers::description(message).ok().flatten();
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let (Some(usage), Some(target)) = (call.usage(side), call.usage(side.other())) else {
            return;
        };
        call.renegotiation = Some(Renegotiation {
            from: side,
            offer,
            cancelled: false,
        });
        let body = headers::body(message);
        if self
            .endpoint
            .reinvite(now, target, Vec::new(), body)
            .is_err()
        {
            if let Some(call) = self.call_mut(id) {
                call.renegotiation = None;
            }
            self.respond_reinvite(now, usage, 491, None);
        }
    }

    fn respond_reinvite(
        &mut self,
        now: Instant,
        usage: UsageId,
        code: u16,
        body: Option<sip::Body>,
    ) {
        // The only error is a dialog that ended meanwhile: then nobody waits.
        let _ = self
            .endpoint
            .respond_reinvite(now, usage, code, Vec::new(), body);
    }
}

/// Whether the direction that one side asks for differs from what it last asked for.
fn is_change(call: &Call, side: Side, asked: sdp::Direction) -> bool {
    let leg = &call.media[side.index()];
    let before = leg
        .remote
        .as_ref()
        .and_then(sdp::Session::audio)
        .map(|audio| audio.direction);
    before != Some(asked)
}
