//! What one direction between two hosts does to datagrams.

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::Rng;

/// One direction of a link. The default is perfect, with no delay at all.
///
/// Without reordering the link is a queue: jitter delays a datagram but never lets a later one
/// pass it, as on a single path. A reordered datagram is held back by `reorder_by` and leaves the
/// queue's order.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkModel {
    /// Delay of every datagram.
    pub delay: Duration,
    /// Added to it, drawn evenly from zero to this.
    pub jitter: Duration,
    /// Probability that a datagram is lost.
    pub loss: f64,
    /// Probability that one comes twice.
    pub duplicate: f64,
    /// Probability that one is held back so that later ones pass it.
    pub reorder: f64,
    /// For how long it is held back.
    pub reorder_by: Duration,
}

impl LinkModel {
    /// A perfect link with a constant delay.
    #[must_use]
    pub fn with_delay(delay: Duration) -> Self {
        Self {
            delay,
            ..Self::default()
        }
    }

    /// The same link with this probability of loss.
    #[must_use]
    pub fn lossy(self, loss: f64) -> Self {
        Self { loss, ..self }
    }

    /// The same link with this much jitter.
    #[must_use]
    pub fn jittery(self, jitter: Duration) -> Self {
        Self { jitter, ..self }
    }

    /// The same link with this probability of duplication.
    #[must_use]
    pub fn duplicating(self, duplicate: f64) -> Self {
        Self { duplicate, ..self }
    }

    /// The same link, where with this probability a datagram is overtaken by those sent up to
    /// `by` after it.
    #[must_use]
    pub fn reordering(self, reorder: f64, by: Duration) -> Self {
        Self {
            reorder,
            reorder_by: by,
            ..self
        }
    }

    /// Decides what becomes of one datagram. Draws the same number of values whatever the outcome,
    /// so that changing one probability leaves the other decisions of a seed as they were.
    pub(crate) fn decide(&self, rng: &mut ChaCha8Rng) -> Outcome {
        let [lost, twice, held] =
            [self.loss, self.duplicate, self.reorder].map(|probability| unit(rng) < probability);
        let [first, second] = [(); 2].map(|()| self.delay + self.jitter.mul_f64(unit(rng)));
        Outcome {
            lost,
            in_order: !held,
            delay: if held { first + self.reorder_by } else { first },
            duplicate: twice.then_some(second),
        }
    }
}

/// What a link has decided about a datagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) lost: bool,
    pub(crate) in_order: bool,
    pub(crate) delay: Duration,
    pub(crate) duplicate: Option<Duration>,
}

/// Evenly distributed in [0, 1): the 53 bits that an f64 can hold.
fn unit(rng: &mut ChaCha8Rng) -> f64 {
    const BITS: u32 = 53;
    let bits = rng.next_u64() >> (u64::BITS - BITS);
    bits as f64 / (1_u64 << BITS) as f64
}

#[cfg(test)]
mod tests {
    use rand_core::SeedableRng;

    use super::*;

    #[test]
    fn probabilities_are_kept_over_many_datagrams() {
        let link = LinkModel::default()
            .lossy(0.3)
            .duplicating(0.1)
            .reordering(0.05, Duration::from_millis(7));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let outcomes: Vec<_> = (0..20_000).map(|_| link.decide(&mut rng)).collect();
        let share = |f: fn(&Outcome) -> bool| {
            outcomes.iter().filter(|o| f(o)).count() as f64 / outcomes.len() as f64
        };
        assert!((share(|o| o.lost) - 0.3).abs() < 0.02);
        assert!((share(|o| o.duplicate.is_some()) - 0.1).abs() < 0.02);
        assert!((share(|o| !o.in_order) - 0.05).abs() < 0.02);
    }

    #[test]
    fn jitter_stays_in_its_range_and_uses_it() {
        let link =
            LinkModel::with_delay(Duration::from_millis(10)).jittery(Duration::from_millis(20));
        let mut rng = ChaCha8Rng::seed_from_u64(2);
        let delays: Vec<_> = (0..5_000).map(|_| link.decide(&mut rng).delay).collect();
        let (least, most) = (delays.iter().min().unwrap(), delays.iter().max().unwrap());
        assert!(*least >= Duration::from_millis(10) && *least < Duration::from_millis(11));
        assert!(*most < Duration::from_millis(30) && *most > Duration::from_millis(29));
    }

    #[test]
    fn a_perfect_link_draws_nothing_but_its_delay() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        let outcome = LinkModel::with_delay(Duration::from_millis(5)).decide(&mut rng);
        let expected = Outcome {
            lost: false,
            in_order: true,
            delay: Duration::from_millis(5),
            duplicate: None,
        };
        assert_eq!(outcome, expected);
    }
}
