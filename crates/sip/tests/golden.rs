//! The RFCs' own files (RFC 4475, RFC 5118), each with what must become of it.
//!
//! The files are no part of this repository. They are looked for in `$TANDEM_CASES`, or else in
//! `../shared/cases` beside the repository; where neither exists the test says so and passes.
#![expect(
    clippy::disallowed_methods,
    reason = "a test over files outside the repository"
)]

mod common;

use std::path::{Path, PathBuf};

use common::{datagram, judge};
use sip::{Host, Message, Method, Name, Uri, unfold};

/// What must become of a file, sent as one datagram.
#[derive(Clone, Copy)]
enum Expect {
    /// Taken, and this holds.
    Taken(fn(&Message<&[u8]>) -> bool),
    /// A request that is answered with that status.
    Refused(u16),
    /// Octets that nothing answers.
    Dropped,
}

use Expect::{Dropped, Refused, Taken};

fn any(_: &Message<&[u8]>) -> bool {
    true
}

fn uri<'a>(m: &'a Message<&[u8]>) -> Uri<'a> {
    Uri::parse(m.request_uri().expect("a request")).expect("a readable URI")
}

fn host6(text: &str) -> Option<Host<'static>> {
    text.parse().ok().map(Host::V6)
}

const RFC4475: &[(&str, Expect)] = &[
    (
        "wsinv",
        Taken(|m| {
            let vias: Vec<_> = m.vias().map(|v| v.map(|v| v.transport)).collect();
            m.cseq().map(|c| c.number) == Ok(9)
                && vias == [Ok("UDP"), Ok("TCP"), Ok("UDP")]
                && m.from().is_ok_and(|f| {
                    f.tag() == Some("98asjd8") && f.display.as_deref() == Some("J Rosenberg \\\"")
                })
                && m.max_forwards() == Ok(Some(68))
                && m.header_named("newfangledheader").map(unfold).as_deref()
                    == Some("newfangled value continued newfangled value")
                && m.body().len() == 150
        }),
    ),
    (
        "intmeth",
        Taken(|m| {
            m.method().is_some_and(
                |method| matches!(method, Method::Other(name) if name.starts_with("!interesting-")),
            ) && uri(m).password().is_some()
                && uri(m).host() == Some(Host::Name("example.com"))
        }),
    ),
    (
        "esc01",
        Taken(|m| {
            uri(m).user_decoded().as_deref() == Some("sips:user@example.com")
                && m.contacts()
                    .next()
                    .is_some_and(|c| c.is_ok_and(|c| c.uri().is_ok_and(|u| u.lr())))
        }),
    ),
    (
        "escnull",
        Taken(|m| {
            m.to().is_ok_and(|to| {
                to.uri()
                    .is_ok_and(|u| u.user_decoded().as_deref() == Some("null-\0-null"))
            }) && m.contacts().count() == 2
        }),
    ),
    (
        "esc02",
        Taken(|m| m.method() == Some(Method::Other("RE%47IST%45R")) && m.contacts().count() == 2),
    ),
    (
        "lwsdisp",
        Taken(|m| {
            m.from()
                .is_ok_and(|f| f.display.as_deref() == Some("caller"))
        }),
    ),
    (
        "longreq",
        Taken(|m| m.vias().filter(Result::is_ok).count() == 34),
    ),
    (
        "dblreq",
        Taken(|m| m.body().is_empty() && m.method() == Some(Method::Register)),
    ),
    (
        "semiuri",
        Taken(|m| {
            uri(m).user_decoded().as_deref() == Some("user;par=u@example.net")
                && m.lists(Name::Accept, "message/sipfrag")
        }),
    ),
    (
        "transports",
        Taken(|m| m.vias().filter(Result::is_ok).count() == 5),
    ),
    (
        "mpart01",
        Taken(|m| {
            let content_type = m.content_type().expect("a multipart");
            let sizes: Vec<_> = sip::multipart::parts(&content_type, m.body())
                .map(|p| p.body.len())
                .collect();
            m.body().len() == 553 && sizes.len() == 2 && sizes[0] == 5 && sizes[1] > 300
        }),
    ),
    (
        "unreason",
        Taken(|m| {
            m.status() == Some(200) && m.reason_phrase().is_some_and(|r| r.starts_with("= 2**3"))
        }),
    ),
    (
        "noreason",
        Taken(|m| m.status() == Some(100) && m.reason_phrase() == Some("")),
    ),
    ("badinv01", Refused(400)),
    ("clerr", Refused(400)),
    ("ncl", Refused(400)),
    ("scalar02", Refused(400)),
    ("scalarlg", Dropped),
    ("quotbal", Refused(400)),
    ("ltgtruri", Refused(400)),
    ("lwsruri", Refused(400)),
    ("lwsstart", Refused(400)),
    ("trws", Refused(400)),
    ("escruri", Refused(400)),
    // 3.1.2.12 leaves it open to ignore a Date that nothing needs.
    (
        "baddate",
        Taken(|m| m.header(Name::Date) == Some("Fri, 01 Jan 2010 16:00:00 EST")),
    ),
    ("regbadct", Refused(400)),
    ("badaspec", Refused(400)),
    ("baddn", Refused(400)),
    ("badvers", Refused(505)),
    ("mismatch01", Refused(400)),
    ("mismatch02", Refused(400)),
    ("bigcode", Dropped),
    // The rest is syntactically sound: what the message means is for the layers above.
    (
        "badbranch",
        Taken(|m| {
            m.top_via()
                .is_ok_and(|v| v.branch().is_some() && v.magic_branch().is_none())
        }),
    ),
    ("insuf", Refused(400)),
    ("unkscm", Refused(416)),
    ("novelsc", Refused(416)),
    (
        "unksm2",
        Taken(|m| m.to().is_ok_and(|t| t.uri == "isbn:2983792873")),
    ),
    (
        "bext01",
        Taken(|m| {
            m.values(Name::Require)
                .eq(["nothingSupportsThis", "nothingSupportsThisEither"])
        }),
    ),
    (
        "invut",
        Taken(|m| {
            m.content_type()
                .is_some_and(|c| c.is("application", "unknownformat"))
                && m.body().len() == 40
        }),
    ),
    (
        "regaut01",
        Taken(|m| m.header(Name::Authorization) == Some("NoOneKnowsThisScheme opaque-data=here")),
    ),
    ("multi01", Refused(400)),
    ("mcl01", Refused(400)),
    ("bcast", Taken(|m| m.vias().count() == 2)),
    ("zeromf", Taken(|m| m.max_forwards() == Ok(Some(0)))),
    (
        "cparam01",
        Taken(|m| {
            m.contacts()
                .all(|c| c.is_ok_and(|c| c.params.has("unknownparam")))
        }),
    ),
    (
        "cparam02",
        Taken(|m| {
            m.contacts()
                .all(|c| c.is_ok_and(|c| c.uri().is_ok_and(|u| u.param("unknownparam").is_some())))
        }),
    ),
    (
        "regescrt",
        Taken(|m| {
            m.contacts()
                .all(|c| c.is_ok_and(|c| c.uri().is_ok_and(|u| u.headers().count() == 1)))
        }),
    ),
    (
        "sdp01",
        Taken(|m| m.sdp_body().is_some_and(|s| s.len() == 150)),
    ),
    (
        "inv2543",
        Taken(|m| m.from().is_ok_and(|f| f.tag().is_none()) && m.sdp_body().is_some()),
    ),
    // From a draft of the RFC: a start line without a version and no Via to answer to.
    ("test", Dropped),
];

const RFC5118: &[(&str, Expect)] = &[
    (
        "ipv6-good",
        Taken(|m| uri(m).host() == host6("2001:db8::10")),
    ),
    ("ipv6-bad", Refused(400)),
    (
        "port-ambiguous",
        Taken(|m| uri(m).host() == host6("2001:db8::10:5070") && uri(m).port().is_none()),
    ),
    (
        "port-unambiguous",
        Taken(|m| uri(m).host() == host6("2001:db8::10") && uri(m).port() == Some(5070)),
    ),
    ("via-received-param-with-delim", Taken(received)),
    ("via-received-param-no-delim", Taken(received)),
    ("ipv6-in-sdp", Taken(|m| m.sdp_body().is_some())),
    (
        "mult-ip-in-header",
        Taken(|m| m.vias().filter(Result::is_ok).count() == 3),
    ),
    (
        "mult-ip-in-sdp",
        Taken(|m| m.sdp_body().is_some_and(|s| s.len() == 189)),
    ),
    (
        "ipv4-mapped-ipv6",
        Taken(|m| {
            m.top_via()
                .is_ok_and(|v| Some(v.host) == host6("::ffff:192.0.2.10"))
        }),
    ),
    (
        "ipv6-bug-abnf-3-colons",
        Taken(|m| uri(m).host() == host6("2001:db8::192.0.2.1")),
    ),
    (
        "ipv6-correct-abnf-2-colons",
        Taken(|m| uri(m).host() == host6("2001:db8::192.0.2.1")),
    ),
];

fn received(m: &Message<&[u8]>) -> bool {
    m.top_via()
        .is_ok_and(|v| v.received() == "2001:db8::9:255".parse().ok())
}

fn cases() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/cases");
    let dir = std::env::var_os("TANDEM_CASES").map_or_else(beside, PathBuf::from);
    dir.is_dir().then_some(dir)
}

/// A sentence for what did not come out as expected.
fn fault(bytes: &[u8], expect: Expect) -> Option<String> {
    let verdict = judge(bytes);
    let taken = verdict == common::Verdict::Taken;
    match expect {
        Taken(holds) if taken => {
            let message = datagram(bytes).expect("it was just taken");
            (!holds(&message)).then(|| "taken, but its values are not as they should be".to_owned())
        }
        Refused(status) if verdict.status() == Some(status) => None,
        Dropped if !taken && verdict.status().is_none() => None,
        _ => Some(format!("{verdict:?}")),
    }
}

fn run(dir: &str, expectations: &[(&str, Expect)]) {
    let Some(cases) = cases() else {
        println!("skipped: no cases beside the repository and TANDEM_CASES is not set");
        return;
    };
    let dir = cases.join(dir);
    let mut listed: Vec<_> = expectations
        .iter()
        .map(|(name, _)| format!("{name}.sip"))
        .collect();
    let entries = std::fs::read_dir(&dir).expect("the case directory can be read");
    let mut found: Vec<_> = entries
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .into_string()
                .expect("UTF-8")
        })
        .collect();
    found.retain(|name| name.ends_with(".sip"));
    listed.sort();
    found.sort();
    assert_eq!(found, listed, "every file has its expectation");
    let faults: Vec<_> = expectations
        .iter()
        .filter_map(|(name, expect)| {
            let bytes = std::fs::read(dir.join(format!("{name}.sip"))).expect("a case can be read");
            fault(&bytes, *expect).map(|fault| format!("{name}: {fault}"))
        })
        .collect();
    assert!(faults.is_empty(), "{faults:#?}");
    println!("{} files of {}", expectations.len(), dir.display());
}

#[test]
fn rfc4475_files() {
    run("rfc4475", RFC4475);
}

#[test]
fn rfc5118_files() {
    run("rfc5118", RFC5118);
}

#[test]
fn an_unexpected_outcome_is_a_fault() {
    let plain = common::request("");
    assert!(fault(&plain, Taken(any)).is_none());
    assert!(fault(&plain, Taken(|m| m.status().is_some())).is_some());
    assert!(fault(&plain, Refused(400)).is_some() && fault(&plain, Dropped).is_some());
    assert!(fault(b"OPTIONS  sip:a SIP/2.0\r\n\r\n", Refused(400)).is_none());
    assert!(fault(b"\0", Dropped).is_none());
}
