//! Sound through sox, an outside reader of our WAV files; speech from espeak-ng; comparison.

use std::path::Path;

use crate::process::{output, tool};

/// Duration of a sound file in seconds, as sox reads it.
///
/// # Panics
/// When sox can't.
#[must_use]
pub fn seconds(path: &Path) -> f64 {
    let text = String::from_utf8(output(tool("soxi").arg("-D").arg(path)));
    let text = text.expect("soxi prints text");
    text.trim()
        .parse()
        .unwrap_or_else(|_| panic!("soxi -D printed {text:?}"))
}

/// How many channels a sound file has.
///
/// # Panics
/// When sox can't read it.
#[must_use]
pub fn channels(path: &Path) -> u32 {
    let text = String::from_utf8(output(tool("soxi").arg("-c").arg(path)));
    text.ok()
        .and_then(|text| text.trim().parse().ok())
        .expect("soxi -c prints a number")
}

/// One channel of a sound file, counted from 1, at 8 kHz and 16 bits.
///
/// # Panics
/// When sox can't read it.
#[must_use]
pub fn samples(path: &Path, channel: u32) -> Vec<i16> {
    let remix = channel.to_string();
    let raw = [
        "-t", "raw", "-r", "8000", "-e", "signed", "-b", "16", "-L", "-", "remix", &remix,
    ];
    let bytes = output(tool("sox").arg("-D").arg(path).args(raw));
    bytes
        .chunks_exact(2)
        .map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
        .collect()
}

/// Writes a sentence, spoken, as 8 kHz 16-bit mono.
///
/// # Panics
/// When espeak-ng or sox can't.
pub fn speak(sentence: &str, path: &Path) {
    let spoken = path.with_extension("espeak.wav");
    let _ = output(tool("espeak-ng").arg("-w").arg(&spoken).arg(sentence));
    let shape = ["-r", "8000", "-b", "16", "-c", "1"];
    let _ = output(
        tool("sox")
            .arg(&spoken)
            .args(shape)
            .arg(path)
            .args(["gain", "-n", "-6"]),
    );
}

/// How much two sounds are alike: the lag in samples (of `heard` behind `played`, up to
/// `max_lag`) at which they are most so, and the correlation coefficient there.
///
/// Cost: `max_lag` times the shorter length.
#[must_use]
pub fn correlation(played: &[i16], heard: &[i16], max_lag: usize) -> (usize, f64) {
    let at = |lag: usize| {
        let pairs = played.iter().zip(heard.get(lag..).unwrap_or_default());
        let (mut xy, mut xx, mut yy) = (0.0, 0.0, 0.0);
        for (x, y) in pairs {
            let (x, y) = (f64::from(*x), f64::from(*y));
            xy += x * y;
            xx += x * x;
            yy += y * y;
        }
        if xx == 0.0 || yy == 0.0 {
            0.0
        } else {
            xy / (xx * yy).sqrt()
        }
    };
    (0..=max_lag)
        .map(|lag| (lag, at(lag)))
        .fold(
            (0, 0.0),
            |best, next| {
                if next.1 > best.1 { next } else { best }
            },
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::Scratch;

    #[test]
    fn a_sound_is_found_where_it_was_hidden() {
        let noise = |n: u32| {
            let mixed = (n ^ (n >> 7)).wrapping_mul(2_654_435_761);
            let mixed = (mixed ^ (mixed >> 15)).wrapping_mul(0x2c1b_3c6d);
            (mixed >> 16).cast_signed() as i16
        };
        let played: Vec<_> = (0..4_000).map(noise).collect();
        let mut heard = vec![0; 321];
        heard.extend(played.iter().map(|sample| sample / 2));
        let (lag, r) = correlation(&played, &heard, 800);
        assert_eq!(lag, 321);
        assert!(r > 0.99, "{r}");
        let other: Vec<_> = (50_000..54_000).map(noise).collect();
        assert!(correlation(&other, &heard, 800).1 < 0.2);
    }

    #[test]
    fn sox_reads_what_espeak_says() {
        let scratch = Scratch::new("sound");
        let path = scratch.file("speech.wav");
        speak("Good morning.", &path);
        let length = seconds(&path);
        assert!((0.3..5.0).contains(&length), "{length} s");
        assert_eq!(channels(&path), 1);
        let samples = samples(&path, 1);
        assert!((samples.len() as f64 / 8_000.0 - length).abs() < 0.001);
        assert!(
            samples.iter().any(|sample| sample.unsigned_abs() > 8_000),
            "it is loud enough"
        );
    }
}
