//! What cargo and `crates/README.md` say about who imports whom.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// A row of the table in `crates/README.md`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Row {
    /// `core`, `shell`, `mirror`, `binary` or `tests`.
    pub layer: String,
    /// Names of our own crates.
    pub imports: BTreeSet<String>,
}

/// A member of the workspace.
#[derive(Clone, Debug)]
pub struct Member {
    /// Its directory.
    pub directory: PathBuf,
    /// Our own crates that it imports, outside tests and benches.
    pub imports: BTreeSet<String>,
    /// Our own crates that its tests and benches import.
    pub test_imports: BTreeSet<String>,
}

/// The root of the workspace.
///
/// # Panics
/// When this package has been moved out of it.
#[must_use]
pub fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .expect("tests/ lies in the workspace")
        .to_owned()
}

/// Runs cargo in the workspace; what it prints.
///
/// # Panics
/// When it fails.
#[must_use]
pub fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let output = Command::new(cargo)
        .args(arguments)
        .current_dir(root())
        .output()
        .unwrap_or_else(|error| panic!("cargo can't be run: {error}"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "cargo {} failed:\n{errors}",
        arguments.join(" ")
    );
    String::from_utf8(output.stdout).expect("cargo prints UTF-8")
}

/// The members as cargo knows them.
///
/// # Panics
/// When `cargo metadata` prints something else than its documentation says.
#[must_use]
pub fn members() -> BTreeMap<String, Member> {
    let text = cargo(&["metadata", "--no-deps", "--format-version", "1", "--locked"]);
    let metadata: Value = serde_json::from_str(&text).expect("metadata is JSON");
    let packages = metadata["packages"]
        .as_array()
        .expect("metadata lists packages");
    packages
        .iter()
        .map(|package| {
            let manifest = package["manifest_path"]
                .as_str()
                .expect("a package has a manifest");
            let directory = Path::new(manifest)
                .parent()
                .expect("it lies in a directory");
            let dependencies = package["dependencies"]
                .as_array()
                .expect("dependencies are listed");
            let ours = |test: bool| {
                dependencies
                    .iter()
                    .filter(|d| d["path"].is_string() && (d["kind"] == "dev") == test)
                    .filter_map(|d| d["name"].as_str().map(str::to_owned))
                    .collect()
            };
            let member = Member {
                directory: directory.to_owned(),
                imports: ours(false),
                test_imports: ours(true),
            };
            (
                package["name"]
                    .as_str()
                    .expect("a package has a name")
                    .to_owned(),
                member,
            )
        })
        .collect()
}

/// The table in `crates/README.md`.
///
/// # Panics
/// When the file can't be read.
#[must_use]
pub fn table() -> BTreeMap<String, Row> {
    let path = root().join("crates/README.md");
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    rows(&text)
}

/// Reads the table that starts with the columns crate, layer, imports of ours.
#[must_use]
pub fn rows(markdown: &str) -> BTreeMap<String, Row> {
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|')
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let table = markdown
        .lines()
        .skip_while(|line| !cells(line).starts_with(&HEADING.map(str::to_owned)))
        .take_while(|line| line.starts_with('|'))
        .skip(2);
    table
        .map(cells)
        .filter(|cells| cells.len() > HEADING.len())
        .map(|cells| {
            let imports = cells[2].split_whitespace().filter(|name| *name != "-");
            let row = Row {
                layer: cells[1].clone(),
                imports: imports.map(str::to_owned).collect(),
            };
            (cells[0].clone(), row)
        })
        .collect()
}

const HEADING: [&str; 3] = ["crate", "layer", "imports of ours"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_wherever_it_stands() {
        let text = "# x\n| crate | other |\n|---|---|\n| no | no |\n\n| crate | layer | imports of \
            ours | why |\n|---|---|---|---|\n| a | core | - | x |\n| b | shell | a c | y |\n\nend\n\
            | z | core | a | y |\n";
        let rows = rows(text);
        assert_eq!(rows.keys().collect::<Vec<_>>(), ["a", "b"]);
        assert!(rows["a"].imports.is_empty());
        assert_eq!(rows["b"].imports.iter().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(rows["b"].layer, "shell");
    }
}
