//! One run: callees up, calls placed, everything collected, joined and judged.
//!
//! ```text
//!   callees listen (and register) --> caller places the plan --> caller idle --> callees stop
//!        |  media thread, watch on the server, look at our own sockets' drops  |
//!        +--> CallRecord + AnswerRecord + LegReports, joined by call number --> faults
//! ```
//!
//! A run in which the lab itself was the bottleneck is invalid, and says why.

use std::collections::HashMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use net::rtp::{MediaAddresses, PortPool, PortRange};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::agent::EndpointSpec;
use crate::callee::{Callee, CalleeSpec, Readiness};
use crate::caller::Caller;
use crate::counters::Counters;
use crate::driver::{Driver, Until};
use crate::drops::Drops;
use crate::generator::{Generator, LegId, MediaHandle, MediaReport};
use crate::mark::MarkKey;
use crate::plan::{CallPlan, Expect};
use crate::record::{AnswerRecord, CallRecord, Ending};
use crate::stream::LegReport;
use crate::streams::LATE;
use crate::verdict::{CallEvidence, Fault, judge};
use crate::watch::{LoadSample, Watch};

/// What to run.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// The server's SIP address.
    pub server: SocketAddr,
    /// Its process, if it is to be watched.
    pub pid: Option<u32>,
    /// The calls.
    pub plan: Vec<CallPlan>,
    /// Callees and where they listen.
    pub callees: Vec<(SocketAddr, CalleeSpec)>,
    /// Address the caller calls from.
    pub caller: IpAddr,
    /// Addresses for media; nobody else's, so that drops can be told apart.
    pub media: MediaAddresses,
    /// Seed of the marks.
    pub seed: u64,
}

/// One call, joined and judged.
#[derive(Clone, Debug)]
pub struct CallOutcome {
    /// As its caller saw it.
    pub call: CallRecord,
    /// The caller's media.
    pub caller: Option<LegReport>,
    /// As its callee saw it.
    pub answer: Option<AnswerRecord>,
    /// The callee's media.
    pub callee: Option<LegReport>,
    /// What is not as planned.
    pub faults: Vec<Fault>,
}

/// Why a run says nothing about the server.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Invalid {
    /// The media thread fell behind: late frames, of all, and the worst.
    MediaLate(u64, u64, Duration),
    /// Calls were placed late: late ones, and the worst.
    CallsLate(u64, Duration),
    /// The kernel dropped datagrams at our own sockets.
    Dropped(u64),
    /// The kernel refused to send packets.
    NotSent(u64),
    /// Calls that found no RTP port, or no room in our own endpoint.
    NotPlaced(u64),
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ms = |time: &Duration| time.as_millis();
        match self {
            Self::MediaLate(late, of, worst) => write!(
                f,
                "the generator sent {late} of {of} frames {} ms or more late, at worst {} ms",
                LATE.as_millis(),
                ms(worst)
            ),
            Self::CallsLate(late, worst) => {
                write!(
                    f,
                    "the caller placed {late} calls late, at worst {} ms",
                    ms(worst)
                )
            }
            Self::Dropped(n) => write!(f, "the lab's own sockets dropped {n} datagrams"),
            Self::NotSent(n) => write!(f, "the kernel refused to send {n} packets"),
            Self::NotPlaced(n) => write!(f, "{n} calls found no port or no room in the lab"),
        }
    }
}

/// Share of frames that may be late, 1 in this many: an idle machine has single ones.
const LATE_ONE_IN: u64 = 100;

/// A call placed this long after it was due was placed late.
const PLACED_LATE: Duration = Duration::from_millis(100);

/// What came of it.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// Every call, by number.
    pub calls: Vec<CallOutcome>,
    /// Why the figures are void; empty when they are not.
    pub invalid: Vec<Invalid>,
    /// The server over time; empty when not watched.
    pub load: Vec<LoadSample>,
    /// From the first call's start to the last one's end.
    pub elapsed: Duration,
    /// The key of this run's marks.
    pub key: MarkKey,
}

impl RunOutcome {
    /// Calls with at least one fault.
    #[must_use]
    pub fn faulty(&self) -> usize {
        self.calls
            .iter()
            .filter(|call| !call.faults.is_empty())
            .count()
    }

    /// Whether all is as planned and the run is valid.
    #[must_use]
    pub fn is_good(&self) -> bool {
        self.faulty() == 0 && self.invalid.is_empty()
    }
}

/// How often a run looks at itself and at its progress.
const LOOK: Duration = Duration::from_millis(100);

/// How long a callee may take to register.
const REGISTER: Duration = Duration::from_secs(10);

/// Runs `spec`; `watching` is called about ten times a second with the counters.
///
/// # Errors
/// When sockets or threads cannot be had, the server's process cannot be watched, or a callee
/// cannot register. Calls that fail are no error: they are in the outcome.
pub fn run(spec: &RunSpec, mut watching: impl FnMut(&Counters)) -> anyhow::Result<RunOutcome> {
    raise_descriptors();
    let key = MarkKey::new(spec.seed);
    let mut drops = Drops::of(spec.media.as_slice());
    let pool = PortPool::new(spec.media.clone(), PortRange::default())?;
    let generator = Generator::start(key, pool).context("the media thread cannot start")?;
    let counters = Counters::default();
    let mut callees = Vec::new();
    for (n, (listen, callee)) in spec.callees.iter().enumerate() {
        let seed = seed_of(spec.seed, n as u64 + 1);
        callees.push(start_callee(
            *listen,
            callee.clone(),
            seed,
            generator.handle(),
        )?);
    }
    wait_until_ready(&callees)?;
    let watch = match spec.pid {
        Some(pid) => Some(
            Watch::start(pid, counters.up_shared())
                .with_context(|| format!("process {pid} cannot be watched"))?,
        ),
        None => None,
    };
    let started = Instant::now();
    let caller = start_caller(spec, generator.handle(), counters.clone())?;
    while !caller.is_finished() {
        std::thread::sleep(LOOK);
        drops.look().context("/proc/net/udp cannot be read")?;
        watching(&counters);
    }
    let elapsed = started.elapsed();
    let calls = caller.stop().into_records();
    let load = watch.map(Watch::stop).unwrap_or_default();
    let answers = callees
        .into_iter()
        .flat_map(|(driver, _)| driver.stop().into_records())
        .collect();
    let media = generator.stop();
    let invalid = validity(&calls, &media, drops.total());
    Ok(RunOutcome {
        calls: join(key, calls, answers, media),
        invalid,
        load,
        elapsed,
        key,
    })
}

/// A call takes two sockets, and the usual limit is 1,024: raises it as far as allowed. Without
/// that, calls find no port and the run is invalid.
fn raise_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    let _ = setrlimit(Resource::Nofile, raised);
}

type RunningCallee = (Driver<Callee<MediaHandle>>, Readiness);

fn start_callee(
    listen: SocketAddr,
    spec: CalleeSpec,
    seed: [u8; 32],
    media: MediaHandle,
) -> anyhow::Result<RunningCallee> {
    let mut readiness = None;
    let driver = Driver::start(listen, Until::Stopped, |local| {
        let callee = Callee::new(EndpointSpec::udp(local, seed), spec, media);
        readiness = Some(callee.readiness());
        callee
    });
    let driver = driver.with_context(|| format!("the callee cannot listen on {listen}"))?;
    let readiness = readiness.context("the callee was not made")?;
    Ok((driver, readiness))
}

fn start_caller(
    spec: &RunSpec,
    media: MediaHandle,
    counters: Counters,
) -> anyhow::Result<Driver<Caller<MediaHandle>>> {
    let seed = seed_of(spec.seed, 0);
    let local = SocketAddr::new(spec.caller, 0);
    Driver::start(local, Until::Idle, |local| {
        let endpoint = EndpointSpec::udp(local, seed);
        Caller::new(endpoint, spec.server, spec.plan.clone(), media, counters)
    })
    .with_context(|| format!("the caller cannot listen on {local}"))
}

fn wait_until_ready(callees: &[RunningCallee]) -> anyhow::Result<()> {
    let deadline = Instant::now() + REGISTER;
    for (_, readiness) in callees {
        while !readiness.is_ready()? {
            anyhow::ensure!(Instant::now() < deadline, "the registrar does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    Ok(())
}

/// A seed for one endpoint of a run. Tags, branches and Call-IDs must differ from those of a run
/// before with the same seed, or the server may rightly take its calls for repeated requests
/// (RFC 3261, 8.2.2.2); so the time goes in as well. What is said follows from the seed alone.
fn seed_of(seed: u64, n: u64) -> [u8; 32] {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&n.to_le_bytes());
    bytes[16..].copy_from_slice(&now.as_nanos().to_le_bytes());
    bytes
}

fn validity(calls: &[CallRecord], media: &MediaReport, dropped: u64) -> Vec<Invalid> {
    let mut invalid = Vec::new();
    let time = media.timeliness;
    if time.late * LATE_ONE_IN > time.frames {
        invalid.push(Invalid::MediaLate(time.late, time.frames, time.worst));
    }
    let lateness = calls.iter().map(|call| call.placed - call.intended);
    let late = lateness.clone().filter(|&late| late > PLACED_LATE).count() as u64;
    if late * LATE_ONE_IN > calls.len() as u64 {
        invalid.push(Invalid::CallsLate(late, lateness.max().unwrap_or_default()));
    }
    if dropped > 0 {
        invalid.push(Invalid::Dropped(dropped));
    }
    if media.send_errors + media.unattached > 0 {
        invalid.push(Invalid::NotSent(media.send_errors + media.unattached));
    }
    let ours = |call: &&CallRecord| matches!(call.ending, Ending::NoPort | Ending::NotPlaced);
    let not_placed = calls.iter().filter(ours).count() as u64;
    if not_placed > 0 {
        invalid.push(Invalid::NotPlaced(not_placed));
    }
    invalid
}

/// Brings both ends of each call together and judges it.
pub(crate) fn join(
    key: MarkKey,
    mut calls: Vec<CallRecord>,
    answers: Vec<AnswerRecord>,
    media: MediaReport,
) -> Vec<CallOutcome> {
    calls.sort_by_key(|call| call.plan.number);
    let mut legs: HashMap<LegId, LegReport> = media.legs.into_iter().collect();
    let mut answered: HashMap<u32, (AnswerRecord, Option<LegReport>)> = HashMap::new();
    for answer in answers {
        let leg = answer.leg.and_then(|leg| legs.remove(&leg));
        let number = answer
            .number
            .or_else(|| leg.as_ref().and_then(|leg| leg.call));
        if let Some(number) = number {
            answered.insert(number, (answer, leg));
        }
    }
    let sent: HashMap<u32, u64> = calls
        .iter()
        .filter_map(|call| Some((call.plan.number, legs.get(&call.leg?)?.sent)))
        .collect();
    let joined = calls.into_iter().map(|call| {
        let caller = call.leg.and_then(|leg| legs.remove(&leg));
        let (answer, callee) = match answered.remove(&call.plan.number) {
            Some((answer, leg)) => (Some(answer), leg),
            None => (None, None),
        };
        let earlier_sent = match call.plan.expect {
            Expect::Playback { of } => sent.get(&of).copied(),
            _ => None,
        };
        let faults = judge(
            key,
            &CallEvidence {
                call: &call,
                caller: caller.as_ref(),
                answer: answer.as_ref(),
                callee: callee.as_ref(),
                earlier_sent,
            },
        );
        CallOutcome {
            call,
            caller,
            answer,
            callee,
            faults,
        }
    });
    joined.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture;
    use crate::streams::Timeliness;

    fn call(number: u32, late: Duration, ending: Ending) -> CallRecord {
        let mut call = fixture::call(number, "echo", Expect::Refused(486), ending);
        call.placed += late;
        call
    }

    fn media(frames: u64, late: u64) -> MediaReport {
        MediaReport {
            timeliness: Timeliness {
                frames,
                late,
                worst: Duration::from_millis(80),
            },
            ..MediaReport::default()
        }
    }

    #[test]
    fn a_run_is_valid_unless_the_lab_was_the_bottleneck() {
        let good = [call(1, Duration::ZERO, Ending::Refused(486))];
        assert_eq!(validity(&good, &media(1000, 10), 0), []);
        assert_eq!(validity(&[], &MediaReport::default(), 0), []);
        let starved = Invalid::MediaLate(11, 1000, Duration::from_millis(80));
        assert_eq!(validity(&good, &media(1000, 11), 0), [starved]);
        assert_eq!(validity(&good, &media(1000, 0), 3), [Invalid::Dropped(3)]);
        let refused = MediaReport {
            send_errors: 2,
            ..media(1000, 0)
        };
        assert_eq!(validity(&good, &refused, 0), [Invalid::NotSent(2)]);
        let late = Duration::from_millis(150);
        let slow = [call(1, late, Ending::HungUp)];
        assert_eq!(
            validity(&slow, &media(10, 0), 0),
            [Invalid::CallsLate(1, late)]
        );
        let full = [call(1, Duration::ZERO, Ending::NoPort)];
        assert_eq!(validity(&full, &media(10, 0), 0), [Invalid::NotPlaced(1)]);
    }

    #[test]
    fn reasons_read_as_sentences() {
        let why = Invalid::MediaLate(11, 1000, Duration::from_millis(80)).to_string();
        let due = "the generator sent 11 of 1000 frames 20 ms or more late, at worst 80 ms";
        assert_eq!(why, due);
    }

    #[test]
    fn a_call_without_a_callee_is_joined_alone() {
        let calls = vec![
            call(2, Duration::ZERO, Ending::Refused(486)),
            call(1, Duration::ZERO, Ending::TimedOut),
        ];
        let joined = join(MarkKey::new(1), calls, vec![], MediaReport::default());
        let numbers: Vec<u32> = joined.iter().map(|call| call.call.plan.number).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(joined[0].faults, [Fault::Ended(Ending::TimedOut)]);
        assert_eq!(joined[1].faults, []);
    }
}
