//! Queue-delay trend: early detection of congestion (RFC 8298, section 4.1.2, `update_variables`).

/// Length of qdelay_fraction_hist in samples.
const HISTORY: usize = 20;
/// Decay of the stored trend per sample (RFC 8298, section 4.1.2; C++ of 2019: 0.98).
const MEMORY_DECAY: f64 = 0.99;

/// How consistently the queue delay is changing, from 0 to 1.
#[derive(Clone, Debug, Default)]
pub(super) struct QueueDelayTrend {
    history: [f64; HISTORY],
    oldest: usize,
    average: f64,
    trend: f64,
    memory: f64,
}

impl QueueDelayTrend {
    /// qdelay_trend.
    pub(super) fn trend(&self) -> f64 {
        self.trend
    }
    /// qdelay_trend_mem.
    pub(super) fn memory(&self) -> f64 {
        self.memory
    }
    /// qdelay_fraction_avg.
    pub(super) fn average(&self) -> f64 {
        self.average
    }

    /// Updates the average; call it with each feedback message.
    pub(super) fn average_in(&mut self, fraction: f64, weight: f64) {
        self.average += weight * (fraction - self.average);
    }

    /// Takes a sample; call it every 50 ms of feedback.
    pub(super) fn sample(&mut self, fraction: f64) {
        self.history[self.oldest] = fraction;
        self.oldest = (self.oldest + 1) % HISTORY;
        let coefficient = self.autocorrelation();
        self.trend = (coefficient * self.average).clamp(0.0, 1.0);
        self.memory = (MEMORY_DECAY * self.memory).max(self.trend);
    }

    /// R(x, 1) / R(x, 0) of the history without its mean; zero if the history is flat.
    fn autocorrelation(&self) -> f64 {
        let mean = self.history.iter().sum::<f64>() / HISTORY as f64;
        let (newer, older) = self.history.split_at(self.oldest);
        let (mut r0, mut r1, mut before) = (0.0, 0.0, 0.0);
        for x in older.iter().chain(newer) {
            let x = x - mean;
            r0 += x * x;
            r1 += x * before;
            before = x;
        }
        // A flat history leaves rounding errors, which are perfectly correlated.
        if r0 > 1e-12 * mean * mean { r1 / r0 } else { 0.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() < 1e-12, "{a} is not {b}");
    }

    #[test]
    fn the_average_moves_by_its_weight() {
        let mut t = QueueDelayTrend::default();
        t.average_in(1.0, 0.1);
        near(t.average(), 0.1);
        t.average_in(0.5, 0.1);
        near(t.average(), 0.14);
    }

    #[test]
    fn a_step_has_the_autocorrelation_of_its_equation() {
        // Ten samples of 0, ten of 1: the mean is 0.5, R(0) = 20/4, R(1) = (9 - 1 + 9)/4, so a = 17/20.
        let mut t = QueueDelayTrend { average: 0.4, ..Default::default() };
        (0..10).for_each(|_| t.sample(1.0));
        near(t.trend(), 0.85 * 0.4);
        near(t.memory(), 0.85 * 0.4);
    }

    #[test]
    fn alternating_and_flat_delays_are_no_trend() {
        let mut t = QueueDelayTrend { average: 1.0, ..Default::default() };
        (0..40).for_each(|i| t.sample(f64::from(i % 2)));
        near(t.trend(), 0.0);
        (0..20).for_each(|_| t.sample(0.7));
        near(t.trend(), 0.0);
    }

    #[test]
    fn the_memory_fades_by_a_hundredth_a_sample() {
        let mut t = QueueDelayTrend { memory: 0.5, ..Default::default() };
        t.sample(0.0);
        t.sample(0.0);
        near(t.memory(), 0.5 * 0.99 * 0.99);
    }
}
