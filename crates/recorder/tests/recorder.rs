//! The whole recorder with its threads, on real files. Time is that of the taps; nothing sleeps.

mod support;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use audio::tap::{TapEvent, TapMark, TapReader, TapWriter, tap};
use crossbeam_channel::Receiver;
use recorder::{
    RecordError, Recorder, RecorderConfig, RecorderEvent, RecordingRequest, StartError,
};
use support::*;

fn start(directory: &Path) -> (Recorder, Receiver<()>) {
    let config = RecorderConfig {
        directory: directory.to_owned(),
        max_bytes: 1 << 30,
        threads: 2,
        max_recordings: 8,
        ..RecorderConfig::default()
    };
    let (sender, woken) = crossbeam_channel::bounded(1);
    let wake = Arc::new(move || {
        let _ = sender.try_send(());
    });
    (
        Recorder::start(config, Arc::new(registry()), wake).unwrap(),
        woken,
    )
}

fn request(id: u64, reader: TapReader, caller: &str) -> RecordingRequest {
    let field = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    RecordingRequest {
        id,
        reader,
        template: None,
        fields: vec![
            field("caller", caller),
            field("callee", "record"),
            field("call_id", "a@b"),
        ],
        stereo: true,
        sample_rate: RATE,
        started: SystemTime::UNIX_EPOCH + Duration::from_secs(1_790_000_000),
    }
}

/// The next event that isn't `Started`.
fn outcome(recorder: &mut Recorder, woken: &Receiver<()>) -> RecorderEvent {
    loop {
        match recorder.poll_event() {
            Some(RecorderEvent::Started { .. }) => {}
            Some(event) => return event,
            None => woken
                .recv_timeout(Duration::from_secs(20))
                .expect("an event in time"),
        }
    }
}

fn finished(event: RecorderEvent) -> (u64, PathBuf, u64) {
    match event {
        RecorderEvent::Finished {
            id, path, samples, ..
        } => (id, path, samples),
        other => panic!("not finished: {other:?}"),
    }
}

fn write_call(tap: &mut TapWriter, frames: &[Sent], stop: Duration) {
    tap.mark(&TapMark::Start { at: Duration::ZERO });
    for side in [0, 1] {
        let TapEvent::Mark(mark) = plain_codec(side) else {
            unreachable!("it is a mark")
        };
        tap.mark(&mark);
    }
    for frame in frames {
        assert!(tap.push(&frame.tap_frame()));
    }
    tap.mark(&TapMark::Stop { at: stop });
}

#[test]
fn call_becomes_a_stereo_file_that_reads_back() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, woken) = start(dir.path());
    let (mut writer, reader) = tap(256);
    let mut frames = Talker::new(0, ms(0)).talk(50, 0x20);
    frames.extend(Talker::new(1, ms(500)).talk(25, 0x30));
    frames.sort_by_key(|frame| frame.at);
    write_call(&mut writer, &frames, ms(1000));
    let planned = recorder.open(request(7, reader, "1000")).unwrap();
    let (id, path, samples) = finished(outcome(&mut recorder, &woken));
    assert_eq!((id, samples), (7, 8000));
    assert_eq!(path, planned);
    assert_eq!(path, dir.path().join("20260921-141320-1000-record-a_b.wav"));
    let wav = hound::WavReader::open(&path).unwrap();
    let spec = wav.spec();
    assert_eq!(
        (spec.channels, spec.sample_rate, spec.bits_per_sample),
        (2, 8000, 16)
    );
    let samples: Vec<i16> = wav.into_samples().map(Result::unwrap).collect();
    for (at, pair) in samples.chunks(2).enumerate() {
        assert_eq!(
            pair,
            [0x2000, if at < 4000 { 0 } else { 0x3000 }],
            "at {at}"
        );
    }
    assert_eq!(recorder.latest("1000"), Some(path));
    assert_eq!(recorder.latest("1001"), None);
    assert_eq!(recorder.stats().used_bytes, 44 + 32_000);
}

#[test]
fn many_at_once_get_names_of_their_own_and_a_limit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, woken) = start(dir.path());
    let mut taps = Vec::new();
    for id in 0..8 {
        let (writer, reader) = tap(16);
        recorder.open(request(id, reader, "1000")).unwrap();
        taps.push(writer);
    }
    let (_writer, reader) = tap(16);
    assert!(matches!(
        recorder.open(request(8, reader, "1000")),
        Err(RecordError::Busy)
    ));
    for (length, tap) in (1..).zip(&mut taps) {
        write_call(tap, &[], ms(100 * length));
    }
    let mut paths = Vec::new();
    for _ in 0..8 {
        let (id, path, samples) = finished(outcome(&mut recorder, &woken));
        assert_eq!(samples, (id + 1) * 800);
        assert_eq!(
            u64::from(hound::WavReader::open(&path).unwrap().duration()),
            samples
        );
        paths.push(path);
    }
    paths.sort();
    paths.dedup();
    assert_eq!(paths.len(), 8);
    assert_eq!(recorder.stats().open, 0);
    let (_writer, reader) = tap(16);
    recorder.open(request(9, reader, "1000")).unwrap();
}

#[test]
fn shutdown_ends_recordings_and_a_restart_finds_them() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, _woken) = start(dir.path());
    let (_writer, reader) = tap(16);
    let path = recorder.open(request(1, reader, "1007")).unwrap();
    recorder.shutdown();
    let events: Vec<_> = std::iter::from_fn(|| recorder.poll_event()).collect();
    assert!(matches!(
        events[..],
        [
            RecorderEvent::Started { id: 1, .. },
            RecorderEvent::Finished { id: 1, .. }
        ]
    ));
    let (_writer, reader) = tap(16);
    assert!(matches!(
        recorder.open(request(2, reader, "1007")),
        Err(RecordError::Closed)
    ));
    drop(recorder);

    let (recorder, _woken) = start(dir.path());
    assert_eq!(recorder.latest("1007"), Some(path));
    assert_eq!(recorder.stats().used_bytes, 44);
}

#[test]
fn bad_template_is_refused_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (mut recorder, _woken) = start(dir.path());
    let (writer, reader) = tap(16);
    let request = RecordingRequest {
        template: Some("../{caller}".to_owned()),
        ..request(1, reader, "x")
    };
    assert!(matches!(
        recorder.open(request),
        Err(RecordError::Template(_))
    ));
    assert!(writer.is_abandoned());
}

#[test]
fn directory_that_is_none_stops_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, b"").unwrap();
    let config = RecorderConfig {
        directory: file.join("sub"),
        ..RecorderConfig::default()
    };
    let error = Recorder::start(config, Arc::new(registry()), Arc::new(|| {}))
        .err()
        .unwrap();
    assert!(matches!(error, StartError::Directory { .. }), "{error}");
}
