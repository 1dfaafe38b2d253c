use super::*;

fn frame(sequence: u16, payload: &[u8]) -> TapFrame<'_> {
    TapFrame {
        side: (sequence % 2) as u8,
        at: Duration::from_millis(u64::from(sequence) * 20),
        ssrc: 0xdead_beef,
        sequence,
        timestamp: u32::from(sequence).wrapping_mul(160).wrapping_sub(320),
        payload_type: 8,
        payload,
    }
}

#[test]
fn frames_and_marks_come_out_as_they_went_in() {
    let (mut writer, mut reader) = tap(64);
    let payloads: Vec<Vec<u8>> = (0..20).map(|len| (0..len as u8).collect()).collect();
    let codec = TapMark::Codec {
        at: Duration::from_secs(7),
        side: 1,
        payload_type: 98,
        name: "speex",
        clock_rate: 16_000,
        channels: 1,
        sample_rate: 0,
        fmtp: "mode=\"7\"",
    };
    assert!(writer.mark(&TapMark::Start { at: Duration::ZERO }));
    assert!(writer.mark(&codec));
    for (number, payload) in payloads.iter().enumerate() {
        assert!(writer.push(&frame(number as u16, payload)));
    }
    assert!(writer.mark(&TapMark::Stop {
        at: Duration::from_secs(9)
    }));

    assert_eq!(
        reader.pop_one(),
        Some(TapEvent::Mark(TapMark::Start { at: Duration::ZERO }))
    );
    assert_eq!(reader.pop_one(), Some(TapEvent::Mark(codec)));
    for (number, payload) in payloads.iter().enumerate() {
        assert_eq!(
            reader.pop_one(),
            Some(TapEvent::Frame(frame(number as u16, payload)))
        );
    }
    let stop = TapMark::Stop {
        at: Duration::from_secs(9),
    };
    assert_eq!(reader.pop_one(), Some(TapEvent::Mark(stop)));
    assert_eq!(reader.pop_one(), None);
    assert_eq!(reader.dropped(), 0);
}

#[test]
fn a_full_ring_drops_frames_and_keeps_room_for_marks() {
    let (mut writer, mut reader) = tap(16);
    let payload = [0x55; 160];
    let taken = (0..100)
        .filter(|&number| writer.push(&frame(number, &payload)))
        .count();
    assert!((12..=16).contains(&taken), "{taken}");
    assert_eq!(reader.dropped(), 100 - taken as u64);
    assert!(writer.mark(&TapMark::Stop { at: Duration::ZERO }));
    assert_eq!(reader.pop(|_| ()), taken + 1);
    assert!(writer.push(&frame(0, &payload)), "there is room again");
}

#[test]
fn the_default_takes_24_kib_and_holds_both_legs_for_a_second() {
    let (mut writer, reader) = tap(DEFAULT_CAPACITY_FRAMES);
    assert_eq!(reader.ring.words.len() * 8, 24 * 1024);
    let taken = (0..1_000)
        .filter(|&number| writer.push(&frame(number, &[0; 160])))
        .count();
    assert!(taken >= 2 * 50, "{taken}");
}

#[test]
fn what_can_never_fit_is_dropped() {
    let (mut writer, reader) = tap(4);
    assert!(!writer.push(&frame(0, &[0; 70_000])));
    assert!(!writer.push(&frame(0, &[0; 800])));
    assert_eq!(reader.dropped(), 2);
}

#[test]
fn each_end_sees_the_other_leave() {
    let (mut writer, mut reader) = tap(8);
    assert!(writer.push(&frame(1, b"last words")));
    assert!(!reader.is_closed() && !writer.is_abandoned());
    drop(writer);
    assert!(reader.is_closed());
    assert_eq!(
        reader.pop(|_| ()),
        1,
        "what was written before is still there"
    );
    let (writer, reader) = tap(8);
    drop(reader);
    assert!(writer.is_abandoned());
}

/// A reader on another thread sees every frame that was taken, whole and in order.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "the two ends are meant for two threads"
)]
fn two_threads_agree_on_every_octet() {
    const FRAMES: u16 = 20_000;
    let (mut writer, mut reader) = tap(32);
    let producer = std::thread::spawn(move || {
        let mut taken = 0_u64;
        for number in 0..FRAMES {
            let payload = [number as u8; 200];
            taken += u64::from(writer.push(&frame(number, &payload[..usize::from(number % 200)])));
            if number % 16 == 0 {
                std::thread::yield_now();
            }
        }
        taken
    });
    let (mut seen, mut last) = (0_u64, None);
    loop {
        let closed = reader.is_closed();
        reader.pop(|event| {
            let TapEvent::Frame(frame) = event else {
                panic!("no marks were set")
            };
            assert!(last.is_none_or(|last| frame.sequence > last));
            assert_eq!(frame.payload.len(), usize::from(frame.sequence % 200));
            assert!(
                frame
                    .payload
                    .iter()
                    .all(|&octet| octet == frame.sequence as u8)
            );
            last = Some(frame.sequence);
            seen += 1;
        });
        if closed {
            break;
        }
        std::hint::spin_loop();
    }
    assert_eq!(producer.join().expect("the producer ends"), seen);
    assert_eq!(seen + reader.dropped(), u64::from(FRAMES));
}
