//! The Kalman filter for the mean of the delay variation (section 5.3).

use super::config::Config;
use crate::parts::receiver_estimate::ShortestInterval;

/// A scalar Kalman filter; all in milliseconds.
#[derive(Clone, Debug)]
pub(super) struct ArrivalFilter {
    /// m_hat.
    mean: f64,
    /// e.
    error: f64,
    /// var_v_hat.
    noise: f64,
    groups: u32,
    shortest: ShortestInterval,
    /// Weight of the previous noise; it depends on the shortest interval only.
    kept: f64,
}

impl ArrivalFilter {
    pub(super) fn new(config: &Config) -> Self {
        let shortest = ShortestInterval::new();
        Self {
            mean: 0.0,
            error: config.initial_error,
            noise: config.initial_noise,
            groups: 0,
            kept: noise_kept(shortest.get(), config),
            shortest,
        }
    }

    /// m_hat(i) in ms.
    pub(super) fn mean(&self) -> f64 {
        self.mean
    }
    /// var_v_hat(i) in ms^2.
    pub(super) fn noise(&self) -> f64 {
        self.noise
    }
    /// m_hat(i) times the number of groups seen, up to the gain; this is compared with the threshold.
    pub(super) fn offset(&self, config: &Config) -> f64 {
        self.mean * f64::from(self.groups).min(config.offset_gain)
    }

    /// Takes d(i) and T(i) - T(i-1), both in ms.
    pub(super) fn update(&mut self, delay: f64, departure: f64, config: &Config) {
        if self.shortest.update(departure) {
            self.kept = noise_kept(self.shortest.get(), config);
        }
        self.groups = self.groups.saturating_add(1);
        let residual = delay - self.mean;
        self.update_noise(residual);
        let predicted = self.error + config.state_noise;
        let gain = predicted / (self.noise + predicted);
        self.mean += residual * gain;
        self.error = (1.0 - gain) * predicted;
    }

    fn update_noise(&mut self, residual: f64) {
        let outlier = 3.0 * libm::sqrt(self.noise);
        let residual = residual.clamp(-outlier, outlier);
        self.noise = (self.kept * self.noise + (1.0 - self.kept) * residual * residual).max(1.0);
    }
}

/// alpha: with f_max in groups per ms, 30 / (1000 f_max) is the shortest interval in units of 33 ms.
fn noise_kept(shortest: f64, config: &Config) -> f64 {
    libm::pow(1.0 - config.chi, shortest * 30.0 / 1_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn follows_the_equations_of_section_5_3() {
        let c = Config { chi: 0.1, initial_noise: 4.0, ..Config::default() };
        let mut f = ArrivalFilter::new(&c);
        // Intervals of 100 / 3 ms: alpha = 0.9. z = 2, var_v = 3.6 + 0.1 * 4 = 4, k = 0.101 / 4.101.
        f.update(2.0, 100.0 / 3.0, &c);
        let k = 0.101 / 4.101;
        assert!(near(f.noise(), 4.0) && near(f.mean(), 2.0 * k) && near(f.error, (1.0 - k) * 0.101));
        assert!(near(f.offset(&c), 2.0 * k));
        // z counts as at most 3 * 2 in the noise, but in full in the mean.
        let before = f.clone();
        f.update(100.0, 100.0 / 3.0, &c);
        let noise = 0.9 * 4.0 + 0.1 * 36.0;
        let k = (before.error + 0.001) / (noise + before.error + 0.001);
        assert!(near(f.noise(), noise) && near(f.mean(), before.mean + (100.0 - before.mean) * k));
        assert!(near(f.offset(&c), 2.0 * f.mean()));
    }

    #[test]
    fn the_shortest_interval_sets_the_speed_and_noise_has_a_floor() {
        let c = Config { chi: 0.1, initial_noise: 4.0, ..Config::default() };
        let mut f = ArrivalFilter::new(&c);
        f.update(0.0, 100.0, &c);
        let after = 4.0 * libm::pow(0.9, 3.0);
        assert!(near(f.noise(), after));
        f.update(0.0, 10.0, &c);
        let after = after * libm::pow(0.9, 0.3);
        assert!(near(f.noise(), after));
        (0..2_000).for_each(|_| f.update(0.0, 100.0, &c));
        assert_eq!(f.noise(), 1.0);
    }

    #[test]
    fn finds_a_steady_slope() {
        let c = Config::default();
        let mut f = ArrivalFilter::new(&c);
        (0..2_000).for_each(|_| f.update(0.5, 5.0, &c));
        assert!((0.49..=0.51).contains(&f.mean()), "{}", f.mean());
        assert!((29.0..=31.0).contains(&f.offset(&c)));
    }
}
