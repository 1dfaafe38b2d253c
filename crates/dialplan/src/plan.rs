//! A loaded plan, and what it is asked.

use core::net::IpAddr;
use std::collections::BTreeMap;

use regex::RegexSet;

use crate::decision::{Action, Decision, Missed, RuleRef, TraceStep};
use crate::error::PlanError;
use crate::load;
use crate::rule::{Rule, Test};

/// A dialplan, compiled.
///
/// Cost: [`Plan::decide`] matches the called user against all rules' patterns at once, and looks
/// at the rest of a rule only where its pattern matches.
#[derive(Clone, Debug)]
pub struct Plan {
    pub(crate) rules: Vec<Rule>,
    /// The patterns for the called user, in the order of the rules that have one.
    pub(crate) called: RegexSet,
    pub(crate) variables: BTreeMap<String, String>,
}

/// What a plan is asked.
#[derive(Clone, Copy)]
pub struct Query<'a> {
    /// User part of the Request-URI, escapes resolved.
    pub called_user: &'a str,
    /// Host of the Request-URI.
    pub called_host: &'a str,
    /// User part of `From`, escapes resolved.
    pub caller_user: &'a str,
    /// Host of `From`.
    pub caller_host: &'a str,
    /// Where the request came from.
    pub source: IpAddr,
    /// Its method.
    pub method: &'a str,
    /// The first header of a name, any case; `None` without one.
    pub header: &'a dyn Fn(&str) -> Option<String>,
}

impl Plan {
    /// Reads and checks a plan; `source_name` is what errors call it. `overrides` take the place
    /// of the plan's variables of the same names, the last of equals first.
    ///
    /// # Errors
    /// [`PlanError`], the first fault that is found: where, what, and what to do.
    pub fn load(
        source_name: &str,
        toml: &str,
        overrides: &[(String, String)],
    ) -> Result<Self, PlanError> {
        load::load(source_name, toml, overrides)
    }

    /// Decides what to do with a call.
    #[must_use]
    pub fn decide(&self, query: &Query<'_>) -> Decision {
        self.decide_noting(query, |_, _| ())
    }

    /// The same, with a trace of every rule that was looked at.
    #[must_use]
    pub fn explain(&self, query: &Query<'_>) -> Decision {
        let mut trace = Vec::new();
        let decision = self.decide_noting(query, |rule, missed| {
            trace.push(TraceStep {
                rule: rule.reference.clone(),
                missed: missed(),
            });
        });
        Decision { trace, ..decision }
    }

    /// The variables in force.
    #[must_use]
    pub const fn variables(&self) -> &BTreeMap<String, String> {
        &self.variables
    }

    /// The rules in order.
    pub fn rules(&self) -> impl Iterator<Item = &RuleRef> {
        self.rules.iter().map(|rule| &rule.reference)
    }

    fn decide_noting(
        &self,
        query: &Query<'_>,
        mut note: impl FnMut(&Rule, &dyn Fn() -> Option<Missed>),
    ) -> Decision {
        let matching = self.called.matches(query.called_user);
        let mut pattern = 0;
        for rule in &self.rules {
            let mut called_matches = true;
            if rule.has_called() {
                called_matches = matching.matched(pattern);
                pattern += 1;
            }
            let failing: Option<Test<'_>> = rule.failing(query, called_matches);
            if let Some(test) = failing {
                note(rule, &|| Some(rule.missed(test, query)));
                continue;
            }
            return match rule.action(query) {
                Ok(action) => {
                    note(rule, &|| None);
                    Decision {
                        action,
                        rule: Some(rule.reference.clone()),
                        record: rule.record(query),
                        trace: Vec::new(),
                        fields: rule.fields(query),
                    }
                }
                Err(unfit) => {
                    note(rule, &|| {
                        Some(Missed {
                            test: unfit.key.to_owned(),
                            wanted: unfit.wanted.to_owned(),
                            found: Some(unfit.found.clone()),
                        })
                    });
                    not_found(Some(rule.reference.clone()))
                }
            };
        }
        not_found(None)
    }
}

/// RFC 3261, 8.2.2.1: a Request-URI that leads nowhere here.
fn not_found(rule: Option<RuleRef>) -> Decision {
    Decision {
        action: Action::Reject {
            code: 404,
            reason: None,
        },
        rule,
        record: None,
        trace: Vec::new(),
        fields: Vec::new(),
    }
}
