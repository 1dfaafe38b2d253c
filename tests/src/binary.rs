//! The `tandem` binary: found, and fresh.
//!
//! `cargo test` doesn't build it for this package: `cargo build --workspace --bins` does, and
//! `scripts/test` runs that first. A test with a binary that is missing, or older than the sources
//! it was built from, fails and says so.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::workspace;

/// The binary: `TANDEM_BIN`, or what cargo built last in this profile.
///
/// # Panics
/// When it is missing, or older than its sources.
#[must_use]
pub fn tandem() -> PathBuf {
    let given = std::env::var_os("TANDEM_BIN").map(PathBuf::from);
    let profile = if cfg!(debug_assertions) {
        "debug"
    } else {
        "release"
    };
    let path = given.unwrap_or_else(|| target().join(profile).join("tandem"));
    if let Err(fault) = check(&path) {
        panic!(
            "{}: {fault}; run `cargo build --workspace --bins`, or scripts/test",
            path.display()
        );
    }
    path
}

/// Cargo's target directory.
fn target() -> PathBuf {
    let given = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    workspace::root().join(given.unwrap_or_else(|| PathBuf::from("target")))
}

/// What is wrong with a binary.
fn check(path: &Path) -> Result<(), String> {
    let built = changed(path).ok_or("there is no such binary")?;
    for source in sources(path) {
        // A source that is gone since belonged to an older tree.
        let newer = changed(&source).is_none_or(|at| at > built);
        if newer {
            return Err(format!("older than {}", source.display()));
        }
    }
    Ok(())
}

/// What a binary was built from: cargo writes it beside it. For a binary from elsewhere, every
/// source of the workspace that could be in it.
fn sources(binary: &Path) -> Vec<PathBuf> {
    let listed = std::fs::read_to_string(binary.with_extension("d")).unwrap_or_default();
    match listed.split_once(": ") {
        Some((_, list)) => split_escaped(list.trim()),
        None => {
            let members = workspace::members();
            let names = ["tests", "benches"];
            let shipped = members.values().map(|member| member.directory.clone());
            let shipped = shipped.filter(|path| !names.iter().any(|name| path.ends_with(name)));
            let files = shipped.flat_map(|directory| {
                crate::source::shipped_files(&directory.join("src")).unwrap_or_default()
            });
            files.map(|(path, _)| path).collect()
        }
    }
}

/// Splits at spaces that have no backslash before them, as in a makefile.
fn split_escaped(list: &str) -> Vec<PathBuf> {
    let spaced = list.replace("\\ ", "\0");
    spaced
        .split_whitespace()
        .map(|path| PathBuf::from(path.replace('\0', " ")))
        .collect()
}

fn changed(path: &Path) -> Option<SystemTime> {
    path.metadata()
        .and_then(|metadata| metadata.modified())
        .ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::live::Scratch;

    #[test]
    fn a_missing_or_old_binary_is_told() {
        let scratch = Scratch::new();
        let [binary, source, list] = ["tandem", "a b.rs", "tandem.d"].map(|n| scratch.path(n));
        assert!(check(&binary).unwrap_err().contains("no such binary"));

        std::fs::write(&source, "").unwrap();
        std::fs::write(&binary, "").unwrap();
        let escaped = source.display().to_string().replace(' ', "\\ ");
        std::fs::write(&list, format!("{}: {escaped}\n", binary.display())).unwrap();
        assert_eq!(check(&binary), Ok(()));

        let later = changed(&binary).unwrap() + Duration::from_secs(2);
        std::fs::File::open(&source)
            .unwrap()
            .set_modified(later)
            .unwrap();
        assert!(check(&binary).unwrap_err().starts_with("older than"));
    }

    #[test]
    fn a_binary_from_elsewhere_is_held_against_every_source() {
        let sources = sources(Path::new("/nowhere/tandem"));
        let has = |end: &str| sources.iter().any(|path| path.ends_with(end));
        assert!(has("crates/tandem/src/main.rs") && has("crates/sip/src/lib.rs"));
        assert!(!has("tests/src/lib.rs"));
    }
}
