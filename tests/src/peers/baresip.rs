//! baresip: a phone that plays a file and writes down what it hears.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ports::Ports;
use crate::process::{Process, output, tool};

/// A phone in a call.
#[derive(Debug)]
pub struct Baresip {
    process: Process,
    directory: PathBuf,
    _ports: Ports,
}

impl Baresip {
    /// Calls a URI without registering anywhere, plays `plays` (8 kHz mono WAV) once the call is
    /// up, and hangs up at the file's end, or `seconds` after its start. Its configuration and
    /// what it hears go into `directory`, an empty one.
    ///
    /// # Panics
    /// When its files can't be written.
    #[must_use]
    pub fn call(directory: &Path, uri: &str, plays: &Path, seconds: u64) -> Self {
        let ports = Ports::lend(8);
        let config = config(&ports, plays, directory);
        let account = format!("<sip:baresip@127.0.0.1:{}>;regint=0\n", ports.first());
        for (name, text) in [
            ("config", config),
            ("accounts", account),
            ("contacts", String::new()),
        ] {
            let path = directory.join(name);
            std::fs::write(&path, text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        }
        let mut command = tool("baresip");
        command
            .arg("-f")
            .arg(directory)
            .args(["-t", &seconds.to_string(), "-e"]);
        command.arg(format!("/dial {uri}"));
        let process = Process::start(&mut command);
        Self {
            process,
            directory: directory.to_owned(),
            _ports: ports,
        }
    }

    /// Waits until it says that the call is up.
    pub fn established(&mut self, limit: Duration) {
        self.process
            .line(limit, |line| line.contains("Call established"));
    }

    /// Waits for its end; the file with what it heard, 8 kHz mono.
    ///
    /// # Panics
    /// When it doesn't end in time, or heard nothing.
    #[must_use]
    pub fn finish(self, limit: Duration) -> PathBuf {
        let finished = self.process.finish(limit);
        let entries = std::fs::read_dir(&self.directory)
            .unwrap_or_else(|error| panic!("{}: {error}", self.directory.display()));
        let mut files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let heard = files.find(|path| path.to_string_lossy().ends_with("-dec.wav"));
        heard.unwrap_or_else(|| panic!("baresip heard nothing:\n{}", finished.lines.join("\n")))
    }
}

/// It needs no sound card: it plays from a file, has no player, and its sndfile filter writes what
/// is decoded.
fn config(ports: &Ports, plays: &Path, directory: &Path) -> String {
    let (first, end) = (ports.first(), ports.all().end);
    format!(
        "poll_method epoll\n\
         sip_listen 127.0.0.1:{first}\n\
         net_interface 127.0.0.1\n\
         rtp_ports {rtp}-{end}\n\
         call_local_timeout 30\n\
         audio_source aufile,{plays}\n\
         ausrc_srate 8000\n\
         audio_channels 1\n\
         snd_path {directory}\n\
         module_path {modules}\n\
         module g711.so\n\
         module aufile.so\n\
         module sndfile.so\n\
         module_app account.so\n\
         module_app menu.so\n",
        rtp = first + 2,
        plays = plays.display(),
        directory = directory.display(),
        modules = modules(),
    )
}

/// Where this baresip's modules are.
fn modules() -> String {
    let places = [
        "/usr/lib/baresip/modules",
        "/usr/lib/x86_64-linux-gnu/baresip/modules",
    ];
    let found = places
        .iter()
        .find(|place| Path::new(place).join("g711.so").exists());
    let version = || String::from_utf8_lossy(&output(tool("baresip").arg("-v"))).into_owned();
    (*found.unwrap_or_else(|| panic!("no modules of baresip in {places:?}: {}", version())))
        .to_owned()
}
