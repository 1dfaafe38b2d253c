//! Caller against callee in memory: the lab tested without any server and without waiting.
//!
//! Both endpoints and all streams run on one simulated clock; a fault is planted on the wire,
//! and the verdict must name it.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use net::rtp::PoolError;
use sip::{Flow, Transport};

use crate::agent::{Agent, EndpointSpec};
use crate::callee::{Callee, CalleeSpec};
use crate::caller::Caller;
use crate::counters::Counters;
use crate::generator::{LegId, MediaPlane, MediaReport, OpenLeg};
use crate::law::Law;
use crate::mark::{MarkKey, Side};
use crate::plan::{CallPlan, Expect, constant_rate};
use crate::record::Ending;
use crate::run::{CallOutcome, join};
use crate::stream::{Agreement, LegReport, StreamSpec};
use crate::streams::Streams;
use crate::verdict::Fault;

const KEY: u64 = 77;
const CALLER: ([u8; 4], u16) = ([127, 0, 0, 1], 5070);
const CALLEE: ([u8; 4], u16) = ([127, 0, 0, 1], 5090);

/// All media of both sides; a leg's port number is its UDP port.
struct Media {
    now: Instant,
    streams: Streams,
    next_port: u16,
    closed: Vec<(LegId, LegReport)>,
}

#[derive(Clone)]
struct Plane(Rc<RefCell<Media>>);

impl MediaPlane for Plane {
    fn open(&mut self, spec: StreamSpec) -> Result<OpenLeg, PoolError> {
        let media = &mut *self.0.borrow_mut();
        let port = media.next_port;
        media.next_port += 2;
        media.streams.open(port.into(), spec);
        Ok(OpenLeg {
            id: LegId::new(port.into(), port.into()),
            address: SocketAddr::from(([127, 0, 0, 1], port)),
        })
    }

    fn start(&mut self, leg: LegId, agreed: Agreement) {
        let media = &mut *self.0.borrow_mut();
        media.streams.start(media.now, leg.port(), agreed);
    }

    fn finish(&mut self, leg: LegId) {
        self.0.borrow_mut().streams.finish(leg.port());
    }

    fn close(&mut self, leg: LegId) {
        let media = &mut *self.0.borrow_mut();
        let report = media.streams.close(leg.port());
        media.closed.extend(report.map(|report| (leg, report)));
    }
}

/// What becomes of an RTP packet: where it comes out, if anywhere.
type RtpFault = fn(n: u64, to: u16) -> Option<u16>;

/// A wire that takes 1 ms for SIP and nothing for RTP.
struct Wire {
    media: Rc<RefCell<Media>>,
    fault: RtpFault,
    carried: u64,
    sip: VecDeque<(Instant, SocketAddr, SocketAddr, Vec<u8>)>,
    /// Drops these SIP datagrams, counted from 0.
    lose: Vec<u64>,
    sent: u64,
}

impl Wire {
    fn take_sip(&mut self, now: Instant, from: SocketAddr, agent: &mut dyn Agent) {
        while let Some(transmit) = agent.endpoint().poll_transmit() {
            if !self.lose.contains(&self.sent) {
                let at = now + Duration::from_millis(1);
                self.sip
                    .push_back((at, from, transmit.remote, transmit.bytes.to_vec()));
            }
            self.sent += 1;
        }
    }

    fn carry_rtp(&mut self, now: Instant) {
        let media = &mut *self.media.borrow_mut();
        media.now = now;
        let (mut wire, fault) = (Vec::new(), self.fault);
        media.streams.handle_timeout(now, |_, to, packet| {
            wire.extend(fault(self.carried, to.port()).map(|port| (port, packet.to_vec())));
            self.carried += 1;
            true
        });
        for (port, packet) in wire {
            media.streams.handle_packet(now, port.into(), &packet);
        }
    }

    fn due(&self) -> Option<Instant> {
        let rtp = self.media.borrow().streams.poll_timeout();
        self.sip
            .front()
            .map(|&(at, ..)| at)
            .into_iter()
            .chain(rtp)
            .min()
    }
}

struct Setting {
    calls: u32,
    expect: Expect,
    laws: Vec<Law>,
    fault: RtpFault,
    lose: Vec<u64>,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            calls: 4,
            expect: Expect::Peer,
            laws: vec![Law::A],
            fault: |_, to| Some(to),
            lose: vec![],
        }
    }
}

fn play(setting: Setting) -> Vec<CallOutcome> {
    let start = Instant::now();
    let media = Rc::new(RefCell::new(Media {
        now: start,
        streams: Streams::new(MarkKey::new(KEY)),
        next_port: 20_000,
        closed: Vec::new(),
    }));
    let plan = |n| CallPlan {
        number: n,
        user: "uas".into(),
        at: constant_rate(50.0, n),
        talk: Duration::from_secs(1),
        linger: Duration::from_millis(300),
        law: Law::A,
        expect: setting.expect.clone(),
    };
    let [caller_at, callee_at] = [CALLER, CALLEE].map(SocketAddr::from);
    let counters = Counters::default();
    let mut caller = Caller::new(
        EndpointSpec::udp(caller_at, [1; 32]),
        callee_at,
        (0..setting.calls).map(plan).collect(),
        Plane(Rc::clone(&media)),
        counters.clone(),
    );
    let spec = CalleeSpec {
        laws: setting.laws,
        ring: Duration::from_millis(20),
        register: None,
    };
    let endpoint = EndpointSpec::udp(callee_at, [2; 32]);
    let mut callee = Callee::new(endpoint, spec, Plane(Rc::clone(&media)));
    let mut wire = Wire {
        media: Rc::clone(&media),
        fault: setting.fault,
        carried: 0,
        sip: VecDeque::new(),
        lose: setting.lose,
        sent: 0,
    };
    let agents: [(SocketAddr, &mut dyn Agent); 2] =
        [(caller_at, &mut caller), (callee_at, &mut callee)];
    drive(start, agents, &mut wire);
    assert_eq!(
        (counters.up(), counters.ended()),
        (0, u64::from(setting.calls))
    );
    let (calls, answers) = (caller.into_records(), callee.into_records());
    let media = media.replace(Media {
        now: start,
        streams: Streams::new(MarkKey::new(KEY)),
        next_port: 0,
        closed: Vec::new(),
    });
    assert!(media.streams.is_empty(), "every leg is closed");
    let report = MediaReport {
        legs: media.closed,
        ..MediaReport::default()
    };
    join(MarkKey::new(KEY), calls, answers, report)
}

/// Runs all until they are idle, at most two simulated minutes.
fn drive(start: Instant, mut agents: [(SocketAddr, &mut dyn Agent); 2], wire: &mut Wire) {
    let mut now = start;
    while now < start + Duration::from_secs(120) {
        while let Some((_, from, to, bytes)) = wire.sip.pop_front_if(|(at, ..)| *at <= now) {
            let flow = Flow {
                transport: Transport::Udp,
                local: to,
                remote: from,
                connection: 0,
            };
            for (_, agent) in agents.iter_mut().filter(|(at, _)| *at == to) {
                agent.endpoint().handle_message(now, flow, &bytes);
                agent.handle_events(now);
            }
        }
        for (at, agent) in &mut agents {
            agent.endpoint().handle_timeout(now);
            agent.handle_events(now);
            agent.handle_due(now);
            wire.take_sip(now, *at, &mut **agent);
        }
        wire.carry_rtp(now);
        if agents.iter().all(|(_, agent)| agent.is_idle()) {
            return;
        }
        let due = agents
            .iter_mut()
            .flat_map(|(_, agent)| [agent.endpoint().poll_timeout(), agent.due()]);
        let next = due.chain([wire.due()]).flatten().min();
        now = next.expect("somebody waits for something").max(now);
    }
    panic!("the calls did not end");
}

fn faults(outcomes: &[CallOutcome]) -> Vec<&Fault> {
    outcomes
        .iter()
        .flat_map(|outcome| &outcome.faults)
        .collect()
}

#[test]
fn calls_without_a_fault_have_no_fault() {
    let outcomes = play(Setting::default());
    assert_eq!(faults(&outcomes), [] as [&Fault; 0]);
    for outcome in &outcomes {
        let [caller, callee] =
            [&outcome.caller, &outcome.callee].map(|leg| leg.as_ref().expect("a leg"));
        // 1 s of frames, the one at its end, and three that say so.
        assert!((50..=54).contains(&caller.sent), "{}", caller.sent);
        assert_eq!(
            (caller.sent, callee.sent),
            (callee.received, caller.received)
        );
        assert_eq!(outcome.call.set_up(), Some(Duration::from_millis(22)));
        assert!(outcome.call.ringing.is_some() && outcome.call.ending == Ending::HungUp);
        let answer = outcome.answer.as_ref().expect("it was answered");
        assert_eq!(answer.ending, Ending::HungUpByPeer);
    }
}

#[test]
fn tones_are_heard_both_ways() {
    let outcomes = play(Setting {
        expect: Expect::TonePeer {
            caller_hz: 440.0,
            callee_hz: 660.0,
        },
        ..Setting::default()
    });
    assert_eq!(faults(&outcomes), [] as [&Fault; 0]);
}

#[test]
fn a_law_that_is_not_offered_is_refused() {
    let outcomes = play(Setting {
        laws: vec![Law::Mu],
        ..Setting::default()
    });
    assert_eq!(faults(&outcomes), [&Fault::Ended(Ending::Refused(488)); 4]);
}

#[test]
fn lost_sip_messages_are_repeated_and_harm_nothing() {
    let outcomes = play(Setting {
        calls: 1,
        // The INVITE, the 100 and the ACK.
        lose: vec![0, 2, 5],
        ..Setting::default()
    });
    assert_eq!(faults(&outcomes), [] as [&Fault; 0]);
}

#[test]
fn a_lost_packet_is_named_at_the_end_that_misses_it() {
    let outcomes = play(Setting {
        calls: 1,
        fault: |n, to| (n != 30).then_some(to),
        ..Setting::default()
    });
    let names = |fault: &&Fault| {
        matches!(
            fault,
            Fault::Sequence(..) | Fault::Lost(..) | Fault::Heard(..)
        )
    };
    assert_eq!(
        faults(&outcomes)
            .iter()
            .filter(|fault| names(fault))
            .count(),
        3
    );
}

#[test]
fn swapped_parties_are_named() {
    // Legs are opened in pairs: 20000 and 20002 are the first call's, 20004 and 20006 the next's.
    let outcomes = play(Setting {
        fault: |_, to| Some(to ^ 4),
        ..Setting::default()
    });
    let wrong = |fault: &&Fault| matches!(fault, Fault::Heard(_, heard) if heard.wrong_party > 0);
    assert!(
        outcomes
            .iter()
            .all(|outcome| outcome.faults.iter().any(|fault| wrong(&fault)))
    );
}

#[test]
fn one_way_audio_is_named_at_the_deaf_side() {
    let outcomes = play(Setting {
        calls: 1,
        fault: |_, to| (to != 20_000).then_some(to),
        ..Setting::default()
    });
    let deaf = |side| {
        let found = faults(&outcomes);
        found
            .iter()
            .any(|fault| matches!(fault, Fault::Lost(of, _, 0) if *of == side))
    };
    assert!(deaf(Side::Caller) && !deaf(Side::Callee));
}
