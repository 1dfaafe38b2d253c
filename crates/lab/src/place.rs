//! Loopback addresses of a run's own, and a directory in memory for its recordings.
//!
//! All of 127.0.0.0/8 is this machine on Linux. A run takes addresses that follow from its
//! process id, so that runs beside each other and other programs do not meet on a port.

use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use net::rtp::MediaAddresses;

/// The addresses of one run.
#[derive(Copy, Clone, PartialEq, Eq, Debug)]
pub struct Loopback([u8; 2]);

impl Loopback {
    /// Those of this process.
    #[must_use]
    pub fn of_this_process() -> Self {
        let pid = std::process::id();
        // 127.64.0.0 to 127.127.255.0: away from 127.0.0.1, which everybody uses.
        Self([64 | (pid >> 8) as u8 & 63, pid as u8])
    }

    /// Always the same, for a server that is started by hand: 127.63.0.x.
    #[must_use]
    pub fn fixed() -> Self {
        Self([63, 0])
    }

    /// Another run's of the same process.
    #[must_use]
    pub fn next(self) -> Self {
        Self([128 | self.0[0] & 63, self.0[1]])
    }

    fn host(self, n: u8) -> IpAddr {
        Ipv4Addr::new(127, self.0[0], self.0[1], n).into()
    }

    /// Where the server's media is to be.
    #[must_use]
    pub fn server_media(self) -> IpAddr {
        self.host(1)
    }

    /// Where the lab's media is.
    #[must_use]
    pub fn lab_media(self) -> MediaAddresses {
        self.host(2).into()
    }

    /// Where the caller calls from.
    #[must_use]
    pub fn caller(self) -> IpAddr {
        self.host(3)
    }

    /// Where the nth callee listens.
    #[must_use]
    pub fn callee(self, n: u8) -> SocketAddr {
        SocketAddr::new(self.host(16 + n), 5090)
    }
}

/// A new directory `name` in memory if this machine has such a file system, else among the
/// temporary files.
///
/// # Errors
/// When it cannot be made.
pub fn directory(name: &str) -> io::Result<PathBuf> {
    let parent = Path::new("/dev/shm");
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let parent = if is_memory(&mounts, parent) {
        parent.to_owned()
    } else {
        std::env::temp_dir()
    };
    let directory = parent.join(name);
    fs::create_dir_all(&directory)?;
    Ok(directory)
}

/// Whether a tmpfs or ramfs is mounted at `path`, by /proc/mounts.
fn is_memory(mounts: &str, path: &Path) -> bool {
    mounts.lines().any(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let at = fields.next().is_some_and(|at| Path::new(at) == path);
        at && matches!(fields.next(), Some("tmpfs" | "ramfs"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_loopback_and_differ() {
        let place = Loopback::of_this_process();
        let other = place.next();
        let all = [
            place.server_media(),
            place.lab_media().as_slice()[0],
            place.caller(),
            place.callee(0).ip(),
            place.callee(1).ip(),
            other.server_media(),
            other.caller(),
        ];
        for (n, address) in all.iter().enumerate() {
            assert!(
                address.is_loopback() && !all[..n].contains(address),
                "{address}"
            );
        }
    }

    #[test]
    fn memory_is_told_from_disk() {
        let mounts =
            "/dev/vda / ext4 rw 0 0\ntmpfs /dev/shm tmpfs rw 0 0\nx /mnt/shm ramfs rw 0 0\n";
        assert!(is_memory(mounts, Path::new("/dev/shm")));
        assert!(is_memory(mounts, Path::new("/mnt/shm")));
        assert!(!is_memory(mounts, Path::new("/")));
        assert!(!is_memory(mounts, Path::new("/dev")));
    }
}
