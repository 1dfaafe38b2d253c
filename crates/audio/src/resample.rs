//! From one sample rate to another.
//!
//! ```text
//!  input  -> [ history | chunk ] -- window of taps x the row of a phase --> output
//!                                   one row for each place between two samples
//! ```
//!
//! A polyphase filter: a sinc under a Kaiser window, 32 samples of the lower rate long, cut in the
//! middle of 0.85 and 1.1 times the lower Nyquist frequency. Of 8 kHz that keeps 3.4 kHz whole and
//! takes out what lies above 4.4 kHz, 65 dB down, for 2 ms of delay; at higher rates everything
//! scales. Rates have small ratios, so a table has at most six rows and all of it fits into 400
//! octets; resamplers of one ratio share it.
//!
//! The sums are whole numbers in 32 bits, which compilers turn into multiply-and-add of eight
//! samples at once on any x86-64 or aarch64. What other ways were measured is in
//! `docs/decisions.md`; `cargo bench -p tandem-benches --bench resample` prints the figures.

use std::fmt;
use std::sync::OnceLock;

use thiserror::Error;

use crate::mix::saturate;

/// Rates that there is a way between.
pub const RATES: [u32; 5] = [8_000, 16_000, 24_000, 32_000, 48_000];

/// Length of the filter in samples of the lower rate.
const LENGTH: usize = 32;

/// Where the filter falls to half, in parts of the lower Nyquist frequency.
const CUTOFF: f64 = 0.975;

/// Shape of the Kaiser window: 65 dB beyond the transition band (Kaiser: 0.1102 (A - 8.7)).
const BETA: f64 = 6.2;

/// Coefficients are in units of 2^-14: the magnitudes of a row add up to less than 3, so a sum of
/// products with samples stays below 3 * 2^29.
const SCALE_BITS: u32 = 14;

/// A row is filled up to a multiple of this, which compilers unroll into few wide steps.
const BLOCK: usize = 32;

/// The longest row: from 48 to 8 kHz.
const MOST_TAPS: usize = 192;

/// Samples taken at once: 20 ms at 16 kHz.
const CHUNK: usize = 320;

/// Why there is no resampler.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ResampleError {
    /// One of the rates is not among [`RATES`].
    #[error("no way from {from} to {to} samples per second")]
    Rates {
        /// Rate of what comes in.
        from: u32,
        /// Rate of what is wanted.
        to: u32,
    },
}

/// Turns mono PCM of one rate into PCM of another, as it comes.
///
/// Cost: 1.1 kB at most, apart from the tables that all share.
pub struct Resampler {
    from: u32,
    to: u32,
    /// `None` when the rates are the same.
    filter: Option<Filter>,
}

/// What was heard last, and where the next sample out lies.
struct Filter {
    table: &'static Table,
    /// The last `taps - 1` samples of before, then those of now.
    samples: Box<[i16]>,
    /// The sample that the next window ends with, counted from the next to come in.
    ahead: usize,
    /// The row for it.
    phase: usize,
}

impl Resampler {
    /// Makes one. Cost: allocates; the first of a ratio computes the table.
    ///
    /// # Errors
    /// A rate is not among [`RATES`].
    pub fn new(from: u32, to: u32) -> Result<Self, ResampleError> {
        if !RATES.contains(&from) || !RATES.contains(&to) {
            return Err(ResampleError::Rates { from, to });
        }
        let filter = (from != to).then(|| Filter::new(Table::of(from, to)));
        Ok(Self { from, to, filter })
    }

    /// Takes all of `input` and writes what it comes to. Returns the samples written.
    ///
    /// Shape: any length of `input`; of `n` samples taken since the beginning, exactly
    /// `n * to / from`, rounded down, have been written. `out` has room for
    /// [`Self::most_samples`]. Cost: no allocation.
    ///
    /// # Panics
    /// `out` is smaller than that.
    pub fn process(&mut self, input: &[i16], out: &mut [i16]) -> usize {
        let Some(filter) = &mut self.filter else {
            out[..input.len()].copy_from_slice(input);
            return input.len();
        };
        let mut written = 0;
        for chunk in input.chunks(CHUNK) {
            written += filter.process(chunk, &mut out[written..]);
        }
        written
    }

    /// The most samples that this many make.
    #[must_use]
    pub fn most_samples(&self, input: usize) -> usize {
        (input as u64 * u64::from(self.to)).div_ceil(u64::from(self.from)) as usize
    }

    /// How much later a sound comes out, in samples of the rate that comes out. Exact, at every
    /// frequency.
    #[must_use]
    pub fn delay_samples(&self) -> usize {
        self.filter.as_ref().map_or(0, |filter| filter.table.delay)
    }
}

impl fmt::Debug for Resampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resampler")
            .field("from", &self.from)
            .field("to", &self.to)
            .finish_non_exhaustive()
    }
}

impl Filter {
    fn new(table: &'static Table) -> Self {
        Self {
            table,
            samples: vec![0; table.taps - 1 + CHUNK].into(),
            ahead: (table.down - 1) / table.up,
            phase: (table.down - 1) % table.up,
        }
    }

    /// Takes at most [`CHUNK`] samples.
    fn process(&mut self, chunk: &[i16], out: &mut [i16]) -> usize {
        let history = self.table.taps - 1;
        self.samples[history..][..chunk.len()].copy_from_slice(chunk);
        // The length in the type lets the sums be unrolled.
        let written = match self.table.taps {
            32 => self.run::<32>(chunk.len(), out),
            64 => self.run::<64>(chunk.len(), out),
            96 => self.run::<96>(chunk.len(), out),
            128 => self.run::<128>(chunk.len(), out),
            _ => self.run::<MOST_TAPS>(chunk.len(), out),
        };
        self.ahead -= chunk.len();
        self.samples
            .copy_within(chunk.len()..chunk.len() + history, 0);
        written
    }

    fn run<const TAPS: usize>(&mut self, taken: usize, out: &mut [i16]) -> usize {
        let table = self.table;
        let (whole, rest) = (table.down / table.up, table.down % table.up);
        let (rows, _) = table.rows.as_chunks::<TAPS>();
        let (mut ahead, mut phase) = (self.ahead, self.phase);
        let mut written = 0;
        while ahead < taken {
            let Some(window) = self.samples[ahead..].first_chunk::<TAPS>() else {
                break;
            };
            out[written] = weighed(window, &rows[phase]);
            written += 1;
            ahead += whole;
            phase += rest;
            if phase >= table.up {
                phase -= table.up;
                ahead += 1;
            }
        }
        (self.ahead, self.phase) = (ahead, phase);
        written
    }
}

/// The sum of samples times coefficients, rounded.
fn weighed<const TAPS: usize>(window: &[i16; TAPS], row: &[i16; TAPS]) -> i16 {
    let (windows, rows) = (window.as_chunks::<BLOCK>().0, row.as_chunks::<BLOCK>().0);
    let mut sum = 1 << (SCALE_BITS - 1);
    for (samples, by) in windows.iter().zip(rows) {
        sum += products(samples, by);
    }
    saturate(sum >> SCALE_BITS)
}

fn products(samples: &[i16; BLOCK], by: &[i16; BLOCK]) -> i32 {
    let pairs = samples.iter().zip(by);
    pairs
        .map(|(&sample, &by)| i32::from(sample) * i32::from(by))
        .sum()
}

/// The coefficients for one ratio of rates.
///
/// Between two samples in lie `up` places, and a sample out follows every `down` of them. The
/// filter reaches `half` places to both sides. `half` is one less than a multiple of `down`, which
/// makes a sample out ready exactly when the length law wants it, and the delay a whole number of
/// them.
struct Table {
    up: usize,
    down: usize,
    /// Length of a row.
    taps: usize,
    /// Row after row, the oldest sample's coefficient first.
    rows: Box<[i16]>,
    /// In samples out.
    delay: usize,
}

impl Table {
    /// The table that all resamplers from one rate to another share.
    fn of(from: u32, to: u32) -> &'static Self {
        static TABLES: [OnceLock<Table>; 49] = [const { OnceLock::new() }; 49];
        // All rates are small multiples of the lowest.
        let (from, to) = ((from / RATES[0]) as usize, (to / RATES[0]) as usize);
        let is_common = |&n: &usize| from.is_multiple_of(n) && to.is_multiple_of(n);
        let common = (1..=6).rev().find(is_common).unwrap_or(1);
        let (up, down) = (to / common, from / common);
        TABLES[up * 7 + down].get_or_init(|| Self::new(up, down))
    }

    fn new(up: usize, down: usize) -> Self {
        let wider = up.max(down);
        let delay = LENGTH / 2 * wider / down - 1;
        let half = (delay + 1) * down - 1;
        let taps = (2 * half + 1).div_ceil(up).next_multiple_of(BLOCK);
        let mut rows = vec![0; up * taps];
        for (phase, row) in rows.chunks_exact_mut(taps).enumerate() {
            let place = |age: usize| (phase + age * up) as f64 - half as f64;
            let exact: Vec<f64> = (0..taps)
                .rev()
                .map(|age| kernel(place(age), half as f64 + 1.0, CUTOFF / wider as f64))
                .collect();
            quantise(&exact, row);
        }
        Self {
            up,
            down,
            taps,
            rows: rows.into(),
            delay,
        }
    }
}

/// A sinc under Kaiser's window, of any height; nothing from `reach` on.
fn kernel(place: f64, reach: f64, cutoff: f64) -> f64 {
    let x = place / reach;
    if x.abs() >= 1.0 {
        return 0.0;
    }
    let turn = std::f64::consts::PI * cutoff * place;
    let sinc = if place == 0.0 { 1.0 } else { turn.sin() / turn };
    sinc * bessel(BETA * (1.0 - x * x).sqrt())
}

/// The modified Bessel function of the first kind and order 0, by its series.
fn bessel(x: f64) -> f64 {
    let mut term = 1.0;
    (1..30).fold(1.0, |sum, n| {
        term *= (x / 2.0 / f64::from(n)).powi(2);
        sum + term
    })
}

/// Whole coefficients that add up to exactly 1, so that an offset stays without a ripple.
fn quantise(exact: &[f64], row: &mut [i16]) {
    let unit = f64::from(1 << SCALE_BITS) / exact.iter().sum::<f64>();
    for (whole, exact) in row.iter_mut().zip(exact) {
        *whole = (exact * unit).round() as i16;
    }
    let missing = (1 << SCALE_BITS) - row.iter().map(|&by| i32::from(by)).sum::<i32>();
    if let Some(largest) = row.iter_mut().max() {
        *largest += missing as i16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::level::{Dbm0, dbm0};
    use crate::tone::Tone;

    fn pairs() -> impl Iterator<Item = (u32, u32)> {
        let to = |from| RATES.into_iter().map(move |to| (from, to));
        RATES.into_iter().flat_map(to)
    }

    fn tone(hz: f64, rate: u32, samples: usize) -> Vec<i16> {
        let mut pcm = vec![0; samples];
        Tone::new(hz as f32, Dbm0(-10.0), rate).fill(&mut pcm);
        pcm
    }

    /// What a second of this tone comes to, and the delay.
    fn resampled(hz: f64, from: u32, to: u32) -> (Vec<i16>, usize) {
        let mut resampler = Resampler::new(from, to).expect("a pair of rates");
        let mut out = vec![0; to as usize];
        let written = resampler.process(&tone(hz, from, from as usize), &mut out);
        assert_eq!(written, to as usize);
        (out, resampler.delay_samples())
    }

    #[test]
    fn a_tone_stays_that_tone_and_is_as_late_as_stated() {
        for (from, to) in pairs() {
            for part in [0.1, 0.31, 0.57, 0.85] {
                let hz = part * f64::from(from.min(to)) / 2.0;
                let (heard, delay) = resampled(hz, from, to);
                let expected = tone(hz, to, to as usize);
                let middle = to as usize / 4..to as usize * 3 / 4;
                let difference: Vec<i16> = middle
                    .clone()
                    .map(|n| heard[n].saturating_sub(expected[n - delay]))
                    .collect();
                let noise = dbm0(&difference).0 - dbm0(&expected[middle]).0;
                let limit = if part < 0.8 { -50.0 } else { -28.0 };
                assert!(
                    noise < limit,
                    "{from} to {to}, {hz} Hz: noise at {noise} dB"
                );
            }
        }
    }

    #[test]
    fn the_delay_is_short() {
        for (from, to) in pairs() {
            let resampler = Resampler::new(from, to).expect("a pair of rates");
            let ms = resampler.delay_samples() as f64 * 1000.0 / f64::from(to);
            assert!(ms < 2.1, "{from} to {to}: {ms} ms");
            assert_eq!(ms == 0.0, from == to);
        }
    }

    #[test]
    fn a_click_comes_out_after_the_delay() {
        for (from, to) in pairs() {
            let mut resampler = Resampler::new(from, to).expect("a pair of rates");
            let mut input = vec![0; from as usize / 100];
            input[from as usize / 1000] = 20_000;
            let mut out = vec![0; to as usize / 100];
            resampler.process(&input, &mut out);
            let loudest = (0..out.len()).max_by_key(|&n| out[n]);
            let expected = to as usize / 1000 + resampler.delay_samples();
            assert_eq!(loudest, Some(expected), "{from} to {to}");
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_taken_out() {
        for (from, to) in pairs().filter(|(from, to)| from > to) {
            for part in [1.1, 1.25, 1.5, 1.9] {
                let hz = part * f64::from(to) / 2.0;
                if hz < f64::from(from) / 2.0 {
                    let (heard, _) = resampled(hz, from, to);
                    let level = dbm0(&heard[to as usize / 4..]).0 + 10.0;
                    assert!(level < -60.0, "{from} to {to}, {hz} Hz: {level} dB");
                }
            }
        }
    }

    #[test]
    fn full_scale_is_cut_and_an_offset_is_kept() {
        for (from, to) in pairs() {
            let mut resampler = Resampler::new(from, to).expect("a pair of rates");
            let mut out = vec![0; 6_000];
            let square: Vec<i16> = (0..1_000)
                .map(|n| if n % 100 < 50 { i16::MAX } else { i16::MIN })
                .collect();
            resampler.process(&square, &mut out);
            let written = resampler.process(&[i16::MIN; 500], &mut out);
            assert!(out[written / 2..written].iter().all(|&s| s == i16::MIN));
            let written = resampler.process(&[1_234; 500], &mut out);
            assert!(out[written / 2..written].iter().all(|&s| s == 1_234));
        }
    }

    #[test]
    fn no_row_can_overflow() {
        for (from, to) in pairs().filter(|(from, to)| from != to) {
            let table = Table::of(from, to);
            for row in table.rows.chunks_exact(table.taps) {
                let sum: i32 = row.iter().map(|&by| i32::from(by).abs()).sum();
                assert!(sum < 3 << SCALE_BITS, "{from} to {to}: {sum}");
            }
            assert!(size_of_val(&*table.rows) <= 400);
        }
    }

    #[test]
    fn other_rates_are_refused() {
        for (from, to) in [(8_000, 11_025), (44_100, 8_000), (0, 8_000), (8_000, 0)] {
            let refused = Resampler::new(from, to).expect_err("no such way");
            assert_eq!(refused, ResampleError::Rates { from, to });
        }
    }
}
