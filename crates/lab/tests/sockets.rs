//! Smoke test with real sockets and real time: caller calls callee directly over loopback.

use std::time::Duration;

use lab::callee::CalleeSpec;
use lab::law::Law;
use lab::place::Loopback;
use lab::plan::{CallPlan, Expect, constant_rate};
use lab::run::{RunSpec, run};

#[test]
fn ten_calls_over_loopback_lose_nothing() {
    let place = Loopback::of_this_process();
    let call = |n| CallPlan {
        number: n,
        user: "uas".into(),
        at: constant_rate(50.0, n),
        talk: Duration::from_millis(500),
        linger: Duration::from_millis(200),
        law: Law::A,
        expect: Expect::Peer,
    };
    let callee = CalleeSpec {
        laws: vec![Law::A],
        ring: Duration::from_millis(10),
        register: None,
    };
    let spec = RunSpec {
        server: place.callee(0),
        pid: None,
        plan: (0..10).map(call).collect(),
        callees: vec![(place.callee(0), callee)],
        caller: place.caller(),
        media: place.lab_media(),
        seed: 1,
    };
    let mut most = 0;
    let outcome = run(&spec, |counters| most = most.max(counters.up())).expect("sockets");
    for call in &outcome.calls {
        assert_eq!(call.faults, [], "call {}", call.call.plan.number);
    }
    assert_eq!(outcome.calls.len(), 10);
    assert!(most > 0);
}
