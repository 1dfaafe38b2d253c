//! Two things measured in turn: these machines drift, a ratio of neighbours does not.

use std::time::Duration;

use anyhow::{Context, bail};
use lab::codec_cost::thread_time;

/// How long and how often, and what of it.
#[derive(Clone, Debug)]
pub struct Options {
    /// Processor time of one window.
    pub window: Duration,
    /// Windows of each of the two.
    pub pairs: usize,
    only: Vec<String>,
}

/// What was measured: processor time per call of the closures.
#[derive(Copy, Clone, Debug)]
pub struct Outcome {
    /// The first one's, median of its windows.
    pub first: Duration,
    /// The second one's.
    pub second: Option<Duration>,
    /// First by second, pair by pair.
    pub ratio: Option<Ratio>,
}

/// Ratios of neighbouring windows.
#[derive(Copy, Clone, Debug)]
pub struct Ratio {
    /// Median.
    pub median: f64,
    /// Least.
    pub least: f64,
    /// Greatest.
    pub most: f64,
}

impl Options {
    /// Reads `--seconds`, `--pairs` and `--only` from the command line; cargo's `--bench` is passed
    /// over.
    ///
    /// # Errors
    /// An argument is unknown, or no number where one belongs.
    pub fn from_args() -> anyhow::Result<Self> {
        Self::read(std::env::args().skip(1))
    }

    fn read(mut args: impl Iterator<Item = String>) -> anyhow::Result<Self> {
        let mut options = Self {
            window: Duration::from_secs(1),
            pairs: 7,
            only: Vec::new(),
        };
        while let Some(arg) = args.next() {
            let mut value = || args.next().with_context(|| format!("{arg} wants a value"));
            match arg.as_str() {
                "--bench" => {}
                "--seconds" => options.window = Duration::try_from_secs_f64(value()?.parse()?)?,
                "--pairs" => options.pairs = value()?.parse::<usize>()?.max(1),
                "--only" => options.only.push(value()?),
                _ => bail!("{arg} is not known; there are --seconds S, --pairs N, --only TEXT"),
            }
        }
        Ok(options)
    }

    /// Whether a row was not asked for.
    #[must_use]
    pub fn skips(&self, row: &str) -> bool {
        !self.only.is_empty() && !self.only.iter().any(|text| row.contains(text.as_str()))
    }
}

/// Runs both in turn, once each before anything is measured. `second` is `None` where there is
/// nothing to compare with.
pub fn alternate(
    options: &Options,
    mut first: impl FnMut(),
    mut second: Option<impl FnMut()>,
) -> Outcome {
    let (mut firsts, mut seconds) = (Vec::new(), Vec::new());
    first();
    second.iter_mut().for_each(|second| second());
    for _ in 0..options.pairs {
        firsts.push(window(options.window, &mut first));
        if let Some(second) = &mut second {
            seconds.push(window(options.window, second));
        }
    }
    let compares = second.is_some();
    let ratios: Vec<f64> = firsts.iter().zip(&seconds).map(|(a, b)| a / b).collect();
    Outcome {
        first: Duration::from_secs_f64(median(firsts)),
        second: compares.then(|| Duration::from_secs_f64(median(seconds))),
        ratio: compares.then(|| Ratio {
            least: ratios.iter().copied().fold(f64::INFINITY, f64::min),
            most: ratios.iter().copied().fold(0.0, f64::max),
            median: median(ratios),
        }),
    }
}

/// Seconds of processor time per call, over a window.
fn window(length: Duration, mut one: impl FnMut()) -> f64 {
    let begun = thread_time();
    let mut calls = 0_u32;
    loop {
        one();
        calls += 1;
        let taken = thread_time() - begun;
        if taken >= length {
            return taken.as_secs_f64() / f64::from(calls);
        }
    }
}

/// The value in the middle; of an even number the mean of the two.
///
/// # Panics
/// There is none.
#[must_use]
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 {
        values[middle]
    } else {
        (values[middle - 1] + values[middle]) / 2.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(text: &str) -> anyhow::Result<Options> {
        Options::read(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn arguments_are_read() {
        let read =
            options("--bench --seconds 0.5 --pairs 3 --only speex --only opus").expect("good");
        assert_eq!((read.window, read.pairs), (Duration::from_millis(500), 3));
        assert!(!read.skips("PCMA speex/8000") && read.skips("PCMA PCMU"));
        for bad in ["--second 1", "--pairs", "--pairs x", "--seconds -1"] {
            assert!(options(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn windows_are_taken_in_turn() {
        let options = options("--seconds 0 --pairs 3").expect("good");
        let order = std::cell::RefCell::new(String::new());
        let outcome = alternate(
            &options,
            || order.borrow_mut().push('a'),
            Some(|| order.borrow_mut().push('b')),
        );
        assert_eq!(*order.borrow(), "abababab");
        let ratio = outcome.ratio.expect("both were measured");
        assert!(ratio.least <= ratio.median && ratio.median <= ratio.most);
        let alone = alternate(&options, || (), None::<fn()>);
        assert!(alone.second.is_none() && alone.ratio.is_none());
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 3.0]), 2.5);
    }
}
