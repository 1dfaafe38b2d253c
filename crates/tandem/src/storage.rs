//! Where recordings go: the directory, the kind of file system it lies on, and the budget.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use rustix::fs::statfs;
use rustix::system::sysinfo;

use crate::config::Recordings;

/// A directory that recordings can be written to.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) directory: PathBuf,
    pub(crate) kind: FileSystem,
    /// Most bytes that recordings may take.
    pub(crate) max_bytes: u64,
}

/// What a directory lies on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileSystem {
    /// Memory with a size limit, in bytes.
    Tmpfs { size: u64 },
    /// Memory without one.
    Ramfs,
    /// Anything else, by its magic number of statfs(2).
    Other { magic: u64 },
}

/// linux/magic.h
const TMPFS_MAGIC: u64 = 0x0102_1994;
const RAMFS_MAGIC: u64 = 0x8584_58f6;

impl fmt::Display for FileSystem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tmpfs { size } => write!(f, "tmpfs of {} MiB", size >> 20),
            Self::Ramfs => f.write_str("ramfs"),
            Self::Other { magic } => write!(f, "no memory file system ({magic:#x})"),
        }
    }
}

impl FileSystem {
    /// The file system that `path`, or the nearest directory above it that exists, lies on.
    fn of(path: &Path) -> anyhow::Result<Self> {
        let absolute = std::path::absolute(path)?;
        let existing = absolute
            .ancestors()
            .find(|path| path.exists())
            .unwrap_or(Path::new("/"));
        let stat =
            statfs(existing).with_context(|| format!("cannot look at {}", existing.display()))?;
        // The kernel's type differs in width and sign between architectures.
        Ok(match stat.f_type as u64 & 0xffff_ffff {
            TMPFS_MAGIC => Self::Tmpfs {
                size: stat.f_blocks * stat.f_bsize as u64,
            },
            RAMFS_MAGIC => Self::Ramfs,
            magic => Self::Other { magic },
        })
    }
}

impl Storage {
    /// Decides where recordings go, without touching anything.
    pub(crate) fn plan(settings: &Recordings) -> anyhow::Result<Self> {
        let directory = match settings.directory.as_str() {
            "auto" => match FileSystem::of(Path::new("/dev/shm")) {
                Ok(FileSystem::Tmpfs { .. } | FileSystem::Ramfs) => {
                    PathBuf::from("/dev/shm/tandem")
                }
                _ => PathBuf::from("recordings"),
            },
            given => PathBuf::from(given),
        };
        let kind = FileSystem::of(&directory)?;
        let max_bytes = match settings.max_bytes {
            0 => default_budget(kind),
            given => given,
        };
        Ok(Self {
            directory,
            kind,
            max_bytes,
        })
    }

    /// Makes the directory and proves that a file can be written there.
    pub(crate) fn prepare(&self) -> anyhow::Result<()> {
        let what = || {
            format!(
                "cannot record into {}; name another with --recordings",
                self.directory.display()
            )
        };
        fs::create_dir_all(&self.directory).with_context(what)?;
        let probe = self
            .directory
            .join(format!(".tandem-{}", std::process::id()));
        fs::write(&probe, b"x")
            .and_then(|()| fs::remove_file(&probe))
            .with_context(what)
    }

    /// Says whether [`Self::prepare`] would succeed, and changes nothing.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        if self.directory.exists() && !self.directory.is_dir() {
            bail!(
                "cannot record into {}: not a directory",
                self.directory.display()
            );
        }
        let absolute = std::path::absolute(&self.directory)?;
        let existing = absolute
            .ancestors()
            .find(|path| path.exists())
            .unwrap_or(Path::new("/"));
        rustix::fs::access(existing, rustix::fs::Access::WRITE_OK).with_context(|| {
            format!(
                "cannot record into {}; name another with --recordings",
                self.directory.display()
            )
        })
    }
}

/// A quarter of RAM, or of the tmpfs when that is smaller.
fn default_budget(kind: FileSystem) -> u64 {
    let info = sysinfo();
    let ram = info.totalram as u64 * u64::from(info.mem_unit);
    match kind {
        FileSystem::Tmpfs { size } if size > 0 => ram.min(size) / 4,
        _ => ram / 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(directory: &str, max_bytes: u64) -> Recordings {
        Recordings {
            directory: directory.into(),
            max_bytes,
        }
    }

    #[test]
    fn a_directory_named_is_taken_with_the_file_system_above_it() {
        let storage = Storage::plan(&settings("/proc/none/such", 7)).expect("no file is touched");
        assert_eq!(
            (storage.directory.to_str(), storage.max_bytes),
            (Some("/proc/none/such"), 7)
        );
        // linux/magic.h, PROC_SUPER_MAGIC.
        assert_eq!(storage.kind, FileSystem::Other { magic: 0x9fa0 });
        let error = format!(
            "{:#}",
            storage.prepare().expect_err("procfs takes no directories")
        );
        assert!(
            error.starts_with("cannot record into /proc/none/such; name another"),
            "{error}"
        );
    }

    #[test]
    fn a_file_is_no_place_for_recordings() {
        let storage = Storage::plan(&settings("/proc/self/status", 0)).expect("no file is touched");
        assert!(storage.check().is_err() && storage.prepare().is_err());
    }

    #[test]
    fn memory_is_the_default_where_there_is_some() {
        let storage = Storage::plan(&settings("auto", 0)).expect("something is chosen");
        let in_memory = !matches!(storage.kind, FileSystem::Other { .. });
        assert_eq!(storage.directory == Path::new("/dev/shm/tandem"), in_memory);
        assert!(storage.max_bytes > 0);
    }
}
