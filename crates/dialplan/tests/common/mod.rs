//! What the tests ask plans.

use core::net::IpAddr;

use dialplan::Query;

/// A call to `called` from 1001 on loopback, without headers.
pub(crate) fn call(called: &str) -> Query<'_> {
    Query {
        called_user: called,
        called_host: "tandem.example",
        caller_user: "1001",
        caller_host: "phones.example",
        source: IpAddr::from([127, 0, 0, 1]),
        method: "INVITE",
        header: &|_| None,
    }
}
