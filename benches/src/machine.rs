//! What the figures belong to.

use std::fs;

/// Processor, number of cores and kernel, in one line.
#[must_use]
pub fn describe() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = cpu.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map_or("unknown", |(_, value)| value.trim())
            .to_owned()
    };
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "{}, {cores} cores, Linux {}",
        field("model name"),
        kernel.trim()
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_one_line_with_cores() {
        let text = super::describe();
        assert!(
            text.contains(" cores, Linux ") && !text.contains('\n'),
            "{text}"
        );
    }
}
