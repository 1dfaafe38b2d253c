//! The world: hosts, links, one clock, and the loop that moves it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use rand_chacha::ChaCha8Rng;
use rand_core::SeedableRng;

use crate::filter::{Filter, FilterId, Verdict};
use crate::link::LinkModel;
use crate::machine::{Datagram, Machine};
use crate::queue::Queue;
use crate::trace::{Entry, Fate, Sent, Trace};

/// A host of a world; columns of the ladder stand in this order.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct HostId(pub(crate) usize);

/// Why a run stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[must_use]
pub enum Stop {
    /// The condition holds.
    Met,
    /// The time given is over.
    TimeUp,
    /// Nothing is on its way, nothing is planned, and no host has a deadline.
    Idle,
    /// Too many events: somebody answers itself for ever, or a deadline never moves on.
    StepLimit,
}

/// What a test does with a machine at a planned time.
type Act<M> = Box<dyn FnOnce(&mut M, Instant)>;

/// Something that will happen.
enum Happening<M> {
    Arrival { host: HostId, datagram: Datagram },
    Unreachable { host: HostId, datagram: Datagram },
    Action { host: HostId, act: Act<M> },
}

struct Host<M> {
    name: String,
    machine: M,
    /// Whether datagrams and timers reach it.
    up: bool,
}

/// A simulated network of machines of one type; use an enum or a box to mix several.
pub struct World<M> {
    epoch: Instant,
    now: Duration,
    rng: ChaCha8Rng,
    hosts: Vec<Host<M>>,
    addresses: BTreeMap<SocketAddr, HostId>,
    default_link: LinkModel,
    links: BTreeMap<(HostId, HostId), LinkModel>,
    /// When the latest in-order datagram of a direction arrives: later ones don't pass it.
    in_order: BTreeMap<(HostId, HostId), Duration>,
    filters: Vec<Filter>,
    queue: Queue<Happening<M>>,
    trace: Trace,
    step_limit: usize,
}

/// Events that one run may take before it is called endless.
const DEFAULT_STEP_LIMIT: usize = 1_000_000;

impl<M: Machine> World<M> {
    /// A world without hosts. `epoch` is its time zero; `seed` decides what links do.
    #[must_use]
    pub fn new(epoch: Instant, seed: u64) -> Self {
        Self {
            epoch,
            now: Duration::ZERO,
            rng: ChaCha8Rng::seed_from_u64(seed),
            hosts: Vec::new(),
            addresses: BTreeMap::new(),
            default_link: LinkModel::default(),
            links: BTreeMap::new(),
            in_order: BTreeMap::new(),
            filters: Vec::new(),
            queue: Queue::new(),
            trace: Trace::default(),
            step_limit: DEFAULT_STEP_LIMIT,
        }
    }

    /// Adds a host that owns these addresses.
    ///
    /// # Panics
    /// When another host has one of them already.
    pub fn add(
        &mut self,
        name: impl Into<String>,
        machine: M,
        addresses: impl IntoIterator<Item = SocketAddr>,
    ) -> HostId {
        let id = HostId(self.hosts.len());
        for address in addresses {
            let before = self.addresses.insert(address, id);
            assert!(before.is_none(), "{address} belongs to two hosts");
        }
        self.hosts.push(Host {
            name: name.into(),
            machine,
            up: true,
        });
        self.drain(id);
        id
    }

    /// Sets the direction between every two hosts that have no link of their own.
    pub fn set_default_link(&mut self, model: LinkModel) {
        self.default_link = model;
    }

    /// Sets one direction.
    pub fn link_one_way(&mut self, from: HostId, to: HostId, model: LinkModel) {
        self.links.insert((from, to), model);
    }

    /// Sets both directions.
    pub fn link(&mut self, a: HostId, b: HostId, model: LinkModel) {
        self.link_one_way(a, b, model);
        self.link_one_way(b, a, model);
    }

    /// Adds a filter; those added earlier are asked first, and one verdict is enough.
    pub fn filter(&mut self, filter: Filter) -> FilterId {
        self.filters.push(filter);
        FilterId(self.filters.len() - 1)
    }

    /// How many datagrams a filter has taken. A test that means to lose something asserts that it
    /// did.
    #[must_use]
    pub fn filter_hits(&self, id: FilterId) -> usize {
        self.filters[id.0].hits()
    }

    /// Stops a host for good or for a while: what is sent to it is lost, its timers stand still.
    pub fn set_up(&mut self, host: HostId, up: bool) {
        self.hosts[host.0].up = up;
    }

    /// Bounds the events of each run.
    pub fn set_step_limit(&mut self, limit: usize) {
        self.step_limit = limit;
    }

    /// Time since the epoch.
    #[must_use]
    pub fn elapsed(&self) -> Duration {
        self.now
    }

    /// The simulated clock.
    #[must_use]
    pub fn now(&self) -> Instant {
        self.epoch + self.now
    }

    /// The machine of a host.
    #[must_use]
    pub fn host(&self, id: HostId) -> &M {
        &self.hosts[id.0].machine
    }

    /// Every host with its name.
    pub fn hosts(&self) -> impl Iterator<Item = (HostId, &str)> {
        self.hosts
            .iter()
            .enumerate()
            .map(|(index, host)| (HostId(index), host.name.as_str()))
    }

    /// Does something with a machine now, and sends what comes of it.
    pub fn with<R>(&mut self, id: HostId, act: impl FnOnce(&mut M, Instant) -> R) -> R {
        let now = self.now();
        let result = act(&mut self.hosts[id.0].machine, now);
        self.drain(id);
        result
    }

    /// Plans to do something with a machine, `at` being time since the epoch (at once when past).
    pub fn at(&mut self, at: Duration, host: HostId, act: impl FnOnce(&mut M, Instant) + 'static) {
        self.queue.push(
            at.max(self.now),
            Happening::Action {
                host,
                act: Box::new(act),
            },
        );
    }

    /// Writes a line into the trace.
    pub fn note(&mut self, host: HostId, text: impl Into<String>) {
        self.trace.push(self.now, Entry::Note(host, text.into()));
    }

    /// Everything sent so far.
    #[must_use]
    pub fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Events that are planned or on their way; deadlines of hosts not counted.
    #[must_use]
    pub fn pending(&self) -> usize {
        self.queue.len()
    }

    /// Runs until a condition holds, looked at before every event, for at most `limit`.
    pub fn run_until(&mut self, limit: Duration, mut condition: impl FnMut(&Self) -> bool) -> Stop {
        let end = self.now + limit;
        for _ in 0..self.step_limit {
            if condition(self) {
                return Stop::Met;
            }
            match self.next_event() {
                None => return Stop::Idle,
                Some(at) if at > end => {
                    self.now = end;
                    return Stop::TimeUp;
                }
                Some(at) => self.step(at),
            }
        }
        Stop::StepLimit
    }

    /// Runs for so long; the clock stands at the end of that time even when nothing happens.
    pub fn run_for(&mut self, time: Duration) -> Stop {
        let end = self.now + time;
        let stop = self.run_until(time, |_| false);
        if stop == Stop::Idle {
            self.now = end;
        }
        stop
    }

    /// Runs until nothing will ever happen again, for at most `limit`.
    pub fn run_to_idle(&mut self, limit: Duration) -> Stop {
        self.run_until(limit, |_| false)
    }

    /// When the next event is: planned, on its way, or a host's deadline.
    fn next_event(&self) -> Option<Duration> {
        let deadlines = self.hosts.iter().filter(|host| host.up);
        deadlines
            .filter_map(|host| host.machine.poll_timeout())
            .map(|at| at.saturating_duration_since(self.epoch).max(self.now))
            .chain(self.queue.peek())
            .min()
    }

    /// Moves the clock to `at` and lets one thing happen: what is queued first, then deadlines in
    /// the order of hosts.
    fn step(&mut self, at: Duration) {
        self.now = at;
        let now = self.now();
        if self.queue.peek().is_some_and(|queued| queued <= at) {
            if let Some(happening) = self.queue.pop() {
                self.happen(now, happening);
            }
            return;
        }
        let due = self.hosts.iter().position(|host| {
            host.up
                && host
                    .machine
                    .poll_timeout()
                    .is_some_and(|deadline| deadline <= now)
        });
        if let Some(index) = due {
            self.hosts[index].machine.handle_timeout(now);
            self.drain(HostId(index));
        }
    }

    fn happen(&mut self, now: Instant, happening: Happening<M>) {
        let host = match happening {
            Happening::Arrival { host, datagram } => {
                let Host { machine, up, .. } = &mut self.hosts[host.0];
                if *up {
                    machine.handle_datagram(now, datagram.from, datagram.to, &datagram.bytes);
                }
                host
            }
            Happening::Unreachable { host, datagram } => {
                let Host { machine, up, .. } = &mut self.hosts[host.0];
                if *up {
                    machine.handle_unreachable(now, datagram.from, datagram.to);
                }
                host
            }
            Happening::Action { host, act } => {
                act(&mut self.hosts[host.0].machine, now);
                host
            }
        };
        self.drain(host);
    }

    /// Sends what a host has to send. A host that is down sends nothing, and what it would have
    /// sent is gone.
    fn drain(&mut self, host: HostId) {
        let now = self.now();
        for _ in 0..self.step_limit {
            let Some(datagram) = self.hosts[host.0].machine.poll_transmit(now) else {
                return;
            };
            if self.hosts[host.0].up {
                self.send(host, datagram);
            }
        }
    }

    fn send(&mut self, from: HostId, datagram: Datagram) {
        let to = self.addresses.get(&datagram.to).copied();
        let verdict = self
            .filters
            .iter_mut()
            .find_map(|filter| filter.judge(from, to, &datagram));
        if verdict == Some(Verdict::Drop) {
            self.record(from, to, datagram, Fate::Filtered, false);
            return;
        }
        let Some(host) = to else {
            let back = self.now + 2 * self.default_link.delay;
            let happening = Happening::Unreachable {
                host: from,
                datagram: datagram.clone(),
            };
            self.queue.push(back, happening);
            self.record(from, None, datagram, Fate::Unreachable, false);
            return;
        };
        let link = self.links.get(&(from, host)).unwrap_or(&self.default_link);
        let outcome = link.decide(&mut self.rng);
        let mut arrival = self.now + outcome.delay;
        if let Some(Verdict::Delay(more)) = verdict {
            arrival += more;
        } else if outcome.in_order {
            let last = self.in_order.entry((from, host)).or_default();
            arrival = arrival.max(*last);
            *last = arrival;
        }
        if outcome.lost {
            self.record(from, to, datagram.clone(), Fate::Lost, false);
        } else {
            self.deliver(from, host, datagram.clone(), arrival, false);
        }
        if let Some(delay) = outcome.duplicate {
            self.deliver(from, host, datagram.clone(), self.now + delay, true);
        }
        if let Some(Verdict::Duplicate(later)) = verdict {
            self.deliver(from, host, datagram, arrival + later, true);
        }
    }

    fn deliver(
        &mut self,
        from: HostId,
        host: HostId,
        datagram: Datagram,
        at: Duration,
        copy: bool,
    ) {
        self.queue.push(
            at,
            Happening::Arrival {
                host,
                datagram: datagram.clone(),
            },
        );
        self.record(from, Some(host), datagram, Fate::Arrives(at), copy);
    }

    fn record(
        &mut self,
        from: HostId,
        to: Option<HostId>,
        datagram: Datagram,
        fate: Fate,
        copy: bool,
    ) {
        self.trace.push(
            self.now,
            Entry::Sent(Sent {
                from,
                to,
                datagram,
                fate,
                copy,
            }),
        );
    }
}
