//! Where recordings land, how much they may hold, and what lies there already.
//!
//! RAM first: `/dev/shm/tandem` when that is a tmpfs or ramfs, `recordings/` otherwise. A ramfs
//! reports neither size nor limit, so the budget is always our own number.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The directory used when it lies in RAM.
const RAM_DIRECTORY: &str = "/dev/shm/tandem";

/// The directory used otherwise, relative to where the server was started.
const DISK_DIRECTORY: &str = "recordings";

/// Deepest level of sub-directories that [`survey`] descends to.
const MAX_DEPTH: usize = 8;

/// What a directory is kept on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileSystem {
    /// tmpfs: RAM and swap, with a size.
    Tmpfs {
        /// Size of the whole file system in bytes; `None` when mounted without a limit.
        size_bytes: Option<u64>,
    },
    /// ramfs: RAM without a limit or a size.
    Ramfs,
    /// Anything else, presumably a disk.
    Other,
}

impl FileSystem {
    /// Asks the kernel (statfs) about `path`, or about its nearest ancestor that exists.
    ///
    /// # Errors
    /// What statfs says of the last ancestor.
    pub fn of(path: &Path) -> io::Result<Self> {
        // f_type of statfs(2); linux/magic.h.
        const TMPFS_MAGIC: u64 = 0x0102_1994;
        const RAMFS_MAGIC: u64 = 0x8584_58f6;
        let mut known = path;
        let stat = loop {
            let asked = if known.as_os_str().is_empty() {
                Path::new(".")
            } else {
                known
            };
            match (rustix::fs::statfs(asked), known.parent()) {
                (Ok(stat), _) => break stat,
                (Err(rustix::io::Errno::NOENT), Some(parent)) => known = parent,
                (Err(error), _) => return Err(error.into()),
            }
        };
        // The word's width and sign differ between architectures; the magics fit in 32 bits.
        Ok(match stat.f_type as u64 & 0xffff_ffff {
            TMPFS_MAGIC => {
                let size = stat.f_blocks.saturating_mul(stat.f_bsize as u64);
                Self::Tmpfs {
                    size_bytes: (size > 0).then_some(size),
                }
            }
            RAMFS_MAGIC => Self::Ramfs,
            _ => Self::Other,
        })
    }

    /// Whether files here live in memory.
    pub fn is_ram(self) -> bool {
        !matches!(self, Self::Other)
    }
}

/// The recordings directory used when none is configured. It need not exist yet.
pub fn default_directory() -> PathBuf {
    choose(Path::new(RAM_DIRECTORY), Path::new(DISK_DIRECTORY))
}

fn choose(ram: &Path, disk: &Path) -> PathBuf {
    let in_ram = FileSystem::of(ram).is_ok_and(FileSystem::is_ram);
    if in_ram {
        ram.to_owned()
    } else {
        disk.to_owned()
    }
}

/// The budget in bytes used when none is configured: a quarter of RAM, or of the tmpfs that holds
/// `directory` when that is smaller.
pub fn default_budget(directory: &Path) -> u64 {
    let info = rustix::system::sysinfo();
    let ram = (info.totalram as u64).saturating_mul(u64::from(info.mem_unit.max(1)));
    quarter(ram, FileSystem::of(directory).unwrap_or(FileSystem::Other))
}

fn quarter(ram_bytes: u64, file_system: FileSystem) -> u64 {
    match file_system {
        FileSystem::Tmpfs {
            size_bytes: Some(size),
        } => ram_bytes.min(size) / 4,
        _ => ram_bytes / 4,
    }
}

/// What [`survey`] found.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    /// Bytes of all regular files below the directory.
    pub(crate) bytes: u64,
    /// WAV files whose name tells the caller: (caller, file, last change).
    pub(crate) callers: Vec<(String, PathBuf, SystemTime)>,
}

/// Adds up what lies in `directory`. Symbolic links aren't followed; what vanishes or can't be read
/// meanwhile doesn't count.
pub(crate) fn survey(directory: &Path) -> Survey {
    let mut found = Survey::default();
    let mut open = vec![(directory.to_owned(), 0)];
    while let Some((path, depth)) = open.pop() {
        let Ok(entries) = fs::read_dir(&path) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            if meta.is_dir() && depth < MAX_DEPTH {
                open.push((entry.path(), depth + 1));
            } else if meta.is_file() {
                found.bytes += meta.len();
                let name = entry.file_name();
                if let Some(caller) = name.to_str().and_then(crate::template::caller_of) {
                    let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    found
                        .callers
                        .push((caller.to_owned(), entry.path(), changed));
                }
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_is_in_ram_only_where_that_is_ram() {
        // /proc is never a tmpfs, and this source directory's own kind is whatever it is.
        assert_eq!(
            choose(Path::new("/proc/tandem"), Path::new("d")),
            Path::new("d")
        );
        assert_eq!(
            FileSystem::of(Path::new("/proc/none/deeper")).unwrap(),
            FileSystem::Other
        );
        if matches!(FileSystem::of(Path::new("/dev/shm")), Ok(kind) if kind.is_ram()) {
            assert_eq!(default_directory(), Path::new(RAM_DIRECTORY));
        } else {
            assert_eq!(default_directory(), Path::new(DISK_DIRECTORY));
        }
    }

    #[test]
    fn budget_is_a_quarter_of_the_smaller() {
        let tmpfs = |size| FileSystem::Tmpfs { size_bytes: size };
        assert_eq!(quarter(8 << 30, tmpfs(Some(1 << 30))), 1 << 28);
        assert_eq!(quarter(8 << 30, tmpfs(Some(16 << 30))), 2 << 30);
        assert_eq!(quarter(8 << 30, tmpfs(None)), 2 << 30);
        assert_eq!(quarter(8 << 30, FileSystem::Ramfs), 2 << 30);
        assert_eq!(quarter(8 << 30, FileSystem::Other), 2 << 30);
        assert!(default_budget(Path::new("/proc")) > 1 << 20);
    }

    #[test]
    fn survey_adds_up_files_of_all_levels() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(
            root.path().join("20260921-141320-1000-echo-x.wav"),
            [0; 100],
        )
        .unwrap();
        fs::write(
            root.path().join("a/b/20260921-141321-1001-echo-x.wav"),
            [0; 11],
        )
        .unwrap();
        fs::write(root.path().join("a/notes"), [0; 5]).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("a/link")).unwrap();
        let found = survey(root.path());
        assert_eq!(found.bytes, 116);
        let mut callers: Vec<_> = found.callers.iter().map(|(c, ..)| c.as_str()).collect();
        callers.sort_unstable();
        assert_eq!(callers, ["1000", "1001"]);
        assert_eq!(survey(&root.path().join("gone")).bytes, 0);
    }
}
