//! The real peers with each other, without our server: what a failing end-to-end test rests on.

use std::time::Duration;

use tandem_tests::peers::baresip::Baresip;
use tandem_tests::peers::sipp::Sipp;
use tandem_tests::peers::sound;
use tandem_tests::peers::wire::{Capture, fields};
use tandem_tests::ports::{Ports, Scratch, alone};

const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn sipp_calls_sipp_and_tshark_reads_it() {
    let _alone = alone();
    let scratch = Scratch::new("sipp-sipp");
    let ports = Ports::lend(8);
    let [uas, uac] = [ports.first(), ports.first() + 2].map(|port| port.to_string());
    let capture = Capture::start(&scratch.file("calls.pcap"), &format!("udp port {uas}"));
    let callee = Sipp::start(scratch.path(), "uas", &["-sn", "uas", "-p", &uas]);
    let target = format!("127.0.0.1:{uas}");
    let calls = [
        "-sn", "uac", "-p", &uac, "-m", "5", "-r", "10", "-d", "200", &target,
    ];
    let (finished, counts) = Sipp::start(scratch.path(), "uac", &calls).finish(LIMIT);
    let finished = finished.well();
    assert_eq!(
        (counts.get("SuccessfulCall"), counts.get("FailedCall")),
        (5, 0),
        "{finished:?}"
    );
    drop(callee);
    let file = capture.stop();
    let invites = fields(
        &file,
        "sip.Method == INVITE",
        &[],
        &["sip.Call-ID", "udp.dstport"],
    );
    assert_eq!(invites.len(), 5);
    assert!(invites.iter().all(|fields| fields[1] == uas));
}

#[test]
fn baresip_hears_its_own_voice_from_an_echo() {
    let _alone = alone();
    let scratch = Scratch::new("baresip-echo");
    let ports = Ports::lend(8);
    let [uas, media] = [ports.first(), ports.first() + 4].map(|port| port.to_string());
    let callee = ["-sn", "uas", "-rtp_echo", "-p", &uas, "-mp", &media];
    let _callee = Sipp::start(scratch.path(), "uas", &callee);
    let plays = scratch.file("speech.wav");
    sound::speak(
        "One two three four five. Once I caught a fish alive.",
        &plays,
    );
    let uri = format!("sip:echo@127.0.0.1:{uas}");
    let mut phone = Baresip::call(scratch.path(), &uri, &plays, 4);
    phone.established(LIMIT);
    let heard = phone.finish(LIMIT);
    let (played, heard) = (sound::samples(&plays, 1), sound::samples(&heard, 1));
    let second = &played[..8_000.min(played.len())];
    let (lag, r) = sound::correlation(second, &heard, 8_000);
    assert!(
        r > 0.8,
        "heard {} samples, best correlation {r} at {lag}",
        heard.len()
    );
}
