//! A phone of somebody else's that speaks other codecs than its callee: baresip calls through the
//! bridge to mu-law. Real sockets, real time; baresip streams a file of speech and writes down what
//! it hears.

use std::collections::HashMap;
use std::process::Command;

use lab::place::Loopback;
use tandem_tests::baresip::{self, Account};
use tandem_tests::live::{Scratch, alone, run, serve};
use tandem_tests::phone::{Callee, Format, Speech};
use tandem_tests::sound::{likeness, say};

const CALLER: &str = "The quick brown fox jumps over the lazy dog, and the dog does not mind.";
const CALLEE: &str = "Pack my box with five dozen liquor jugs, please, before the sun goes down.";

fn converse(account: &Account<'_>) {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    say(
        &scratch,
        CALLER,
        account.sample_rate,
        &scratch.path("speech.wav"),
    );
    say(&scratch, CALLER, 8_000, &scratch.path("caller.wav"));
    say(&scratch, CALLEE, 8_000, &scratch.path("callee.wav"));
    let to_law = |from: &str, to: &str| {
        let _ = run(Command::new("sox")
            .current_dir(scratch.path(""))
            .args([from, "-t", "ul", to]));
        std::fs::read(scratch.path(to)).expect("encoded")
    };
    let octets = to_law("callee.wav", "callee.pcmu");
    let payloads = octets.chunks_exact(160).map(<[u8]>::to_vec).collect();
    let speech = Speech::new(payloads, 8_000, 20);
    let known = [(
        "PCMU/8000".to_owned(),
        (Format::new(0, "PCMU/8000"), speech),
    )];
    let callee = Callee::start(at, HashMap::from(known));
    let variable = format!("callee={}", callee.uri());
    let server = serve(&scratch, at, &["--dialplan", "lab", "--set", &variable]);
    baresip::configure(&scratch, at, account);
    baresip::call(&scratch, server.sip(), "pcmu-record");
    let records = scratch.wait_for_records(1);
    assert!(server.stop().expect("it ends on SIGTERM").success());
    assert_eq!(records[0]["media"][1]["codec"], "PCMU/8000", "{records:?}");
    let name = records[0]["media"][0]["codec"].as_str().expect("a codec");
    assert!(
        account
            .codec
            .to_lowercase()
            .starts_with(&name.to_lowercase()),
        "{records:?}"
    );

    let calls = callee.finish();
    let octets: Vec<u8> = calls[0]
        .heard
        .iter()
        .flat_map(|packet| packet.payload.clone())
        .collect();
    std::fs::write(scratch.path("heard.ul"), octets).expect("written");
    let _ = run(Command::new("sox").current_dir(scratch.path("")).args([
        "-r",
        "8000",
        "-c",
        "1",
        "heard.ul",
        "-e",
        "signed",
        "-b",
        "16",
        "heard.wav",
    ]));
    let recordings = scratch.recordings();
    let [recording] = recordings.as_slice() else {
        panic!("one recording: {recordings:?}")
    };
    let by_callee = scratch.path("heard.wav");
    let by_caller = baresip::heard(&scratch);
    let rows = [
        (
            "heard by the callee",
            "caller.wav",
            (by_callee.as_path(), 0),
        ),
        ("heard by baresip", "callee.wav", (by_caller.as_path(), 0)),
        (
            "recorded of baresip",
            "caller.wav",
            (recording.as_path(), 0),
        ),
        (
            "recorded of the callee",
            "callee.wav",
            (recording.as_path(), 1),
        ),
    ];
    for (what, source, heard) in rows {
        let found = likeness(&scratch.path(source), heard, &[]);
        assert!(
            found.correlation > 0.9,
            "{} {what}: {found:?}",
            account.codec
        );
        assert!(
            found.decibels.abs() < 1.0,
            "{} {what}: {found:?}",
            account.codec
        );
    }
}

#[test]
fn a_law_caller_reaches_a_mu_law_callee() {
    converse(&Account::new("g711.so", "pcma/8000/1", 8_000));
}
