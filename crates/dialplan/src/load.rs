//! From the text of a plan to its rules.

use core::ops::Range;
use std::collections::BTreeMap;

use regex::RegexSetBuilder;
use sip::Name;
use toml::de::DeTable;

use crate::action::{self, ACTIONS, template};
use crate::condition::{Condition, Subject};
use crate::decision::{RecordSpec, RuleRef};
use crate::error::{PlanError, Source};
use crate::network::Network;
use crate::plan::Plan;
use crate::rule::{Record, Rule};
use crate::suggest::nearest;
use crate::table::{Table, Text};
use crate::template::{BUILT_IN, Place, Scope, Template, Value};

/// Keys of a rule whatever its action.
const RULE_KEYS: [&str; 12] = [
    "name",
    "method",
    "called",
    "called_host",
    "caller",
    "caller_host",
    "source",
    "header",
    "action",
    "record",
    "record_when",
    "record_name",
];

/// Key for headers to add; only where there is a leg B.
const ADD: &str = "add";

/// All patterns for the called user together, compiled: some ten thousand plain rules.
const MAX_SET_BYTES: usize = 64 << 20;

pub(crate) fn load(
    name: &str,
    text: &str,
    overrides: &[(String, String)],
) -> Result<Plan, PlanError> {
    let source = Source { name, text };
    let document = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or_default();
        // A fault at the end of a file is at its last line that says something.
        let at = if at.start >= text.len() {
            text.trim_end().len()..text.len()
        } else {
            at
        };
        let what = error.message().lines().next().unwrap_or_default();
        source.error(at, format!("this is not TOML: {what}; correct it"))
    })?;
    let table = Table::new(source, &document);
    table.allow_only(&["variables", "rule"])?;
    let variables = variables(&table, overrides)?;
    let tables = table.tables("rule")?;
    if tables.is_empty() {
        let message = "the plan has no rule, so every call would get 404; add a [[rule]]";
        return Err(source.error(0..0, message));
    }
    let mut rules: Vec<Rule> = Vec::with_capacity(tables.len());
    for (index, table) in tables.iter().enumerate() {
        let rule = rule(index, table, &variables)?;
        if let Some(other) = rules
            .iter()
            .find(|other| other.reference.name == rule.reference.name)
        {
            let message = format!(
                "the rule of line {} is named `{}` too; call records tell rules by name, so choose another",
                other.reference.line, other.reference.name
            );
            return Err(table.error("name", message));
        }
        rules.push(rule);
    }
    let called = rules.iter().filter(|rule| rule.has_called());
    let called = RegexSetBuilder::new(called.map(|rule| rule.conditions[0].anchored()))
        .size_limit(MAX_SET_BYTES)
        .build()
        .map_err(|_| {
            let message =
                "all `called` patterns together are too large; write fewer or simpler ones";
            source.error(0..0, message)
        })?;
    Ok(Plan {
        rules,
        called,
        variables,
    })
}

fn variables(
    table: &Table<'_>,
    overrides: &[(String, String)],
) -> Result<BTreeMap<String, String>, PlanError> {
    let mut variables = BTreeMap::new();
    if let Some(table) = table.table("variables")? {
        for (name, value) in table.text_entries()? {
            if BUILT_IN.iter().any(|(built_in, _)| *built_in == name.value) {
                let message = format!(
                    "`{}` is what every call brings; name the variable otherwise",
                    name.value
                );
                return Err(table.source.error(name.span, message));
            }
            if !is_name(name.value) {
                let message = format!(
                    "`{}` is no name; use letters, digits and _, a letter first",
                    name.value
                );
                return Err(table.source.error(name.span, message));
            }
            variables.insert(name.value.to_owned(), value.value.to_owned());
        }
    }
    for (name, value) in overrides {
        let Some(variable) = variables.get_mut(name) else {
            let message = match nearest(name, variables.keys().map(String::as_str)) {
                Some(nearest) => {
                    format!("no variable is named `{name}`; the nearest one to set is `{nearest}`")
                }
                None => format!("no variable is named `{name}`, nor is there any other to set"),
            };
            return Err(table.source.error(table.value_span("variables"), message));
        };
        variable.clone_from(value);
    }
    Ok(variables)
}

fn rule(
    index: usize,
    table: &Table<'_>,
    variables: &BTreeMap<String, String>,
) -> Result<Rule, PlanError> {
    let Some(action) = table.text("action")? else {
        check_keys(table, None)?;
        let known: Vec<_> = ACTIONS.iter().map(|(name, _)| *name).collect();
        let message = format!(
            "the rule has no `action`; write one of {}",
            known.join(", ")
        );
        return Err(table.source.error(table.span.clone(), message));
    };
    check_keys(table, Some(action.value))?;
    let conditions = conditions(table)?;
    let captures = captures(&conditions, table, variables)?;
    let called = conditions
        .first()
        .filter(|condition| condition.subject == Subject::Called);
    let scope = Scope {
        variables,
        captures: &captures,
        called: called.map(|condition| (0, condition.group_count())),
    };
    let form = action::read(&action, table, &scope)?;
    let record = record(&action, table, &scope)?;
    if form.is_direct() && record.as_ref().is_some() {
        let message = "media that passes us by cannot be recorded; remove `record`, or write media = \"relay\"";
        return Err(table.error("record", message));
    }
    if form.is_refusal() && record.is_some() {
        return Err(table.error(
            "record",
            "a call that is refused has nothing to record; remove `record`",
        ));
    }
    let name = table.text("name")?;
    let name = name.map_or_else(
        || format!("{} #{}", action.value, index + 1),
        |n| n.value.to_owned(),
    );
    let (line, _) = table.source.place(table.span.start);
    Ok(Rule {
        reference: RuleRef {
            index,
            name: name.into(),
            line,
        },
        method: method(table)?,
        sources: sources(table, variables)?,
        conditions,
        form,
        record,
        fields: fields(table, &scope)?,
    })
}

/// Refuses keys that a rule with this action does not have, and says whose they are.
fn check_keys(table: &Table<'_>, action: Option<&str>) -> Result<(), PlanError> {
    let mut all: Vec<&str> = RULE_KEYS.to_vec();
    all.push(ADD);
    for (_, keys) in &ACTIONS {
        all.extend(keys.iter().filter(|key| !RULE_KEYS.contains(key)));
    }
    table.allow_only(&all)?;
    let Some(action) = action else { return Ok(()) };
    let Some((_, own)) = ACTIONS.iter().find(|(name, _)| *name == action) else {
        return Ok(());
    };
    for key in all {
        let fits = match key {
            ADD => action == "bridge",
            key => own.contains(&key) || RULE_KEYS.contains(&key),
        };
        if let (false, Some(at)) = (fits, table.key(key)) {
            let owners: Vec<_> = match key {
                ADD => vec!["bridge"],
                key => ACTIONS
                    .iter()
                    .filter(|(_, keys)| keys.contains(&key))
                    .map(|(n, _)| *n)
                    .collect(),
            };
            let message = format!(
                "`{key}` belongs to the action {}, not to `{action}`; remove it",
                owners
                    .iter()
                    .map(|owner| format!("`{owner}`"))
                    .collect::<Vec<_>>()
                    .join(" or ")
            );
            return Err(table.source.error(at, message));
        }
    }
    Ok(())
}

fn conditions(table: &Table<'_>) -> Result<Vec<Condition>, PlanError> {
    let mut conditions = Vec::new();
    let mut add = |subject: Subject, text: &Text<'_>| {
        let condition = Condition::new(subject, text.value)
            .map_err(|message| table.source.error(text.span.clone(), message))?;
        conditions.push(condition);
        Ok(())
    };
    for (key, subject) in [
        ("called", Subject::Called),
        ("called_host", Subject::CalledHost),
        ("caller", Subject::Caller),
        ("caller_host", Subject::CallerHost),
    ] {
        if let Some(text) = table.text(key)? {
            add(subject, &text)?;
        }
    }
    if let Some(headers) = table.table("header")? {
        for (name, text) in headers.text_entries()? {
            check_header_name(&name, table)?;
            add(Subject::Header(name.value.to_owned()), &text)?;
        }
    }
    Ok(conditions)
}

/// The named groups of a rule's patterns; each name once, and none that is taken.
fn captures(
    conditions: &[Condition],
    table: &Table<'_>,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<(String, Value)>, PlanError> {
    let mut captures: Vec<(String, Value)> = Vec::new();
    for (index, condition) in conditions.iter().enumerate() {
        for (name, group) in condition.named_groups() {
            let is_taken = captures.iter().any(|(other, _)| other == name)
                || variables.contains_key(name)
                || BUILT_IN.iter().any(|(built_in, _)| *built_in == name);
            if is_taken {
                let message =
                    format!("the group `{name}` has the name of something else; name it otherwise");
                let key = match &condition.subject {
                    Subject::Header(_) => "header".to_owned(),
                    subject => subject.to_string(),
                };
                return Err(table.error(&key, message));
            }
            captures.push((
                name.to_owned(),
                Value::Capture {
                    condition: index,
                    group,
                },
            ));
        }
    }
    Ok(captures)
}

fn method(table: &Table<'_>) -> Result<String, PlanError> {
    match table.text("method")? {
        None => Ok("INVITE".to_owned()),
        Some(text) if text.value == "INVITE" => Ok(text.value.to_owned()),
        Some(text) => Err(table.error(
            "method",
            format!(
                "requests of method `{}` are not decided by plans; write \"INVITE\"",
                text.value
            ),
        )),
    }
}

fn sources(
    table: &Table<'_>,
    variables: &BTreeMap<String, String>,
) -> Result<Vec<Network>, PlanError> {
    let scope = Scope {
        variables,
        captures: &[],
        called: None,
    };
    let parse = |text: Text<'_>| {
        let template = template(&text, table, &scope)?;
        let network = template.expand(Place::Plain, &|_| String::new());
        let network = network.parse().ok().filter(|_| template.is_fixed());
        network.ok_or_else(|| {
            let message = format!(
                "`{}` is no network; write an address, one with its prefix as in 192.0.2.0/24, or a \
                 variable that holds one",
                text.value
            );
            table.source.error(text.span, message)
        })
    };
    table.texts("source")?.into_iter().map(parse).collect()
}

fn record(
    action: &Text<'_>,
    table: &Table<'_>,
    scope: &Scope<'_>,
) -> Result<Option<Record>, PlanError> {
    let stereo = match table.text("record")?.map(|text| text.value) {
        Some("stereo") => Some(true),
        Some("mono") => Some(false),
        Some(other) => {
            let message = format!("`record` is \"{other}\"; write \"stereo\" or \"mono\"");
            return Err(table.error("record", message));
        }
        None if action.value == "record" => Some(false),
        None => None,
    };
    let when = table.text("record_when")?;
    let template_of_name = table.text("record_name")?;
    let Some(stereo) = stereo else {
        let stray = [("record_when", &when), ("record_name", &template_of_name)];
        return match stray.iter().find(|(_, text)| text.is_some()) {
            Some((key, _)) => {
                let message =
                    format!("`{key}` without `record`; write record = \"stereo\" or \"mono\" too");
                Err(table.error(key, message))
            }
            None => Ok(None),
        };
    };
    if action.value == "record" && when.is_some() {
        let message = "the action `record` always records; remove `record_when`";
        return Err(table.error("record_when", message));
    }
    let when = when.map(|text| template(&text, table, scope)).transpose()?;
    let spec = RecordSpec {
        stereo,
        template: template_of_name.map(|text| text.value.to_owned()),
    };
    Ok(Some(Record { spec, when }))
}

fn fields(table: &Table<'_>, scope: &Scope<'_>) -> Result<Vec<(String, Template)>, PlanError> {
    let Some(add) = table.table(ADD)? else {
        return Ok(Vec::new());
    };
    let entries = add.text_entries()?.into_iter();
    entries
        .map(|(name, text)| {
            check_header_name(&name, table)?;
            if Name::lookup(name.value).is_some_and(is_structural) {
                let message = format!(
                    "`{}` is written by the server itself; remove it",
                    name.value
                );
                return Err(table.source.error(name.span, message));
            }
            if text.value.contains(|c: char| c.is_control()) {
                let message = format!(
                    "`{}` has a control character in its value; write one line",
                    name.value
                );
                return Err(table.source.error(text.span, message));
            }
            Ok((name.value.to_owned(), template(&text, table, scope)?))
        })
        .collect()
}

/// Headers that make a message what it is: the dialog, its way, and its body.
const fn is_structural(name: Name) -> bool {
    matches!(
        name,
        Name::Via
            | Name::From
            | Name::To
            | Name::CallId
            | Name::CSeq
            | Name::Contact
            | Name::MaxForwards
            | Name::Route
            | Name::RecordRoute
            | Name::ContentType
            | Name::ContentLength
            | Name::ContentEncoding
    )
}

fn check_header_name(name: &Text<'_>, table: &Table<'_>) -> Result<(), PlanError> {
    // token, RFC 3261, 25.1
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"-.!%*_+`'~".contains(&byte);
    if !name.value.is_empty() && name.value.bytes().all(is_token) {
        return Ok(());
    }
    let at: Range<usize> = name.span.clone();
    Err(table.source.error(
        at,
        format!(
            "{:?} is no header name; write one such as X-Name",
            name.value
        ),
    ))
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}
