//! baresip, started without a person: it streams a file, writes down what it hears, and hangs up
//! when the file ends.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;

use crate::live::{Peer, Scratch, free_port};

/// What a baresip speaks.
#[derive(Clone, Debug)]
pub struct Account<'a> {
    /// The module that has the codec.
    pub module: &'a str,
    /// The codec as baresip names it: `name/clock/channels`.
    pub codec: &'a str,
    /// Rate of the file that it streams, `speech.wav`.
    pub sample_rate: u32,
}

impl<'a> Account<'a> {
    /// A codec of a module.
    #[must_use]
    pub fn new(module: &'a str, codec: &'a str, sample_rate: u32) -> Self {
        Self {
            module,
            codec,
            sample_rate,
        }
    }
}

/// Writes a configuration that speaks `speech.wav` of the scratch directory.
///
/// # Panics
/// Where baresip is not installed: `scripts/setup` does that.
pub fn configure(scratch: &Scratch, at: IpAddr, account: &Account<'_>) {
    let home = scratch.path("baresip");
    std::fs::create_dir_all(&home).expect("a directory");
    let port = free_port(at);
    let modules = ["/usr/lib/baresip/modules", "/usr/lib64/baresip/modules"]
        .into_iter()
        .find(|path| std::path::Path::new(path).is_dir())
        .expect("baresip's modules");
    let (wav, module, rate) = (
        scratch.path("speech.wav"),
        account.module,
        account.sample_rate,
    );
    let config = format!(
        "sip_listen {at}:{port}\naudio_source aufile,{}\naudio_player aubridge,hear\n\
         audio_alert aubridge,hear\nausrc_srate {rate}\nauplay_srate {rate}\nausrc_channels 1\n\
         auplay_channels 1\nrtp_ports 11000-15999\nmodule_path {modules}\nmodule {module}\n\
         module aufile.so\nmodule aubridge.so\nmodule sndfile.so\nsnd_path {}\n\
         module_tmp account.so\nmodule_tmp uuid.so\nmodule_app menu.so\n",
        wav.display(),
        home.display(),
    );
    let codec = account.codec;
    let line = format!("<sip:baresip@{at}:{port};transport=udp>;regint=0;audio_codecs={codec}\n");
    std::fs::write(home.join("config"), config).expect("written");
    std::fs::write(home.join("accounts"), line).expect("written");
    std::fs::write(home.join("contacts"), "").expect("written");
}

/// Calls `user` and talks until the file ends.
///
/// # Panics
/// Where the call is not answered.
pub fn call(scratch: &Scratch, server: SocketAddr, user: &str) {
    let mut baresip = Command::new("baresip");
    baresip.arg("-f").arg(scratch.path("baresip"));
    baresip.args(["-t", "30", "-e", &format!("/dial sip:{user}@{server}")]);
    let baresip = Peer::start(&mut baresip, scratch.path("baresip.log"));
    baresip.wait_for("Call established");
    baresip.wait_for("terminated (duration:");
}

/// What baresip heard, a WAV file.
///
/// # Panics
/// Where it kept nothing.
#[must_use]
pub fn heard(scratch: &Scratch) -> PathBuf {
    std::fs::read_dir(scratch.path("baresip"))
        .expect("its directory")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.to_string_lossy().ends_with("-dec.wav"))
        .expect("baresip keeps what it hears")
}
