//! A loaded plan.

use core::net::IpAddr;

use crate::decision::Decision;
use crate::error::PlanError;

/// A dialplan, compiled.
#[derive(Clone, Debug)]
pub struct Plan {}

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
    /// Reads and checks a plan; `source_name` is what errors call it.
    ///
    /// # Errors
    /// [`PlanError`], which says where, what, and what to do.
    pub fn load(
        _source_name: &str,
        _toml: &str,
        _overrides: &[(String, String)],
    ) -> Result<Self, PlanError> {
        unimplemented!()
    }

    /// Decides what to do with a call.
    #[must_use]
    pub fn decide(&self, _query: &Query<'_>) -> Decision {
        unimplemented!()
    }

    /// The same, with a trace of every rule that was looked at.
    #[must_use]
    pub fn explain(&self, _query: &Query<'_>) -> Decision {
        unimplemented!()
    }
}
