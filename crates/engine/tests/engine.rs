//! The engine with its threads, over a network of queues. Real time, but nothing sleeps in a test:
//! each waits for a wake-up call, or for a counter, with a limit.

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use audio::{
    Codec, CodecError, CodecInfo, Decoder, Encoder, Input, NegotiateError, Offered, Params,
    Registry,
};
use crossbeam_channel::Receiver;
use engine::{Engine, EngineConfig, EngineStats};
use media::command::{FailReason, MediaEvent, Program, SessionId, SessionSpec};
use support::*;

const LIMIT: Duration = Duration::from_secs(20);

struct Bench {
    engine: Engine,
    ios: Vec<FakeIo>,
    woken: Receiver<()>,
}

impl Bench {
    fn new(config: EngineConfig) -> Self {
        Self::with_registry(config, registry())
    }

    fn with_registry(config: EngineConfig, registry: Arc<Registry>) -> Self {
        let (sender, woken) = crossbeam_channel::bounded(1);
        let wake = Arc::new(move || {
            let _ = sender.try_send(());
        });
        let mut ios = Vec::new();
        let make_io = |index: usize| {
            assert_eq!(index, ios.len());
            ios.push(FakeIo::default());
            Box::new(ios[index].clone()) as Box<_>
        };
        let engine = Engine::start(config, registry, make_io, wake).unwrap();
        Self { engine, ios, woken }
    }

    fn event(&mut self) -> MediaEvent {
        loop {
            match self.engine.poll_event() {
                Some(event) => return event,
                None => self.woken.recv_timeout(LIMIT).expect("an event in time"),
            }
        }
    }

    fn expect(&mut self, expected: (char, u64)) {
        assert_eq!(summary(&self.event()), expected);
    }

    /// Waits until the counters say so.
    fn until(&self, condition: impl Fn(&EngineStats) -> bool) -> EngineStats {
        let begun = Instant::now();
        loop {
            let stats = self.engine.stats();
            if condition(&stats) {
                return stats;
            }
            assert!(begun.elapsed() < LIMIT, "{stats:?}");
            std::thread::yield_now();
        }
    }
}

fn config(shards: usize) -> EngineConfig {
    EngineConfig {
        shards,
        threads: 2,
        queue: 64,
        ..EngineConfig::default()
    }
}

#[test]
fn sessions_spread_over_shards_and_stay_there() {
    let mut bench = Bench::new(config(3));
    for id in 0..9 {
        bench
            .engine
            .try_command(start(id, bridge(2 * id as u32, 2 * id as u32 + 1)))
            .unwrap();
    }
    for _ in 0..9 {
        assert_eq!(summary(&bench.event()).0, '+');
    }
    let attached: Vec<_> = bench
        .ios
        .iter()
        .map(|io| io.world().attached.len())
        .collect();
    assert_eq!(attached, [6, 6, 6]);
    // Session 0 is alone on its shard with 3 and 6.
    for id in [0, 3] {
        bench.engine.try_command(stop(id)).unwrap();
        bench.expect(('-', id));
    }
    for id in [20, 21] {
        bench
            .engine
            .try_command(start(id, bridge(2 * id as u32, 2 * id as u32 + 1)))
            .unwrap();
        bench.expect(('+', id));
    }
    assert!(bench.ios[0].world().attached.contains(&40));
    assert!(bench.ios[0].world().attached.contains(&42));
    let stats = bench.until(|stats| stats.sessions() == 9);
    assert_eq!(
        stats.shards.iter().map(|s| s.sessions).collect::<Vec<_>>(),
        [3, 3, 3]
    );
    bench.engine.shutdown();
    let ended = std::iter::from_fn(|| bench.engine.poll_event()).map(|e| summary(&e).0);
    assert_eq!(ended.collect::<String>(), "-".repeat(9));
    assert!(bench.ios.iter().all(|io| io.world().attached.is_empty()));
    assert!(bench.engine.try_command(start(30, bridge(90, 91))).is_err());
}

#[test]
fn packets_pass_while_threads_tick() {
    let mut bench = Bench::new(config(2));
    for id in [0, 1] {
        bench
            .engine
            .try_command(start(id, bridge(2 * id as u32, 2 * id as u32 + 1)))
            .unwrap();
        bench.expect(('+', id));
    }
    for (io, port) in bench.ios.iter().zip([0, 2]) {
        for sequence in 0..50 {
            io.arrive(port, peer(port), rtp(8, sequence, 3));
        }
    }
    let stats = bench.until(|stats| stats.shards.iter().all(|shard| shard.sent == 50));
    assert!(stats.ticks > 0 && stats.load.budget == ms(5));
    assert!(
        stats
            .shards
            .iter()
            .all(|shard| shard.received == 50 && !shard.busy.is_zero())
    );
    assert!(bench.engine.load().ratio() >= 0.0);
}

#[test]
fn engine_without_sessions_sleeps_until_a_command() {
    let mut bench = Bench::new(config(2));
    bench.until(|stats| stats.parks >= 1);
    assert_eq!(bench.engine.stats().ticks, 0);
    for round in 1..=20 {
        let parks = bench.engine.stats().parks;
        bench
            .engine
            .try_command(start(round, bridge(0, 1)))
            .unwrap();
        bench.expect(('+', round));
        bench.engine.try_command(stop(round)).unwrap();
        bench.expect(('-', round));
        // Asleep again, until the next round's command.
        bench.until(|stats| stats.parks > parks);
    }
    assert_eq!(bench.engine.stats().load.mean, Duration::ZERO);
}

#[test]
fn deadlines_do_not_drift() {
    let mut bench = Bench::new(config(1));
    let begun = Instant::now();
    bench.engine.try_command(start(1, bridge(0, 1))).unwrap();
    bench.expect(('+', 1));
    let counted = |stats: &EngineStats| u128::from(stats.ticks + stats.skipped);
    let first = counted(&bench.engine.stats());
    let from = Instant::now();
    bench.until(|stats| stats.ticks >= 100);
    let to = Instant::now();
    bench.engine.shutdown();
    let last = counted(&bench.engine.stats());
    // Every deadline between was ticked or counted as skipped, however busy the machine is ...
    let between = (to - from).as_nanos() / ms(5).as_nanos();
    assert!(last - first + 1 >= between, "{} of {between}", last - first);
    // ... and none came early.
    let due = begun.elapsed().as_nanos() / ms(5).as_nanos() + 2;
    assert!(last <= due, "{last} of {due}");
}

#[test]
fn slow_reader_gets_every_beginning_and_end() {
    let mut bench = Bench::new(EngineConfig {
        queue: 4,
        ..config(1)
    });
    // Nobody polls. Four events find room in the channel, four wait in the shard, and the commands
    // of four more sessions wait in its queue.
    let placed = 12;
    for id in 0..placed {
        let mut command = start(id, bridge(2 * id as u32, 2 * id as u32 + 1));
        let begun = Instant::now();
        while let Err(given_back) = bench.engine.try_command(command) {
            assert!(begun.elapsed() < LIMIT, "session {id} finds no room");
            command = given_back;
            std::thread::yield_now();
        }
    }
    // The shard ticks on meanwhile, and further commands are given back.
    let ticks = bench.engine.stats().ticks;
    bench.until(|stats| stats.ticks > ticks + 3);
    assert!(
        bench
            .engine
            .try_command(start(placed, bridge(90, 91)))
            .is_err()
    );
    for id in 0..placed {
        bench.expect(('+', id));
    }
    bench.engine.shutdown();
    let ended = std::iter::from_fn(|| bench.engine.poll_event()).map(|e| summary(&e).0);
    assert_eq!(ended.collect::<String>(), "-".repeat(placed as usize));
}

#[test]
fn commands_about_unknown_sessions_are_answered() {
    let mut bench = Bench::new(config(1));
    bench.engine.try_command(stop(5)).unwrap();
    let session = SessionId(5);
    assert_eq!(
        bench.event(),
        MediaEvent::Failed {
            session,
            reason: FailReason::Session
        }
    );
    bench.engine.try_command(start(5, bridge(0, 1))).unwrap();
    bench.expect(('+', 5));
    bench.engine.try_command(start(5, bridge(2, 3))).unwrap();
    bench.expect(('!', 5));
    // The one that runs isn't touched by that.
    assert_eq!(bench.engine.sessions(), 1);
    bench.engine.try_command(stop(5)).unwrap();
    bench.expect(('-', 5));
    assert_eq!(bench.engine.sessions(), 0);
}

#[test]
fn session_that_failed_is_forgotten() {
    let mut bench = Bench::new(config(1));
    bench.ios[0].world().refused.insert(1);
    bench.engine.try_command(start(1, bridge(0, 1))).unwrap();
    bench.expect(('!', 1));
    assert_eq!(bench.engine.sessions(), 0);
}

/// A codec whose decoder is defective.
struct Defective(CodecInfo);

impl Codec for Defective {
    fn info(&self) -> &CodecInfo {
        &self.0
    }

    fn negotiate(&self, _: &Offered<'_>) -> Result<Params, NegotiateError> {
        Ok(Params {
            frame_samples: 160,
            ..Params::default()
        })
    }

    fn encoder(&self, params: &Params) -> Result<Box<dyn Encoder>, CodecError> {
        g711::Pcma.encoder(params)
    }

    fn decoder(&self, _: &Params) -> Result<Box<dyn Decoder>, CodecError> {
        Ok(Box::new(DefectiveDecoder))
    }
}

struct DefectiveDecoder;

impl Decoder for DefectiveDecoder {
    fn decode(&mut self, _: Input<'_>, _: &mut [i16]) -> Result<usize, CodecError> {
        panic!("this decoder is defective on purpose");
    }
}

#[test]
fn panic_costs_one_session() {
    let mut registry = Registry::clone(&registry());
    let info = CodecInfo {
        name: "DEFECTIVE",
        static_payload_type: None,
        ..g711_info()
    };
    registry.register(Box::new(Defective(info)));
    let mut bench = Bench::with_registry(config(1), Arc::new(registry));
    let spec = SessionSpec {
        legs: [Some(leg(0, "DEFECTIVE", 96)), Some(leg(1, "PCMA", 8))],
        program: Program::Bridge,
    };
    bench.engine.try_command(start(1, spec)).unwrap();
    bench.engine.try_command(start(2, bridge(2, 3))).unwrap();
    bench.expect(('+', 1));
    bench.expect(('+', 2));
    bench.ios[0].arrive(0, peer(0), rtp(96, 1, 0));
    bench.expect(('!', 1));
    bench.ios[0].arrive(2, peer(2), rtp(8, 1, 0));
    let stats = bench.until(|stats| stats.shards[0].sent == 1);
    assert_eq!((stats.shards[0].panics, stats.shards[0].sessions), (1, 1));
    assert_eq!(bench.ios[0].world().attached.len(), 2);
}

fn g711_info() -> CodecInfo {
    g711::Pcma.info().clone()
}
