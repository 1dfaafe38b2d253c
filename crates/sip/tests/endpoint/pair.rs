//! Two endpoints, a wire of 10 ms that can lose and double, and one clock.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use sip::{
    Config, Counts, Endpoint, Event, Flow, Framing, Incoming, Invite, Limits, Listener, Message,
    Transport, UsageId,
};

use crate::solo::{address, beginning, outgoing, sdp};

/// One of the two.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Side {
    /// 192.0.2.1, which calls.
    A,
    /// 192.0.2.20, which is called.
    B,
}

impl Side {
    fn other(self) -> Self {
        match self {
            Self::A => Self::B,
            Self::B => Self::A,
        }
    }

    fn address(self) -> std::net::SocketAddr {
        match self {
            Self::A => address("192.0.2.1:5060"),
            Self::B => address("192.0.2.20:5060"),
        }
    }
}

/// What the wire does to a message.
#[derive(Copy, Clone, Debug, Eq, PartialEq)]
pub(crate) enum Fate {
    Pass,
    Lose,
    Double,
}

/// Decides about each message: sender, its kind (`INVITE`, `200 INVITE`), how many of that kind came before.
type Wire = Box<dyn FnMut(Side, &str, usize) -> Fate>;

pub(crate) struct Pair {
    ends: [Endpoint; 2],
    pub(crate) now: Instant,
    begin: Instant,
    transport: Transport,
    in_flight: VecDeque<(Instant, Side, std::sync::Arc<[u8]>)>,
    wire: Wire,
    /// Sender and kind of every message, in order.
    pub(crate) log: Vec<(u64, Side, String)>,
    inbox: [VecDeque<Event>; 2],
}

impl Pair {
    pub(crate) fn new() -> Self {
        Self::over(Transport::Udp)
    }

    pub(crate) fn over(transport: Transport) -> Self {
        let begin = beginning();
        let end = |side: Side| {
            let local = side.address();
            let listeners = vec![Listener {
                transport,
                local,
                advertised: None,
            }];
            Endpoint::new(
                Config {
                    listeners,
                    ..Config::default()
                },
                [side as u8 + 1; 32],
            )
        };
        Self {
            ends: [end(Side::A), end(Side::B)],
            now: begin,
            begin,
            transport,
            in_flight: VecDeque::new(),
            wire: Box::new(|_, _, _| Fate::Pass),
            log: Vec::new(),
            inbox: Default::default(),
        }
    }

    pub(crate) fn wire(mut self, wire: impl FnMut(Side, &str, usize) -> Fate + 'static) -> Self {
        self.wire = Box::new(wire);
        self
    }

    pub(crate) fn end(&mut self, side: Side) -> &mut Endpoint {
        &mut self.ends[side as usize]
    }

    /// Milliseconds since the beginning.
    pub(crate) fn ms(&self, at: Instant) -> u64 {
        u64::try_from((at - self.begin).as_millis()).expect("a short test")
    }

    /// Puts what the ends have to say on the wire and into the inboxes.
    pub(crate) fn pump(&mut self) {
        for side in [Side::A, Side::B] {
            while let Some(transmit) = self.end(side).poll_transmit() {
                assert_eq!(transmit.remote, side.other().address(), "goes to the other");
                self.send(side, &transmit.bytes);
            }
            while let Some(event) = self.end(side).poll_event() {
                self.inbox[side as usize].push_back(event);
            }
        }
    }

    fn send(&mut self, side: Side, bytes: &std::sync::Arc<[u8]>) {
        let kind = kind(bytes);
        let before = self
            .log
            .iter()
            .filter(|(_, s, k)| *s == side && *k == kind)
            .count();
        let at = self.ms(self.now);
        let copies = match (self.wire)(side, &kind, before) {
            Fate::Lose => 0,
            Fate::Pass => 1,
            Fate::Double => 2,
        };
        self.log.push((at, side, kind));
        let arrival = self.now + Duration::from_millis(10);
        for _ in 0..copies {
            self.in_flight
                .push_back((arrival, side.other(), bytes.clone()));
        }
    }

    /// The next thing that happens, not later than `end`; false when nothing does.
    fn step(&mut self, end: Instant) -> bool {
        self.pump();
        let arrival = self.in_flight.front().map(|(at, _, _)| *at);
        let timers = [Side::A, Side::B].map(|side| self.end(side).poll_timeout());
        let next = timers.into_iter().flatten().chain(arrival).min();
        let Some(next) = next.filter(|at| *at <= end) else {
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let (_, side, bytes) = self.in_flight.pop_front().expect("looked at before");
            let (local, remote) = (side.address(), side.other().address());
            let connection = u64::from(self.transport.is_reliable());
            let flow = Flow {
                transport: self.transport,
                local,
                remote,
                connection,
            };
            let now = self.now;
            self.end(side).handle_message(now, flow, &bytes);
        } else {
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
        }
        self.pump();
        true
    }

    pub(crate) fn run_for(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        while self.step(end) {}
        self.now = end;
    }

    /// The next event of a side, however long it takes.
    pub(crate) fn next(&mut self, side: Side) -> Event {
        let end = self.now + Duration::from_secs(300);
        loop {
            self.pump();
            if let Some(event) = self.inbox[side as usize].pop_front() {
                return event;
            }
            assert!(self.step(end), "no event for {side:?}: {:#?}", self.log);
        }
    }

    pub(crate) fn events(&mut self, side: Side) -> Vec<Event> {
        self.pump();
        self.inbox[side as usize].drain(..).collect()
    }

    /// How often a side sent a message of that kind.
    pub(crate) fn sent(&self, side: Side, kind: &str) -> usize {
        self.log
            .iter()
            .filter(|(_, s, k)| *s == side && k == kind)
            .count()
    }

    /// Asserts that after every timer nothing is left.
    pub(crate) fn drained(&mut self) {
        self.run_for(300_000);
        for side in [Side::A, Side::B] {
            self.events(side);
            let counts = self.end(side).counts();
            assert_eq!(counts, Counts::default(), "{side:?}: {:#?}", self.log);
        }
    }

    /// A calls B; gives both usages.
    pub(crate) fn call(&mut self) -> (UsageId, UsageId) {
        let invite = Invite {
            to: "<sip:bob@192.0.2.20>".to_owned(),
            ..outgoing()
        };
        let invite = match self.transport {
            Transport::Udp => invite,
            _ => Invite {
                request_uri: "sip:bob@192.0.2.20;transport=tcp".to_owned(),
                ..invite
            },
        };
        let now = self.now;
        let a = self
            .end(Side::A)
            .invite(now, invite)
            .expect("a call is possible");
        match self.next(Side::B) {
            Event::Invite { usage, .. } => (a, usage),
            other => panic!("another event: {other:?}"),
        }
    }

    pub(crate) fn ring(&mut self, b: UsageId) {
        let now = self.now;
        let none = Vec::new();
        self.end(Side::B)
            .provisional(now, b, 180, None, none, None)
            .expect("still open");
    }

    pub(crate) fn accept(&mut self, b: UsageId) {
        let now = self.now;
        self.end(Side::B)
            .accept(now, b, Vec::new(), Some(sdp()))
            .expect("still open");
    }

    /// A calls B, who rings and answers; A acknowledges.
    pub(crate) fn established(&mut self) -> (UsageId, UsageId) {
        let (a, b) = self.call();
        self.ring(b);
        self.run_for(1_000);
        self.accept(b);
        loop {
            match self.next(Side::A) {
                Event::Provisional { code: 180, .. } => {}
                Event::Answered { usage, .. } if usage == a => break,
                other => panic!("another event: {other:?}"),
            }
        }
        let now = self.now;
        self.end(Side::A).ack(now, a, None);
        match self.next(Side::B) {
            Event::Acked { usage, .. } if usage == b => (a, b),
            other => panic!("another event: {other:?}"),
        }
    }

    pub(crate) fn bye(&mut self, side: Side, usage: UsageId) {
        let now = self.now;
        self.end(side).bye(now, usage, Vec::new());
    }
}

/// `INVITE`, or `200 INVITE` for a response.
fn kind(bytes: &std::sync::Arc<[u8]>) -> String {
    let message: Incoming =
        Message::parse(bytes.clone(), Framing::Stream, &Limits::default()).expect("ours");
    let method = message.cseq().expect("ours").method;
    match message.status() {
        Some(code) => format!("{code} {method}"),
        None => method.as_str().to_owned(),
    }
}
