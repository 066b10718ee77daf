//! The average of the incoming rate at decreases (section 5.5), and the distance of a rate from it.

/// Bounds and initial value of the variance, as a share of the average in kbit/s (libwebrtc; the draft gives none).
const VARIANCE: (f64, f64) = (0.4, 2.5);

/// Average and variance of the incoming rate at decreases, in kbit/s.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Convergence {
    pub(crate) average: f64,
    /// Variance divided by the average.
    pub(crate) variance: f64,
}

impl Convergence {
    /// Standard deviations by which a rate exceeds the average.
    pub(crate) fn deviations(&self, kbps: f64) -> f64 {
        (kbps - self.average) / libm::sqrt(self.variance * self.average).max(1e-9)
    }

    /// The average after a decrease at an incoming rate, with weight `kept` for the previous average. It restarts if
    /// the rate is more than three deviations below.
    pub(crate) fn after(before: Option<Self>, kbps: f64, kept: f64) -> Self {
        match before.filter(|c| c.deviations(kbps) >= -3.0) {
            None => Self { average: kbps, variance: VARIANCE.0 },
            Some(c) => {
                let average = kept * c.average + (1.0 - kept) * kbps;
                let error = average - kbps;
                let variance = kept * c.variance + (1.0 - kept) * error * error / average.max(1.0);
                Self { average, variance: variance.clamp(VARIANCE.0, VARIANCE.1) }
            }
        }
    }
}
