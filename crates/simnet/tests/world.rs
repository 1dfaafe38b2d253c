//! The world by itself: two hosts that count, and what links and filters do to their datagrams.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use simnet::{Datagram, Fate, Filter, LinkModel, Machine, Nth, Stop, Verdict, World, ladder};

const A: &str = "192.0.2.1:5060";
const B: &str = "192.0.2.2:5060";

/// Some moment; no test looks at which.
#[expect(
    clippy::disallowed_methods,
    reason = "an Instant can be had from the clock alone"
)]
fn epoch() -> Instant {
    Instant::now()
}

/// Sends `0`, `1`, ... at a fixed interval; keeps what it gets.
struct Counter {
    address: SocketAddr,
    peer: SocketAddr,
    interval: Duration,
    left: u8,
    next: Option<Instant>,
    number: u8,
    got: Vec<(Instant, u8)>,
    unreachable: usize,
}

impl Counter {
    fn new(address: &str, peer: &str, start: Instant, count: u8) -> Self {
        Self {
            address: address.parse().unwrap(),
            peer: peer.parse().unwrap(),
            interval: Duration::from_millis(10),
            left: count,
            next: (count > 0).then_some(start),
            number: 0,
            got: Vec::new(),
            unreachable: 0,
        }
    }

    fn numbers(&self) -> Vec<u8> {
        self.got.iter().map(|(_, number)| *number).collect()
    }
}

impl Machine for Counter {
    fn handle_datagram(&mut self, now: Instant, _: SocketAddr, _: SocketAddr, bytes: &[u8]) {
        self.got.push((now, bytes[0]));
    }

    fn handle_timeout(&mut self, _: Instant) {}

    fn poll_timeout(&self) -> Option<Instant> {
        self.next
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        let due = self.next.filter(|at| *at <= now)?;
        self.left -= 1;
        self.next = (self.left > 0).then_some(due + self.interval);
        let bytes = Arc::from([self.number].as_slice());
        self.number += 1;
        Some(Datagram {
            from: self.address,
            to: self.peer,
            bytes,
        })
    }

    fn handle_unreachable(&mut self, _: Instant, _: SocketAddr, _: SocketAddr) {
        self.unreachable += 1;
    }
}

/// A deadline that never moves on.
struct Stuck(Instant);

impl Machine for Stuck {
    fn handle_datagram(&mut self, _: Instant, _: SocketAddr, _: SocketAddr, _: &[u8]) {}
    fn handle_timeout(&mut self, _: Instant) {}
    fn poll_timeout(&self) -> Option<Instant> {
        Some(self.0)
    }
    fn poll_transmit(&mut self, _: Instant) -> Option<Datagram> {
        None
    }
}

fn pair(seed: u64, count: u8, link: LinkModel) -> (World<Counter>, simnet::HostId, simnet::HostId) {
    let start = epoch();
    let mut world = World::new(start, seed);
    world.set_default_link(link);
    // The receiver first, so that the sender's first datagram finds it.
    let b = world.add("b", Counter::new(B, A, start, 0), [B.parse().unwrap()]);
    let a = world.add("a", Counter::new(A, B, start, count), [A.parse().unwrap()]);
    (world, a, b)
}

fn number(n: u8) -> impl Fn(&Datagram) -> bool {
    move |datagram| datagram.bytes[0] == n
}

#[test]
fn a_perfect_link_delivers_everything_after_its_delay() {
    let (mut world, a, b) = pair(1, 5, LinkModel::with_delay(Duration::from_millis(3)));
    let start = world.now();
    assert_eq!(world.run_to_idle(Duration::from_secs(10)), Stop::Idle);
    let expected: Vec<_> = (0..5_u8)
        .map(|n| (start + Duration::from_millis(3 + 10 * u64::from(n)), n))
        .collect();
    assert_eq!(world.host(b).got, expected);
    assert!(world.host(a).got.is_empty());
}

#[test]
fn the_same_seed_gives_the_same_trace_and_another_seed_another() {
    let link = LinkModel::with_delay(Duration::from_millis(20))
        .jittery(Duration::from_millis(30))
        .lossy(0.2)
        .duplicating(0.2)
        .reordering(0.2, Duration::from_millis(50));
    let run = |seed| {
        let (mut world, _, b) = pair(seed, 200, link);
        assert_eq!(world.run_to_idle(Duration::from_secs(60)), Stop::Idle);
        let numbers = world.host(b).numbers();
        (world.trace().clone(), numbers)
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).1, run(8).1);
}

#[test]
fn jitter_alone_never_reorders() {
    let link = LinkModel::with_delay(Duration::from_millis(1)).jittery(Duration::from_millis(200));
    let (mut world, _, b) = pair(3, 250, link);
    assert_eq!(world.run_to_idle(Duration::from_secs(60)), Stop::Idle);
    assert_eq!(world.host(b).numbers(), (0..250).collect::<Vec<u8>>());
}

#[test]
fn a_reordering_link_lets_later_datagrams_pass() {
    let link = LinkModel::default().reordering(0.3, Duration::from_millis(25));
    let (mut world, _, b) = pair(4, 100, link);
    assert_eq!(world.run_to_idle(Duration::from_secs(60)), Stop::Idle);
    let mut numbers = world.host(b).numbers();
    assert!(!numbers.is_sorted());
    numbers.sort_unstable();
    assert_eq!(
        numbers,
        (0..100).collect::<Vec<u8>>(),
        "nothing lost, nothing doubled"
    );
}

#[test]
fn a_filter_drops_the_nth_match_and_says_so() {
    let (mut world, a, b) = pair(5, 6, LinkModel::default());
    let third = Filter::new(Verdict::Drop, |d| d.bytes[0] > 0)
        .nth(Nth::One(3))
        .from(a)
        .to(b);
    let third = world.filter(third);
    let never = world.filter(Filter::new(Verdict::Drop, number(5)).from(b));
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::Idle);
    assert_eq!(world.host(b).numbers(), [0, 1, 2, 4, 5]);
    assert_eq!((world.filter_hits(third), world.filter_hits(never)), (1, 0));
    let fates: Vec<_> = world
        .trace()
        .sent()
        .filter(|(_, s)| s.fate == Fate::Filtered)
        .collect();
    assert_eq!(fates.len(), 1);
}

#[test]
fn a_filter_delays_or_doubles_what_it_takes() {
    let (mut world, ..) = pair(6, 3, LinkModel::default());
    let _ = world.filter(Filter::new(
        Verdict::Delay(Duration::from_millis(15)),
        number(0),
    ));
    let _ = world.filter(Filter::new(
        Verdict::Duplicate(Duration::from_millis(5)),
        number(1),
    ));
    // The first datagram left when its host was added; start over with the filters in place.
    let start = world.now();
    let b2 = "192.0.2.22:5060";
    let b = world.add("b2", Counter::new(b2, A, start, 0), [b2.parse().unwrap()]);
    let a2 = "192.0.2.11:5060";
    let _ = world.add("a2", Counter::new(a2, b2, start, 3), [a2.parse().unwrap()]);
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::Idle);
    assert_eq!(world.host(b).numbers(), [1, 0, 1, 2]);
}

#[test]
fn nobody_at_an_address_comes_back_as_unreachable() {
    let start = epoch();
    let mut world = World::new(start, 1);
    let a = world.add("a", Counter::new(A, B, start, 2), [A.parse().unwrap()]);
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::Idle);
    assert_eq!(world.host(a).unreachable, 2);
}

#[test]
fn a_host_that_is_down_neither_hears_nor_speaks() {
    let (mut world, a, b) = pair(1, 10, LinkModel::default());
    world.at(Duration::from_millis(35), b, |_, _| {});
    assert_eq!(
        world.run_until(Duration::from_secs(1), |w| w.host(b).got.len() == 3),
        Stop::Met
    );
    world.set_up(b, false);
    assert_eq!(world.run_for(Duration::from_millis(30)), Stop::TimeUp);
    world.set_up(b, true);
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::Idle);
    let got = world.host(b).numbers();
    assert_eq!((got.len(), got[0], got[got.len() - 1]), (7, 0, 9));
    world.set_up(a, false);
    world.with(a, |counter, now| {
        (counter.left, counter.next) = (1, Some(now));
    });
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::Idle);
    assert_eq!(world.host(b).got.len(), 7);
}

#[test]
fn planned_actions_run_at_their_time_and_the_clock_ends_where_asked() {
    let (mut world, a, b) = pair(1, 0, LinkModel::default());
    world.at(Duration::from_millis(70), a, |counter, now| {
        (counter.left, counter.next) = (1, Some(now));
    });
    assert_eq!(world.run_for(Duration::from_millis(50)), Stop::TimeUp);
    assert!(world.host(b).got.is_empty());
    assert_eq!(world.run_for(Duration::from_millis(50)), Stop::Idle);
    assert_eq!(world.elapsed(), Duration::from_millis(100));
    assert_eq!(world.host(b).numbers(), [0]);
}

#[test]
fn an_endless_run_is_stopped() {
    let start = epoch();
    let mut world = World::new(start, 1);
    world.set_step_limit(1_000);
    let _ = world.add("stuck", Stuck(start), []);
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::StepLimit);
}

#[test]
fn the_ladder_shows_arrows_losses_and_notes() {
    let (mut world, a, b) = pair(1, 2, LinkModel::default());
    let _ = world.filter(Filter::new(Verdict::Drop, number(1)));
    assert_eq!(world.run_to_idle(Duration::from_secs(1)), Stop::Idle);
    world.note(a, "is done");
    world.note(b, "sleeps");
    let drawn = ladder::draw(&world, |d| format!("NUMBER {}", d.bytes[0]));
    let expected = [
        "      seconds  b               a",
        "        0.000  |<-- NUMBER 0 --|",
        "        0.010  | x- NUMBER 1 --|   dropped by the test",
        "        0.010  |               * is done",
        "        0.010  * sleeps",
    ];
    assert_eq!(drawn.lines().collect::<Vec<_>>(), expected, "\n{drawn}");
}
