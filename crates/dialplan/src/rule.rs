//! One rule: its conditions, and what comes of it.

use core::fmt;

use crate::action::{Form, Unfit};
use crate::condition::Condition;
use crate::decision::{Action, Missed, RecordSpec, RuleRef};
use crate::network::Network;
use crate::plan::Query;
use crate::template::{Place, Template, Value};

/// A rule, compiled.
#[derive(Clone, Debug)]
pub(crate) struct Rule {
    pub(crate) reference: RuleRef,
    pub(crate) method: String,
    /// Networks of which the source must be in one; none asks nothing.
    pub(crate) sources: Vec<Network>,
    /// The one on the called user, if any, is first.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) form: Form,
    pub(crate) record: Option<Record>,
    pub(crate) fields: Vec<(String, Template)>,
}

/// How a rule records.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    pub(crate) spec: RecordSpec,
    /// Records only where this comes to something.
    pub(crate) when: Option<Template>,
}

/// A test that a request fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Test<'r> {
    Method,
    Source,
    Condition(&'r Condition),
}

impl Rule {
    /// The first test that fails. `called_matches` says what is known of the called user.
    pub(crate) fn failing(&self, query: &Query<'_>, called_matches: bool) -> Option<Test<'_>> {
        if self.method != query.method {
            return Some(Test::Method);
        }
        let mut conditions = self.conditions.iter();
        if self.has_called() {
            let condition = conditions.next()?;
            if !called_matches {
                return Some(Test::Condition(condition));
            }
        }
        if !self.sources.is_empty() && !self.sources.iter().any(|n| n.contains(query.source)) {
            return Some(Test::Source);
        }
        conditions
            .find(|c| !c.subject.of(query).is_some_and(|value| c.matches(&value)))
            .map(Test::Condition)
    }

    /// Whether there is a condition on the called user.
    pub(crate) fn has_called(&self) -> bool {
        use crate::condition::Subject;
        self.conditions
            .first()
            .is_some_and(|condition| condition.subject == Subject::Called)
    }

    /// A failed test in words.
    pub(crate) fn missed(&self, test: Test<'_>, query: &Query<'_>) -> Missed {
        match test {
            Test::Method => Missed {
                test: "method".to_owned(),
                wanted: self.method.clone(),
                found: Some(query.method.to_owned()),
            },
            Test::Source => Missed {
                test: "source".to_owned(),
                wanted: Listed(&self.sources).to_string(),
                found: Some(query.source.to_string()),
            },
            Test::Condition(condition) => Missed {
                test: condition.subject.to_string(),
                wanted: condition.pattern.clone(),
                found: condition
                    .subject
                    .of(query)
                    .map(std::borrow::Cow::into_owned),
            },
        }
    }

    pub(crate) fn action(&self, query: &Query<'_>) -> Result<Action, Unfit> {
        self.form.resolve(&|value| self.lookup(value, query))
    }

    pub(crate) fn record(&self, query: &Query<'_>) -> Option<RecordSpec> {
        let record = self.record.as_ref()?;
        let wanted = record.when.as_ref().is_none_or(|when| {
            !when
                .expand(Place::Plain, &|value| self.lookup(value, query))
                .is_empty()
        });
        wanted.then(|| record.spec.clone())
    }

    pub(crate) fn fields(&self, query: &Query<'_>) -> Vec<(String, String)> {
        let expand = |text: &Template| text.expand(Place::Line, &|value| self.lookup(value, query));
        self.fields
            .iter()
            .map(|(name, text)| (name.clone(), expand(text)))
            .collect()
    }

    fn lookup(&self, value: Value, query: &Query<'_>) -> String {
        match value {
            Value::Called => query.called_user.to_owned(),
            Value::CalledHost => query.called_host.to_owned(),
            Value::Caller => query.caller_user.to_owned(),
            Value::CallerHost => query.caller_host.to_owned(),
            Value::Source => query.source.to_canonical().to_string(),
            Value::Capture { condition, group } => {
                let condition = &self.conditions[condition];
                let value = condition.subject.of(query).unwrap_or_default();
                condition.group(&value, group)
            }
        }
    }
}

struct Listed<'a>(&'a [Network]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, network) in self.0.iter().enumerate() {
            let or = if n > 0 { " or " } else { "" };
            write!(f, "{or}{network}")?;
        }
        Ok(())
    }
}
