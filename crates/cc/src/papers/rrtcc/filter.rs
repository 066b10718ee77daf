//! The Kalman filter of the channel (section 3.3).

use super::config::Config;
use crate::parts::receiver_estimate::ShortestInterval;

/// theta_hat = [1 / C, m]: ms a byte and ms.
#[derive(Clone, Debug)]
pub(super) struct ChannelFilter {
    slope: f64,
    offset: f64,
    /// E: its diagonal and its off-diagonal element.
    error: (f64, f64, f64),
    /// var_v_hat.
    noise: f64,
    frames: u32,
    shortest: ShortestInterval,
    /// 30 / (1000 f_max) with f_max in frames per ms, and the weight of the previous noise: both depend on the shortest
    /// interval only.
    period: f64,
    kept: f64,
}

impl ChannelFilter {
    pub(super) fn new(config: &Config) -> Self {
        let shortest = ShortestInterval::new();
        let period = period(&shortest);
        Self {
            slope: config.initial_slope,
            offset: 0.0,
            error: (config.initial_slope_error, config.initial_offset_error, 0.0),
            noise: config.initial_noise,
            frames: 0,
            shortest,
            period,
            kept: noise_kept(period, config),
        }
    }

    /// m_hat in ms.
    pub(super) fn offset(&self) -> f64 {
        self.offset
    }
    /// 1 / C_hat in ms a byte.
    pub(super) fn slope(&self) -> f64 {
        self.slope
    }
    /// var_v_hat in ms^2.
    pub(super) fn noise(&self) -> f64 {
        self.noise
    }
    /// m_hat times the number of frames seen, up to the gain; this is compared with the threshold.
    pub(super) fn gained_offset(&self, config: &Config) -> f64 {
        self.offset * f64::from(self.frames).min(config.offset_gain)
    }

    /// Takes d(i) in ms, dL(i) in bytes and T(i) - T(i-1) in ms.
    pub(super) fn update(&mut self, delay: f64, size: f64, departure: f64, config: &Config) {
        self.frames = self.frames.saturating_add(1);
        if self.shortest.update(departure) {
            self.period = period(&self.shortest);
            self.kept = noise_kept(self.period, config);
        }
        let (period, kept) = (self.period, self.kept);
        let residual = delay - size * self.slope - self.offset;
        let outlier = 3.0 * libm::sqrt(self.noise);
        let bounded = residual.clamp(-outlier, outlier);
        // At least 1, as in libwebrtc, so that a quiet path does not make the filter jump.
        self.noise = (kept * self.noise + (1.0 - kept) * bounded * bounded).max(1.0);
        let (e0, e1, e01) = self.error;
        // E h, with h = [dL 1].
        let (g0, g1) = (e0 * size + e01, e01 * size + e1);
        let variance = self.noise + size * g0 + g1;
        let (k0, k1) = (g0 / variance, g1 / variance);
        self.slope += k0 * residual;
        self.offset += k1 * residual;
        let q = (period * config.slope_noise, period * config.offset_noise);
        // (I - K h) E + Q, which is symmetric.
        self.error = (e0 - k0 * g0 + q.0, e1 - k1 * g1 + q.1, e01 - k0 * g1);
        let (e0, e1, e01) = self.error;
        let whole = self.slope.is_finite() && self.offset.is_finite();
        if !(whole && e0 >= 0.0 && e1 >= 0.0 && e0 * e1 >= e01 * e01) {
            // By rounding, the matrix is no longer a covariance.
            self.error = (config.initial_slope_error, config.initial_offset_error, 0.0);
            if !whole {
                (self.slope, self.offset) = (config.initial_slope, 0.0);
            }
        }
    }
}

fn period(shortest: &ShortestInterval) -> f64 {
    shortest.get() * 30.0 / 1_000.0
}

fn noise_kept(period: f64, config: &Config) -> f64 {
    libm::pow(1.0 - config.noise_alpha, period)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn follows_the_equations_of_section_3_3() {
        let c = Config {
            noise_alpha: 0.1,
            initial_noise: 4.0,
            initial_slope: 0.01,
            initial_slope_error: 1e-4,
            ..Config::default()
        };
        let mut f = ChannelFilter::new(&c);
        // 33.3 ms: scaled by 1. z = 5 - 100 * 0.01 - 0 = 4, var_v = 0.9 * 4 + 0.1 * 16.
        f.update(5.0, 100.0, 100.0 / 3.0, &c);
        let noise = 3.6 + 1.6;
        // E h = [1e-4 * 100, 0.1]; h E h = 1 + 0.1.
        let variance = noise + 1.1;
        let (k0, k1) = (0.01 / variance, 0.1 / variance);
        assert!(near(f.noise(), noise) && near(f.slope(), 0.01 + 4.0 * k0) && near(f.offset(), 4.0 * k1));
        assert!(near(f.error.0, 1e-4 - k0 * 0.01 + 1e-10) && near(f.error.1, 0.1 - k1 * 0.1 + 0.01));
        assert!(near(f.error.2, -k0 * 0.1) && near(f.gained_offset(&c), f.offset()));
        // An outlier counts as 3 sigma in the noise and in full in the state.
        let before = f.clone();
        f.update(1_000.0, 0.0, 100.0 / 3.0, &c);
        assert!(near(f.noise(), 0.9 * noise + 0.1 * 9.0 * noise));
        let k1 = before.error.1 / (f.noise() + before.error.1);
        assert!(near(f.offset(), before.offset() + k1 * (1_000.0 - before.offset())));
    }

    #[test]
    fn separates_capacity_from_queue() {
        let c = Config::default();
        let mut f = ChannelFilter::new(&c);
        // Alternating frames of 2,000 and 4,000 bytes over 1 Mbit/s, 0.008 ms per byte, with 0.5 ms more delay each
        // frame.
        for k in 0..3_000 {
            let size = if k % 2 == 0 { 2_000.0 } else { -2_000.0 };
            f.update(size * 0.008 + 0.5, size, 100.0 / 3.0, &c);
        }
        assert!((0.0078..=0.0082).contains(&f.slope()), "{}", f.slope());
        assert!((0.48..=0.52).contains(&f.offset()), "{}", f.offset());
        assert!((28.0..=32.0).contains(&f.gained_offset(&c)));
        assert_eq!(f.noise(), 1.0);
    }

    #[test]
    fn noise_and_drift_scale_with_the_frame_rate() {
        let c = Config { noise_alpha: 0.1, initial_noise: 4.0, ..Config::default() };
        let mut f = ChannelFilter::new(&c);
        let before = f.error.1;
        f.update(0.0, 0.0, 100.0, &c);
        assert!(near(f.noise(), 4.0 * libm::pow(0.9, 3.0)));
        assert!(near(f.error.1, before * (1.0 - before / (f.noise() + before)) + 0.03));
    }
}
