//! The lab's own caller and callee through the real server: every frame held against its mark.
//! Real sockets, real time.

use std::process::Command;
use std::time::Duration;

use lab::load::{Load, growth};
use lab::place::Loopback;
use lab::server::Server;
use tandem_tests::live::{Peer, Scratch, alone, run, serve};

fn lab_server(scratch: &Scratch, place: Loopback) -> Server {
    lab_server_with(scratch, place, &[])
}

fn lab_server_with(scratch: &Scratch, place: Loopback, more: &[&str]) -> Server {
    let callee = format!("callee=sip:uas@{}", place.callee(0));
    let args = ["--dialplan", "lab", "--set", &callee];
    serve(scratch, place.server_media(), &[&args, more].concat())
}

/// 200 calls at 50 a second, held 20 s: byte for byte for A-law to A-law, by the tables of G.711
/// for A-law to mu-law.
#[test]
fn bridged_and_converted_calls_lose_nothing() {
    let _alone = alone();
    let place = Loopback::of_this_process();
    for (load, seed) in [(Load::bridged(), 1), (Load::converted(), 2)] {
        let scratch = Scratch::new();
        let server = lab_server(&scratch, place);
        let outcome = load
            .run(server.sip(), None, place, seed)
            .expect("the lab runs");
        assert_eq!(outcome.invalid, [], "the lab itself was too slow");
        for call in &outcome.calls {
            assert!(call.faults.is_empty(), "{}: {:?}", load.user, call.faults);
        }
        assert!(server.stop().expect("it ends on SIGTERM").success());
    }
}

/// What tshark, which is nobody's relation, makes of one call of each kind.
#[test]
fn tshark_sees_four_streams_without_loss() {
    let _alone = alone();
    let place = Loopback::of_this_process();
    for (load, seed, codecs) in [
        (Load::bridged(), 3, ["g711A"; 2]),
        (Load::converted(), 4, ["g711A", "g711U"]),
    ] {
        let scratch = Scratch::new();
        let server = lab_server(&scratch, place);
        let port = server.sip().port();
        let capture = scratch.path("call.pcap");
        let mut tshark = Command::new("tshark");
        let net = place.server_media();
        tshark
            .args(["-i", "lo", "-f", &format!("udp and host {net}"), "-w"])
            .arg(&capture);
        let tshark = Peer::start(&mut tshark, scratch.path("tshark.log"));
        tshark.wait_for("Capture started");
        let one = Load {
            calls: 1,
            talk: Duration::from_secs(3),
            ..load
        };
        let outcome = one
            .run(server.sip(), None, place, seed)
            .expect("the lab runs");
        assert!(
            outcome.calls[0].faults.is_empty(),
            "{:?}",
            outcome.calls[0].faults
        );
        assert!(server.stop().expect("it ends on SIGTERM").success());
        tshark.interrupt();
        let table = run(Command::new("tshark").arg("-r").arg(&capture).args([
            "-d",
            &format!("udp.port=={port},sip"),
            "-q",
            "-z",
            "rtp,streams",
        ]));
        let table = String::from_utf8_lossy(&table.stdout).into_owned();
        let rows: Vec<Vec<&str>> = table
            .lines()
            .filter(|line| line.contains("0x"))
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 4, "{table}");
        for codec in codecs {
            assert!(rows.iter().any(|row| row.contains(&codec)), "{table}");
        }
        assert_eq!(
            rows.iter().filter(|row| row.contains(&"(0.0%)")).count(),
            4,
            "{table}"
        );
    }
}

/// Memory and sockets after ten thousand calls are what they were after the first thousand, looked
/// at when no timer holds anything any more.
#[test]
fn ten_thousand_short_calls_leave_nothing_behind() {
    let _alone = alone();
    let place = Loopback::of_this_process();
    let scratch = Scratch::new();
    // Ports are taken in turn, and each place costs its row in a few tables the first time: few
    // enough ports that the first thousand calls have been through all of them.
    let server = lab_server_with(&scratch, place, &["--rtp-ports", "20000-20999"]);
    let growth =
        growth(server.sip(), server.pid(), place, 5, (1_000, 9_000, 200.0)).expect("the lab runs");
    assert_eq!(growth.first.faulty() + growth.others.faulty(), 0);
    let seen = format!("{:?} then {:?}", growth.before, growth.after);
    assert_eq!(growth.sockets(), 0, "{seen}");
    // Pages that are partly in use stay with the allocator, fewer each time: SIPp's calls alone left
    // 268 kB with the next 5,000 and 112 kB with 5,000 more. A leak of 100 octets a call is 900 kB.
    assert!(growth.kb() < 900, "{seen}");
    assert!(server.stop().expect("it ends on SIGTERM").success());
}
