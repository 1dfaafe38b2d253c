//! The life of a call as one table: (state, input) -> (state, actions).
//!
//! Everything that can happen to a call stands in [`step`], and nothing else decides: the machine
//! turns SIP events, media events and timers into [`Input`]s, and carries out [`Action`]s. The
//! scenario tests use the same function as their oracle.
//!
//! ```text
//!                 Prepared(local)
//!   Preparing ----------------------------> Accepted --ACK--> Talking
//!       |  Prepared(bridge)                    ^                 |
//!       +--------> Calling --18x--> Ringing    |                 | BYE, hang-up, failure
//!                     |                |  2xx from B             v
//!                     +----------------+-------+---------> Ending --media stopped--> (gone)
//!                       refused, cancelled, no answer
//! ```
//! Leg A is the caller's, leg B the callee's; a call answered here has no leg B. The endpoint
//! below finishes what a leg still owes (ACK and BYE for a 2xx that crossed our CANCEL, the
//! answer to our BYE), so `Ending` waits only for the media's last count.
//! Source: RFC 3261 sections 9, 13, 14 and 15.

/// Where a call is in its life.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum State {
    /// The INVITE is here and decided; ports and clips have been asked of the shell.
    Preparing,
    /// INVITEs to leg B are out, nobody rings yet.
    Calling,
    /// Leg B rings, or early media flows.
    Ringing,
    /// Our 200 to leg A is out, its ACK is not here yet.
    Accepted,
    /// Both sides talk.
    Talking,
    /// Over; the media's last figures are awaited.
    Ending,
}

/// What can happen to a call.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Input {
    /// The shell has what a call answered here needs.
    PreparedLocal,
    /// The shell has what a bridged call needs.
    PreparedBridge,
    /// The shell cannot give it (no port free, no such clip).
    PrepareFailed,
    /// Leg B sent a provisional response without a usable session description.
    Ringing,
    /// Leg B sent a provisional response that carries an answer.
    EarlyMedia,
    /// Leg B answered with 2xx and a description we can use.
    Answered,
    /// Leg B answered with 2xx, but nothing in it serves this call.
    AnsweredUnusable,
    /// Every branch of leg B has refused or failed.
    Refused,
    /// Nobody answered in the time the dialplan gives.
    NoAnswer,
    /// The caller's CANCEL came (its 200 and the 487 are already out).
    CallerCancelled,
    /// The caller's ACK to our 200 came.
    CallerAcked,
    /// The caller never sent it (64 x T1); the endpoint says BYE to it.
    CallerAckMissing,
    /// The caller's BYE came, or its dialog is gone.
    CallerBye,
    /// The callee's BYE came, or its dialog is gone.
    CalleeBye,
    /// The media plane gave up on the session.
    MediaFailed,
    /// A clip that is played once has ended.
    PlayFinished,
    /// An operator, or the server's own end, hangs up.
    HangUp,
}

/// What the machine does about it, in this order.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub enum Action {
    /// Send the INVITE to every target of leg B and start the no-answer timer.
    InviteB,
    /// Stop the no-answer timer.
    StopRinging,
    /// Pass the provisional response on to leg A.
    RingA,
    /// Start the media, or bring it up to what was negotiated since.
    Media,
    /// Send 200 to leg A.
    AcceptA,
    /// Acknowledge leg B's 2xx.
    AckB,
    /// Refuse leg A with the code that the call's cause says.
    RejectA,
    /// Cancel every branch of leg B that is still open.
    CancelB,
    /// BYE to leg A.
    ByeA,
    /// BYE to leg B.
    ByeB,
    /// Start the recording that the dialplan asked for.
    Record,
    /// Stop the media; its last figures end the call.
    StopMedia,
}

/// The next state and what to do on the way; `None` where the input means nothing any more.
#[must_use]
pub fn step(state: State, input: Input) -> Option<(State, &'static [Action])> {
    use Action as A;
    use Input as I;
    use State as S;
    Some(match (state, input) {
        (S::Preparing, I::PreparedLocal) => (S::Accepted, &[A::Media, A::AcceptA, A::Record]),
        (S::Preparing, I::PreparedBridge) => (S::Calling, &[A::InviteB]),
        (S::Preparing, I::PrepareFailed | I::HangUp) => (S::Ending, &[A::RejectA, A::StopMedia]),
        (S::Preparing, I::CallerCancelled) => (S::Ending, &[A::StopMedia]),

        (S::Calling | S::Ringing, I::Ringing) => (S::Ringing, &[A::RingA]),
        (S::Calling | S::Ringing, I::EarlyMedia) => (S::Ringing, &[A::Media, A::RingA]),
        (S::Calling | S::Ringing, I::Answered) => (
            S::Accepted,
            &[
                A::StopRinging,
                A::CancelB,
                A::AckB,
                A::Media,
                A::AcceptA,
                A::Record,
            ],
        ),
        (S::Calling | S::Ringing, I::AnsweredUnusable) => (
            S::Ending,
            &[
                A::StopRinging,
                A::CancelB,
                A::AckB,
                A::ByeB,
                A::RejectA,
                A::StopMedia,
            ],
        ),
        (S::Calling | S::Ringing, I::Refused) => {
            (S::Ending, &[A::StopRinging, A::RejectA, A::StopMedia])
        }
        (S::Calling | S::Ringing, I::CallerCancelled) => {
            (S::Ending, &[A::StopRinging, A::CancelB, A::StopMedia])
        }
        (S::Calling | S::Ringing, I::NoAnswer | I::MediaFailed | I::HangUp) => (
            S::Ending,
            &[A::StopRinging, A::CancelB, A::RejectA, A::StopMedia],
        ),

        (S::Accepted, I::CallerAcked) => (S::Talking, &[]),
        (S::Accepted | S::Talking, I::CallerBye | I::CallerAckMissing) => {
            (S::Ending, &[A::ByeB, A::StopMedia])
        }
        (S::Accepted | S::Talking, I::CalleeBye | I::PlayFinished) => {
            (S::Ending, &[A::ByeA, A::StopMedia])
        }
        (S::Accepted | S::Talking, I::MediaFailed | I::HangUp) => {
            (S::Ending, &[A::ByeA, A::ByeB, A::StopMedia])
        }

        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATES: [State; 6] = [
        State::Preparing,
        State::Calling,
        State::Ringing,
        State::Accepted,
        State::Talking,
        State::Ending,
    ];
    const INPUTS: [Input; 17] = [
        Input::PreparedLocal,
        Input::PreparedBridge,
        Input::PrepareFailed,
        Input::Ringing,
        Input::EarlyMedia,
        Input::Answered,
        Input::AnsweredUnusable,
        Input::Refused,
        Input::NoAnswer,
        Input::CallerCancelled,
        Input::CallerAcked,
        Input::CallerAckMissing,
        Input::CallerBye,
        Input::CalleeBye,
        Input::MediaFailed,
        Input::PlayFinished,
        Input::HangUp,
    ];

    fn rows() -> impl Iterator<Item = (State, Input, State, &'static [Action])> {
        STATES
            .into_iter()
            .flat_map(|state| INPUTS.into_iter().map(move |input| (state, input)))
            .filter_map(|(state, input)| {
                step(state, input).map(|(next, a)| (state, input, next, a))
            })
    }

    #[test]
    fn an_ended_call_takes_no_input() {
        assert!(rows().all(|(state, ..)| state != State::Ending));
    }

    #[test]
    fn every_way_to_the_end_stops_the_media_last() {
        for (state, input, next, actions) in rows() {
            assert_eq!(
                next == State::Ending,
                actions.last() == Some(&Action::StopMedia),
                "{state:?} {input:?}"
            );
        }
    }

    #[test]
    fn every_live_state_can_be_hung_up() {
        for state in STATES.into_iter().filter(|s| *s != State::Ending) {
            let (next, _) = step(state, Input::HangUp).expect("an operator can end any call");
            assert_eq!(next, State::Ending, "{state:?}");
        }
    }

    #[test]
    fn the_caller_gets_exactly_one_final_response() {
        // Before Accepted the INVITE of leg A is open: leaving those states towards the end must
        // refuse it, unless the caller's own CANCEL has. After Accepted it must never be refused.
        for (state, input, next, actions) in rows() {
            let finals = actions
                .iter()
                .filter(|a| matches!(a, Action::RejectA | Action::AcceptA))
                .count();
            let open = matches!(state, State::Preparing | State::Calling | State::Ringing);
            let closes = matches!(next, State::Accepted | State::Ending);
            let expected = usize::from(open && closes && input != Input::CallerCancelled);
            assert_eq!(finals, expected, "{state:?} {input:?}");
        }
    }

    #[test]
    fn an_open_leg_b_is_cancelled_or_said_goodbye_to() {
        for (state, input, next, actions) in rows() {
            if next != State::Ending {
                continue;
            }
            let calling = matches!(state, State::Calling | State::Ringing);
            if calling && input != Input::Refused {
                assert!(actions.contains(&Action::CancelB), "{state:?} {input:?}");
            }
            let talking = matches!(state, State::Accepted | State::Talking);
            if talking && !matches!(input, Input::CalleeBye | Input::PlayFinished) {
                assert!(actions.contains(&Action::ByeB), "{state:?} {input:?}");
            }
        }
    }
}
