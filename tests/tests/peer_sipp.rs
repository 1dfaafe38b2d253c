//! SIPp against the real server: its own stock scenarios, and 200 bridged calls with RTP.
//! Real sockets, real time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use lab::place::Loopback;
use tandem_tests::live::{Peer, Scratch, alone, free_port, run, serve, speech};
use tandem_tests::workspace;

/// The last row of SIPp's statistics, cumulative.
fn statistics(csv: &Path) -> HashMap<String, String> {
    let text = std::fs::read_to_string(csv).expect("SIPp wrote its statistics");
    let mut lines = text.lines();
    let names = lines.next().expect("a head line").split(';');
    let last = lines.last().expect("a row").split(';');
    names
        .map(str::to_owned)
        .zip(last.map(str::to_owned))
        .collect()
}

fn count(statistics: &HashMap<String, String>, name: &str) -> u64 {
    statistics[name].parse().expect("a number")
}

/// A SIPp caller that places so many calls.
fn caller(scratch: &Scratch, at: IpAddr, server: std::net::SocketAddr, args: &[&str]) -> Peer {
    let mut sipp = Command::new("sipp");
    sipp.current_dir(scratch.path(""))
        .arg(server.to_string())
        .args(["-i", &at.to_string(), "-p", &free_port(at).to_string()])
        .args([
            "-mi",
            &at.to_string(),
            "-nostdin",
            "-trace_stat",
            "-stf",
            "uac.csv",
            "-fd",
            "1",
        ])
        .args(args);
    Peer::start(&mut sipp, scratch.path("uac.log"))
}

fn assert_clean(scratch: &Scratch, calls: u64) {
    let statistics = statistics(&scratch.path("uac.csv"));
    assert_eq!(count(&statistics, "SuccessfulCall(C)"), calls);
    assert_eq!(count(&statistics, "FailedCall(C)"), 0);
    assert_eq!(count(&statistics, "Retransmissions(C)"), 0);
}

#[test]
fn the_stock_caller_reaches_echo() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    let server = serve(&scratch, at, &[]);
    let args = [
        "-sn", "uac", "-s", "echo", "-m", "50", "-r", "25", "-d", "400",
    ];
    let sipp = caller(&scratch, at, server.sip(), &args);
    assert!(sipp.finish(Duration::from_secs(60)));
    assert_clean(&scratch, 50);
    for record in scratch.wait_for_records(50) {
        assert_eq!(record["cause"]["by"], "caller", "{record}");
        assert_eq!(record["acked"], true, "{record}");
        let talk = record["talk_ms"].as_u64().expect("a number");
        assert!((380..600).contains(&talk), "{record}");
    }
    assert!(server.stop().expect("it ends on SIGTERM").success());
}

#[test]
fn the_stock_caller_reaches_the_stock_callee_through_a_bridge() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    let port = free_port(at);
    let mut uas = Command::new("sipp");
    uas.current_dir(scratch.path(""))
        .args(["-sn", "uas", "-nostdin"]);
    uas.args([
        "-i",
        &at.to_string(),
        "-p",
        &port.to_string(),
        "-mi",
        &at.to_string(),
    ]);
    let _uas = Peer::start(&mut uas, scratch.path("uas.log"));
    let callee = format!("callee=sip:uas@{at}:{port}");
    let server = serve(&scratch, at, &["--dialplan", "lab", "--set", &callee]);
    let args = [
        "-sn", "uac", "-s", "bridge", "-m", "50", "-r", "25", "-d", "400",
    ];
    let sipp = caller(&scratch, at, server.sip(), &args);
    assert!(sipp.finish(Duration::from_secs(60)));
    assert_clean(&scratch, 50);
    for record in scratch.wait_for_records(50) {
        assert_eq!(record["action"], "bridge", "{record}");
        assert!(record["leg_b"]["call_id"].is_string(), "{record}");
    }
    assert!(server.stop().expect("it ends on SIGTERM").success());
}

/// 50 calls/s, each held 20 s with 20 ms packets from the caller and their echo from the callee.
#[test]
fn two_hundred_bridged_calls_with_rtp_lose_nothing() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    let peers = workspace::root().join("tests/peers");
    for name in ["uac-media.xml", "uas-media.xml"] {
        std::fs::copy(peers.join(name), scratch.path(name)).expect("a scenario");
    }
    speech(&scratch, &scratch.path("speech.wav"));
    let _ = run(Command::new("sox").current_dir(scratch.path("")).args([
        "speech.wav",
        "-t",
        "al",
        "speech.pcma",
    ]));
    let port = free_port(at);
    let mut uas = Command::new("sipp");
    uas.current_dir(scratch.path(""))
        .args(["-sf", "uas-media.xml", "-nostdin", "-rtp_echo"]);
    uas.args([
        "-key",
        "pt",
        "8",
        "-key",
        "codec",
        "PCMA/8000",
        "-mp",
        "9000",
    ]);
    uas.args([
        "-i",
        &at.to_string(),
        "-p",
        &port.to_string(),
        "-mi",
        &at.to_string(),
    ]);
    let _uas = Peer::start(&mut uas, scratch.path("uas.log"));
    let callee = format!("callee=sip:uas@{at}:{port}");
    let server = serve(&scratch, at, &["--dialplan", "lab", "--set", &callee]);
    let mut args = vec![
        "-sf",
        "uac-media.xml",
        "-s",
        "bridge",
        "-m",
        "200",
        "-l",
        "200",
    ];
    args.extend([
        "-r",
        "50",
        "-d",
        "20000",
        "-mp",
        "7000",
        "-rtp_threadtasks",
        "200",
    ]);
    let sipp = caller(&scratch, at, server.sip(), &args);
    assert!(sipp.finish(Duration::from_secs(90)));
    assert_clean(&scratch, 200);
    for record in scratch.wait_for_records(200) {
        let [from_caller, to_callee] = [(0, "received"), (1, "sent")]
            .map(|(leg, what)| record["media"][leg][what].as_u64().expect("a count"));
        // 20 s at 50 packets a second; SIPp starts and stops its stream somewhat off the beat.
        assert!((970..=1_030).contains(&from_caller), "{record}");
        assert_eq!(from_caller, to_callee, "{record}");
        assert_eq!(record["media"][0]["lost"], 0, "{record}");
        // The echo comes back through us too.
        assert_eq!(
            record["media"][1]["received"], record["media"][0]["sent"],
            "{record}"
        );
    }
    assert!(server.stop().expect("it ends on SIGTERM").success());
}
