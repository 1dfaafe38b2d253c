//! A scene: caller, server and callee on a simulated network, and how it must end.
//!
//! ```text
//!   caller 192.0.2.10 --- leg A --- tandem 192.0.2.1 --- leg B --- callee 192.0.2.20
//! ```
//! A test says who does what when, then [`Scene::finish`] runs to the end and looks at what every
//! scenario must show: nobody complains, every phone has hung up, rsip reads every message of the
//! server, there is one record a call, and 64 x T1 after the last datagram the server holds
//! nothing. Whatever fails, the seed and the ladder are printed.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use b2bua::{Config, Epoch};
use dialplan::Plan;
use simnet::{Datagram, Filter, FilterId, HostId, LinkModel, Machine, Nth, Stop, Verdict, World};

use crate::message::{Sip, label};
use crate::outside;
use crate::server::Server;
use crate::ua::{DialogState, ScriptedUa, T1};

/// A host of a scene.
#[derive(Debug)]
pub enum Node {
    /// A scripted phone.
    Phone(Box<ScriptedUa>),
    /// The server.
    Server(Box<Server>),
}

impl Node {
    fn machine(&self) -> &dyn Machine {
        match self {
            Self::Phone(phone) => &**phone,
            Self::Server(server) => &**server,
        }
    }

    fn machine_mut(&mut self) -> &mut dyn Machine {
        match self {
            Self::Phone(phone) => &mut **phone,
            Self::Server(server) => &mut **server,
        }
    }
}

impl Machine for Node {
    fn handle_datagram(&mut self, now: Instant, from: SocketAddr, to: SocketAddr, bytes: &[u8]) {
        self.machine_mut().handle_datagram(now, from, to, bytes);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.machine_mut().handle_timeout(now);
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine().poll_timeout()
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Datagram> {
        self.machine_mut().poll_transmit(now)
    }

    fn handle_unreachable(&mut self, now: Instant, from: SocketAddr, to: SocketAddr) {
        self.machine_mut().handle_unreachable(now, from, to);
    }
}

/// How a scene is set up.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Seed of the links and of the server.
    pub seed: u64,
    /// Every link, both directions.
    pub link: LinkModel,
    /// The dialplan, TOML.
    pub plan: &'static str,
    /// Variables of the dialplan.
    pub variables: Vec<(&'static str, &'static str)>,
    /// The server's settings.
    pub config: Config,
}

/// Delay of a link, one way.
pub const DELAY: Duration = Duration::from_millis(10);

/// Longest scene; a call that rings for ever would never end.
const LIMIT: Duration = Duration::from_secs(1_200);

/// A scene.
pub struct Scene {
    /// The network.
    pub world: World<Node>,
    /// The phone that calls: alice.
    pub caller: HostId,
    /// The server.
    pub server: HostId,
    /// The phone that is called: bob.
    pub callee: HostId,
    seed: u64,
    must_hit: Vec<(FilterId, String)>,
    may_hang: Vec<HostId>,
    deaf: Vec<HostId>,
    next_address: u8,
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 5060))
}

/// A phone's second address, for a Contact that differs from where it is called.
#[must_use]
pub fn second_address(phone: SocketAddr) -> SocketAddr {
    SocketAddr::new(phone.ip(), 5070)
}

/// So many milliseconds.
#[must_use]
pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

impl Scene {
    /// A scene with the plan for measuring, whose calls go to bob.
    #[must_use]
    pub fn lab(seed: u64) -> Self {
        Self::new(Setup::lab(seed))
    }

    /// A scene with the plan for people.
    #[must_use]
    pub fn office(seed: u64) -> Self {
        Self::new(Setup {
            plan: OFFICE,
            variables: Vec::new(),
            ..Setup::lab(seed)
        })
    }

    /// A scene.
    ///
    /// # Panics
    /// When the plan is refused.
    #[must_use]
    pub fn new(setup: Setup) -> Self {
        let epoch = Instant::now();
        let [alice, tandem, bob] = [10, 1, 20].map(address);
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let variables: Vec<_> = setup.variables.into_iter().map(own).collect();
        let plan = Plan::load("scene.toml", setup.plan, &variables)
            .unwrap_or_else(|error| panic!("{error}"));
        let unix = Duration::from_secs(1_796_083_200);
        let epoch_pair = Epoch {
            instant: epoch,
            unix,
        };
        let server = Server::new(tandem, setup.config, Arc::new(plan), setup.seed, epoch_pair);
        let phone = |name, at| Node::Phone(Box::new(ScriptedUa::new(name, at, tandem)));

        let mut world = World::new(epoch, setup.seed);
        world.set_default_link(setup.link);
        let caller = world.add(
            "caller",
            phone("alice", alice),
            [alice, second_address(alice)],
        );
        let server = world.add("tandem", Node::Server(Box::new(server)), [tandem]);
        let callee = world.add("callee", phone("bob", bob), [bob, second_address(bob)]);
        Self {
            world,
            caller,
            server,
            callee,
            seed: setup.seed,
            must_hit: Vec::new(),
            may_hang: Vec::new(),
            deaf: Vec::new(),
            next_address: 30,
        }
    }

    /// Another phone.
    pub fn add_phone(&mut self, name: &str) -> HostId {
        let at = address(self.next_address);
        self.next_address += 1;
        let phone = ScriptedUa::new(name, at, address(1));
        self.world
            .add(name, Node::Phone(Box::new(phone)), [at, second_address(at)])
    }

    /// A phone as it is.
    ///
    /// # Panics
    /// When the host is the server.
    #[must_use]
    pub fn phone(&self, host: HostId) -> &ScriptedUa {
        match self.world.host(host) {
            Node::Phone(phone) => phone,
            Node::Server(_) => panic!("the server is no phone"),
        }
    }

    /// The caller's phone.
    #[must_use]
    pub fn alice(&self) -> &ScriptedUa {
        self.phone(self.caller)
    }

    /// The callee's phone.
    #[must_use]
    pub fn bob(&self) -> &ScriptedUa {
        self.phone(self.callee)
    }

    /// The server.
    ///
    /// # Panics
    /// Never: the host of that number is the server.
    #[must_use]
    pub fn tandem(&self) -> &Server {
        match self.world.host(self.server) {
            Node::Server(server) => server,
            Node::Phone(_) => unreachable!("the server's host is the server"),
        }
    }

    /// Does something with a phone now.
    pub fn with<R>(&mut self, host: HostId, act: impl FnOnce(&mut ScriptedUa, Instant) -> R) -> R {
        self.world.with(host, |node, now| match node {
            Node::Phone(phone) => act(phone, now),
            Node::Server(_) => panic!("the server is no phone"),
        })
    }

    /// Does something with the server now.
    pub fn with_server<R>(&mut self, act: impl FnOnce(&mut Server, Instant) -> R) -> R {
        self.world.with(self.server, |node, now| match node {
            Node::Server(server) => {
                let result = act(server, now);
                server.ordered(now);
                result
            }
            Node::Phone(_) => unreachable!("the server's host is the server"),
        })
    }

    /// Plans what a phone does, so many milliseconds after the beginning.
    pub fn at(
        &mut self,
        ms: u64,
        host: HostId,
        act: impl FnOnce(&mut ScriptedUa, Instant) + 'static,
    ) {
        self.world.at(Duration::from_millis(ms), host, |node, now| {
            if let Node::Phone(phone) = node {
                act(phone, now);
            }
        });
    }

    /// Plans what an operator does with the server.
    pub fn operator_at(&mut self, ms: u64, act: impl FnOnce(&mut Server, Instant) + 'static) {
        self.world
            .at(Duration::from_millis(ms), self.server, |node, now| {
                if let Node::Server(server) = node {
                    act(server, now);
                    server.ordered(now);
                }
            });
    }

    /// The caller calls now.
    pub fn call(&mut self, user: &str) {
        let user = user.to_owned();
        self.with(self.caller, |ua, now| ua.call(now, &user));
    }

    /// A phone hangs up its first call, so many milliseconds after the beginning.
    pub fn bye_at(&mut self, ms: u64, host: HostId) {
        self.at(ms, host, |ua, now| ua.bye(now, 0));
    }

    /// The caller cancels its first call.
    pub fn cancel_at(&mut self, ms: u64) {
        self.at(ms, self.caller, |ua, now| ua.cancel(now, 0));
    }

    /// The nth message of this name that goes from one host to another is lost. The scene fails
    /// when there is none to lose.
    pub fn lose(&mut self, from: HostId, to: HostId, what: &'static str, nth: Nth) {
        self.disturb(from, to, what, nth, Verdict::Drop);
    }

    /// The nth message of this name is treated as said. The scene fails when there is none.
    pub fn disturb(
        &mut self,
        from: HostId,
        to: HostId,
        what: &'static str,
        nth: Nth,
        verdict: Verdict,
    ) {
        let filter = Filter::new(verdict, move |datagram| label(&datagram.bytes) == what);
        let id = self.world.filter(filter.from(from).to(to).nth(nth));
        self.must_hit.push((id, format!("{verdict:?} {what}")));
    }

    /// A phone stops hearing and speaking at this moment, for ever.
    pub fn dies_at(&mut self, ms: u64, host: HostId) {
        self.deaf.push(host);
        self.may_hang.push(host);
        let limit = Duration::from_millis(ms).saturating_sub(self.world.elapsed());
        let _ = self.world.run_for(limit);
        self.world.note(host, "dies");
        self.world.set_up(host, false);
    }

    /// This phone may end with a call that it believes is up: it was told to misbehave.
    pub fn may_hang(&mut self, host: HostId) {
        self.may_hang.push(host);
    }

    /// Runs for so many milliseconds.
    pub fn run(&mut self, ms: u64) {
        let stop = self.world.run_for(Duration::from_millis(ms));
        assert_ne!(stop, Stop::StepLimit, "the scene never comes to rest");
    }

    /// The ladder so far.
    #[must_use]
    pub fn ladder(&self) -> String {
        simnet::ladder::draw(&self.world, |datagram| label(&datagram.bytes))
    }

    /// Runs to the end and looks at what every scene must show.
    ///
    /// # Panics
    /// When something is left, somebody complains, or rsip can't read a message.
    pub fn finish(&mut self) {
        let (server, deaf) = (self.server, self.deaf.clone());
        let stop = self.world.run_until(LIMIT, |world| {
            let rests = |(id, _)| match world.host(id) {
                Node::Phone(phone) => deaf.contains(&id) || phone.idle(),
                Node::Server(server) => server.leftovers().is_empty(),
            };
            world.pending() == 0 && world.hosts().all(rests)
        });
        let left = self.tandem().leftovers();
        assert!(
            matches!(stop, Stop::Met | Stop::Idle) && left.is_empty(),
            "after {LIMIT:?}: {stop:?}; the server holds {left:?}"
        );
        self.check_time_to_rest();
        self.check_nothing_stirs();
        self.check_complaints();
        self.check_phones();
        self.check_readers();
        self.check_records(server);
    }

    /// No timer of SIP outlasts 64 x T1 after the last datagram.
    fn check_time_to_rest(&self) {
        let ours = |sent: &simnet::Sent| sent.from == self.server || sent.to == Some(self.server);
        let last = self
            .world
            .trace()
            .sent()
            .filter(|(_, sent)| ours(sent))
            .map(|(at, sent)| match sent.fate {
                simnet::Fate::Arrives(arrival) => arrival,
                _ => at,
            });
        let start = self.world.now() - self.world.elapsed();
        let last = start + last.max().unwrap_or_default();
        let rest = self
            .tandem()
            .busy_until()
            .map(|at| at.saturating_duration_since(last));
        assert!(
            rest.is_none_or(|rest| rest <= 64 * T1),
            "the server held something for {rest:?} after the last datagram"
        );
    }

    /// And nothing comes after it.
    fn check_nothing_stirs(&mut self) {
        let before = self.world.trace().entries().len();
        self.run(64 * 500);
        assert_eq!(
            self.world.trace().entries().len(),
            before,
            "something stirred after the end"
        );
        let left = self.tandem().leftovers();
        assert!(left.is_empty(), "64 x T1 later the server holds {left:?}");
    }

    fn check_complaints(&self) {
        let mut complaints = self.tandem().complaints().to_vec();
        for (host, _) in self.world.hosts() {
            if let Node::Phone(phone) = self.world.host(host) {
                complaints.extend_from_slice(phone.complaints());
            }
        }
        assert!(
            complaints.is_empty(),
            "complaints:\n{}",
            complaints.join("\n")
        );
        for (filter, what) in &self.must_hit {
            assert!(
                self.world.filter_hits(*filter) > 0,
                "nothing to do for: {what}"
            );
        }
    }

    fn check_phones(&self) {
        for (host, name) in self
            .world
            .hosts()
            .filter(|(host, _)| !self.may_hang.contains(host))
        {
            if let Node::Phone(phone) = self.world.host(host) {
                for dialog in phone.dialogs() {
                    let over = dialog.state == DialogState::Over;
                    assert!(over, "{name} is still in call {}", dialog.call_id);
                }
            }
        }
    }

    fn check_readers(&self) {
        for (at, sent) in self
            .world
            .trace()
            .sent()
            .filter(|(_, sent)| sent.from == self.server)
        {
            let found = outside::disagreements(&sent.datagram.bytes);
            assert!(
                found.is_empty(),
                "at {at:?}: {found:?} in\n{}",
                String::from_utf8_lossy(&sent.datagram.bytes)
            );
        }
    }

    /// One record for each call that the server took up (its 100 Trying says so), with times in
    /// their order.
    fn check_records(&self, server: HostId) {
        let said = self
            .world
            .trace()
            .sent()
            .filter(|(_, sent)| sent.from == server);
        let mut calls: Vec<_> = said
            .filter_map(|(_, sent)| Sip::read(&sent.datagram.bytes))
            .filter(|sip| sip.to_string() == "100 (INVITE)" && sip.receiver_tag().is_none())
            .map(|sip| sip.must("call-id").to_owned())
            .collect();
        calls.sort();
        calls.dedup();
        let mut recorded: Vec<_> = self
            .tandem()
            .cdrs()
            .iter()
            .map(|cdr| cdr.call_id.clone())
            .collect();
        recorded.sort();
        assert_eq!(recorded, calls, "records (left) and calls (right)");
        for cdr in self.tandem().cdrs() {
            assert!(
                cdr.setup <= cdr.end,
                "a call ends before it begins: {cdr:?}"
            );
            let answer = cdr.answer.unwrap_or(cdr.end);
            assert!(
                cdr.setup <= answer && answer <= cdr.end,
                "answered out of time: {cdr:?}"
            );
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}\n{}", self.seed, self.ladder());
        }
    }
}

impl Setup {
    /// The plan for measuring, links of 10 ms without loss.
    #[must_use]
    pub fn lab(seed: u64) -> Self {
        Self {
            seed,
            link: LinkModel::with_delay(DELAY),
            plan: LAB,
            variables: vec![("callee", "sip:bob@192.0.2.20:5060")],
            config: Config::default(),
        }
    }
}

/// `dialplan/lab.toml`.
pub const LAB: &str = include_str!("../../dialplan/lab.toml");
/// `dialplan/default.toml`.
pub const OFFICE: &str = include_str!("../../dialplan/default.toml");
