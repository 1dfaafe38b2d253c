//! `tandem route`: what the dialplan decides for a call, by which rule, and why no rule before it.

use std::fmt::Write;

use dialplan::{Action, Clip, Codecs, Decision, MediaMode, Query, Target};

use crate::cli::{Route, load_file};
use crate::plan;

/// Prints the decision.
pub(crate) fn run(route: &Route) -> anyhow::Result<()> {
    let mut settings = load_file(route.config.as_deref())?.dialplan;
    if let Some(file) = &route.dialplan {
        settings.file.clone_from(file);
    }
    settings.set.extend(route.set.iter().cloned());
    let plan = plan::load(&settings)?;
    let (caller, called) = (Party::read(&route.from)?, Party::read(&route.to)?);
    let header = |name: &str| {
        let named = route
            .header
            .iter()
            .find(|(known, _)| known.eq_ignore_ascii_case(name));
        named.map(|(_, value)| value.clone())
    };
    let decision = plan.explain(&Query {
        called_user: &called.user,
        called_host: &called.host,
        caller_user: &caller.user,
        caller_host: &caller.host,
        source: route.source,
        method: &route.method,
        header: &header,
    });
    print!("{}", describe(&decision));
    Ok(())
}

/// Who calls or is called: `1000`, `1000@host`, or a URI.
struct Party {
    user: String,
    host: String,
}

impl Party {
    fn read(text: &str) -> anyhow::Result<Self> {
        let uri = match text {
            uri if uri.contains(':') => uri.to_owned(),
            address if address.contains('@') => format!("sip:{address}"),
            user => format!("sip:{user}@127.0.0.1"),
        };
        let parsed = sip::Uri::parse(&uri).map_err(|error| anyhow::anyhow!("`{text}`: {error}"))?;
        Ok(Self {
            user: parsed.user_decoded().unwrap_or_default().into_owned(),
            host: parsed
                .host()
                .map(|host| host.to_string())
                .unwrap_or_default(),
        })
    }
}

fn describe(decision: &Decision) -> String {
    let mut text = format!("{}\n", summary(&decision.action));
    match &decision.rule {
        Some(rule) => line(
            &mut text,
            "rule",
            &format!("{} (line {})", rule.name, rule.line),
        ),
        None => line(&mut text, "rule", "none matches"),
    }
    if let Some(record) = &decision.record {
        let channels = if record.stereo { "stereo" } else { "mono" };
        let template = record
            .template
            .as_deref()
            .unwrap_or("the recorder's own name");
        line(&mut text, "recorded", &format!("{channels}, {template}"));
    }
    for (name, value) in &decision.fields {
        line(&mut text, "header", &format!("{name}: {value}"));
    }
    for step in &decision.trace {
        line(&mut text, "tried", &step.to_string());
    }
    text
}

fn line(text: &mut String, name: &str, value: &str) {
    writeln!(text, "  {name:9} {value}").expect("a String takes everything");
}

fn summary(action: &Action) -> String {
    let name = action.name();
    match action {
        Action::Answer => name.to_owned(),
        Action::Echo { delay } if delay.is_zero() => name.to_owned(),
        Action::Echo { delay } => format!("{name} after {delay:?}"),
        Action::Tone { hz, level_dbm0 } => format!("{name} {hz} Hz at {level_dbm0} dBm0"),
        Action::Play { clip, repeat } => {
            let again = if *repeat { ", again and again" } else { "" };
            match clip {
                Clip::File(file) => format!("{name} {file}{again}"),
                Clip::Music => format!("{name} music{again}"),
                Clip::LatestOfCaller => format!("{name} the caller's latest recording{again}"),
            }
        }
        Action::Record { beep, max } => {
            let beep = if *beep { " after a beep" } else { "" };
            let max = max.map_or_else(String::new, |max| format!(", at most {max:?}"));
            format!("{name}{beep}{max}")
        }
        Action::Bridge(bridge) => {
            let targets: Vec<_> = bridge.targets.iter().map(target).collect();
            let media = match bridge.media {
                MediaMode::Relay => "media through the server",
                MediaMode::Direct => "media direct",
            };
            format!(
                "{name} to {}; {media}; offers {}; rings {:?}",
                targets.join(", "),
                codecs(&bridge.codecs),
                bridge.ring_timeout
            )
        }
        Action::Reject { code, reason } => {
            let reason = reason
                .as_deref()
                .unwrap_or_else(|| sip::reason_phrase(*code));
            format!("{name} {code} {reason}")
        }
        Action::Redirect { code, contacts } => format!("{name} {code} to {}", contacts.join(", ")),
    }
}

fn target(target: &Target) -> String {
    match target {
        Target::Uri(uri) => uri.clone(),
        Target::Registered(user) => format!("wherever {user} is registered"),
    }
}

fn codecs(codecs: &Codecs) -> String {
    match codecs {
        Codecs::Caller => "the caller's codecs".to_owned(),
        Codecs::List(list) => {
            let names = list
                .iter()
                .map(|codec| format!("{}/{}", codec.name, codec.clock_rate));
            names.collect::<Vec<_>>().join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_are_users_addresses_or_uris() {
        for (text, user, host) in [
            ("1000", "1000", "127.0.0.1"),
            ("alice@example.org", "alice", "example.org"),
            ("sip:a%20b@[::1]:5070;transport=tcp", "a b", "[::1]"),
            ("sip:example.org", "", "example.org"),
        ] {
            let party = Party::read(text).expect(text);
            assert_eq!((party.user.as_str(), party.host.as_str()), (user, host));
        }
        assert!(Party::read("sip:").is_err());
    }
}
