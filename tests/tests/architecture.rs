//! The shape of the workspace: who imports whom, and what the core keeps away from.
//!
//! `crates/README.md` is the drawing; here it is held against what cargo and the sources say.

use std::collections::BTreeSet;
use std::fs;

use tandem_tests::workspace::{self, Member};
use tandem_tests::{source, workspace::Row};

/// Crates that bring clocks, sockets, threads or entropy.
const OUTSIDE: [&str; 6] = ["tokio", "mio", "socket2", "rand", "getrandom", "rustix"];

/// What every core crate's `.clippy.toml` disallows.
const DISALLOWED: [&str; 17] = [
    "std::time::Instant::now",
    "std::time::Instant::elapsed",
    "std::time::SystemTime::now",
    "std::time::SystemTime::elapsed",
    "std::thread::spawn",
    "std::thread::sleep",
    "std::env::var",
    "std::env::args",
    "std::fs::read",
    "std::fs::write",
    "std::fs::File",
    "std::collections::HashMap::new",
    "std::collections::HashSet::new",
    "std::hash::RandomState",
    "std::net::UdpSocket",
    "std::net::TcpStream",
    "std::net::TcpListener",
];

/// The members of one layer, with what cargo says about them.
fn layer(layer: &str) -> Vec<(String, Row, Member)> {
    let mut members = workspace::members();
    let rows = workspace::table()
        .into_iter()
        .filter(|(_, row)| row.layer == layer);
    let found: Vec<_> = rows
        .filter_map(|(name, row)| members.remove(&name).map(|member| (name, row, member)))
        .collect();
    assert!(
        !found.is_empty(),
        "crates/README.md has no crate of layer {layer}"
    );
    found
}

#[test]
fn imports_are_those_of_the_table() {
    let (table, members) = (workspace::table(), workspace::members());
    let drawn: BTreeSet<_> = table.keys().collect();
    let real: BTreeSet<_> = members.keys().collect();
    assert_eq!(
        drawn, real,
        "crates/README.md (left) and the workspace (right) differ"
    );
    for (name, member) in &members {
        assert_eq!(
            table[name].imports, member.imports,
            "{name} imports (right) what crates/README.md doesn't say (left), or the other way"
        );
    }
}

#[test]
fn nothing_points_up() {
    let table = workspace::table();
    for (name, row) in &table {
        let allowed: &[&str] = match row.layer.as_str() {
            "core" => &["core"],
            "shell" => &["core", "shell"],
            "mirror" | "binary" | "tests" => &["core", "shell", "mirror"],
            other => panic!("{name} has the unknown layer {other}"),
        };
        for import in &row.imports {
            let layer = &table[import].layer;
            assert!(
                allowed.contains(&layer.as_str()),
                "{name} ({}) imports {import}",
                row.layer
            );
        }
    }
}

#[test]
fn the_witness_shares_no_media_or_call_logic_with_the_server() {
    let lab = &workspace::members()["lab"];
    for import in ["rtp", "srtp", "media", "engine", "b2bua"] {
        let imported = lab.imports.contains(import) || lab.test_imports.contains(import);
        assert!(
            !imported,
            "lab imports {import}: it would be no independent witness"
        );
    }
}

#[test]
fn no_core_crate_reaches_clocks_sockets_threads_or_entropy() {
    for (name, ..) in layer("core") {
        let arguments = [
            "tree", "--locked", "-p", &name, "-e", "normal", "--prefix", "none", "-f", "{p}",
        ];
        let tree = workspace::cargo(&arguments);
        assert!(
            tree.starts_with(&name),
            "cargo tree speaks of something else:\n{tree}"
        );
        for line in tree.lines() {
            let reached = line.split(' ').next().unwrap_or_default();
            assert!(
                !OUTSIDE.contains(&reached),
                "{name} reaches {reached}:\n{tree}"
            );
        }
    }
}

#[test]
fn core_crates_forbid_unsafe_code_and_disallow_what_is_outside() {
    for (name, _, member) in layer("core") {
        let read = |file: &str| {
            let path = member.directory.join(file);
            fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
        };
        let root = read("src/lib.rs");
        assert!(
            root.contains("#![forbid(unsafe_code)]"),
            "{name} doesn't forbid unsafe code"
        );
        let clippy = read(".clippy.toml");
        for path in DISALLOWED {
            let listed = clippy.contains(&format!("\"{path}\""));
            assert!(listed, "{name}/.clippy.toml doesn't disallow {path}");
        }
    }
}

#[test]
fn every_member_takes_the_lints_of_the_workspace() {
    for (name, member) in workspace::members() {
        let path = member.directory.join("Cargo.toml");
        let manifest = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{name}: {e}"));
        let lints = manifest.split("[lints]").nth(1).unwrap_or_default();
        assert!(
            lints.trim_start().starts_with("workspace = true"),
            "{name} has its own lints"
        );
    }
}

#[test]
fn core_sources_name_nothing_that_belongs_to_the_shell() {
    let mut faults = Vec::new();
    for (name, _, member) in layer("core") {
        let files = source::shipped_files(&member.directory.join("src"))
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!files.is_empty(), "{name} has no sources");
        for (path, text) in files {
            for finding in source::findings(&text) {
                faults.push(format!(
                    "{}:{}: {}",
                    path.display(),
                    finding.line,
                    finding.name
                ));
            }
        }
    }
    assert!(faults.is_empty(), "in the core:\n{}", faults.join("\n"));
}
