//! The last observations of loss, and how well a channel explains them.

/// Number of observations used.
const WINDOW: usize = 15;
/// Observations from which on the best and the worst are left out of the mean loss.
const MIN_TRIMMED: u64 = 3;
/// Weight of an observation relative to the next one.
const WEIGHT: f64 = 0.9;
/// Weights by age.
const WEIGHTS: [f64; WINDOW] = {
    let mut weights = [1.0; WINDOW];
    let mut age = 1;
    while age < WINDOW {
        weights[age] = weights[age - 1] * WEIGHT;
        age += 1;
    }
    weights
};
/// Observations sent above this multiple of the median rate are not discarded as outliers.
const MEDIAN_FACTOR: f64 = 2.0;

/// A channel's bandwidth in bit/s, and the share of packets that it loses below that.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChannelParameters {
    pub(super) bandwidth: f64,
    pub(super) inherent: f64,
}

/// Observations by age, the newest first. Before the first they have size zero, which adds nothing to any sum.
///
/// They are columns of fixed length, so that the terms of a sum are computed side by side; their order in the sum stays.
#[derive(Clone, Debug)]
pub(super) struct Observations {
    count: u64,
    /// [`WEIGHTS`], here since constants of a sum without a loop are spread over the program's: a line of the cache each.
    weights: [f64; WINDOW],
    /// Kilobytes sent, and those lost of them.
    size: [f64; WINDOW],
    lost: [f64; WINDOW],
    /// Sending rate in bit/s.
    rate: [f64; WINDOW],
}

impl Default for Observations {
    fn default() -> Self {
        Self { count: 0, weights: WEIGHTS, size: [0.0; WINDOW], lost: [0.0; WINDOW], rate: [0.0; WINDOW] }
    }
}

impl Observations {
    /// Observations so far, older ones included.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Adds the newest one: kilobytes sent and lost, and the rate in bit/s.
    pub(super) fn push(&mut self, size: f64, lost: f64, rate: f64) {
        for (column, newest) in [(&mut self.size, size), (&mut self.lost, lost), (&mut self.rate, rate)] {
            column.copy_within(..WINDOW - 1, 1);
            column[0] = newest;
        }
        self.count += 1;
    }

    /// Weighted share of bytes lost, without the best and the worst observation. The worst is kept if it was sent at a
    /// rate far above the median.
    pub(super) fn average_loss(&self) -> f64 {
        let (mut size, mut lost) = (0.0, 0.0);
        let (mut worst, mut mildest) = ((0.0, 0.0, 0.0, 0.0), (1.0, 0.0, 0.0));
        for (age, &w) in self.weights.iter().enumerate().take(self.known()) {
            size += w * self.size[age];
            lost += w * self.lost[age];
            let share = if self.size[age] > 0.0 { self.lost[age] / self.size[age] } else { 0.0 };
            if self.count > MIN_TRIMMED {
                if share > worst.0 {
                    worst = (share, w * self.lost[age], w * self.size[age], self.rate[age]);
                }
                if share < mildest.0 {
                    mildest = (share, w * self.lost[age], w * self.size[age]);
                }
            }
        }
        let rest = size - worst.2 - mildest.2;
        let keeps_worst = worst.3 > 0.0 && self.median_rate() * MEDIAN_FACTOR <= worst.3;
        let share = if keeps_worst || rest <= 1e-9 { lost / size } else { (lost - worst.1 - mildest.1) / rest };
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    }

    fn known(&self) -> usize {
        self.count.min(WINDOW as u64) as usize
    }

    fn median_rate(&self) -> f64 {
        let mut rates = [0.0; WINDOW];
        let mut n = 0;
        for &rate in self.rate[..self.known()].iter().filter(|&&rate| rate > 0.0) {
            rates[n] = rate;
            n += 1;
        }
        rates[..n].sort_unstable_by(f64::total_cmp);
        match n {
            0 => 0.0,
            _ if n % 2 == 0 => (rates[n / 2 - 1] + rates[n / 2]) / 2.0,
            _ => rates[n / 2],
        }
    }

    /// The share of each observation that exceeds a bandwidth in bit/s; `None` if none does.
    pub(super) fn excess(&self, bandwidth: f64) -> Option<Excess> {
        self.rate.iter().any(|&rate| rate > bandwidth).then(|| self.shares_above(bandwidth))
    }

    fn shares_above(&self, bandwidth: f64) -> Excess {
        Excess(self.rate.map(|rate| if rate > bandwidth { (rate - bandwidth) / rate } else { 0.0 }))
    }

    /// First and second derivative of the log-likelihood by the inherent loss.
    pub(super) fn slope(&self, excess: &Excess, inherent: f64) -> (f64, f64) {
        let (mut firsts, mut seconds) = ([0.0; WINDOW], [0.0; WINDOW]);
        for age in 0..WINDOW {
            let p = loss_probability(excess.0[age], inherent);
            let (lost, kept) = (self.lost[age], self.size[age] - self.lost[age]);
            firsts[age] = self.weights[age] * (lost / p - kept / (1.0 - p));
            seconds[age] = self.weights[age] * (lost / (p * p) + kept / ((1.0 - p) * (1.0 - p)));
        }
        let first = firsts.into_iter().fold(0.0, |sum, term| sum + term);
        let second = seconds.into_iter().fold(0.0, |sum, term| sum - term);
        (first, second)
    }

    /// Log-likelihood, with a bias a kilobyte.
    pub(super) fn objective(&self, excess: &Excess, inherent: f64, bias: f64) -> f64 {
        // Most are sent below the bandwidth, and share these.
        let below = Logarithms::of(loss_probability(0.0, inherent));
        self.sum_of(bias, |age| {
            if excess.0[age] == 0.0 {
                return self.explained(age, &below);
            }
            let p = loss_probability(excess.0[age], inherent);
            let (lost, kept) = (self.lost[age], self.size[age] - self.lost[age]);
            let of_lost = if lost > 0.0 { lost * libm::log(p) } else { 0.0 };
            of_lost + kept * libm::log(1.0 - p)
        })
    }

    /// The log-likelihood of an observation whose packets are all lost alike.
    #[inline]
    fn explained(&self, age: usize, p: &Logarithms) -> f64 {
        let (lost, kept) = (self.lost[age], self.size[age] - self.lost[age]);
        lost * p.lost + kept * p.kept
    }

    /// The weighted sum of a term by age, with a bias a kilobyte.
    #[inline]
    fn sum_of(&self, bias: f64, term: impl Fn(usize) -> f64) -> f64 {
        let mut sum = 0.0;
        for (age, &w) in self.weights.iter().enumerate().take(self.known()) {
            sum += w * (term(age) + bias * self.size[age]);
        }
        sum
    }
}

/// Logarithms of the probabilities that a packet is lost, and that it is not.
#[derive(Clone, Copy, Debug)]
struct Logarithms {
    lost: f64,
    kept: f64,
}

impl Logarithms {
    fn of(p: f64) -> Self {
        Self { lost: libm::log(p), kept: libm::log(1.0 - p) }
    }
}

/// Values shared by candidates above all observations: only their bias differs if their inherent loss is the same.
#[derive(Default)]
pub(super) struct Below {
    slope: Option<(f64, (f64, f64))>,
    logarithms: Option<(f64, Logarithms)>,
}

impl Below {
    /// As [`Observations::slope`] without excess.
    pub(super) fn slope(&mut self, o: &Observations, inherent: f64) -> (f64, f64) {
        match self.slope {
            Some((known, slope)) if known == inherent => slope,
            _ => self.slope.insert((inherent, o.slope(&Excess::NONE, inherent))).1,
        }
    }
    /// As [`Observations::objective`] without excess.
    pub(super) fn objective(&mut self, o: &Observations, inherent: f64, bias: f64) -> f64 {
        let p = match self.logarithms {
            Some((known, p)) if known == inherent => p,
            _ => self.logarithms.insert((inherent, Logarithms::of(loss_probability(0.0, inherent)))).1,
        };
        o.sum_of(bias, |age| o.explained(age, &p))
    }
}

/// Shares of the observations that exceed a bandwidth.
pub(super) struct Excess([f64; WINDOW]);

impl Excess {
    const NONE: Self = Self([0.0; WINDOW]);
}

/// The share lost of an observation: everything above the bandwidth, and the inherent share of the rest.
fn loss_probability(excess: f64, inherent: f64) -> f64 {
    (inherent + (1.0 - inherent) * excess).clamp(1e-6, 1.0 - 1e-6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probability_is_inherent_loss_and_excess() {
        let mut o = Observations::default();
        o.push(1.0, 0.0, 500.0);
        o.push(1.0, 0.0, 1_000.0);
        let excess = o.excess(800.0).expect("one is sent faster");
        assert!((loss_probability(excess.0[1], 0.1) - 0.1).abs() < 1e-12);
        // A fifth exceeds the bandwidth: 0.1 + 0.9 * 0.2.
        assert!((loss_probability(excess.0[0], 0.1) - 0.28).abs() < 1e-12);
    }

    /// Below the bandwidth the derivatives agree with differences of the log-likelihood.
    #[test]
    fn the_slope_is_that_of_the_objective() {
        let mut o = Observations::default();
        for k in 0..20u32 {
            o.push(30.0, f64::from(k % 4), 500e3 + 20e3 * f64::from(k));
        }
        assert!(o.excess(1e6).is_none());
        let excess = Excess::NONE;
        let (at, step) = (0.05, 1e-5);
        let value = |inherent| o.objective(&excess, inherent, 0.3);
        let (first, second) = o.slope(&excess, at);
        let differences = (value(at + step) - value(at - step)) / (2.0 * step);
        let curvature = (value(at + step) - 2.0 * value(at) + value(at - step)) / (step * step);
        assert!((first / differences - 1.0).abs() < 1e-6, "{first} {differences}");
        assert!((second / curvature - 1.0).abs() < 1e-3, "{second} {curvature}");
    }
}
