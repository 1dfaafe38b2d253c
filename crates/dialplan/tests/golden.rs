//! The plans that ship decide as `dialplan/golden.toml` says.

mod common;

use std::collections::BTreeSet;

use dialplan::{Plan, Query};
use toml::{Table, Value};

const PLANS: [(&str, &str); 5] = [
    (
        "default.toml",
        include_str!("../../../dialplan/default.toml"),
    ),
    ("lab.toml", include_str!("../../../dialplan/lab.toml")),
    (
        "examples/office.toml",
        include_str!("../../../dialplan/examples/office.toml"),
    ),
    (
        "examples/gate.toml",
        include_str!("../../../dialplan/examples/gate.toml"),
    ),
    (
        "examples/recorded.toml",
        include_str!("../../../dialplan/examples/recorded.toml"),
    ),
];

const CASES: &str = include_str!("../../../dialplan/golden.toml");

fn text<'c>(case: &'c Table, key: &str) -> Option<&'c str> {
    case.get(key).map(|value| {
        value
            .as_str()
            .unwrap_or_else(|| panic!("{key} is a text: {case}"))
    })
}

fn pairs(case: &Table, key: &str) -> Vec<(String, String)> {
    let Some(value) = case.get(key) else {
        return Vec::new();
    };
    let table = value.as_table().expect("a table");
    let text = |value: &Value| value.as_str().expect("a text").to_owned();
    table
        .iter()
        .map(|(key, value)| (key.clone(), text(value)))
        .collect()
}

fn plan(name: &str, overrides: &[(String, String)]) -> Plan {
    let (_, text) = PLANS
        .iter()
        .find(|(known, _)| *known == name)
        .expect("a plan that ships");
    Plan::load(name, text, overrides).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn every_case_is_decided_as_written() {
    const KEYS: [&str; 8] = [
        "plan", "to", "from", "source", "headers", "set", "rule", "decides",
    ];
    let document: Table = CASES.parse().expect("TOML");
    let cases = document["case"].as_array().expect("cases");
    let mut decided = BTreeSet::new();
    for case in cases {
        let case = case.as_table().expect("a table");
        assert!(
            case.keys().all(|key| KEYS.contains(&key.as_str())),
            "unknown key: {case}"
        );
        let name = text(case, "plan").expect("plan");
        let headers = pairs(case, "headers");
        let header = |name: &str| {
            let found = headers
                .iter()
                .find(|(known, _)| known.eq_ignore_ascii_case(name));
            found.map(|(_, value)| value.clone())
        };
        let query = Query {
            caller_user: text(case, "from").unwrap_or("1001"),
            source: text(case, "source")
                .unwrap_or("127.0.0.1")
                .parse()
                .expect("an address"),
            header: &header,
            ..common::call(text(case, "to").expect("to"))
        };
        let plan = plan(name, &pairs(case, "set"));
        let decision = plan.decide(&query);
        assert_eq!(
            decision.to_string(),
            text(case, "decides").expect("decides"),
            "{case}"
        );
        assert_eq!(
            decision.rule.as_ref().map(|rule| &*rule.name),
            text(case, "rule"),
            "{case}"
        );
        decided.extend(
            decision
                .rule
                .map(|rule| (name.to_owned(), rule.name.to_string())),
        );

        // The explanation decides the same, and says why of each rule up to the one that decided.
        let explained = plan.explain(&query);
        assert_eq!(explained.action, decision.action, "{case}");
        let matched = explained
            .trace
            .iter()
            .filter(|step| step.missed.is_none())
            .count();
        assert_eq!(matched, usize::from(explained.rule.is_some()), "{case}");
        let looked_at = explained
            .rule
            .map_or_else(|| plan.rules().count(), |rule| rule.index + 1);
        assert_eq!(explained.trace.len(), looked_at, "{case}");
    }
    for (name, _) in PLANS {
        for rule in plan(name, &[]).rules() {
            let key = (name.to_owned(), rule.name.to_string());
            assert!(
                decided.contains(&key),
                "no case for rule `{}` of {name}",
                rule.name
            );
        }
    }
}
