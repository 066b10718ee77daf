//! Wald's sequential test of a budget, on hit or miss of each seed.
//!
//! Either at most half of all seeds meet the budget, or at least nine of ten do. Each seed adds the logarithm of how much likelier its
//! outcome is under the second; the sum decides as soon as it leaves the limits for the error that is accepted (A. Wald, "Sequential
//! tests of statistical hypotheses", Annals of Mathematical Statistics 16(2), 1945, equations 3.24 and 3.26). A controller
//! between the two is likely to stay undecided for long, and is never called with more certainty than there is.

use serde::{Deserialize, Serialize};

/// Share of seeds that meet a budget which is not kept, at most, and one which is, at least.
pub const NOT_KEPT: f64 = 0.5;
/// See [`NOT_KEPT`].
pub const KEPT: f64 = 0.9;

/// A gate's answer about a budget, or about all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", schemars(rename = "GateVerdict"))]
pub enum Verdict {
    /// At least nine seeds of ten meet it.
    Passes,
    /// At most half of the seeds meet it, or there is no result.
    Fails,
    /// The seeds that were run do not say.
    Undecided,
}

impl Verdict {
    /// Its words behind a subject.
    pub const fn said(self) -> &'static str {
        match self {
            Self::Undecided => "is undecided",
            decided => decided.name(),
        }
    }

    /// Its name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Passes => "passes",
            Self::Fails => "fails",
            Self::Undecided => "undecided",
        }
    }
}

/// Seeds of a budget so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Tally {
    /// Seeds that met it.
    pub hits: u32,
    /// Seeds that did not.
    pub misses: u32,
}

impl Tally {
    /// Adds a seed.
    pub fn add(&mut self, hit: bool) {
        if hit {
            self.hits += 1;
        } else {
            self.misses += 1;
        }
    }

    /// Seeds in it.
    pub fn seeds(self) -> u32 {
        self.hits + self.misses
    }
}

/// The test's steps and limits, as natural logarithms of likelihood ratios.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sprt {
    hit: f64,
    miss: f64,
    limit: f64,
}

impl Sprt {
    /// The test of one of so many budgets, so that the probability of any wrong verdict is at most about `error` (0 to 1).
    pub fn new(error: f64, budgets: usize) -> Self {
        // Bonferroni's division; both kinds of error are equally unlikely, so that the limits are symmetric.
        let each = error / budgets.max(1) as f64;
        Self {
            hit: libm::log(KEPT / NOT_KEPT),
            miss: libm::log((1.0 - KEPT) / (1.0 - NOT_KEPT)),
            limit: libm::log((1.0 - each) / each),
        }
    }

    /// The sum so far.
    fn level(&self, tally: Tally) -> f64 {
        f64::from(tally.hits) * self.hit + f64::from(tally.misses) * self.miss
    }

    /// The verdict on a budget.
    pub fn verdict(&self, tally: Tally) -> Verdict {
        match self.level(tally) {
            level if level >= self.limit => Verdict::Passes,
            level if level <= -self.limit => Verdict::Fails,
            _ => Verdict::Undecided,
        }
    }

    /// Further seeds that an undecided budget needs at least: fewer cannot decide it, however they end.
    pub fn fewest(&self, tally: Tally) -> u32 {
        if self.verdict(tally) != Verdict::Undecided {
            return 0;
        }
        let level = self.level(tally);
        let steps = |way: f64, step: f64| libm::ceil(way / step).max(1.0) as u32;
        steps(self.limit - level, self.hit).min(steps(-self.limit - level, self.miss))
    }

    /// Seeds after which a budget that all of them meet passes.
    pub fn hits_to_pass(&self) -> u32 {
        libm::ceil(self.limit / self.hit) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_pcg::Pcg64Mcg;

    fn after(sprt: &Sprt, outcomes: &str) -> Verdict {
        let mut tally = Tally::default();
        for (i, outcome) in outcomes.chars().enumerate() {
            assert_eq!(sprt.verdict(tally), Verdict::Undecided, "{outcomes}: decided after {i}");
            tally.add(outcome == '+');
        }
        sprt.verdict(tally)
    }

    #[test]
    fn known_sequences_end_where_the_sum_says() {
        // ln 19 = 2.944; a hit adds ln 1.8 = 0.588, a miss ln 0.2 = -1.609.
        let one = Sprt::new(0.05, 1);
        assert_eq!(after(&one, "+++++"), Verdict::Undecided, "2.939");
        assert_eq!(after(&one, "++++++"), Verdict::Passes, "3.527");
        assert_eq!(after(&one, "-"), Verdict::Undecided, "-1.609");
        assert_eq!(after(&one, "--"), Verdict::Fails, "-3.219");
        assert_eq!(after(&one, "+--"), Verdict::Undecided, "-2.631");
        assert_eq!(after(&one, "+--+-"), Verdict::Fails, "-3.653");
        assert_eq!(after(&one, "-+++++++"), Verdict::Undecided, "2.505");
        assert_eq!(after(&one, "-++++++++"), Verdict::Passes, "3.093");
        assert_eq!((one.hits_to_pass(), one.fewest(Tally::default())), (6, 2));
        // ln 399 = 5.989: with twenty budgets each has a twentieth of the error.
        let twenty = Sprt::new(0.05, 20);
        assert_eq!((twenty.hits_to_pass(), twenty.fewest(Tally::default())), (11, 4));
        assert_eq!(after(&twenty, "----"), Verdict::Fails);
        assert_eq!(after(&twenty, "+++++++++++"), Verdict::Passes);
    }

    #[test]
    fn no_fewer_seeds_than_the_fewest_decide() {
        for budgets in [1, 7, 100, 5_000] {
            let sprt = Sprt::new(0.05, budgets);
            for (hits, misses) in (0..20).flat_map(|h| (0..8).map(move |m| (h, m))) {
                let tally = Tally { hits, misses };
                let fewest = sprt.fewest(tally);
                if sprt.verdict(tally) != Verdict::Undecided {
                    assert_eq!(fewest, 0);
                    continue;
                }
                let with = |hits: u32, misses: u32| {
                    let more = Tally { hits: tally.hits + hits, misses: tally.misses + misses };
                    sprt.verdict(more) != Verdict::Undecided
                };
                assert!(fewest > 0 && (with(fewest, 0) || with(0, fewest)), "{budgets} {tally:?}");
                assert!((0..fewest).all(|h| !with(h, fewest - 1 - h)), "{budgets} {tally:?}: {fewest}");
            }
        }
    }

    /// Shares of passes, failures and undecided tests, and the mean length of a test, where each seed is a hit with `p`.
    fn simulated(p: f64, error: f64, budgets: usize) -> ([f64; 3], f64) {
        const TESTS: u32 = 20_000;
        let (sprt, mut random) = (Sprt::new(error, budgets), Pcg64Mcg::seed_from_u64(8_698));
        let (mut counts, mut seeds) = ([0.0; 3], 0);
        for _ in 0..TESTS {
            let mut tally = Tally::default();
            while sprt.verdict(tally) == Verdict::Undecided && tally.seeds() < 200 {
                tally.add(random.random::<f64>() < p);
            }
            counts[sprt.verdict(tally) as usize] += 1.0 / f64::from(TESTS);
            seeds += tally.seeds();
        }
        (counts, f64::from(seeds) / f64::from(TESTS))
    }

    #[test]
    fn wrong_verdicts_are_as_rare_as_is_asked_for() {
        for (error, budgets) in [(0.05, 1), (0.05, 10), (0.2, 1)] {
            let each = error / budgets as f64;
            // The sum passes its limit, and does not end on it, so that errors are rarer than Wald's bound.
            let (kept, kept_seeds) = simulated(KEPT, error, budgets);
            assert!(kept[1] <= each * 1.1 && kept[0] > 1.0 - each * 1.2, "false alarms: {kept:?}, asked: {each}");
            let (not, not_seeds) = simulated(NOT_KEPT, error, budgets);
            assert!(not[0] <= each * 1.1 && not[1] > 1.0 - each * 1.2, "missed: {not:?}, asked: {each}");
            assert!(kept_seeds < 30.0 && not_seeds < 30.0, "{kept_seeds} {not_seeds}");
        }
        // The test is no weaker than it says: wrong verdicts are not absent.
        assert!(simulated(KEPT, 0.2, 1).0[1] > 0.02 && simulated(NOT_KEPT, 0.2, 1).0[0] > 0.02);
        // A controller that always keeps a budget, or never does, is called right each time.
        assert_eq!((simulated(1.0, 0.05, 1).0[0].round(), simulated(0.0, 0.05, 1).0[1].round()), (1.0, 1.0));
    }
}
