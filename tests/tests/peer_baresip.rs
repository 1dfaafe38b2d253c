//! A phone of somebody else's, registered nowhere, calls `echo` and `record`. Real sockets, real
//! time: baresip streams a file of speech and writes down what it hears.

use std::process::Command;

use lab::place::Loopback;
use tandem_tests::baresip::{self, Account};
use tandem_tests::live::{Scratch, alone, correlation, run, samples, serve, speech};

/// Half a second from the middle of the speech, loud enough to be found again.
fn excerpt(speech: &[i16]) -> &[i16] {
    speech
        .windows(4_000)
        .step_by(400)
        .max_by_key(|window| {
            window
                .iter()
                .map(|s| i64::from(*s) * i64::from(*s))
                .sum::<i64>()
        })
        .expect("seconds of speech")
}

/// A-law, as the speech of these tests is.
fn account() -> Account<'static> {
    Account::new("g711.so", "pcma/8000/1", 8_000)
}

#[test]
fn a_phone_hears_itself_on_echo() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    speech(&scratch, &scratch.path("speech.wav"));
    baresip::configure(&scratch, at, &account());
    let server = serve(&scratch, at, &[]);
    baresip::call(&scratch, server.sip(), "echo");
    let said = samples(&scratch.path("speech.wav"), 0);
    let (likeness, _) = correlation(excerpt(&said), &samples(&baresip::heard(&scratch), 0));
    assert!(likeness > 0.95, "{likeness}");
    assert!(server.stop().expect("it ends on SIGTERM").success());
}

#[test]
fn a_recording_is_as_long_as_the_call_and_holds_what_was_said() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    speech(&scratch, &scratch.path("speech.wav"));
    baresip::configure(&scratch, at, &account());
    let server = serve(&scratch, at, &[]);
    baresip::call(&scratch, server.sip(), "record");
    let records = scratch.wait_for_records(1);
    let talk_ms = records[0]["talk_ms"].as_f64().expect("a number");
    // The server ends only when every recording is closed.
    assert!(server.stop().expect("it ends on SIGTERM").success());
    let recordings = scratch.recordings();
    let [wav] = recordings.as_slice() else {
        panic!("one recording: {recordings:?}")
    };
    // sox, not our own reader, says how long it is.
    let soxi = run(Command::new("soxi").arg("-D").arg(wav));
    let seconds: f64 = String::from_utf8_lossy(&soxi.stdout)
        .trim()
        .parse()
        .expect("seconds");
    assert!(
        (seconds * 1_000.0 - talk_ms).abs() <= 20.0,
        "{seconds} s of {talk_ms} ms"
    );
    let said = samples(&scratch.path("speech.wav"), 0);
    let (likeness, _) = correlation(excerpt(&said), &samples(wav, 0));
    assert!(likeness > 0.95, "{likeness}");
}
