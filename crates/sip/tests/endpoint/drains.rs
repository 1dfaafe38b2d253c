//! Whatever comes in whatever order, nothing panics and nothing is left.

use proptest::prelude::*;
use sip::{Counts, Event, UsageId};

use crate::pair::{Fate, Pair, Side};
use crate::solo::{Solo, sdp};
use crate::text::{answer, invite, request, response};

/// What a user of an endpoint may do next.
#[derive(Copy, Clone, Debug)]
enum Step {
    Call,
    Ring(u8),
    Accept(u8),
    Reject(u8),
    Ack(u8),
    Cancel(u8),
    Bye(u8),
    Reinvite(u8),
    RespondReinvite(u8, bool),
    Info(u8),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => Just(Step::Call),
        2 => any::<u8>().prop_map(Step::Ring),
        4 => any::<u8>().prop_map(Step::Accept),
        1 => any::<u8>().prop_map(Step::Reject),
        4 => any::<u8>().prop_map(Step::Ack),
        1 => any::<u8>().prop_map(Step::Cancel),
        2 => any::<u8>().prop_map(Step::Bye),
        2 => any::<u8>().prop_map(Step::Reinvite),
        2 => any::<(u8, bool)>().prop_map(|(leg, accept)| Step::RespondReinvite(leg, accept)),
        1 => any::<u8>().prop_map(Step::Info),
        6 => (0..4_000_u16).prop_map(Step::Wait),
    ]
}

/// Every usage that a side has heard of, gone or not.
type Legs = [Vec<UsageId>; 2];

fn take(pair: &mut Pair, legs: &mut Legs, answer_requests: bool) {
    for side in [Side::A, Side::B] {
        for event in pair.events(side) {
            let now = pair.now;
            match event {
                Event::Invite { usage, .. } => legs[side as usize].push(usage),
                Event::Request { txn, .. } if answer_requests => {
                    let _ = pair
                        .end(side)
                        .respond(now, txn, 200, None, Vec::new(), None);
                }
                _ => {}
            }
        }
    }
}

fn carry_out(pair: &mut Pair, legs: &mut Legs, step: Step) {
    let pick = |legs: &Legs, n: u8| {
        let side = if n.is_multiple_of(2) {
            Side::A
        } else {
            Side::B
        };
        let own = &legs[side as usize];
        own.get(usize::from(n / 2) % own.len().max(1))
            .map(|usage| (side, *usage))
    };
    let now = pair.now;
    let none = Vec::new;
    let with = |n: u8| pick(legs, n);
    match step {
        Step::Call => {
            for side in [Side::A, Side::B] {
                let to = if side == Side::A {
                    "192.0.2.20"
                } else {
                    "192.0.2.1"
                };
                let call = sip::Invite {
                    request_uri: format!("sip:x@{to}"),
                    ..crate::solo::outgoing()
                };
                let usage = pair.end(side).invite(now, call).expect("below the limits");
                legs[side as usize].push(usage);
            }
        }
        Step::Ring(n) => {
            let Some((side, leg)) = with(n) else { return };
            let _ = pair
                .end(side)
                .provisional(now, leg, 183, None, none(), None);
        }
        Step::Accept(n) => {
            let Some((side, leg)) = with(n) else { return };
            let _ = pair.end(side).accept(now, leg, none(), Some(sdp()));
        }
        Step::Reject(n) => {
            let Some((side, leg)) = with(n) else { return };
            let _ = pair.end(side).reject(now, leg, 486, None, none(), None);
        }
        Step::Ack(n) => {
            let Some((side, leg)) = with(n) else { return };
            pair.end(side).ack(now, leg, None);
        }
        Step::Cancel(n) => {
            let Some((side, leg)) = with(n) else { return };
            pair.end(side).cancel(now, leg, none());
        }
        Step::Bye(n) => {
            let Some((side, leg)) = with(n) else { return };
            pair.end(side).bye(now, leg, none());
        }
        Step::Reinvite(n) => {
            let Some((side, leg)) = with(n) else { return };
            let _ = pair.end(side).reinvite(now, leg, none(), Some(sdp()));
        }
        Step::RespondReinvite(n, accept) => {
            let Some((side, leg)) = with(n) else { return };
            let code = if accept { 200 } else { 488 };
            let _ = pair
                .end(side)
                .respond_reinvite(now, leg, code, none(), Some(sdp()));
        }
        Step::Info(n) => {
            let Some((side, leg)) = with(n) else { return };
            let _ = pair.end(side).request_in(now, leg, "INFO", none(), None);
        }
        Step::Wait(ms) => pair.run_for(u64::from(ms)),
    }
}

/// Ends whatever is still open as a user would.
fn wind_up(pair: &mut Pair, legs: &mut Legs) {
    for _ in 0..4 {
        take(pair, legs, true);
        for side in [Side::A, Side::B] {
            let now = pair.now;
            for usage in legs[side as usize].clone() {
                let end = pair.end(side);
                end.cancel(now, usage, Vec::new());
                let _ = end.reject(now, usage, 480, None, Vec::new(), None);
                end.bye(now, usage, Vec::new());
            }
        }
        pair.run_for(40_000);
    }
    take(pair, legs, true);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn two_endpoints_over_a_bad_wire_end_with_nothing(
        steps in prop::collection::vec(step(), 1..60),
        fates in prop::collection::vec(0..10_u8, 1..200),
    ) {
        let mut at = 0;
        let mut pair = Pair::new().wire(move |_, _, _| {
            at = (at + 1) % fates.len();
            match fates[at] {
                0..=1 => Fate::Lose,
                2 => Fate::Double,
                _ => Fate::Pass,
            }
        });
        let mut legs = [Vec::new(), Vec::new()];
        for step in steps {
            carry_out(&mut pair, &mut legs, step);
            take(&mut pair, &mut legs, true);
        }
        wind_up(&mut pair, &mut legs);
        pair.drained();
    }

    #[test]
    fn any_messages_in_any_order_leave_nothing(
        picks in prop::collection::vec((0..20_u8, 1..5_u32, 0..4_u8, 0..6_000_u64), 1..80),
    ) {
        let mut solo = Solo::new();
        let (outgoing, call) = solo.calls();
        let usage = solo.rung(&invite(1, "i1"));
        let _ = solo.endpoint.provisional(solo.now, usage, 180, None, Vec::new(), None);
        let ours = solo.one();
        let mut usages = vec![usage, outgoing];
        for (what, cseq, branch, wait) in picks {
            let branch = format!("i{branch}");
            let text = match what {
                0 => invite(cseq, &branch),
                1 => invite(cseq, &branch).within(&ours),
                2 => request("ACK", cseq, &branch).within(&ours),
                3 => request("BYE", cseq, &branch).within(&ours),
                4 => request("CANCEL", cseq, &branch),
                5 => request("UPDATE", cseq, &branch).within(&ours),
                6 => request("OPTIONS", cseq, &branch),
                7 => answer(&call),
                8 => answer(&call).fork(&branch),
                9 => response(&call, 180).fork(&branch),
                10 => response(&call, 487),
                11 => response(&call, 200).cseq("1 CANCEL"),
                12 => response(&call, 401).extra("WWW-Authenticate: Digest realm=\"a\",nonce=\"b\""),
                13 => {
                    let _ = solo.endpoint.accept(solo.now, usage, Vec::new(), None);
                    continue;
                }
                14 => {
                    usages.iter().for_each(|usage| solo.endpoint.bye(solo.now, *usage, Vec::new()));
                    continue;
                }
                15 => {
                    let _ = solo.endpoint.reinvite(solo.now, usage, Vec::new(), None);
                    // A peer may leave it at a provisional response for ever.
                    for sent in solo.sent().iter().filter(|sent| sent.is("INVITE")) {
                        solo.hears(&response(sent, if wait % 2 == 0 { 100 } else { 491 }));
                    }
                    continue;
                }
                16 => response(&call, 491).cseq(&format!("{cseq} INVITE")),
                _ => {
                    solo.advance(wait);
                    continue;
                }
            };
            solo.hears(&text);
            solo.sent();
            for event in solo.events() {
                match event {
                    Event::Invite { usage, .. } | Event::Answered { usage, .. } => {
                        usages.push(usage);
                    }
                    Event::Request { txn, .. } => {
                        let _ = solo.endpoint.respond(solo.now, txn, 200, None, Vec::new(), None);
                    }
                    _ => {}
                }
            }
        }
        for _ in 0..3 {
            for usage in usages.clone() {
                solo.endpoint.cancel(solo.now, usage, Vec::new());
                let _ = solo.endpoint.reject(solo.now, usage, 480, None, Vec::new(), None);
                solo.endpoint.bye(solo.now, usage, Vec::new());
            }
            solo.advance(70_000);
        }
        solo.advance(70_000);
        prop_assert_eq!(solo.endpoint.counts(), Counts::default());
    }

    #[test]
    fn a_message_with_any_octets_changed_never_panics(
        edits in prop::collection::vec((0..900_usize, any::<u8>()), 1..6),
        kind in 0..4_u8,
    ) {
        let mut solo = Solo::new();
        let (_, call) = solo.calls();
        let mut bytes = match kind {
            0 => invite(1, "i1"),
            1 => request("OPTIONS", 1, "o1"),
            2 => answer(&call),
            _ => response(&call, 401).extra("WWW-Authenticate: Digest realm=\"a\",nonce=\"b\""),
        }
        .build();
        for (at, octet) in edits {
            let len = bytes.len();
            bytes[at % len] = octet;
        }
        solo.hears_bytes(&bytes);
        solo.sent();
        solo.events();
    }
}
