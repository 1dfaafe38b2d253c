//! Ports and machine time for tests that use real sockets and run side by side.
//!
//! Ports come from a range that neither the system's ephemeral ports nor the server's RTP ports
//! touch. A lock on a file for each port keeps them apart between test processes; that nobody else
//! has them is tried by binding.

use std::fs::{File, TryLockError};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::workspace;

/// Where ports are taken from: below 16384, where the server's RTP ports begin.
const RANGE: Range<u16> = 10_000..16_384;

/// Consecutive ports of 127.0.0.1, lent until this value is dropped.
#[derive(Debug)]
pub struct Ports {
    first: u16,
    locks: Vec<File>,
}

impl Ports {
    /// Lends so many ports, the first one even.
    ///
    /// # Panics
    /// When there are none, or the locks can't be made.
    #[must_use]
    pub fn lend(count: u16) -> Self {
        let directory = scratch_root().join("ports");
        std::fs::create_dir_all(&directory)
            .unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
        let ephemeral = ephemeral_ports();
        let places = u32::from((RANGE.end - RANGE.start - count) / 2);
        // Each process starts elsewhere, so that few locks are tried in vain.
        let start = std::process::id().wrapping_mul(2_654_435_761) % places;
        (0..places)
            .map(|n| RANGE.start + 2 * u16::try_from((start + n) % places).expect("below 2^16"))
            .filter(|first| (*first..first + count).all(|port| !ephemeral.contains(&port)))
            .find_map(|first| Self::try_lend(&directory, first, count))
            .unwrap_or_else(|| panic!("no {count} free ports in {RANGE:?}"))
    }

    fn try_lend(directory: &Path, first: u16, count: u16) -> Option<Self> {
        let locks = (first..first + count).map(|port| lock(directory, port));
        let locks = locks.collect::<Option<Vec<_>>>()?;
        (first..first + count)
            .all(is_free)
            .then_some(Self { first, locks })
    }

    /// The first one.
    #[must_use]
    pub fn first(&self) -> u16 {
        self.first
    }

    /// All of them.
    #[must_use]
    pub fn all(&self) -> Range<u16> {
        let count = u16::try_from(self.locks.len()).expect("as many as were asked for");
        self.first..self.first + count
    }
}

/// Waits until no other test of this machine holds it: for tests that need the machine's time, and
/// would fail beside another.
///
/// # Panics
/// When the lock can't be made.
#[must_use]
pub fn alone() -> File {
    let root = scratch_root();
    let path = root.join("alone");
    std::fs::create_dir_all(&root).unwrap_or_else(|error| panic!("{}: {error}", root.display()));
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file.lock()
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    file
}

/// Where tests put their files.
#[must_use]
pub fn scratch_root() -> PathBuf {
    target().join("tmp/tandem-tests")
}

/// Cargo's target directory.
#[must_use]
pub fn target() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    workspace::root().join(given.unwrap_or_else(|| PathBuf::from("target")))
}

/// A directory for one test, removed at the end of one that passes.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// An empty directory for the test of this name.
    ///
    /// # Panics
    /// When it can't be made.
    #[must_use]
    pub fn new(test: &str) -> Self {
        let path = scratch_root().join(format!("{test}-{}", std::process::id()));
        let made = std::fs::remove_dir_all(&path)
            .or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })
            .and_then(|()| std::fs::create_dir_all(&path));
        made.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self(path)
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// A file in it.
    #[must_use]
    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("its files are in {}", self.0.display());
        } else {
            // What can't be removed does no harm: the next run empties it.
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}

fn lock(directory: &Path, port: u16) -> Option<File> {
    let path = directory.join(port.to_string());
    let file = File::create(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    match file.try_lock() {
        Ok(()) => Some(file),
        Err(TryLockError::WouldBlock) => None,
        Err(TryLockError::Error(error)) => panic!("{}: {error}", path.display()),
    }
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
}

/// The ports that the system gives to whoever asks for none in particular.
fn ephemeral_ports() -> Range<u16> {
    let path = "/proc/sys/net/ipv4/ip_local_port_range";
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut numbers = text
        .split_whitespace()
        .filter_map(|number| number.parse::<u16>().ok());
    match (numbers.next(), numbers.next()) {
        (Some(first), Some(last)) => first..last.saturating_add(1),
        // Not Linux: the range that IANA gives for it (RFC 6335 section 6).
        _ => 49_152..u16::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_lent_twice() {
        let lent: Vec<_> = (0..20).map(|_| Ports::lend(4)).collect();
        let mut all: Vec<u16> = lent.iter().flat_map(Ports::all).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 80);
        assert!(lent.iter().all(|ports| ports.first() % 2 == 0));
    }

    #[test]
    fn a_busy_port_is_not_lent() {
        let ports = Ports::lend(2);
        let first = ports.first();
        let _busy = UdpSocket::bind((Ipv4Addr::LOCALHOST, first + 1)).unwrap();
        drop(ports);
        let directory = scratch_root().join("ports");
        assert!(Ports::try_lend(&directory, first, 2).is_none());
        assert!(Ports::try_lend(&directory, first, 1).is_some());
    }
}
