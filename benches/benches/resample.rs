//! What does a resampler cost, how late is the sound, how even and how clean?
//!
//! For every pair of rates: nanoseconds per 20 ms frame (the median of many rounds), the delay, the
//! worst deviation of a tone up to 0.85 of the lower Nyquist frequency (3.4 kHz of 8 kHz), and the
//! loudest thing that comes out and did not go in, relative to the tone: images and aliases of
//! tones up to there, and what is left of tones from 1.15 times that frequency on.
//!
//! Run: `cargo bench -p tandem-benches --bench resample`

use std::f64::consts::TAU;
use std::hint::black_box;
use std::time::{Duration, Instant};

use audio::resample::{RATES, Resampler};

/// Sines that are tried between two frequencies.
const STEPS: u32 = 40;

/// Peak of the sines: half of full scale.
const PEAK: f64 = 16_384.0;

fn main() {
    // `cargo test` and its like start benches too, and without this word.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    println!("from    to     ns/frame  delay ms  ripple dB  unwanted dB");
    for (from, to) in RATES.iter().flat_map(|&from| RATES.map(|to| (from, to))) {
        if from != to {
            let resampler = || Resampler::new(from, to).expect("a pair of rates");
            let cost = cost(resampler(), from);
            let delay = resampler().delay_samples() as f64 * 1000.0 / f64::from(to);
            let (ripple, unwanted) = quality(&resampler, from, to);
            println!("{from:<7} {to:<7}{cost:>8.0}  {delay:>8.2}  {ripple:>9.2}  {unwanted:>11.1}");
        }
    }
}

/// Nanoseconds per 20 ms frame.
fn cost(mut resampler: Resampler, from: u32) -> f64 {
    let input = sine(440.0, from, from as usize / 50);
    let mut out = vec![0; resampler.most_samples(input.len())];
    let mut rounds: Vec<Duration> = (0..101)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..100 {
                black_box(resampler.process(black_box(&input), &mut out));
            }
            start.elapsed()
        })
        .collect();
    rounds.sort();
    rounds[rounds.len() / 2].as_nanos() as f64 / 100.0
}

/// The worst deviation of a tone, and the loudest that is none of it, both in dB.
fn quality(resampler: &impl Fn() -> Resampler, from: u32, to: u32) -> (f64, f64) {
    let nyquist = f64::from(from.min(to)) / 2.0;
    let (mut ripple, mut unwanted) = (0_f64, f64::NEG_INFINITY);
    for hz in between(0.02 * nyquist, 0.85 * nyquist) {
        let (tone, rest) = measure(resampler(), hz, from, to);
        ripple = ripple.max(decibels(tone).abs());
        unwanted = unwanted.max(decibels(rest) - decibels(tone));
    }
    for hz in between(1.15 * nyquist, f64::from(from) / 2.0) {
        let (tone, rest) = measure(resampler(), hz, from, to);
        unwanted = unwanted.max(decibels(tone + rest));
    }
    (ripple, unwanted)
}

fn between(first: f64, last: f64) -> impl Iterator<Item = f64> {
    let step = (last - first) / f64::from(STEPS);
    let count = if last > first { STEPS } else { 0 };
    (0..count).map(move |n| first + step * f64::from(n))
}

/// The power of a tone after resampling, and of all else, relative to the one that went in.
fn measure(mut resampler: Resampler, hz: f64, from: u32, to: u32) -> (f64, f64) {
    let mut out = vec![0; to as usize / 2];
    resampler.process(&sine(hz, from, from as usize / 2), &mut out);
    let settled: Vec<f64> = out[to as usize / 20..]
        .iter()
        .map(|&s| f64::from(s))
        .collect();
    let turn = TAU * hz / f64::from(to);
    let (tone, rest) = split(&settled, turn);
    (tone * 2.0 / PEAK.powi(2), rest * 2.0 / PEAK.powi(2))
}

/// Mean power of the nearest sine of this frequency, and of what it leaves.
fn split(pcm: &[f64], turn: f64) -> (f64, f64) {
    let (mut cc, mut cs, mut ss, mut xc, mut xs, mut xx) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for (n, x) in pcm.iter().enumerate() {
        let (s, c) = (turn * n as f64).sin_cos();
        (cc, cs, ss) = (cc + c * c, cs + c * s, ss + s * s);
        (xc, xs, xx) = (xc + x * c, xs + x * s, xx + x * x);
    }
    let det = (cc * ss - cs * cs).max(1e-9);
    let (a, b) = ((xc * ss - xs * cs) / det, (xs * cc - xc * cs) / det);
    let tone = (a * xc + b * xs).max(0.0);
    let len = pcm.len() as f64;
    (tone / len, (xx - tone).max(0.0) / len)
}

fn sine(hz: f64, rate: u32, samples: usize) -> Vec<i16> {
    let turn = TAU * hz / f64::from(rate);
    let at = |n: usize| (PEAK * (turn * n as f64).sin()).round() as i16;
    (0..samples).map(at).collect()
}

fn decibels(power: f64) -> f64 {
    10.0 * power.max(1e-12).log10()
}
