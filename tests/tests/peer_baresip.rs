//! A phone of somebody else's, registered nowhere, calls `echo` and `record`. Real sockets, real
//! time: baresip streams a file of speech and writes down what it hears.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use lab::place::Loopback;
use tandem_tests::live::{
    Peer, Scratch, alone, correlation, free_port, run, samples, serve, speech,
};

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

/// A configuration that speaks `speech.wav` and keeps what it hears; baresip hangs up by itself
/// when the file ends.
fn configure(scratch: &Scratch, at: IpAddr) {
    let home = scratch.path("baresip");
    std::fs::create_dir_all(&home).expect("a directory");
    let port = free_port(at);
    let modules = ["/usr/lib/baresip/modules", "/usr/lib64/baresip/modules"]
        .into_iter()
        .find(|path| std::path::Path::new(path).is_dir())
        .expect("baresip's modules");
    let wav = scratch.path("speech.wav");
    let config = format!(
        "sip_listen {at}:{port}\naudio_source aufile,{}\naudio_player aubridge,hear\n\
         audio_alert aubridge,hear\nausrc_srate 8000\nauplay_srate 8000\nausrc_channels 1\n\
         auplay_channels 1\nrtp_ports 11000-15999\nmodule_path {modules}\nmodule g711.so\n\
         module aufile.so\nmodule aubridge.so\nmodule sndfile.so\nsnd_path {}\n\
         module_tmp account.so\nmodule_tmp uuid.so\nmodule_app menu.so\n",
        wav.display(),
        home.display(),
    );
    let account =
        format!("<sip:baresip@{at}:{port};transport=udp>;regint=0;audio_codecs=pcma/8000/1\n");
    std::fs::write(home.join("config"), config).expect("written");
    std::fs::write(home.join("accounts"), account).expect("written");
    std::fs::write(home.join("contacts"), "").expect("written");
}

fn call(scratch: &Scratch, server: SocketAddr, user: &str) {
    let mut baresip = Command::new("baresip");
    baresip.arg("-f").arg(scratch.path("baresip"));
    baresip.args(["-t", "30", "-e", &format!("/dial sip:{user}@{server}")]);
    let baresip = Peer::start(&mut baresip, scratch.path("baresip.log"));
    baresip.wait_for("Call established");
    baresip.wait_for("terminated (duration:");
}

/// What baresip heard.
fn heard(scratch: &Scratch) -> PathBuf {
    std::fs::read_dir(scratch.path("baresip"))
        .expect("its directory")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with("-dec.wav"))
        .expect("baresip keeps what it hears")
}

#[test]
fn a_phone_hears_itself_on_echo() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    speech(&scratch, &scratch.path("speech.wav"));
    configure(&scratch, at);
    let server = serve(&scratch, at, &[]);
    call(&scratch, server.sip(), "echo");
    let said = samples(&scratch.path("speech.wav"), 0);
    let (likeness, _) = correlation(excerpt(&said), &samples(&heard(&scratch), 0));
    assert!(likeness > 0.95, "{likeness}");
    assert!(server.stop().expect("it ends on SIGTERM").success());
}

#[test]
fn a_recording_is_as_long_as_the_call_and_holds_what_was_said() {
    let _alone = alone();
    let (scratch, at) = (Scratch::new(), Loopback::of_this_process().caller());
    speech(&scratch, &scratch.path("speech.wav"));
    configure(&scratch, at);
    let server = serve(&scratch, at, &[]);
    call(&scratch, server.sip(), "record");
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
