//! No allocation per packet: an allocator that counts, and every path of a session under it.
//!
//! The count is kept per thread, so that tests may run side by side.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use audio::tap::tap;
use audio::{Input, Offered};
use common::{PCMA, PCMU, bridge, codecs, epoch, leg_in, number, peer, registry, single};
use media::command::{ClipId, PortId, Program, SessionId, SessionSpec, Side};
use media::{Outbox, Session};
use rtp::Fields;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
    static OCTETS: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(octets: usize) {
    // Fails only while the thread is being torn down, when nobody counts any more.
    let _ = ALLOCATIONS.try_with(|allocations| allocations.set(allocations.get() + 1));
    let _ = OCTETS.try_with(|sum| sum.set(sum.get() + octets));
}

// SAFETY: every call is handed to the system's allocator as it came; counting touches a
// thread-local integer, which needs no allocation because it is initialised by a constant and has
// no destructor.
#[expect(unsafe_code, reason = "an allocator cannot be written without")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, and `at` came from `System`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, len: usize) -> *mut u8 {
        count(len);
        // SAFETY: the caller keeps `realloc`'s contract, and `at` came from `System`.
        unsafe { System.realloc(at, layout, len) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Runs something and returns how often it allocated.
fn allocations(f: impl FnOnce()) -> u64 {
    let before = ALLOCATIONS.get();
    f();
    ALLOCATIONS.get() - before
}

#[test]
fn the_allocator_counts() {
    assert_eq!(
        allocations(|| drop(std::hint::black_box(vec![0_u8; 100]))),
        1
    );
    assert_eq!(allocations(|| ()), 0);
}

#[derive(Default)]
struct Count(u64);

impl Outbox for Count {
    fn send(&mut self, _port: PortId, _to: SocketAddr, packet: &[u8]) {
        assert!(packet.len() > rtp::HEADER_BYTES);
        self.0 += 1;
    }
}

/// Two peers talk for ten seconds and more, with losses, repeats, keys and a change of SSRC.
fn drive(session: &mut Session, epoch: Instant, payload_types: [u8; 2], out: &mut Count) {
    let mut buffer = [0; 512];
    let mut now = epoch;
    for number in 0..600_u32 {
        for (side, payload_type) in Side::BOTH.into_iter().zip(payload_types) {
            let is_key = number % 50 == 7;
            let fields = Fields {
                marker: false,
                payload_type: if is_key { common::DTMF } else { payload_type },
                sequence: (number - number % 20 / 19) as u16,
                timestamp: number * 160,
                ssrc: if number < 300 { 1 } else { 2 },
            };
            let len = if is_key { 4 } else { 160 };
            if let Some((header, payload)) = buffer.split_first_chunk_mut() {
                fields.write(header);
                payload[..len].fill(number as u8);
            }
            if number % 13 != 5 {
                session.handle_packet(now, side, peer(side), &mut buffer[..12 + len], out);
            }
            session.handle_packet(now, side, peer(side), &mut [0x80, 200, 0, 0], out);
        }
        for _ in 0..4 {
            session.handle_timeout(now, out);
            now += Duration::from_millis(5);
        }
        std::hint::black_box(session.poll_timeout());
        while session.poll_event().is_some() {}
    }
    std::hint::black_box(session.stats());
}

fn assert_allocates_nothing(name: &str, spec: &SessionSpec, payload_types: [u8; 2]) {
    for tapped in [false, true] {
        let epoch = epoch();
        let clip = Some(audio::melody::melody(8_000));
        let session = Session::new(SessionId(1), spec, &registry(), clip, 1, epoch);
        let mut session = session.expect("a valid specification");
        let (writer, mut reader) = tap(audio::tap::DEFAULT_CAPACITY_FRAMES);
        if tapped {
            session.set_tap(epoch, Some(writer));
        }
        let mut out = Count::default();
        let count = allocations(|| drive(&mut session, epoch, payload_types, &mut out));
        assert_eq!(count, 0, "{name}, tapped: {tapped}");
        assert!(out.0 > 400, "{name} sent {} packets", out.0);
        let tapped_frames = reader.pop(|_| ()) > 100;
        assert_eq!(tapped_frames, tapped, "{name}");
    }
}

#[test]
fn no_path_allocates_per_packet() {
    let mut repacked = bridge(PCMA, PCMU);
    let mut cut_anew = bridge(PCMA, PCMA);
    for (spec, ptime_ms) in [(&mut repacked, 30), (&mut cut_anew, 10)] {
        if let Some(leg) = &mut spec.legs[1] {
            leg.ptime_ms = ptime_ms;
        }
    }
    let echo = |ms| Program::Echo {
        delay: Duration::from_millis(ms),
    };
    let tone = Program::Tone {
        hz: 1_004.0,
        level_dbm0: 0.0,
    };
    let play = Program::Play {
        clip: ClipId(1),
        repeat: true,
    };
    assert_allocates_nothing("relay", &bridge(PCMA, PCMA), [PCMA, PCMA]);
    assert_allocates_nothing("law table", &bridge(PCMA, PCMU), [PCMA, PCMU]);
    assert_allocates_nothing("transcode, 30 ms", &repacked, [PCMA, PCMU]);
    assert_allocates_nothing("transcode, 10 ms", &cut_anew, [PCMA, PCMA]);
    for (name, codec) in [
        ("wide", codecs::WIDE),
        ("flexible", codecs::FLEX),
        ("high", codecs::HIGH),
    ] {
        let mut spec = bridge(PCMA, PCMU);
        spec.legs[1] = Some(leg_in(Side::B, codec));
        let number = number(codec.0);
        assert_allocates_nothing(name, &spec, [PCMA, number]);
        spec.legs.swap(0, 1);
        assert_allocates_nothing(name, &spec, [number, PCMA]);
    }
    assert_allocates_nothing("echo", &single(PCMA, echo(0)), [PCMA, PCMA]);
    assert_allocates_nothing("delayed echo", &single(PCMA, echo(2_000)), [PCMA, PCMA]);
    assert_allocates_nothing("tone", &single(PCMU, tone), [PCMU, PCMU]);
    assert_allocates_nothing("play", &single(PCMU, play), [PCMU, PCMU]);
    assert_allocates_nothing(
        "record",
        &single(PCMA, Program::Record { beep: true }),
        [PCMA, PCMA],
    );
}

#[test]
fn no_codec_allocates_per_frame() {
    let all = registry();
    for codec in [PCMA, PCMU].map(|number| all.find_static(number).expect("built in")) {
        let params = codec
            .negotiate(&Offered::default())
            .expect("nothing to refuse");
        let mut encoder = codec.encoder(&params).expect("an encoder");
        let mut decoder = codec.decoder(&params).expect("a decoder");
        let mut pcm = vec![1_000; codec.info().max_frame_samples];
        let mut payload = vec![0; codec.info().max_payload_bytes];
        let frame = encoder.frame_samples();
        let count = allocations(|| {
            for number in 0..100 {
                let len = encoder
                    .encode(&pcm[..frame], &mut payload)
                    .expect("a frame");
                let input = if number % 10 == 3 {
                    Input::Lost { samples: frame }
                } else {
                    Input::Frame(&payload[..len])
                };
                decoder.decode(input, &mut pcm).expect("a payload of ours");
            }
        });
        assert_eq!(count, 0, "{}", codec.info().name);
    }
}

/// The project's figures allow a relayed call 40 kB in all, signalling and sockets included.
#[test]
fn a_session_is_small() {
    let mut repacked = bridge(PCMA, PCMU);
    if let Some(leg) = &mut repacked.legs[1] {
        leg.ptime_ms = 30;
    }
    for (spec, limit) in [(bridge(PCMA, PCMA), 3_000), (repacked, 32_000)] {
        let (registry, epoch) = (registry(), epoch());
        let before = OCTETS.get();
        let session = Session::new(SessionId(1), &spec, &registry, None, 1, epoch);
        let octets = OCTETS.get() - before + size_of_val(&session);
        assert!(octets < limit, "{octets} octets");
    }
}
