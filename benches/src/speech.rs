//! Half a minute of speech, spoken by espeak-ng and brought to a sample rate by sox.

use std::process::{Command, Stdio};

use anyhow::{Context, ensure};

/// What is said. About 30 s at espeak-ng's default speed.
const TEXT: &str = "A switch that joins one trunk to another has done its work well when nobody \
    notices it. The caller hears the callee, the callee hears the caller, and both believe that \
    there is nothing in between. Whoever builds it counts what each call costs: so many \
    microseconds to take a packet in, so many to turn it from one code into another, so many to \
    send it on. Seven hundred and thirty one calls were up at a quarter past nine this morning; \
    at noon it was twice that number, and the clock on the wall went on ticking.";

/// The speech at this rate, mono.
///
/// # Errors
/// espeak-ng or sox is missing or fails.
pub fn at(sample_rate: u32) -> anyhow::Result<Vec<i16>> {
    let spoken = Command::new("espeak-ng")
        .args(["--stdout", TEXT])
        .stderr(Stdio::null())
        .output()
        .context("cannot run espeak-ng; scripts/setup installs it")?;
    ensure!(spoken.status.success(), "espeak-ng failed");
    let directory = tempfile::tempdir()?;
    let wav = directory.path().join("speech.wav");
    std::fs::write(&wav, &spoken.stdout)?;
    let converted = Command::new("sox")
        .arg("-D")
        .arg(&wav)
        .args([
            "-t", "raw", "-e", "signed", "-b", "16", "-L", "-c", "1", "-r",
        ])
        .args([&sample_rate.to_string(), "-", "gain", "-n", "-6"])
        .output()
        .context("cannot run sox; scripts/setup installs it")?;
    ensure!(
        converted.status.success(),
        "sox: {}",
        String::from_utf8_lossy(&converted.stderr)
    );
    let (samples, _) = converted.stdout.as_chunks::<2>();
    Ok(samples
        .iter()
        .map(|octets| i16::from_le_bytes(*octets))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_half_a_minute_and_loud_enough() {
        let pcm = at(8_000).expect("both programs are installed by scripts/setup");
        let seconds = pcm.len() / 8_000;
        assert!((24..=40).contains(&seconds), "{seconds} s");
        assert!(pcm.iter().any(|sample| sample.unsigned_abs() > 10_000));
    }
}
