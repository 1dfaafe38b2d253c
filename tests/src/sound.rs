//! Speech for the live tests, and how much alike two sounds are.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::live::{Scratch, correlation, run, samples};

/// Rate at which sounds are compared: a multiple of every codec's.
const RATE: u32 = 48_000;
/// Every so many samples of it are looked at to find where a sound lies.
const STRIDE: usize = 6;

/// Speaks a text into a mono WAV file.
///
/// # Panics
/// Where espeak-ng or sox are missing.
pub fn say(scratch: &Scratch, text: &str, sample_rate: u32, wav: &Path) {
    let raw = wav.with_extension("espeak.wav");
    let _ = run(Command::new("espeak-ng").arg("-w").arg(&raw).arg(text));
    let _ = run(Command::new("sox")
        .current_dir(scratch.path(""))
        .arg(&raw)
        .args(["-r", &sample_rate.to_string(), "-c", "1", "-b", "16"])
        .arg(wav)
        .args(["gain", "-n", "-6"]));
}

/// What of a sound was found in another.
#[derive(Copy, Clone, Debug)]
pub struct Likeness {
    /// Normalised correlation, 1 for the same sound.
    pub correlation: f64,
    /// How much louder it is there.
    pub decibels: f64,
    /// Where it begins, in seconds.
    pub at: f64,
}

/// Looks for the loudest half second of `part` in `whole`, one channel of it; both WAV files, of
/// any rate. `filter` is a chain of sox's effects that both go through first.
///
/// # Panics
/// Where they cannot be read.
#[must_use]
pub fn likeness(part: &Path, (whole, channel): (&Path, usize), filter: &[&str]) -> Likeness {
    let part = at_common_rate(part, 0, filter);
    let whole = at_common_rate(whole, channel, filter);
    let length = RATE as usize / 2;
    let energy = |window: &[i16]| window.iter().map(|s| f64::from(*s).powi(2)).sum::<f64>();
    let loudest = part
        .windows(length)
        .step_by(length / 8)
        .max_by(|one, other| energy(one).total_cmp(&energy(other)));
    let loudest = loudest.expect("more than half a second");
    let thinned = |sound: &[i16]| sound.iter().copied().step_by(STRIDE).collect::<Vec<_>>();
    let (_, coarse) = correlation(&thinned(loudest), &thinned(&whole));
    let from = (coarse * STRIDE).saturating_sub(STRIDE);
    let until = (from + length + 2 * STRIDE).min(whole.len());
    let (correlation, lag) = correlation(loudest, &whole[from..until]);
    let found = &whole[from + lag..from + lag + length];
    Likeness {
        correlation,
        decibels: 10.0 * (energy(found) / energy(loudest)).log10(),
        at: (from + lag) as f64 / f64::from(RATE),
    }
}

fn at_common_rate(wav: &Path, channel: usize, filter: &[&str]) -> Vec<i16> {
    let mut out = wav.as_os_str().to_owned();
    out.push(format!(".{channel}.common.wav"));
    let out = PathBuf::from(out);
    let _ = run(Command::new("sox")
        .arg(wav)
        .args(["-b", "16"])
        .arg(&out)
        .args(["remix", &(channel + 1).to_string()])
        .args(["rate", &RATE.to_string()])
        .args(filter));
    samples(&out, 0)
}
