//! The order of rules, their conditions, and what is worked out from a call.

mod common;

use core::net::IpAddr;

use common::call;
use dialplan::{Action, Codecs, Missed, Plan, Query, Target};
use proptest::prelude::*;

fn plan(text: &str) -> Plan {
    Plan::load("plan.toml", text, &[]).unwrap_or_else(|error| panic!("{error}"))
}

fn rule(plan: &Plan, query: &Query<'_>) -> String {
    plan.decide(query).rule_name()
}

#[test]
fn the_first_rule_whose_every_condition_holds_decides() {
    let plan = plan(
        "[[rule]]\nname = 'a'\ncalled = '1.*'\ncaller = '2.*'\naction = 'echo'\n\
         [[rule]]\nname = 'b'\ncalled = '1.*'\naction = 'echo'\n\
         [[rule]]\nname = 'c'\nsource = ['10.0.0.0/8', '::1']\naction = 'echo'\n\
         [[rule]]\nname = 'd'\nheader = { X-Key = 'open.*', Subject = '.+' }\naction = 'echo'\n\
         [[rule]]\nname = 'e'\ncalled_host = 'a\\.example'\ncaller_host = 'b\\.example'\naction = 'echo'\n",
    );
    assert_eq!(
        rule(
            &plan,
            &Query {
                caller_user: "20",
                ..call("10")
            }
        ),
        "a"
    );
    assert_eq!(rule(&plan, &call("10")), "b");
    assert_eq!(
        rule(
            &plan,
            &Query {
                source: IpAddr::from([10, 9, 9, 9]),
                ..call("x")
            }
        ),
        "c"
    );
    assert_eq!(
        rule(
            &plan,
            &Query {
                source: "::1".parse().expect("v6"),
                ..call("x")
            }
        ),
        "c"
    );
    let both = |name: &str| match name {
        "X-Key" => Some("open sesame".to_owned()),
        "Subject" => Some("s".to_owned()),
        _ => None,
    };
    assert_eq!(
        rule(
            &plan,
            &Query {
                header: &both,
                ..call("x")
            }
        ),
        "d"
    );
    let one = |name: &str| (name == "X-Key").then(|| "open".to_owned());
    assert_eq!(
        rule(
            &plan,
            &Query {
                header: &one,
                ..call("x")
            }
        ),
        "(no rule)"
    );
    let hosts = Query {
        called_host: "A.example",
        caller_host: "b.EXAMPLE",
        ..call("x")
    };
    assert_eq!(rule(&plan, &hosts), "e");
    assert_eq!(
        rule(
            &plan,
            &Query {
                method: "REGISTER",
                ..call("10")
            }
        ),
        "(no rule)"
    );
    let nothing = plan.decide(&call("x"));
    assert_eq!(
        nothing.action,
        Action::Reject {
            code: 404,
            reason: None
        }
    );
    assert_eq!(nothing.rule, None);
}

#[test]
fn the_explanation_names_what_did_not_match() {
    let plan = plan(
        "[[rule]]\ncalled = '2.*'\naction = 'echo'\n\
         [[rule]]\nsource = '10.0.0.0/8'\naction = 'echo'\n\
         [[rule]]\nname = 'h'\nheader = { X-Key = 'v' }\naction = 'echo'\n\
         [[rule]]\nname = 'last'\naction = 'answer'\n",
    );
    let decision = plan.explain(&call("10"));
    let lines: Vec<_> = decision.trace.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "line 1 echo #1: called is \"10\", not 2.*",
            "line 4 echo #2: source is \"127.0.0.1\", not 10.0.0.0/8",
            "line 7 h: header X-Key is missing, not v",
            "line 11 last: matches",
        ]
    );
    assert_eq!(decision.rule.expect("a rule").line, 11);
    assert!(plan.decide(&call("10")).trace.is_empty());
}

#[test]
fn values_of_the_call_make_the_action() {
    let plan = plan(
        "[[rule]]\nname = 'x'\ncalled = '(?<user>[a-z]+)-(?<clock>[0-9]+)'\ncaller = '(?<area>..).*'\n\
         header = { X-Way = '(?<way>.*)' }\naction = 'bridge'\n\
         to = ['sip:${user}@${called_host}', 'registered:${area}$2', 'sip:${way}@h;x=$1']\n\
         codecs = '97 speex/${clock}?complexity=2&quality=8'\n\
         add = { X-From = '${caller}@${caller_host} ${source} $$${way}' }\n",
    );
    let header = |_: &str| Some("a\r\nb@c".to_owned());
    // `.` is no line end, so such a header matches nothing.
    assert_eq!(
        rule(
            &plan,
            &Query {
                header: &header,
                ..call("bob-8000")
            }
        ),
        "(no rule)"
    );
    let header = |_: &str| Some("a b@c".to_owned());
    let query = Query {
        header: &header,
        ..call("bob-8000")
    };
    let decision = plan.decide(&query);
    let Action::Bridge(bridge) = &decision.action else {
        panic!("{decision}")
    };
    assert_eq!(
        bridge.targets,
        [
            Target::Uri("sip:bob@tandem.example".to_owned()),
            Target::Registered("108000".to_owned()),
            Target::Uri("sip:a%20b%40c@h;x=bob".to_owned()),
        ]
    );
    let Codecs::List(codecs) = &bridge.codecs else {
        panic!("{decision}")
    };
    assert_eq!(
        codecs[0].to_string(),
        "97 speex/8000?complexity=2&quality=8"
    );
    assert_eq!(
        decision.fields,
        [(
            "X-From".to_owned(),
            "1001@phones.example 127.0.0.1 $a b@c".to_owned()
        )]
    );
}

#[test]
fn what_a_call_makes_unusable_is_refused_with_404() {
    let plan = plan(
        "[[rule]]\ncalled = 'r(.*)'\naction = 'reject'\ncode = '$1'\n\
         [[rule]]\ncalled = 'c(.*)'\naction = 'bridge'\nto = 'sip:a@h'\ncodecs = 'x/$1'\n\
         [[rule]]\ncalled = 'h(.*)'\naction = 'bridge'\nto = 'sip:a@$1'\n\
         [[rule]]\ncalled = 'u(.*)'\naction = 'bridge'\nto = 'registered:$1'\n",
    );
    let refused = Action::Reject {
        code: 404,
        reason: None,
    };
    for called in ["r200", "r", "c", "c0", "ca", "h", "h@x", "u"] {
        let decision = plan.explain(&call(called));
        assert_eq!(decision.action, refused, "{called}");
        assert!(decision.rule.is_some(), "{called}");
        assert!(
            decision
                .trace
                .last()
                .is_some_and(|step| step.missed.is_some()),
            "{called}"
        );
    }
    let last = plan
        .explain(&call("c0"))
        .trace
        .pop()
        .and_then(|step| step.missed);
    let Some(Missed { test, found, .. }) = last else {
        panic!("no reason")
    };
    assert_eq!((test.as_str(), found.as_deref()), ("codecs", Some("x/0")));
    for called in ["r486", "c8000", "hx", "u1"] {
        assert_ne!(plan.decide(&call(called)).action, refused, "{called}");
    }
}

#[test]
fn a_call_is_recorded_where_the_rule_says_so() {
    let plan = plan(
        "[[rule]]\ncalled = 'e(-record)?'\naction = 'echo'\nrecord = 'stereo'\nrecord_when = '$1'\n\
         [[rule]]\ncalled = 'm'\naction = 'echo'\nrecord = 'mono'\nrecord_name = '{caller}.wav'\n\
         [[rule]]\ncalled = 'r'\naction = 'record'\n\
         [[rule]]\ncalled = 's'\naction = 'record'\nrecord = 'stereo'\n",
    );
    let record = |called| {
        plan.decide(&call(called))
            .record
            .map(|r| (r.stereo, r.template))
    };
    assert_eq!(record("e"), None);
    assert_eq!(record("e-record"), Some((true, None)));
    assert_eq!(record("m"), Some((false, Some("{caller}.wav".to_owned()))));
    assert_eq!(record("r"), Some((false, None)));
    assert_eq!(record("s"), Some((true, None)));
}

#[test]
fn times_are_written_with_units_or_as_seconds() {
    for (delay, milliseconds) in [
        ("'5s'", 5_000),
        ("'5 s'", 5_000),
        ("5", 5_000),
        ("0.25", 250),
        ("'200ms'", 200),
        ("'2m'", 120_000),
    ] {
        let plan = plan(&format!("[[rule]]\naction = 'echo'\ndelay = {delay}\n"));
        let Action::Echo { delay: found } = plan.decide(&call("")).action else {
            panic!("{delay}")
        };
        assert_eq!(found.as_millis(), milliseconds, "{delay}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is dialled, a target is a URI with the host that the plan wrote, and what is added
    /// is one line.
    #[test]
    fn nothing_dialled_leaves_its_place(called in any::<String>(), caller in any::<String>()) {
        let plan = plan(
            "[[rule]]\ncalled = '(?s)(.+)'\naction = 'bridge'\nto = 'sip:${called}@pbx.example'\n\
             add = { X-Caller = '${caller}' }\n",
        );
        let decision = plan.decide(&Query { caller_user: &caller, ..call(&called) });
        if called.is_empty() {
            prop_assert_eq!(decision.rule, None);
            return Ok(());
        }
        let Action::Bridge(bridge) = decision.action else { panic!("{called:?}") };
        let Target::Uri(uri) = &bridge.targets[0] else { panic!("{called:?}") };
        let uri = sip::Uri::parse(uri).expect("a URI");
        prop_assert_eq!(uri.host().map(|host| host.to_string()), Some("pbx.example".to_owned()));
        let user = uri.user_decoded();
        prop_assert_eq!(user.as_deref(), Some(&called[..]));
        prop_assert!(!decision.fields[0].1.contains(char::is_control));
    }
}
