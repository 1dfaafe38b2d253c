//! The shard on simulated time, without threads.

mod support;

use std::time::Instant;

use audio::tap::{TapEvent, TapMark, tap};
use engine::{EngineCommand, Shard};
use media::command::{FailReason, MediaEvent, PortId, SessionId};
use support::*;

fn shard() -> (Shard, FakeIo) {
    let io = FakeIo::default();
    (Shard::new(Box::new(io.clone()), registry(), 7), io)
}

fn events(shard: &mut Shard) -> Vec<(char, u64)> {
    std::iter::from_fn(|| shard.poll_event())
        .map(|event| summary(&event))
        .collect()
}

#[test]
fn packet_of_one_leg_leaves_by_the_other() {
    let (mut shard, io) = shard();
    let now = Instant::now();
    shard.handle_command(now, start(1, bridge(10, 11)));
    io.arrive(10, peer(10), rtp(8, 5, 0x55));
    io.arrive(11, peer(11), rtp(8, 900, 0xd5));
    io.arrive(99, peer(9), rtp(8, 1, 0));
    let work = shard.tick(now);
    assert_eq!(
        (work.received, work.sent, work.unowned, work.timeouts),
        (2, 2, 1, 0)
    );
    let sent = io.take_sent();
    assert_eq!((sent[0].port, sent[0].peer), (PortId(11), peer(11)));
    assert_eq!((sent[1].port, sent[1].peer), (PortId(10), peer(10)));
    assert_eq!(sent[0].octets[12..], [0x55; 160]);
    assert_eq!(sent[1].octets[12..], [0xd5; 160]);
    assert_eq!(events(&mut shard), [('+', 1)]);
    // A relayed call has no deadline at all.
    assert_eq!((shard.timers(), shard.poll_timeout()), (0, None));
}

#[test]
fn stop_gives_everything_back() {
    let (mut shard, io) = shard();
    let now = Instant::now();
    let (writer, mut reader) = tap(16);
    let command = EngineCommand::Start {
        session: SessionId(1),
        spec: bridge(10, 11),
        clip: None,
        tap: Some(writer),
    };
    shard.handle_command(now, command);
    shard.tick(now);
    assert_eq!(io.world().attached.len(), 2);
    io.arrive(10, peer(10), rtp(8, 5, 0x55));
    shard.tick(now + ms(5));
    shard.handle_command(now + ms(8), stop(1));
    shard.handle_command(now + ms(9), stop(1));
    assert_eq!((shard.sessions(), io.world().attached.len()), (0, 0));
    assert_eq!(
        shard.poll_event(),
        Some(MediaEvent::Started {
            session: SessionId(1)
        })
    );
    let Some(MediaEvent::Stopped {
        session: SessionId(1),
        stats,
    }) = shard.poll_event()
    else {
        panic!("not stopped");
    };
    assert_eq!((stats[0].packets_received, stats[1].packets_sent), (1, 1));
    assert_eq!(shard.poll_event(), None);
    let mut last = None;
    reader.pop(|event| {
        if let TapEvent::Mark(TapMark::Stop { at }) = event {
            last = Some(at);
        }
    });
    assert_eq!(last, Some(ms(8)));
    assert!(reader.is_closed());
}

#[test]
fn session_that_cannot_start_leaves_nothing() {
    let (mut shard, io) = shard();
    let now = Instant::now();
    io.world().refused.insert(11);
    shard.handle_command(now, start(1, bridge(10, 11)));
    let mut spec = bridge(12, 13);
    spec.legs[1] = Some(leg(13, "NOSUCH", 96));
    shard.handle_command(now, start(2, spec));
    shard.handle_command(now, start(3, bridge(14, 15)));
    shard.handle_command(now, start(4, bridge(14, 16)));
    shard.handle_command(now, start(3, bridge(17, 18)));
    let reasons: Vec<_> = std::iter::from_fn(|| shard.poll_event())
        .map(|event| match event {
            MediaEvent::Failed { session, reason } => (session.0, Some(reason)),
            MediaEvent::Started { session } => (session.0, None),
            other => panic!("unexpected: {other:?}"),
        })
        .collect();
    assert_eq!(reasons[0], (1, Some(FailReason::Port(PortId(11)))));
    assert!(matches!(reasons[1], (2, Some(FailReason::Codec { .. }))));
    assert_eq!(reasons[2], (3, None));
    assert_eq!(reasons[3], (4, Some(FailReason::Port(PortId(14)))));
    assert_eq!(reasons[4], (3, Some(FailReason::Session)));
    assert_eq!(shard.sessions(), 1);
    assert_eq!(
        io.world().attached.iter().copied().collect::<Vec<_>>(),
        [14, 15]
    );
}

#[test]
fn update_moves_ports_even_to_the_other_side() {
    let (mut shard, io) = shard();
    let now = Instant::now();
    shard.handle_command(now, start(1, bridge(10, 11)));
    let update = |spec| EngineCommand::Update {
        session: SessionId(1),
        spec,
        clip: None,
    };
    shard.handle_command(now, update(bridge(11, 12)));
    assert_eq!(
        io.world().attached.iter().copied().collect::<Vec<_>>(),
        [11, 12]
    );
    io.arrive(11, peer(11), rtp(8, 5, 0x55));
    shard.tick(now);
    assert_eq!(io.take_sent()[0].port, PortId(12));
    assert_eq!(events(&mut shard), [('+', 1)]);
    // An update that can't be done ends the session.
    io.world().refused.insert(13);
    shard.handle_command(now, update(bridge(11, 13)));
    assert_eq!(events(&mut shard), [('!', 1)]);
    assert_eq!((shard.sessions(), io.world().attached.len()), (0, 0));
    shard.handle_command(now, update(bridge(11, 12)));
    assert_eq!(events(&mut shard), []);
}

#[test]
fn tone_is_sent_every_20_ms_whatever_the_tick() {
    for step in [1, 5, 7, 20] {
        let (mut shard, io) = shard();
        let begin = Instant::now();
        shard.handle_command(begin, start(1, tone(10)));
        let mut timeouts = 0;
        for at in (0..2000).step_by(step) {
            timeouts += shard.tick(begin + ms(at)).timeouts;
        }
        let sent = io.take_sent();
        assert!(
            (99..=101).contains(&sent.len()),
            "{} packets at {step} ms",
            sent.len()
        );
        assert!(timeouts <= sent.len() as u64 + 1, "{timeouts} visits");
        assert_eq!(shard.timers(), 1);
        // The deadline of a session that is gone is no visit.
        shard.handle_command(begin + ms(2000), stop(1));
        assert_eq!(shard.tick(begin + ms(3000)).timeouts, 0);
        assert_eq!(shard.timers(), 0);
    }
}

#[test]
fn same_inputs_give_the_same_packets() {
    let run = || {
        let (mut shard, io) = shard();
        let begin = Instant::now();
        for id in 0..20 {
            let port = 10 * id as u32;
            let spec = if id % 3 == 0 {
                tone(port)
            } else {
                bridge(port, port + 1)
            };
            shard.handle_command(begin, start(id, spec));
        }
        for tick in 0..200_u64 {
            for id in 0..20 {
                if tick % 4 == id % 4 {
                    io.arrive(10 * id as u32, peer(10 * id as u32), rtp(8, tick as u16, 1));
                }
            }
            shard.tick(begin + ms(5 * tick));
        }
        io.take_sent()
    };
    let (first, second) = (run(), run());
    assert!(first.len() > 500);
    assert!(first == second);
}

#[test]
fn beginnings_and_ends_wait_for_a_reader_that_never_comes() {
    let (mut shard, io) = shard();
    let now = Instant::now();
    for id in 0..2000 {
        shard.handle_command(now, start(id, bridge(10, 11)));
        // From elsewhere than described: an event of little consequence on each leg.
        for port in [10, 11] {
            let mut from = peer(port);
            from.set_port(4000);
            for sequence in 0..4 {
                io.arrive(port, from, rtp(8, sequence, 0));
            }
        }
        shard.tick(now);
        shard.handle_command(now, stop(id));
    }
    let dropped = shard.events_dropped();
    let all = events(&mut shard);
    let of = |kind| all.iter().filter(|(found, _)| *found == kind).count();
    assert_eq!((of('+'), of('-')), (2000, 2000));
    assert_eq!(of('s') as u64 + dropped, 4000);
    assert!(dropped > 0);
}
