//! The machine: owns the SIP endpoint, the calls and the registrar, and speaks the vocabulary of
//! every machine of this project (handle, then drain).
//!
//! ```text
//!   datagram --> sip::Endpoint --Event--> dispatch --Input--> table::step --Action--> carry out
//!   shell's answers, media events, timers --------^                                      |
//!                  Output (transmit, prepare, media command, record) <-------------------+
//! ```
//! Time is an argument, randomness comes from the seed, and every map keyed by something from the
//! network uses a hasher seeded from it. The driver, and the simulated world in the tests, call
//! [`B2bua::handle_message`] and friends, then [`B2bua::poll_output`] until it is empty.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use dialplan::Plan;
use media::command::{LegStats, MediaEvent};
use sip::{
    ClientTxnId, Endpoint, Event, Flow, ResolveError, ResolveId, Rng, SeededState, ServerTxnId,
    Transport, UsageId,
};
use slab::Slab;

use crate::call::Call;
use crate::cause::{Cause, Party};
use crate::cdr::Epoch;
use crate::config::Config;
use crate::output::{CallId, Output, PrepareError, Prepared};
use crate::registrar::Registrar;
use crate::table::{Input, State, step};

/// All signalling of the server.
#[derive(Debug)]
pub struct B2bua {
    pub(crate) config: Config,
    pub(crate) plan: Arc<Plan>,
    pub(crate) epoch: Epoch,
    pub(crate) rng: Rng,
    pub(crate) endpoint: Endpoint,
    pub(crate) registrar: Registrar,
    pub(crate) calls: Slab<Call>,
    pub(crate) usages: HashMap<UsageId, CallId, SeededState>,
    /// Requests of one leg that wait for the other leg's answer, by our transaction towards it.
    pub(crate) relayed: HashMap<ClientTxnId, ServerTxnId, SeededState>,
    pub(crate) outputs: VecDeque<Output>,
    /// What calls wait for.
    pub(crate) timers: BTreeMap<(Instant, CallId), Timer>,
    pub(crate) draining: bool,
    generation: u32,
}

/// What a call waits for; one at a time.
#[derive(Copy, Clone, Debug)]
pub(crate) enum Timer {
    /// Somebody of leg B to answer.
    NoAnswer,
    /// The longest duration that the dialplan allows.
    Longest,
}

/// What the machine holds. All zero once every call is over and every timer has run out.
#[derive(Copy, Clone, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Calls that have no record yet.
    pub calls: usize,
    /// Legs known to calls.
    pub legs: usize,
    /// Requests passed from leg to leg that wait for an answer.
    pub relayed: usize,
    /// Timers of calls.
    pub call_timers: usize,
    /// RTP ports that calls hold.
    pub ports: usize,
    /// Outputs not drained yet.
    pub outputs: usize,
    /// What the SIP endpoint holds.
    pub sip: sip::Counts,
}

impl Counts {
    /// Whether nothing goes on: no call, no leg, no transaction, no timer.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        *self == Self::default()
    }
}

impl B2bua {
    /// A machine without calls. `seed` feeds every token and hasher; `epoch` ties `Instant`s to
    /// wall time for the records.
    #[must_use]
    pub fn new(config: Config, plan: Arc<Plan>, seed: [u8; 32], epoch: Epoch) -> Self {
        let mut rng = Rng::new(seed);
        let (usages, relayed) = (rng.hasher(), rng.hasher());
        Self {
            endpoint: Endpoint::new(config.sip.clone(), rng.bytes()),
            registrar: Registrar::new(config.registrar.clone()),
            config,
            plan,
            epoch,
            rng,
            calls: Slab::new(),
            usages: HashMap::with_hasher(usages),
            relayed: HashMap::with_hasher(relayed),
            outputs: VecDeque::new(),
            timers: BTreeMap::new(),
            draining: false,
            generation: 0,
        }
    }

    /// Takes one SIP datagram, or one framed message of a stream.
    pub fn handle_message(&mut self, now: Instant, flow: Flow, bytes: &[u8]) {
        self.endpoint.handle_message(now, flow, bytes);
        self.drain_endpoint(now);
    }

    /// The transport could not deliver to this peer.
    pub fn handle_flow_failed(&mut self, now: Instant, flow: &sip::FailedFlow) {
        self.endpoint.handle_flow_failed(now, flow);
        self.drain_endpoint(now);
    }

    /// The resolver's answer to [`Output::Resolve`].
    pub fn handle_resolved(
        &mut self,
        now: Instant,
        id: ResolveId,
        result: Result<Vec<(Transport, std::net::SocketAddr)>, ResolveError>,
    ) {
        self.endpoint.handle_resolved(now, id, result);
        self.drain_endpoint(now);
    }

    /// The shell's answer to [`Output::Prepare`]. An answer for a call that is gone gives its
    /// ports straight back.
    pub fn handle_prepared(
        &mut self,
        now: Instant,
        call: CallId,
        result: Result<Prepared, PrepareError>,
    ) {
        self.prepared(now, call, result);
        self.drain_endpoint(now);
    }

    /// Something happened in the media plane.
    pub fn handle_media(&mut self, now: Instant, event: &MediaEvent) {
        match event {
            MediaEvent::Stopped { session, stats } => {
                self.media_over(now, CallId::from_u64(session.0), Some(stats));
            }
            MediaEvent::Failed { session, reason } => {
                tracing::warn!(session = session.0, ?reason, "media failed");
                self.media_over(now, CallId::from_u64(session.0), None);
            }
            MediaEvent::PlayFinished { session } => {
                let cause =
                    Cause::after_answer(Party::Server, crate::cause::NORMAL_CLEARING, "played");
                self.end_with(now, CallId::from_u64(session.0), cause, Input::PlayFinished);
            }
            _ => {}
        }
        self.drain_endpoint(now);
    }

    /// A recording of a call was opened under this name.
    pub fn handle_recording(&mut self, call: CallId, name: String) {
        if let Some(call) = self.call_mut(call) {
            call.facts.recordings.push(name);
        }
    }

    /// Does what is due. Nothing happens when nothing is.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.endpoint.handle_timeout(now);
        self.registrar.handle_timeout(now);
        while let Some((&(at, id), &timer)) = self.timers.first_key_value() {
            if at > now {
                break;
            }
            self.timers.remove(&(at, id));
            match timer {
                Timer::NoAnswer => {
                    let (by, q850) = (Party::Callee, crate::cause::NO_ANSWER);
                    let cause = Cause {
                        by,
                        sip: 480,
                        q850,
                        why: "no answer",
                    };
                    self.end_with(now, id, cause, Input::NoAnswer);
                }
                Timer::Longest => {
                    let q850 = crate::cause::NORMAL_CLEARING;
                    let cause = Cause::after_answer(Party::Server, q850, "longest duration");
                    self.end_with(now, id, cause, Input::HangUp);
                }
            }
        }
        self.drain_endpoint(now);
    }

    /// The earliest moment at which something is due.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let own = self.timers.first_key_value().map(|((at, _), _)| *at);
        [
            self.endpoint.poll_timeout(),
            self.registrar.poll_timeout(),
            own,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// The next thing for the shell to do; drain until `None` after every `handle_*`.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Hangs up one call; false where it is no call of ours.
    pub fn hang_up(&mut self, now: Instant, call: CallId) -> bool {
        let known = self.call(call).is_some();
        let cause = Cause {
            by: Party::Server,
            sip: 480,
            q850: crate::cause::NORMAL_CLEARING,
            why: "hung up by the server",
        };
        self.end_with(now, call, cause, Input::HangUp);
        self.drain_endpoint(now);
        known
    }

    /// Hangs up every call.
    pub fn hang_up_all(&mut self, now: Instant) {
        let calls: Vec<CallId> = self.calls.iter().map(|(_, call)| call.id).collect();
        for call in calls {
            self.hang_up(now, call);
        }
    }

    /// From now on new calls get 503; calls that are up stay.
    pub fn drain(&mut self) {
        self.draining = true;
    }

    /// Puts another dialplan in force, for calls that come from now on.
    pub fn replace_plan(&mut self, plan: Arc<Plan>) {
        self.plan = plan;
    }

    /// What is held.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let ports = |call: &Call| call.media.iter().filter(|leg| leg.port.is_some()).count();
        Counts {
            calls: self.calls.len(),
            legs: self.usages.len(),
            relayed: self.relayed.len(),
            call_timers: self.timers.len(),
            ports: self.calls.iter().map(|(_, call)| ports(call)).sum(),
            outputs: self.outputs.len(),
            sip: self.endpoint.counts(),
        }
    }

    /// Gives back the room that the busiest time took; meant for when nothing goes on.
    pub fn shrink(&mut self) {
        self.endpoint.shrink();
        self.calls.shrink_to_fit();
        self.usages.shrink_to_fit();
        self.relayed.shrink_to_fit();
        self.outputs.shrink_to_fit();
    }

    /// Users that are registered.
    #[must_use]
    pub fn registered_users(&self) -> usize {
        self.registrar.len()
    }

    /// Feeds one input to a call's table and carries out what it says.
    pub(crate) fn feed(&mut self, now: Instant, id: CallId, input: Input) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        let before = call.state;
        let Some((next, actions)) = step(before, input) else {
            tracing::debug!(call = %id, ?before, ?input, "nothing to do");
            return;
        };
        call.state = next;
        if next == State::Ending {
            call.facts.end = Some(now);
        }
        tracing::debug!(call = %id, ?before, ?input, ?next, "step");
        for action in actions {
            self.carry_out(now, id, *action);
        }
    }

    /// Ends a call for a reason of its own.
    pub(crate) fn end_with(&mut self, now: Instant, id: CallId, cause: Cause, input: Input) {
        if let Some(call) = self.call_mut(id)
            && step(call.state, input).is_some()
        {
            call.ends_because(cause);
            self.feed(now, id, input);
        }
    }

    pub(crate) fn call(&self, id: CallId) -> Option<&Call> {
        self.calls.get(id.key as usize).filter(|call| call.id == id)
    }

    pub(crate) fn call_mut(&mut self, id: CallId) -> Option<&mut Call> {
        self.calls
            .get_mut(id.key as usize)
            .filter(|call| call.id == id)
    }

    pub(crate) fn next_call_id(&mut self) -> CallId {
        self.generation = self.generation.wrapping_add(1);
        let key = u32::try_from(self.calls.vacant_key()).expect("max_calls is far below 2^32");
        CallId {
            key,
            generation: self.generation,
        }
    }

    /// The session is no more: as asked, which ends the call, or by itself, which ends it too.
    fn media_over(&mut self, now: Instant, id: CallId, stats: Option<&[LegStats; 2]>) {
        let Some(call) = self.call_mut(id) else {
            return;
        };
        call.media_started = false;
        if call.state == State::Ending {
            self.finish(now, id, stats);
        } else {
            let cause = Cause {
                by: Party::Server,
                sip: 500,
                q850: 41,
                why: "media failed",
            };
            self.end_with(now, id, cause, Input::MediaFailed);
        }
    }

    /// Moves what the endpoint has to say outwards, and its events to the calls.
    fn drain_endpoint(&mut self, now: Instant) {
        loop {
            while let Some(transmit) = self.endpoint.poll_transmit() {
                self.outputs.push_back(Output::Transmit(transmit));
            }
            while let Some(resolve) = self.endpoint.poll_resolve() {
                self.outputs.push_back(Output::Resolve(resolve));
            }
            match self.endpoint.poll_event() {
                Some(event) => self.dispatch(now, event),
                None => break,
            }
        }
    }

    fn dispatch(&mut self, now: Instant, event: Event) {
        match event {
            Event::Invite {
                usage,
                message,
                flow,
            } => self.on_invite(now, usage, message, flow),
            Event::Request {
                txn,
                usage,
                message,
                flow,
            } => {
                self.on_request(now, txn, usage, &message, flow);
            }
            Event::Response {
                txn,
                outcome,
                usage,
            } => self.on_response(now, txn, usage, &outcome),
            Event::Provisional {
                usage,
                code,
                message,
            } => {
                self.with_call(usage, |me, id| {
                    me.on_provisional(now, id, usage, code, &message);
                });
            }
            Event::Answered { usage, message, .. } => match self.usages.get(&usage) {
                Some(&id) => self.on_answered(now, id, usage, &message),
                // Its call is gone: the endpoint was told so by cancel() before, or is now.
                None => {
                    self.endpoint.ack(now, usage, None);
                    self.endpoint.bye(now, usage, Vec::new());
                }
            },
            Event::Refused {
                usage,
                failure,
                message,
            } => {
                self.with_call(usage, |me, id| {
                    me.on_refused(now, id, usage, failure, message.as_deref());
                });
            }
            Event::Cancelled { usage, .. } => self.with_call(usage, |me, id| {
                let cause = Cause::from_status(Party::Caller, 487, "cancelled");
                me.end_with(now, id, cause, Input::CallerCancelled);
            }),
            Event::Acked { usage, message } => {
                self.with_call(usage, |me, id| me.on_acked(now, id, usage, &message));
            }
            Event::AckMissing { usage } => {
                self.with_call(usage, |me, id| me.on_ack_missing(now, id, usage));
            }
            Event::Bye { usage, message } => {
                self.with_call(usage, |me, id| me.on_bye(now, id, usage, &message));
            }
            Event::Reinvite { usage, message } => {
                self.with_call(usage, |me, id| me.on_reinvite(now, id, usage, &message));
            }
            Event::ReinviteCancelled { usage } => {
                self.with_call(usage, |me, id| me.on_reinvite_cancelled(id, usage));
            }
            Event::ReinviteAnswered { usage, message } => {
                self.with_call(usage, |me, id| {
                    me.on_reinvite_answered(now, id, usage, &message);
                });
            }
            Event::ReinviteRefused { usage, failure, .. } => {
                self.with_call(usage, |me, id| {
                    me.on_reinvite_refused(now, id, usage, failure);
                });
            }
            Event::Ended { usage } => {
                self.usages.remove(&usage);
            }
            _ => {}
        }
    }

    fn with_call(&mut self, usage: UsageId, f: impl FnOnce(&mut Self, CallId)) {
        if let Some(&id) = self.usages.get(&usage) {
            f(self, id);
        }
    }
}
