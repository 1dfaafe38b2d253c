//! tshark: what is on the wire, read by somebody else.

use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::ports::Ports;
use crate::process::{Process, output, tool};

/// A capture of the loopback interface. Needs the rights to capture.
#[derive(Debug)]
pub struct Capture {
    process: Process,
    file: PathBuf,
    mark: Ports,
}

/// How long tshark may take to begin or to end.
const LIMIT: Duration = Duration::from_secs(20);

impl Capture {
    /// Starts a capture of what the filter (as of pcap-filter) lets through.
    #[must_use]
    pub fn start(file: &Path, filter: &str) -> Self {
        let mark = Ports::lend(1);
        let filter = format!("({filter}) or udp port {}", mark.first());
        let mut command = tool("tshark");
        command
            .args(["-i", "lo", "-f", &filter, "-l", "-P", "-n", "-w"])
            .arg(file);
        let process = Process::start(&mut command);
        let mut capture = Self {
            process,
            file: file.to_owned(),
            mark,
        };
        capture
            .process
            .line(LIMIT, |line| line.contains("Capture started"));
        capture.see_mark();
        capture
    }

    /// Ends it; the file with everything that was on the wire until now.
    ///
    /// # Panics
    /// When tshark doesn't end in time.
    #[must_use]
    pub fn stop(mut self) -> PathBuf {
        self.see_mark();
        self.process.signal("INT");
        let _ = self.process.finish(LIMIT);
        self.file
    }

    /// Packets come to tshark in blocks, late. Once it shows a datagram sent now, it has shown
    /// everything before.
    fn see_mark(&mut self) {
        let port = self.mark.first();
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("loopback has free ports");
        let own = socket
            .local_addr()
            .expect("a bound socket has an address")
            .port();
        socket
            .send_to(b"mark", (Ipv4Addr::LOCALHOST, port))
            .expect("loopback takes datagrams");
        let (own, port) = (own.to_string(), port.to_string());
        self.process
            .line(LIMIT, |line| line.contains(&own) && line.contains(&port));
    }
}

/// The named fields of every packet that a display filter lets through. UDP ports in `as_rtp` are
/// read as RTP.
///
/// # Panics
/// When tshark fails.
#[must_use]
pub fn fields(file: &Path, filter: &str, as_rtp: &[u16], fields: &[&str]) -> Vec<Vec<String>> {
    let mut command = tool("tshark");
    command
        .arg("-r")
        .arg(file)
        .args(["-Y", filter, "-T", "fields", "-E", "separator=/t"]);
    for port in as_rtp {
        command.arg("-d").arg(format!("udp.port=={port},rtp"));
    }
    for field in fields {
        command.args(["-e", field]);
    }
    let text = String::from_utf8(output(&mut command)).expect("tshark prints text");
    text.lines()
        .map(|line| line.split('\t').map(str::to_owned).collect())
        .collect()
}
