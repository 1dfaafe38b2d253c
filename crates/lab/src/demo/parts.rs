//! The demo's calls.

use std::net::SocketAddr;
use std::time::Duration;

use crate::callee::CalleeSpec;
use crate::law::Law;
use crate::place::Loopback;
use crate::plan::{CallPlan, Expect, constant_rate};

/// Calls on one server.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub(super) name: &'static str,
    /// Dialplan that ships with the server.
    pub(super) dialplan: &'static str,
    pub(super) calls: Vec<CallPlan>,
    /// Whether its cost is worth a figure: calls of one kind, long enough.
    pub(super) measured: bool,
    /// The callee's laws, the preferred one first.
    laws: Vec<Law>,
    callee: SocketAddr,
    phone: SocketAddr,
}

impl Part {
    /// Users called, in the order of their first call.
    pub(super) fn users(&self) -> Vec<String> {
        let mut users: Vec<String> = Vec::new();
        for call in &self.calls {
            if !users.contains(&call.user) {
                users.push(call.user.clone());
            }
        }
        users
    }

    /// The lab plan has a callee at a fixed address, the default plan a registered phone.
    pub(super) fn callees(&self, server: SocketAddr) -> Vec<(SocketAddr, CalleeSpec)> {
        let spec = CalleeSpec {
            laws: self.laws.clone(),
            ring: Duration::from_millis(20),
            register: None,
        };
        if self.dialplan == "lab" {
            return vec![(self.callee, spec)];
        }
        let register = Some((PHONE.to_owned(), server));
        vec![(self.phone, CalleeSpec { register, ..spec })]
    }
}

/// User that the phone registers.
const PHONE: &str = "1000";

/// Time from the last frame to the BYE.
const LINGER: Duration = Duration::from_millis(400);

/// The delayed echo of `dialplan/default.toml`, destination 9195.
const ECHO_DELAY: Duration = Duration::from_secs(5);

/// The milliwatt tone: 1004 Hz at 0 dBm0.
const MILLIWATT: Expect = Expect::Tone {
    hz: 1004.0,
    level_dbm0: 0.0,
};

/// All parts, in the order they are played.
pub(super) fn all(quick: bool, place: Loopback) -> Vec<Part> {
    let load = if quick { (20, 4) } else { (60, 7) };
    let measured = |name, user: &'static str, laws: Vec<Law>| {
        let mut builder = Builder::default();
        for n in 0..load.0 {
            builder.at(constant_rate(30.0, n));
            builder.call(user, Duration::from_secs(load.1), Expect::Peer);
        }
        builder.part(name, "lab", laws, true, place)
    };
    vec![
        phone(place),
        lab(place),
        measured("bridge", "bridge", vec![Law::A, Law::Mu]),
        measured("pcmu", "pcmu", vec![Law::Mu, Law::A]),
        measured("bridge-record", "bridge-record", vec![Law::A]),
    ]
}

/// What a person with a phone can call.
fn phone(place: Loopback) -> Part {
    let second = Duration::from_secs;
    let mut calls = Builder::default();
    for n in 0..2 {
        calls.at(Duration::from_millis(100 * n));
        calls.call("9195", second(2), Expect::Echo { delay: ECHO_DELAY });
        let recorded = calls.call(
            "record",
            second(3),
            Expect::Prompt {
                at_least: Duration::from_millis(150),
            },
        );
        calls.call(
            "echo",
            second(3),
            Expect::Echo {
                delay: Duration::ZERO,
            },
        );
        calls.call(
            "9196",
            second(2),
            Expect::Echo {
                delay: Duration::ZERO,
            },
        );
        calls.call("tone", second(3), MILLIWATT);
        calls.call("9197", second(2), MILLIWATT);
        calls.call("music", second(3), Expect::Sound);
        calls.call("9664", second(2), Expect::Sound);
        calls.call("reject-486", second(0), Expect::Refused(486));
        calls.call(PHONE, second(3), Expect::Peer);
        calls.at(second(4) + Duration::from_millis(100 * n));
        calls.call("9199", second(5), Expect::Playback { of: recorded });
    }
    calls.part("phone", "default", vec![Law::A, Law::Mu], false, place)
}

/// What `dialplan/lab.toml` does with single calls.
fn lab(place: Loopback) -> Part {
    let second = Duration::from_secs;
    let mut calls = Builder::default();
    for n in 0..2 {
        calls.at(Duration::from_millis(100 * n));
        calls.call(
            "echo",
            second(2),
            Expect::Echo {
                delay: Duration::ZERO,
            },
        );
        calls.call("nomedia", second(3), Expect::Peer);
        calls.call("pcmu-record", second(3), Expect::Peer);
        let tones = Expect::TonePeer {
            caller_hz: 440.0,
            callee_hz: 660.0,
        };
        calls.call("bridge-record", second(3), tones);
    }
    calls.part("lab", "lab", vec![Law::A, Law::Mu], false, place)
}

#[derive(Default)]
struct Builder {
    at: Duration,
    calls: Vec<CallPlan>,
}

impl Builder {
    fn at(&mut self, at: Duration) {
        self.at = at;
    }

    /// Adds a call; returns its number.
    fn call(&mut self, user: &str, talk: Duration, expect: Expect) -> u32 {
        let number = self.calls.len() as u32 + 1;
        let server_delay = match expect {
            Expect::Echo { delay } => delay,
            _ => Duration::ZERO,
        };
        self.calls.push(CallPlan {
            number,
            user: user.to_owned(),
            at: self.at,
            talk,
            linger: LINGER + server_delay,
            law: Law::A,
            expect,
        });
        number
    }

    fn part(
        self,
        name: &'static str,
        dialplan: &'static str,
        laws: Vec<Law>,
        measured: bool,
        place: Loopback,
    ) -> Part {
        Part {
            name,
            dialplan,
            calls: self.calls,
            measured,
            laws,
            callee: place.callee(0),
            phone: place.callee(1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_demo_places_at_least_20_calls_in_less_than_a_minute() {
        for quick in [true, false] {
            let parts = all(quick, Loopback::of_this_process());
            let calls: usize = parts.iter().map(|part| part.calls.len()).sum();
            assert!(calls >= 20, "{calls}");
            let longest = |part: &Part| {
                let ends = part
                    .calls
                    .iter()
                    .map(|call| call.at + call.talk + call.linger);
                ends.max().unwrap_or_default()
            };
            let time: Duration = parts.iter().map(longest).sum();
            assert!(time < Duration::from_secs(50), "{time:?}");
        }
    }

    #[test]
    fn every_call_of_a_part_has_a_number_of_its_own() {
        for part in all(false, Loopback::of_this_process()) {
            let mut numbers: Vec<u32> = part.calls.iter().map(|call| call.number).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), part.calls.len());
        }
    }
}
