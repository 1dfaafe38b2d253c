//! How far what is heard lies from what was said: delay, segmental signal to noise, and the
//! distance of the spectra.

use std::f64::consts::{PI, TAU};

/// What is quieter than this against the loudest frame counts as a pause, in dB.
const PAUSE_DB: f64 = -40.0;

/// Spectra are compared as far down as this from the loudest band of a frame: what lies deeper is
/// masked for any ear, and wide open for any codec.
const DEPTH_DB: f64 = 40.0;

/// Width of the bands that are compared, in Hz.
const BAND_HZ: f64 = 200.0;

/// Bounds of a frame's part in segmental signal to noise, in dB, as is customary.
const SEGMENT_DB: [f64; 2] = [-10.0, 35.0];

/// By how many samples `heard` lags behind `said`: where the two are most alike.
pub(super) fn lag(said: &[i16], heard: &[i16], most: usize) -> usize {
    let start = said.len() / 4;
    let stretch = said.len().saturating_sub(start + most).min(24_000);
    let said = &said[start..start + stretch];
    let alike = |lag: usize| -> i64 {
        let heard = heard.iter().skip(start + lag);
        let pairs = said.iter().zip(heard);
        pairs
            .map(|(&a, &b)| i64::from(i32::from(a) * i32::from(b)))
            .sum()
    };
    (0..=most)
        .max_by_key(|&lag| (alike(lag), most - lag))
        .unwrap_or(0)
}

/// Mean signal to noise of the frames of 20 ms that are no pause, in dB.
pub(super) fn segmental_snr_db(said: &[i16], heard: &[i16], sample_rate: u32) -> f32 {
    let frame = (sample_rate / 50).max(1) as usize;
    let loudest = said.chunks_exact(frame).map(energy).fold(1.0, f64::max);
    let is_loud = |frame: &&[i16]| decibels(energy(frame) / loudest) > PAUSE_DB;
    let mut sum = 0.0;
    let mut count = 0_u32;
    for (said, heard) in said.chunks_exact(frame).zip(heard.chunks_exact(frame)) {
        if is_loud(&said) {
            let pairs = said.iter().zip(heard);
            let noise: f64 = pairs
                .map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2))
                .sum();
            sum += decibels(energy(said) / noise.max(1.0)).clamp(SEGMENT_DB[0], SEGMENT_DB[1]);
            count += 1;
        }
    }
    (sum / f64::from(count.max(1))) as f32
}

/// Mean distance of the spectra in bands up to `edge_hz`, in dB, over what is no pause.
pub(super) fn distance_db(said: &[i16], heard: &[i16], sample_rate: u32, edge_hz: u32) -> f32 {
    let len = (sample_rate as usize / 40).next_power_of_two();
    let hop = len / 2;
    let loudest = said.chunks_exact(len).map(energy).fold(1.0, f64::max);
    let mut sum = 0.0;
    let mut count = 0_u32;
    for (said, heard) in said.windows(len).zip(heard.windows(len)).step_by(hop) {
        if decibels(energy(said) / loudest) > PAUSE_DB {
            let bands = |pcm| bands(pcm, sample_rate, edge_hz);
            sum += frame_distance_db(&bands(said), &bands(heard));
            count += 1;
        }
    }
    (sum / f64::from(count.max(1))) as f32
}

fn frame_distance_db(said: &[f64], heard: &[f64]) -> f64 {
    let loudest = said.iter().copied().fold(1.0, f64::max);
    let floor = loudest * 10_f64.powf(-DEPTH_DB / 10.0);
    let squares = said
        .iter()
        .zip(heard)
        .map(|(a, b)| decibels(a.max(floor) / b.max(floor)).powi(2));
    (squares.sum::<f64>() / said.len().max(1) as f64).sqrt()
}

/// Power in bands of [`BAND_HZ`] from there to the edge.
fn bands(pcm: &[i16], sample_rate: u32, edge_hz: u32) -> Vec<f64> {
    let len = pcm.len();
    let mut line: Vec<Complex> = pcm
        .iter()
        .enumerate()
        .map(|(n, &x)| {
            Complex(
                f64::from(x) * (PI * n as f64 / len as f64).sin().powi(2),
                0.0,
            )
        })
        .collect();
    transform(&mut line);
    let width = f64::from(sample_rate) / len as f64;
    let edge = f64::from(edge_hz).min(f64::from(sample_rate) / 2.0);
    let mut bands = vec![0.0; (edge / BAND_HZ).floor().max(2.0) as usize - 1];
    for (bin, value) in line.iter().enumerate().take(len / 2) {
        let band = (bin as f64 * width / BAND_HZ) as usize;
        if let Some(power) = band.checked_sub(1).and_then(|band| bands.get_mut(band)) {
            *power += value.0 * value.0 + value.1 * value.1;
        }
    }
    bands
}

#[derive(Copy, Clone)]
struct Complex(f64, f64);

/// The discrete Fourier transform of a power of two, by halves.
fn transform(line: &mut [Complex]) {
    let len = line.len();
    if len < 2 {
        return;
    }
    let mut even: Vec<Complex> = line.iter().copied().step_by(2).collect();
    let mut odd: Vec<Complex> = line.iter().copied().skip(1).step_by(2).collect();
    transform(&mut even);
    transform(&mut odd);
    for (n, (a, b)) in even.into_iter().zip(odd).enumerate() {
        let (sine, cosine) = (-TAU * n as f64 / len as f64).sin_cos();
        let turned = Complex(b.0 * cosine - b.1 * sine, b.0 * sine + b.1 * cosine);
        line[n] = Complex(a.0 + turned.0, a.1 + turned.1);
        line[n + len / 2] = Complex(a.0 - turned.0, a.1 - turned.1);
    }
}

fn energy(pcm: &[i16]) -> f64 {
    pcm.iter().map(|&x| f64::from(x).powi(2)).sum()
}

fn decibels(power: f64) -> f64 {
    10.0 * power.max(1e-12).log10()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::speech;
    use crate::level::Dbm0;
    use crate::tone::Tone;

    #[test]
    fn a_tone_lies_in_its_band() {
        let mut pcm = vec![0; 256];
        Tone::new(1_100.0, Dbm0(-10.0), 8_000).fill(&mut pcm);
        let bands = bands(&pcm, 8_000, 3_400);
        assert_eq!(bands.len(), 16);
        let loudest = (0..16).max_by(|&a, &b| bands[a].total_cmp(&bands[b]));
        assert_eq!(loudest, Some(4), "1,000 to 1,200 Hz");
        let sum: f64 = bands.iter().sum();
        assert!(bands[4] > 0.99 * sum);
    }

    #[test]
    fn the_same_has_no_distance_and_its_lag_is_found() {
        let said = speech(8_000);
        assert_eq!(distance_db(&said, &said, 8_000, 3_400), 0.0);
        assert_eq!(segmental_snr_db(&said, &said, 8_000), 35.0);
        let late: Vec<i16> = std::iter::repeat_n(0, 93)
            .chain(said.iter().copied())
            .collect();
        assert_eq!(lag(&said, &late, 480), 93);
        assert_eq!(lag(&said, &said, 480), 0);
    }

    #[test]
    fn what_is_something_else_is_far_away() {
        let said = speech(8_000);
        let silence = vec![0; said.len()];
        assert!(distance_db(&said, &silence, 8_000, 3_400) > 15.0);
        let mut hum = vec![0; said.len()];
        Tone::new(440.0, Dbm0(-20.0), 8_000).fill(&mut hum);
        assert!(distance_db(&said, &hum, 8_000, 3_400) > 15.0);
        let reversed: Vec<i16> = said.iter().rev().copied().collect();
        assert!(distance_db(&said, &reversed, 8_000, 3_400) > 10.0);
        let coarse: Vec<i16> = said.iter().map(|x| x / 1_024 * 1_024).collect();
        let distance = distance_db(&said, &coarse, 8_000, 3_400);
        assert!((1.0..12.0).contains(&distance), "{distance}");
    }
}
