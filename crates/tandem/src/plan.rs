//! Which dialplan is in force: one of the two built in, or a file.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use dialplan::Plan;

use crate::config::Dialplan;

const DEFAULT: &str = include_str!("../../../dialplan/default.toml");
const LAB: &str = include_str!("../../../dialplan/lab.toml");

/// Loads what the settings name. Errors say file, line and column, or why it can't be read.
pub(crate) fn load(settings: &Dialplan) -> anyhow::Result<Arc<Plan>> {
    let overrides: Vec<_> = settings
        .set
        .iter()
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    let load = |name: &str, text: &str| Ok(Arc::new(Plan::load(name, text, &overrides)?));
    match settings.file.as_str() {
        "default" => load("default (built in)", DEFAULT),
        "lab" => load("lab (built in)", LAB),
        file => {
            let text = std::fs::read_to_string(Path::new(file)).with_context(|| {
                format!("cannot read the dialplan {file}; name a file, or `default` or `lab`")
            })?;
            load(file, &text)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(file: &str) -> Dialplan {
        Dialplan {
            file: file.into(),
            ..Dialplan::default()
        }
    }

    #[test]
    fn what_is_built_in_loads() {
        for name in ["default", "lab"] {
            load(&settings(name)).expect(name);
        }
    }

    #[test]
    fn a_missing_file_is_one_line() {
        let error = format!(
            "{:#}",
            load(&settings("/none/such.toml")).expect_err("no such file")
        );
        assert!(
            error.starts_with("cannot read the dialplan /none/such.toml; name a file"),
            "{error}"
        );
    }
}
