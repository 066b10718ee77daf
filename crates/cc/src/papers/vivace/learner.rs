//! The rate, by trial.

use super::config::Config;
use crate::controller::Limits;
use crate::parts::split_mix;
use weir_units::DataRate;

/// Reversals after which steps in one direction do not yet add to the amplifier (program: `swing_buffer`).
const MAX_SWINGS: u32 = 2;
/// Most of the amplifier, so that it stays finite.
const MAX_AMPLIFIER: f64 = 1e6;

/// The place of an interval in a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Trial {
    /// At the rate, while results are awaited.
    Waiting,
    /// Of the start.
    Starting,
    /// The n-th of a search, above or below the rate.
    Pair { n: u8, is_up: bool },
}

/// An interval's result.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measured {
    pub(super) trial: Trial,
    /// The rate sent, in bit/s.
    pub(super) rate: f64,
    pub(super) utility: f64,
    /// Whether the source sent enough.
    pub(super) counts: bool,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Starting {
        is_tried: bool,
        before: Option<(f64, f64)>,
    },
    /// Trials begun, and the results of those that are reported.
    Searching {
        begun: u8,
        first_is_up: [bool; 2],
        results: [Option<Measured>; 4],
    },
}

#[derive(Clone, Debug)]
pub(super) struct Learner {
    config: Config,
    limits: Limits,
    /// In bit/s.
    rate: f64,
    phase: Phase,
    utility: f64,
    /// Steps in one direction.
    trend: u32,
    last_step: f64,
    amplifier: f64,
    swings: u32,
    boundaries: u32,
    random: u64,
}

impl Learner {
    pub(super) fn new(config: &Config, limits: Limits, rate: DataRate) -> Self {
        Self {
            config: *config,
            limits,
            rate: rate.as_bps_f64(),
            phase: Phase::Starting { is_tried: false, before: None },
            utility: f64::NAN,
            trend: 0,
            last_step: 0.0,
            amplifier: 0.0,
            swings: 0,
            boundaries: 0,
            random: 0,
        }
    }
    pub(super) fn seed(&mut self, seed: u64) {
        self.random = seed;
    }
    pub(super) fn set_limits(&mut self, limits: Limits) {
        self.limits = limits;
        self.rate = self.within_limits(self.rate);
    }
    pub(super) fn rate(&self) -> f64 {
        self.rate
    }
    pub(super) fn utility(&self) -> f64 {
        self.utility
    }
    pub(super) fn mode_number(&self) -> f64 {
        match self.phase {
            Phase::Starting { .. } => 0.0,
            Phase::Searching { .. } => 1.0,
        }
    }

    fn within_limits(&self, rate: f64) -> f64 {
        self.limits.clamp(DataRate::from_bps_f64(rate)).as_bps_f64()
    }

    /// Rate and place of the next interval.
    pub(super) fn next(&mut self) -> (DataRate, Trial) {
        let pairs = self.pairs();
        let (rate, trial) = match &mut self.phase {
            Phase::Starting { is_tried: false, .. } => (self.rate, Trial::Starting),
            Phase::Searching { begun, first_is_up, .. } if *begun < 2 * pairs => {
                let n = *begun;
                *begun += 1;
                let is_up = first_is_up[usize::from(n / 2)] == (n % 2 == 0);
                let sign = if is_up { 1.0 } else { -1.0 };
                (self.rate * (1.0 + sign * self.config.trial), Trial::Pair { n, is_up })
            }
            _ => (self.rate, Trial::Waiting),
        };
        if let Phase::Starting { is_tried, .. } = &mut self.phase {
            *is_tried = true;
        }
        (DataRate::from_bps_f64(rate), trial)
    }

    /// Pairs of trials of a search: two after a change of direction, else one.
    fn pairs(&self) -> u8 {
        if self.trend >= 1 { 1 } else { 2 }
    }

    pub(super) fn on_interval(&mut self, m: &Measured) {
        if m.counts {
            self.utility = m.utility;
        }
        let pairs = self.pairs();
        match (&mut self.phase, m.trial) {
            (Phase::Starting { is_tried, before }, Trial::Starting) => {
                if !m.counts {
                    *is_tried = false;
                } else if before.is_none_or(|(_, utility)| m.utility > utility) {
                    (*before, *is_tried) = (Some((self.rate, m.utility)), false);
                    let doubled = self.within_limits(2.0 * self.rate);
                    if doubled <= self.rate {
                        self.search();
                    }
                    self.rate = doubled;
                } else {
                    self.rate = before.map_or(self.rate, |(rate, _)| rate);
                    self.search();
                }
            }
            (Phase::Searching { results, .. }, Trial::Pair { n, .. }) => {
                results[usize::from(n)] = Some(*m);
                let results = *results;
                if results.iter().flatten().count() == usize::from(2 * pairs) {
                    self.decide(&results);
                    self.search();
                }
            }
            _ => {}
        }
    }

    fn search(&mut self) {
        let drawn = split_mix::next(&mut self.random);
        let first_is_up = [drawn & 1 == 0, drawn & 2 == 0];
        self.phase = Phase::Searching { begun: 0, first_is_up, results: [None; 4] };
    }

    /// Moves the rate along the gradient of one pair, or of two that agree.
    fn decide(&mut self, trials: &[Option<Measured>; 4]) {
        let mut gradients =
            trials.chunks_exact(2).filter_map(|pair| pair[0].as_ref().zip(pair[1].as_ref())).map(|(a, b)| {
                let apart = (a.rate - b.rate) / 1e6;
                let is_valid = a.counts && b.counts && self.is_trial(a) == (a.rate > b.rate) && apart != 0.0;
                is_valid.then(|| (a.utility - b.utility) / apart)
            });
        let first = gradients.next().flatten();
        let second = gradients.next();
        let gradient = match (first, second) {
            (Some(g), None) => g,
            (Some(g), Some(Some(h))) if g * h > 0.0 => (g + h) / 2.0,
            _ => {
                self.trend = 0;
                return;
            }
        };
        if gradient.is_finite() {
            self.step(gradient);
        }
    }

    fn is_trial(&self, m: &Measured) -> bool {
        matches!(m.trial, Trial::Pair { is_up: true, .. })
    }

    fn step(&mut self, gradient: f64) {
        let c = &self.config;
        let mut step = c.step * gradient * 1e6;
        let direction = step * self.last_step;
        if direction < 0.0 {
            (self.amplifier, self.boundaries, self.trend) = (0.0, 0, 0);
            self.swings = (self.swings + 1).min(MAX_SWINGS);
        }
        step *= amplified(self.amplifier);
        if direction > 0.0 {
            self.trend = self.trend.saturating_add(1);
            if self.swings == 0 {
                self.amplifier = (self.amplifier + if self.amplifier > 3.0 { 0.5 } else { 1.0 }).min(MAX_AMPLIFIER);
            }
            self.swings = self.swings.saturating_sub(1);
        }
        let most = self.rate * (c.boundary + c.boundary_increment * f64::from(self.boundaries));
        if step.abs() > most {
            step = most.copysign(step);
            self.boundaries = self.boundaries.saturating_add(1);
        } else {
            self.boundaries = self.boundaries.saturating_sub(1);
        }
        let least = self.rate * c.least_step;
        if step.abs() < least {
            step = least.copysign(step);
        }
        self.last_step = step;
        self.rate = self.within_limits((self.rate + step).max(self.rate / 2.0));
    }
}

/// The amplifier's factor: a line that bends upwards after 3, 6 and 9 steps in one direction (program: `decide`).
fn amplified(a: f64) -> f64 {
    match a {
        a if a < 3.0 => a + 1.0,
        a if a < 6.0 => 2.0 * a - 2.0,
        a if a < 9.0 => 4.0 * a - 14.0,
        a => 8.0 * a - 50.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_kbps(10_000) };

    fn learner() -> Learner {
        Learner::new(&Config::default(), LIMITS, DataRate::from_kbps(1_000))
    }

    /// Runs intervals against a utility of the rate in Mbit/s, each reported before the next.
    fn run(l: &mut Learner, intervals: usize, utility: fn(f64) -> f64) -> f64 {
        for _ in 0..intervals {
            let (rate, trial) = l.next();
            let rate = rate.as_bps_f64();
            l.on_interval(&Measured { trial, rate, utility: utility(rate / 1e6), counts: true });
        }
        l.rate() / 1e6
    }

    #[test]
    fn the_start_doubles_until_the_utility_falls() {
        let mut l = learner();
        assert_eq!(run(&mut l, 3, |x| -(x - 4.5).abs()), 8.0);
        // 8 Mbit/s is worse than 4: back to it.
        assert_eq!(run(&mut l, 1, |x| -(x - 4.5).abs()), 4.0);
        assert_eq!(l.mode_number(), 1.0);
    }

    #[test]
    fn a_step_is_bounded_and_the_bound_grows() {
        let mut l = learner();
        l.search();
        // A gradient of 10 a Mbit/s would move by 10 Mbit/s: two pairs first, then one.
        assert!((run(&mut l, 4, |x| 10.0 * x) - 1.05).abs() < 1e-9);
        assert!((run(&mut l, 4, |x| 10.0 * x) - 1.05 * 1.11).abs() < 1e-9);
        assert!((run(&mut l, 2, |x| 10.0 * x) - 1.05 * 1.11 * 1.17).abs() < 1e-9);
    }

    #[test]
    fn it_climbs_to_the_maximum_and_stays_near() {
        let mut l = learner();
        let rate = run(&mut l, 400, |x| -(x - 3.0) * (x - 3.0));
        assert!((rate - 3.0).abs() < 0.3, "{rate}");
    }

    #[test]
    fn intervals_of_an_idle_source_decide_nothing() {
        let mut l = learner();
        l.search();
        for _ in 0..40 {
            let (rate, trial) = l.next();
            l.on_interval(&Measured { trial, rate: rate.as_bps_f64() / 3.0, utility: 1.0, counts: false });
        }
        assert_eq!(l.rate(), 1e6);
    }

    #[test]
    fn the_amplifier_is_a_line_that_bends() {
        assert_eq!([0.0, 1.0, 2.9, 3.0, 6.0, 9.0].map(amplified), [1.0, 2.0, 3.9, 4.0, 10.0, 22.0]);
    }
}
