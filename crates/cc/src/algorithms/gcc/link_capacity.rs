//! Estimate of the link's capacity from the acknowledged rates at overuse (draft-ietf-rmcat-gcc-02, section 5.5).

/// Weight of a new sample: the draft smooths with 0.95.
const ALPHA: f64 = 0.05;
/// Range of the normalised variance in kbit/s: deviations of about 14 to 35 kbit/s at 500 kbit/s
/// (libwebrtc, as of 2024).
const VARIANCE_RANGE: (f64, f64) = (0.4, 2.5);

/// Mean and deviation of the acknowledged rate at overuse, in kbit/s.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinkCapacity {
    estimate: Option<f64>,
    variance: f64,
}

impl LinkCapacity {
    pub(super) fn new() -> Self {
        Self { estimate: None, variance: VARIANCE_RANGE.0 }
    }
    pub(super) fn reset(&mut self) {
        self.estimate = None;
    }
    /// The mean in bit/s.
    pub(super) fn estimate(&self) -> Option<f64> {
        self.estimate.map(|e| e * 1e3)
    }
    /// The bounds of three deviations around the mean in bit/s.
    pub(super) fn bounds(&self) -> Option<(f64, f64)> {
        let e = self.estimate?;
        let width = 3.0 * libm::sqrt(self.variance * e);
        Some((((e - width) * 1e3).max(0.0), (e + width) * 1e3))
    }
    /// Takes the acknowledged rate at overuse in bit/s.
    pub(super) fn on_overuse(&mut self, rate: f64) {
        let rate = rate * 1e-3;
        let e = self.estimate.map_or(rate, |e| (1.0 - ALPHA) * e + ALPHA * rate);
        self.estimate = Some(e);
        let error = e - rate;
        let (low, high) = VARIANCE_RANGE;
        self.variance = ((1.0 - ALPHA) * self.variance + ALPHA * error * error / e.max(1.0)).clamp(low, high);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_three_deviations() {
        let mut c = LinkCapacity::new();
        assert_eq!(c.bounds(), None);
        c.on_overuse(500e3);
        // The variance falls to its floor of 0.4: sqrt(0.4 * 500) = 14.14 kbit/s.
        let (low, high) = c.bounds().expect("set");
        assert!((high - 500e3 - 3.0 * 14_142.135_6).abs() < 1.0, "{high}");
        assert!((500e3 - low - 3.0 * 14_142.135_6).abs() < 1.0, "{low}");
        c.on_overuse(600e3);
        assert!((c.estimate().expect("set") - 505e3).abs() < 1e-6);
        c.reset();
        assert_eq!(c.estimate(), None);
    }

    #[test]
    fn low_rates_have_a_lower_bound_of_zero() {
        let mut c = LinkCapacity::new();
        c.on_overuse(1e3);
        assert_eq!(c.bounds().expect("set").0, 0.0);
    }
}
