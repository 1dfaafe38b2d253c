//! Every timer of RFC 3261 table 4 and RFC 6026 (A to M) as rows of time, input, state, output.
//!
//! A story is one transaction. A row names its timer and section, the moment in milliseconds, what comes in,
//! what state follows, what is put out, and when the machine wants to be woken next. Between two rows nothing may
//! happen: a timer that fires early or late falls out of its row.
#![expect(clippy::disallowed_methods, reason = "a table needs some moment to count from")]

use super::*;

/// What happens to a machine.
#[derive(Copy, Clone, Debug)]
enum Input {
    /// The transaction begins.
    Start,
    /// A response comes in.
    Response(u16),
    /// The user responds.
    Respond(u16),
    /// The request comes in once more.
    Repeat,
    /// The ACK of a refusal comes in.
    Ack,
    /// Its time has come.
    Timer,
    /// The transport fails.
    Broken,
    /// Nobody waits for the outcome any more.
    Abandon,
}

use Input::{Abandon, Ack as AckIn, Broken, Repeat as Again, Respond, Response, Start, Timer};

/// Nothing is put out.
const NONE: Effect = Effect::NOTHING;
/// The message goes out once more.
const RESEND: Effect = Effect { send: Some(Send::Again), tell: None };
/// An ACK goes out.
const ACK: Effect = Effect { send: Some(Send::Ack), tell: None };
/// An ACK goes out and the response is passed up.
const ACK_TELL: Effect = Effect { send: Some(Send::Ack), tell: Some(Tell::Response) };
/// The response is passed up.
const TELL: Effect = Effect { send: None, tell: Some(Tell::Response) };
const TIMEOUT: Effect = Effect { send: None, tell: Some(Tell::Timeout) };
const TRANSPORT: Effect = Effect { send: None, tell: Some(Tell::Transport) };

/// Timer and section, ms, input, state after it, output, next deadline in ms.
type Row = (&'static str, u64, Input, &'static str, Effect, Option<u64>);

const UDP: bool = false;
const TCP: bool = true;

#[test]
fn client_invite_udp_unanswered() {
    client_invite(UDP, &[
        ("A, B 17.1.1.2", 0, Start, "Calling", NONE, Some(500)),
        ("A 17.1.1.2", 500, Timer, "Calling", RESEND, Some(1_500)),
        ("A 17.1.1.2", 1_500, Timer, "Calling", RESEND, Some(3_500)),
        ("A 17.1.1.2", 3_500, Timer, "Calling", RESEND, Some(7_500)),
        // A doubles without a cap: 4 s, 8 s, 16 s.
        ("A 17.1.1.2", 7_500, Timer, "Calling", RESEND, Some(15_500)),
        ("A 17.1.1.2", 15_500, Timer, "Calling", RESEND, Some(31_500)),
        ("A 17.1.1.2", 31_500, Timer, "Calling", RESEND, Some(32_000)),
        ("B 17.1.1.2", 32_000, Timer, "Terminated", TIMEOUT, None),
    ]);
}

#[test]
fn client_invite_tcp_unanswered() {
    client_invite(TCP, &[
        ("A 17.1.1.2", 0, Start, "Calling", NONE, Some(32_000)),
        ("B 17.1.1.2", 32_000, Timer, "Terminated", TIMEOUT, None),
    ]);
}

#[test]
fn client_invite_udp_refused() {
    client_invite(UDP, &[
        ("A, B 17.1.1.2", 0, Start, "Calling", NONE, Some(500)),
        ("A 17.1.1.2", 500, Timer, "Calling", RESEND, Some(1_500)),
        // Timer C is a proxy's (16.6); how long a phone may ring is the user's to say.
        ("C 16.6", 600, Response(180), "Proceeding", TELL, None),
        ("C 16.6", 100_000, Response(183), "Proceeding", TELL, None),
        ("D 17.1.1.2", 200_000, Response(486), "Completed", ACK_TELL, Some(232_000)),
        ("D 17.1.1.2", 200_500, Response(486), "Completed", ACK, Some(232_000)),
        ("D 17.1.1.2", 201_500, Response(180), "Completed", NONE, Some(232_000)),
        ("D 17.1.1.2", 201_600, Response(200), "Completed", NONE, Some(232_000)),
        ("D 17.1.1.2", 231_999, Timer, "Completed", NONE, Some(232_000)),
        ("D 17.1.1.2", 232_000, Timer, "Terminated", NONE, None),
    ]);
}

#[test]
fn client_invite_tcp_refused() {
    client_invite(TCP, &[
        ("B 17.1.1.2", 0, Start, "Calling", NONE, Some(32_000)),
        ("D 17.1.1.2", 50, Response(404), "Terminated", ACK_TELL, None),
    ]);
}

#[test]
fn client_invite_accepted() {
    // M runs on reliable transports too: forked 2xx come over them as well (RFC 6026, 8.4).
    for transport in [UDP, TCP] {
        client_invite(transport, &[
            ("A, B 17.1.1.2", 0, Start, "Calling", NONE, Some(if transport { 32_000 } else { 500 })),
            ("M RFC 6026 8.4", 100, Response(200), "Accepted", TELL, Some(32_100)),
            ("M RFC 6026 8.4", 600, Response(200), "Accepted", TELL, Some(32_100)),
            ("M RFC 6026 8.4", 700, Response(486), "Accepted", NONE, Some(32_100)),
            ("M RFC 6026 8.4", 800, Response(180), "Accepted", NONE, Some(32_100)),
            ("M RFC 6026 8.4", 900, Broken, "Accepted", NONE, Some(32_100)),
            ("M RFC 6026 8.4", 32_100, Timer, "Terminated", NONE, None),
            ("M RFC 6026 8.4", 32_200, Response(200), "Terminated", NONE, None),
        ]);
    }
}

#[test]
fn client_invite_abandoned() {
    // As for a cancelled INVITE (9.1): 64 x T1 more, whether the 100 came before or after.
    client_invite(UDP, &[
        ("A, B 17.1.1.2", 0, Start, "Calling", NONE, Some(500)),
        ("- 17.1.1.2", 100, Response(100), "Proceeding", TELL, None),
        ("- 9.1", 1_000, Abandon, "Proceeding", NONE, Some(33_000)),
        ("- 9.1", 33_000, Timer, "Terminated", NONE, None),
    ]);
    client_invite(TCP, &[
        ("A, B 17.1.1.2", 0, Start, "Calling", NONE, Some(32_000)),
        ("- 9.1", 1_000, Abandon, "Calling", NONE, Some(32_000)),
        ("- 9.1", 2_000, Response(100), "Proceeding", TELL, Some(33_000)),
        ("- 9.1", 3_000, Response(487), "Terminated", ACK_TELL, None),
    ]);
}

#[test]
fn client_invite_transport_error() {
    client_invite(UDP, &[
        ("B 17.1.4", 0, Start, "Calling", NONE, Some(500)),
        ("B 17.1.4", 10, Broken, "Terminated", TRANSPORT, None),
    ]);
    client_invite(UDP, &[
        ("B 17.1.4", 0, Start, "Calling", NONE, Some(500)),
        ("C 17.1.4", 10, Response(180), "Proceeding", TELL, None),
        ("D 17.1.4", 20, Response(500), "Completed", ACK_TELL, Some(32_020)),
        ("D 17.1.4", 30, Broken, "Terminated", NONE, None),
    ]);
}

#[test]
fn client_other_udp_unanswered() {
    client_other(UDP, &[
        ("E, F 17.1.2.2", 0, Start, "Trying", NONE, Some(500)),
        ("E 17.1.2.2", 500, Timer, "Trying", RESEND, Some(1_500)),
        ("E 17.1.2.2", 1_500, Timer, "Trying", RESEND, Some(3_500)),
        ("E 17.1.2.2", 3_500, Timer, "Trying", RESEND, Some(7_500)),
        // E is capped at T2.
        ("E 17.1.2.2", 7_500, Timer, "Trying", RESEND, Some(11_500)),
        ("E 17.1.2.2", 11_500, Timer, "Trying", RESEND, Some(15_500)),
        ("E 17.1.2.2", 15_500, Timer, "Trying", RESEND, Some(19_500)),
        ("E 17.1.2.2", 19_500, Timer, "Trying", RESEND, Some(23_500)),
        ("E 17.1.2.2", 23_500, Timer, "Trying", RESEND, Some(27_500)),
        ("E 17.1.2.2", 27_500, Timer, "Trying", RESEND, Some(31_500)),
        ("E 17.1.2.2", 31_500, Timer, "Trying", RESEND, Some(32_000)),
        ("F 17.1.2.2", 32_000, Timer, "Terminated", TIMEOUT, None),
    ]);
}

#[test]
fn client_other_udp_provisional_then_final() {
    client_other(UDP, &[
        ("E, F 17.1.2.2", 0, Start, "Trying", NONE, Some(500)),
        ("E 17.1.2.2", 100, Response(100), "Proceeding", TELL, Some(500)),
        ("E 17.1.2.2", 500, Timer, "Proceeding", RESEND, Some(4_500)),
        ("E 17.1.2.2", 4_500, Timer, "Proceeding", RESEND, Some(8_500)),
        ("K 17.1.2.2", 5_000, Response(200), "Completed", TELL, Some(10_000)),
        ("K 17.1.2.2", 5_100, Response(200), "Completed", NONE, Some(10_000)),
        ("K 17.1.2.2", 10_000, Timer, "Terminated", NONE, None),
    ]);
}

#[test]
fn client_other_udp_provisional_then_nothing() {
    client_other(UDP, &[
        ("E, F 17.1.2.2", 0, Start, "Trying", NONE, Some(500)),
        ("E 17.1.2.2", 499, Response(183), "Proceeding", TELL, Some(500)),
        ("F 17.1.2.2", 32_000, Timer, "Terminated", TIMEOUT, None),
    ]);
}

#[test]
fn client_other_tcp() {
    client_other(TCP, &[
        ("F 17.1.2.2", 0, Start, "Trying", NONE, Some(32_000)),
        ("F 17.1.2.2", 100, Response(100), "Proceeding", TELL, Some(32_000)),
        ("K 17.1.2.2", 200, Response(481), "Terminated", TELL, None),
    ]);
    client_other(TCP, &[
        ("F 17.1.4", 0, Start, "Trying", NONE, Some(32_000)),
        ("F 17.1.4", 9, Broken, "Terminated", TRANSPORT, None),
    ]);
}

#[test]
fn server_invite_udp_refused() {
    server_invite(UDP, &[
        ("- 17.2.1", 0, Start, "Proceeding", NONE, None),
        ("- 17.2.1", 100, Again, "Proceeding", RESEND, None),
        ("- 17.2.1", 200, Respond(180), "Proceeding", NONE, None),
        ("- 17.2.1", 300, Again, "Proceeding", RESEND, None),
        ("G, H 17.2.1", 1_000, Respond(486), "Completed", NONE, Some(1_500)),
        ("G 17.2.1", 1_200, Again, "Completed", RESEND, Some(1_500)),
        ("G 17.2.1", 1_500, Timer, "Completed", RESEND, Some(2_500)),
        ("G 17.2.1", 2_500, Timer, "Completed", RESEND, Some(4_500)),
        ("I 17.2.1", 3_000, AckIn, "Confirmed", NONE, Some(8_000)),
        ("I 17.2.1", 3_100, AckIn, "Confirmed", NONE, Some(8_000)),
        ("I 17.2.1", 3_200, Again, "Confirmed", NONE, Some(8_000)),
        ("I 17.2.1", 8_000, Timer, "Terminated", NONE, None),
    ]);
}

#[test]
fn server_invite_udp_refused_without_ack() {
    server_invite(UDP, &[
        ("- 17.2.1", 0, Start, "Proceeding", NONE, None),
        ("G, H 17.2.1", 0, Respond(603), "Completed", NONE, Some(500)),
        ("G 17.2.1", 500, Timer, "Completed", RESEND, Some(1_500)),
        ("G 17.2.1", 1_500, Timer, "Completed", RESEND, Some(3_500)),
        ("G 17.2.1", 3_500, Timer, "Completed", RESEND, Some(7_500)),
        // G is capped at T2.
        ("G 17.2.1", 7_500, Timer, "Completed", RESEND, Some(11_500)),
        ("G 17.2.1", 11_500, Timer, "Completed", RESEND, Some(15_500)),
        ("G 17.2.1", 15_500, Timer, "Completed", RESEND, Some(19_500)),
        ("G 17.2.1", 19_500, Timer, "Completed", RESEND, Some(23_500)),
        ("G 17.2.1", 23_500, Timer, "Completed", RESEND, Some(27_500)),
        ("G 17.2.1", 27_500, Timer, "Completed", RESEND, Some(31_500)),
        ("G 17.2.1", 31_500, Timer, "Completed", RESEND, Some(32_000)),
        ("H 17.2.1", 32_000, Timer, "Terminated", TIMEOUT, None),
    ]);
}

#[test]
fn server_invite_tcp_refused() {
    server_invite(TCP, &[
        ("- 17.2.1", 0, Start, "Proceeding", NONE, None),
        ("H 17.2.1", 10, Respond(486), "Completed", NONE, Some(32_010)),
        ("I 17.2.1", 20, AckIn, "Terminated", NONE, None),
    ]);
    server_invite(TCP, &[
        ("- 17.2.1", 0, Start, "Proceeding", NONE, None),
        ("H 17.2.1", 10, Respond(486), "Completed", NONE, Some(32_010)),
        ("H 17.2.1", 32_010, Timer, "Terminated", TIMEOUT, None),
    ]);
}

#[test]
fn server_invite_accepted() {
    // L runs on reliable transports too (RFC 6026, 8.7); the user repeats the 2xx.
    for transport in [UDP, TCP] {
        server_invite(transport, &[
            ("- 17.2.1", 0, Start, "Proceeding", NONE, None),
            ("L RFC 6026 7.1", 50, Respond(200), "Accepted", NONE, Some(32_050)),
            ("L RFC 6026 7.1", 60, Again, "Accepted", NONE, Some(32_050)),
            ("L RFC 6026 7.1", 550, Respond(200), "Accepted", NONE, Some(32_050)),
            ("L RFC 6026 7.1", 600, AckIn, "Accepted", NONE, Some(32_050)),
            ("L RFC 6026 7.1", 32_050, Timer, "Terminated", NONE, None),
        ]);
    }
}

#[test]
fn server_other_udp() {
    server_other(UDP, &[
        ("- 17.2.2", 0, Start, "Trying", NONE, None),
        ("- 17.2.2", 10, Again, "Trying", NONE, None),
        ("- 17.2.2", 20, Respond(100), "Proceeding", NONE, None),
        ("- 17.2.2", 30, Again, "Proceeding", RESEND, None),
        ("J 17.2.2", 40, Respond(200), "Completed", NONE, Some(32_040)),
        ("J 17.2.2", 32_000, Again, "Completed", RESEND, Some(32_040)),
        ("J 17.2.2", 32_040, Timer, "Terminated", NONE, None),
    ]);
}

#[test]
fn server_other_tcp() {
    server_other(TCP, &[
        ("- 17.2.2", 0, Start, "Trying", NONE, None),
        ("J 17.2.2", 10, Respond(200), "Terminated", NONE, None),
    ]);
}

#[test]
fn a_second_final_response_is_refused() {
    let now = Instant::now();
    let mut invite = ServerInvite::start(timing(UDP));
    assert!(invite.respond(now, 486));
    assert!(!invite.respond(now, 200) && !invite.respond(now, 180));
    let mut other = ServerOther::start(timing(UDP));
    assert!(other.respond(now, 200));
    assert!(!other.respond(now, 500));
}

fn timing(reliable: bool) -> Timing {
    let ms = Duration::from_millis;
    Timing { t1: ms(500), t2: ms(4_000), t4: ms(5_000), reliable }
}

/// Plays a story: `step` carries an input out on the machine that `start` made.
fn play<M>(
    rows: &[Row],
    start: impl Fn(Instant) -> M,
    step: impl Fn(&mut M, Instant, Input) -> Effect,
    look: impl Fn(&M) -> (&'static str, Option<Instant>),
) {
    let begin = Instant::now();
    let mut machine = start(begin);
    for &(timer, ms, input, state, output, next) in rows {
        let row = format!("timer {timer}, {ms} ms, {input:?}");
        let now = begin + Duration::from_millis(ms);
        let effect = match input {
            Start => NONE,
            _ => step(&mut machine, now, input),
        };
        let (found, deadline) = look(&machine);
        let deadline = deadline.map(|at| at.duration_since(begin).as_millis());
        assert_eq!((found, effect, deadline), (state, output, next.map(u128::from)), "{row}");
    }
}

fn client_invite(reliable: bool, rows: &[Row]) {
    use client::InviteState as S;
    let start = |now| ClientInvite::start(now, timing(reliable));
    let step = |machine: &mut ClientInvite, now, input| match input {
        Response(code) => machine.handle_response(now, code),
        Timer => machine.handle_timeout(now),
        Broken => machine.handle_transport_error(),
        Abandon => {
            machine.abandon(now);
            NONE
        }
        other => panic!("no input of a client: {other:?}"),
    };
    play(rows, start, step, |machine| {
        let state = match machine.state {
            S::Calling { .. } => "Calling",
            S::Proceeding => "Proceeding",
            S::Accepted { .. } => "Accepted",
            S::Completed { .. } => "Completed",
            S::Terminated => "Terminated",
        };
        assert_eq!(machine.is_terminated(), state == "Terminated");
        (state, machine.poll_timeout())
    });
}

fn client_other(reliable: bool, rows: &[Row]) {
    use client::OtherState as S;
    let start = |now| ClientOther::start(now, timing(reliable));
    let step = |machine: &mut ClientOther, now, input| match input {
        Response(code) => machine.handle_response(now, code),
        Timer => machine.handle_timeout(now),
        Broken => machine.handle_transport_error(),
        other => panic!("no input of a client: {other:?}"),
    };
    play(rows, start, step, |machine| {
        let state = match machine.state {
            S::Trying { .. } => "Trying",
            S::Proceeding { .. } => "Proceeding",
            S::Completed { .. } => "Completed",
            S::Terminated => "Terminated",
        };
        assert_eq!(machine.is_terminated(), state == "Terminated");
        (state, machine.poll_timeout())
    });
}

fn server_invite(reliable: bool, rows: &[Row]) {
    use server::InviteState as S;
    let start = |_| ServerInvite::start(timing(reliable));
    let step = |machine: &mut ServerInvite, now, input| match input {
        Respond(code) => {
            assert!(machine.respond(now, code), "{code} is refused");
            NONE
        }
        Again => machine.handle_repeat(),
        AckIn => {
            machine.handle_ack(now);
            NONE
        }
        Timer => machine.handle_timeout(now),
        other => panic!("no input of a server: {other:?}"),
    };
    play(rows, start, step, |machine| {
        let state = match machine.state {
            S::Proceeding => "Proceeding",
            S::Accepted { .. } => "Accepted",
            S::Completed { .. } => "Completed",
            S::Confirmed { .. } => "Confirmed",
            S::Terminated => "Terminated",
        };
        assert_eq!(machine.is_terminated(), state == "Terminated");
        assert_eq!(machine.is_open(), state == "Proceeding");
        (state, machine.poll_timeout())
    });
}

fn server_other(reliable: bool, rows: &[Row]) {
    use server::OtherState as S;
    let start = |_| ServerOther::start(timing(reliable));
    let step = |machine: &mut ServerOther, now, input| match input {
        Respond(code) => {
            assert!(machine.respond(now, code), "{code} is refused");
            NONE
        }
        Again => machine.handle_repeat(),
        Timer => {
            machine.handle_timeout(now);
            NONE
        }
        other => panic!("no input of a server: {other:?}"),
    };
    play(rows, start, step, |machine| {
        let state = match machine.state {
            S::Trying => "Trying",
            S::Proceeding => "Proceeding",
            S::Completed { .. } => "Completed",
            S::Terminated => "Terminated",
        };
        assert_eq!(machine.is_terminated(), state == "Terminated");
        (state, machine.poll_timeout())
    });
}
