//! The two loads that a server must carry before anything else: many bridged calls at once, and
//! very many short ones.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::callee::CalleeSpec;
use crate::law::Law;
use crate::place::Loopback;
use crate::plan::{CallPlan, Expect, constant_rate};
use crate::run::{RunOutcome, RunSpec, run};
use crate::watch::ProcessSample;

/// A second more than 64 x T1, after which no transaction of a finished call is held (RFC 3261,
/// 17).
pub const SETTLED: Duration = Duration::from_secs(33);

/// Calls of one kind at one rate.
#[derive(Clone, PartialEq, Debug)]
pub struct Load {
    /// User part to call.
    pub user: String,
    /// How many.
    pub calls: u32,
    /// Calls a second.
    pub rate: f64,
    /// For how long each side speaks.
    pub talk: Duration,
    /// The law the caller offers.
    pub caller_law: Law,
    /// The laws the callee takes, the preferred one first.
    pub callee_laws: Vec<Law>,
    /// What must be heard.
    pub expect: Expect,
}

impl Load {
    /// 200 bridged calls at 50 a second, held 20 s, A-law on both legs.
    #[must_use]
    pub fn bridged() -> Self {
        Self {
            user: "bridge".into(),
            calls: 200,
            rate: 50.0,
            talk: Duration::from_secs(20),
            caller_law: Law::A,
            callee_laws: vec![Law::A],
            expect: Expect::Peer,
        }
    }

    /// The same, A-law to mu-law.
    #[must_use]
    pub fn converted() -> Self {
        Self {
            user: "pcmu".into(),
            callee_laws: vec![Law::Mu],
            ..Self::bridged()
        }
    }

    /// Bridged calls of a tenth of a second.
    #[must_use]
    pub fn short(calls: u32, rate: f64) -> Self {
        Self {
            calls,
            rate,
            talk: Duration::from_millis(100),
            ..Self::bridged()
        }
    }

    /// The plan, its calls numbered from `first`.
    #[must_use]
    pub fn plan(&self, first: u32) -> Vec<CallPlan> {
        let call = |n| CallPlan {
            number: first + n,
            user: self.user.clone(),
            at: constant_rate(self.rate, n),
            talk: self.talk,
            linger: LINGER,
            law: self.caller_law,
            expect: self.expect.clone(),
        };
        (0..self.calls).map(call).collect()
    }

    /// Puts the load on a server whose plan bridges to `place.callee(0)`.
    ///
    /// # Errors
    /// As [`run`].
    pub fn run(
        &self,
        server: SocketAddr,
        pid: Option<u32>,
        place: Loopback,
        seed: u64,
    ) -> anyhow::Result<RunOutcome> {
        let callee = CalleeSpec {
            laws: self.callee_laws.clone(),
            ring: Duration::from_millis(10),
            register: None,
        };
        let spec = RunSpec {
            server,
            pid,
            plan: self.plan(1),
            callees: vec![(place.callee(0), callee)],
            caller: place.caller(),
            media: place.lab_media(),
            seed,
        };
        run(&spec, |_| {})
    }
}

/// Time from the last frame to the BYE.
const LINGER: Duration = Duration::from_millis(300);

/// What a server holds before and after very many calls.
#[derive(Clone, Debug)]
pub struct Growth {
    /// After the first calls, settled.
    pub before: ProcessSample,
    /// After all, settled.
    pub after: ProcessSample,
    /// The first calls.
    pub first: RunOutcome,
    /// The others.
    pub others: RunOutcome,
}

impl Growth {
    /// Growth of the server's memory, in kB; below zero when it shrank.
    #[must_use]
    pub fn kb(&self) -> i64 {
        self.after.pss_kb as i64 - self.before.pss_kb as i64
    }

    /// Growth per call between the two looks, in bytes.
    #[must_use]
    pub fn bytes_per_call(&self) -> f64 {
        self.kb() as f64 * 1024.0 / self.others.calls.len().max(1) as f64
    }

    /// Growth of its number of sockets.
    #[must_use]
    pub fn sockets(&self) -> i64 {
        self.after.sockets as i64 - self.before.sockets as i64
    }
}

/// Places `first` short calls, waits until the server is settled and looks at it; places
/// `others` more, waits and looks again.
///
/// # Errors
/// As [`run`], and when the process cannot be looked at.
pub fn growth(
    server: SocketAddr,
    pid: u32,
    place: Loopback,
    seed: u64,
    (first, others, rate): (u32, u32, f64),
) -> anyhow::Result<Growth> {
    let look = || {
        let settled = Instant::now() + SETTLED;
        while let Some(wait) = settled.checked_duration_since(Instant::now()) {
            std::thread::sleep(wait);
        }
        ProcessSample::take(pid)
    };
    let first = Load::short(first, rate).run(server, None, place, seed)?;
    let before = look()?;
    let others = Load::short(others, rate).run(server, None, place, seed)?;
    let after = look()?;
    Ok(Growth {
        before,
        after,
        first,
        others,
    })
}
