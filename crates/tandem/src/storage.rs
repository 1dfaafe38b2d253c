//! Where recordings go: the directory, the kind of file system it lies on, and the budget. The
//! rules are the recorder's; here they meet the settings.

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use recorder::directory::{FileSystem, default_budget, default_directory};

use crate::config::Recordings;

/// A directory for recordings.
#[derive(Debug)]
pub(crate) struct Storage {
    pub(crate) directory: PathBuf,
    /// What it lies on, in words.
    pub(crate) kind: String,
    /// Most bytes that recordings may take.
    pub(crate) max_bytes: u64,
}

impl Storage {
    /// Decides where recordings go, without touching anything.
    pub(crate) fn plan(settings: &Recordings) -> anyhow::Result<Self> {
        let directory = match settings.directory.as_str() {
            "auto" => default_directory(),
            given => PathBuf::from(given),
        };
        let kind = FileSystem::of(&directory).with_context(|| advice(&directory))?;
        let max_bytes = match settings.max_bytes {
            0 => default_budget(&directory),
            given => given,
        };
        Ok(Self {
            directory,
            kind: in_words(kind),
            max_bytes,
        })
    }

    /// Says whether a server could record there, and changes nothing.
    pub(crate) fn check(&self) -> anyhow::Result<()> {
        let absolute = std::path::absolute(&self.directory)?;
        let existing = absolute
            .ancestors()
            .find(|path| path.exists())
            .unwrap_or_else(|| Path::new("/"));
        ensure!(
            existing.is_dir(),
            "{}: {} is no directory",
            advice(&self.directory),
            existing.display()
        );
        rustix::fs::access(existing, rustix::fs::Access::WRITE_OK)
            .with_context(|| advice(&self.directory))
    }
}

/// What to do about a directory that can't be used.
pub(crate) fn advice(directory: &Path) -> String {
    format!(
        "cannot record into {}; name another directory with --recordings",
        directory.display()
    )
}

fn in_words(kind: FileSystem) -> String {
    match kind {
        FileSystem::Tmpfs {
            size_bytes: Some(size),
        } => format!("tmpfs of {} MiB", size >> 20),
        FileSystem::Tmpfs { size_bytes: None } => "tmpfs without a limit".to_owned(),
        FileSystem::Ramfs => "ramfs".to_owned(),
        _ => "a file system that is not memory".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(directory: &str, max_bytes: u64) -> Storage {
        let settings = Recordings {
            directory: directory.into(),
            max_bytes,
        };
        Storage::plan(&settings).expect("no file is touched")
    }

    #[test]
    fn a_directory_and_a_budget_that_are_named_are_taken() {
        let storage = plan("/proc/none/such", 7);
        assert_eq!(
            (storage.directory.to_str(), storage.max_bytes),
            (Some("/proc/none/such"), 7)
        );
        assert_eq!(storage.kind, "a file system that is not memory");
    }

    #[test]
    fn a_file_is_no_place_for_recordings() {
        let error = plan("/proc/self/status", 0)
            .check()
            .expect_err("a file")
            .to_string();
        assert!(
            error.starts_with("cannot record into /proc/self/status; name another"),
            "{error}"
        );
        let below = Recordings {
            directory: "/proc/self/status/below".into(),
            max_bytes: 0,
        };
        assert!(Storage::plan(&below).is_err());
    }

    #[test]
    fn the_default_is_the_recorders() {
        let storage = plan("auto", 0);
        assert_eq!(storage.directory, default_directory());
        assert_eq!(storage.max_bytes, default_budget(&storage.directory));
    }
}
