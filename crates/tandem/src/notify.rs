//! systemd's notify protocol, sd_notify(3): a datagram of `NAME=VALUE` lines to the socket that
//! `NOTIFY_SOCKET` names. Without that variable nothing is said.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Calls are taken from now on.
pub(crate) const READY: &str = "READY=1";
/// No new calls are taken; the process ends when the last is over.
pub(crate) const STOPPING: &str = "STOPPING=1";

/// Tells the service manager, where there is one. A manager that can't be told changes nothing
/// for calls, so the failure is logged and that is all.
pub(crate) fn tell(state: &str) {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else {
        return;
    };
    if let Err(error) = send(&socket, state) {
        tracing::warn!(%error, state, "the service manager could not be told");
    }
}

fn send(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        path => SocketAddr::from_pathname(OsStr::from_bytes(path))?,
    };
    UnixDatagram::unbound()?
        .send_to_addr(state.as_bytes(), &address)
        .map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manager_on_an_abstract_socket_hears_it() {
        let name = format!("tandem-notify-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).expect("a short name");
        let manager = UnixDatagram::bind_addr(&address).expect("nobody else has it");
        send(OsStr::new(&format!("@{name}")), READY).expect("somebody listens");
        let mut buffer = [0; 16];
        let len = manager.recv(&mut buffer).expect("sent above");
        assert_eq!(&buffer[..len], b"READY=1");
    }
}
