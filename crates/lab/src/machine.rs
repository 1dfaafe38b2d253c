//! The facts without which a figure means nothing: machine, kernel, revision, command.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a report says about where it was made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Facts {
    /// Processor, as the kernel names it.
    pub cpu: String,
    /// Processors this process may use.
    pub cores: usize,
    /// Kernel release.
    pub kernel: String,
    /// Revision of the source tree, `+` when it has changes; `None` outside a repository.
    pub revision: Option<String>,
    /// The command line.
    pub command: String,
    /// Seed of the run.
    pub seed: u64,
}

impl Facts {
    /// Gathers them. What the machine does not say is `unknown`.
    #[must_use]
    pub fn gather(seed: u64) -> Self {
        let args: Vec<String> = std::env::args().collect();
        Self {
            cpu: fs::read_to_string("/proc/cpuinfo")
                .ok()
                .and_then(|text| cpu_model(&text))
                .unwrap_or_else(unknown),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            kernel: fs::read_to_string("/proc/sys/kernel/osrelease")
                .map_or_else(|_| unknown(), |text| text.trim().to_owned()),
            revision: revision(Path::new(".")),
            command: args.join(" "),
            seed,
        }
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "machine   {}, {} cores, Linux {}",
            self.cpu, self.cores, self.kernel
        )?;
        let revision = self.revision.as_deref().unwrap_or("not in a repository");
        writeln!(f, "revision  {revision}; seed {}", self.seed)?;
        write!(f, "command   {}", self.command)
    }
}

fn unknown() -> String {
    "unknown".to_owned()
}

fn cpu_model(cpuinfo: &str) -> Option<String> {
    let line = cpuinfo
        .lines()
        .find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

fn revision(directory: &Path) -> Option<String> {
    let git = |args: &[&str]| {
        let output = Command::new("git")
            .arg("-C")
            .arg(directory)
            .args(args)
            .output()
            .ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| text.trim().to_owned())
    };
    let revision = git(&["rev-parse", "--short=12", "HEAD"])?;
    let changed =
        git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|s| !s.is_empty());
    Some(if changed { revision + "+" } else { revision })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_has_facts() {
        let facts = Facts::gather(7);
        assert!(facts.cores >= 1 && !facts.kernel.is_empty() && !facts.command.is_empty());
        assert!(facts.to_string().contains("seed 7"));
    }

    #[test]
    fn the_model_is_the_first_processor_s() {
        let text = "processor\t: 0\nmodel name\t: AMD EPYC\nflags: x\nmodel name\t: other\n";
        assert_eq!(cpu_model(text).as_deref(), Some("AMD EPYC"));
        assert_eq!(cpu_model(""), None);
    }

    #[test]
    fn outside_a_repository_there_is_no_revision() {
        assert_eq!(revision(Path::new("/proc")), None);
    }
}
