//! Looks through Rust sources for what a core crate must not name.
//!
//! Clippy's lists catch calls by path; this catches the names themselves, also where a macro or a
//! re-export hides the call, and it runs with a plain `cargo test`. Comments, and what is compiled
//! for tests alone, are left out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Something found where it must not be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Finding {
    /// Line, counted from 1.
    pub line: usize,
    /// The name that was found.
    pub name: String,
}

/// Names that no core crate says, each with whose business it is.
const FORBIDDEN: [(&str, &str); 26] = [
    ("Instant::now", "clock"),
    (".elapsed()", "clock"),
    ("SystemTime", "clock"),
    ("UNIX_EPOCH", "clock"),
    ("UdpSocket", "sockets"),
    ("TcpStream", "sockets"),
    ("TcpListener", "sockets"),
    ("UnixStream", "sockets"),
    ("ToSocketAddrs", "name look-up"),
    ("std::fs", "files"),
    ("File::open", "files"),
    ("std::thread", "threads"),
    ("thread_local!", "threads"),
    ("std::env", "environment"),
    ("std::process", "environment"),
    ("std::os::", "environment"),
    ("RandomState", "entropy"),
    ("DefaultHasher::new", "a hasher with fixed keys"),
    ("HashMap::new(", "entropy"),
    ("HashSet::new(", "entropy"),
    ("HashMap::with_capacity(", "entropy"),
    ("HashSet::with_capacity(", "entropy"),
    ("getrandom", "entropy"),
    ("rand::", "entropy"),
    ("println!", "output"),
    ("dbg!", "output"),
];

/// Modules of the standard library that a core crate doesn't import from.
const FORBIDDEN_MODULES: [&str; 5] = ["env", "fs", "os", "process", "thread"];

/// Looks through one file's text.
#[must_use]
pub fn findings(source: &str) -> Vec<Finding> {
    let code = shipped_code(source);
    let mut found = Vec::new();
    for (index, line) in code.lines().enumerate() {
        let mut add = |name: &str| {
            found.push(Finding {
                line: index + 1,
                name: name.to_owned(),
            });
        };
        for (name, _) in FORBIDDEN {
            if contains_word(line, name) {
                add(name);
            }
        }
        for (container, parameters) in [("HashMap<", 3), ("HashSet<", 2)] {
            for (at, _) in line.match_indices(container) {
                let given = parameters_of(&line[at + container.len()..]);
                if given.is_some_and(|given| given < parameters) {
                    add(&format!("{container}> without a hasher"));
                }
            }
        }
    }
    found.extend(grouped_imports(&code));
    found
}

/// Every source file of a crate that is compiled outside tests.
///
/// # Errors
/// When a directory or file can't be read.
pub fn shipped_files(src: &Path) -> std::io::Result<Vec<(PathBuf, String)>> {
    let mut files = Vec::new();
    let mut tests = BTreeSet::new();
    let mut directories = vec![src.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path)?;
                let home = module_home(&path);
                for name in test_modules(&text) {
                    tests.insert(home.join(format!("{name}.rs")));
                    tests.insert(home.join(name));
                }
                files.push((path, text));
            }
        }
    }
    files.retain(|(path, _)| !path.ancestors().any(|ancestor| tests.contains(ancestor)));
    files.sort();
    Ok(files)
}

/// Where the submodules of a file lie.
fn module_home(path: &Path) -> PathBuf {
    let parent = path.parent().unwrap_or(path);
    match path.file_stem().and_then(|stem| stem.to_str()) {
        Some("lib" | "main" | "mod") | None => parent.to_owned(),
        Some(stem) => parent.join(stem),
    }
}

/// Modules in files of their own that `#[cfg(test)]` stands before.
fn test_modules(text: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    (0..lines.len())
        .filter_map(|index| test_module_at(&lines, index)?.strip_suffix(';'))
        .filter_map(|declaration| declaration.rsplit_once("mod "))
        .map(|(_, name)| name.to_owned())
        .collect()
}

/// The declaration of the module that `#[cfg(test)]` in this line stands before, further
/// attributes between them.
fn test_module_at<'a>(lines: &[&'a str], index: usize) -> Option<&'a str> {
    if lines[index].trim() != "#[cfg(test)]" {
        return None;
    }
    let mut open = 0;
    for line in &lines[index + 1..] {
        let line = line.trim();
        if open == 0 && !line.starts_with("#[") {
            return (line.contains("mod ") && line.ends_with(['{', ';'])).then_some(line);
        }
        open += line.matches(['[', '(']).count();
        open = open.saturating_sub(line.matches([']', ')']).count());
    }
    None
}

/// The text up to its test module, comments blanked out, line by line.
fn shipped_code(source: &str) -> String {
    let mut code = String::new();
    let mut test = false;
    let lines: Vec<_> = source.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        let opens = test_module_at(&lines, index).is_some_and(|module| module.ends_with('{'));
        // By convention tests come last in a file; what follows them is not looked for.
        test |= opens && !line.starts_with(' ');
        if !test {
            code.push_str(without_comment(line));
        }
        code.push('\n');
    }
    code
}

fn without_comment(line: &str) -> &str {
    let comment = line.match_indices("//").map(|(at, _)| at);
    let start = comment
        .filter(|at| *at == 0 || line[..*at].ends_with(char::is_whitespace))
        .min();
    start.map_or(line, |at| &line[..at])
}

/// Whether a name stands in a line, not as the end of a longer one.
fn contains_word(line: &str, name: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(name)
        .any(|(at, _)| !name.starts_with(inner) || !line[..at].ends_with(inner))
}

/// How many type parameters stand before the matching `>`; `None` when the line ends before.
fn parameters_of(text: &str) -> Option<usize> {
    let (mut depth, mut commas, mut last) = (0_u32, 0, ' ');
    for (at, c) in text.char_indices() {
        match c {
            '>' if depth == 0 => {
                let trailing = text[..at].trim_end().ends_with(',');
                return Some(commas + usize::from(!trailing));
            }
            // The arrow of a function type closes nothing.
            '>' if last == '-' => {}
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => commas += 1,
            _ => {}
        }
        last = c;
    }
    None
}

/// `use std::{..., fs::File, ...}` names no path that a plain search would find.
fn grouped_imports(code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (at, start) in code.match_indices("std::{") {
        let group = &code[at + start.len()..];
        let group = group.split_once(';').map_or(group, |(group, _)| group);
        let line = code[..at].lines().count().max(1);
        let mut depth = 0_u32;
        let mut word = String::new();
        for c in group.chars().chain([',']) {
            match c {
                ',' | ':' | '}' | '{' => {
                    if depth == 0 && FORBIDDEN_MODULES.contains(&word.trim()) {
                        found.push(Finding {
                            line,
                            name: format!("std::{{{}}}", word.trim()),
                        });
                    }
                    word.clear();
                    match c {
                        '{' => depth += 1,
                        '}' => depth = depth.saturating_sub(1),
                        _ => {}
                    }
                }
                _ => word.push(c),
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(source: &str) -> Vec<String> {
        findings(source)
            .into_iter()
            .map(|finding| finding.name)
            .collect()
    }

    #[test]
    fn every_forbidden_name_is_found() {
        for (name, _) in FORBIDDEN {
            assert!(
                names(&format!("    let x = {name};")).contains(&name.to_owned()),
                "{name}"
            );
        }
    }

    #[test]
    fn names_in_comments_and_longer_names_are_not() {
        let rows = [
            "// Instant::now() is for the shell",
            "    let x = 1; // not std::fs",
            "//! std::thread",
            "let s = operand::x();",
            "use std::time::{Duration, Instant};",
            "let url = \"http://x\";",
        ];
        for row in rows {
            assert_eq!(names(row), Vec::<String>::new(), "{row}");
        }
    }

    #[test]
    fn a_map_without_its_own_hasher_is_found() {
        let bad = [
            "calls: HashMap<u64, Call>,",
            "x: std::collections::HashMap<(u8, u8), fn(u8) -> u8>,",
            "s: HashSet<Vec<(u8, u8)>>,",
        ];
        let good = [
            "calls: HashMap<u64, Call, SeededState>,",
            "s: HashSet<Vec<(u8, u8)>, SeededState>,",
            "m: BTreeMap<u64, Call>,",
        ];
        assert!(bad.iter().all(|row| names(row).len() == 1));
        assert!(good.iter().all(|row| names(row).is_empty()));
    }

    #[test]
    fn grouped_imports_are_looked_into() {
        assert_eq!(
            names("use std::{collections::BTreeMap, fs::File};"),
            ["std::{fs}"]
        );
        assert_eq!(names("use std::{\n    env,\n    thread,\n};").len(), 2);
        assert!(names("use std::{collections::{BTreeMap, env}, time::Duration};").is_empty());
    }

    #[test]
    fn test_code_is_left_out_and_shipped_code_is_not() {
        let source =
            "fn f() { Instant::now(); }\n#[cfg(test)]\nmod tests {\n  Instant::now();\n}\n";
        assert_eq!(
            findings(source),
            [Finding {
                line: 1,
                name: "Instant::now".to_owned()
            }]
        );
        assert_eq!(
            test_modules("#[cfg(test)]\nmod table;\nmod other;\n"),
            ["table"]
        );
        let home = module_home(Path::new("src/endpoint/mod.rs"));
        assert_eq!(home, Path::new("src/endpoint"));
        assert_eq!(module_home(Path::new("src/a/b.rs")), Path::new("src/a/b"));
    }
}
