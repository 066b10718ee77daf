//! Arrival-time filter: the slope of the smoothed queueing delay over the last groups.
//!
//! It replaces the Kalman filter of draft-ietf-rmcat-gcc-02, section 5.3, in sender-side GCC (libwebrtc since 2016;
//! equations 1 to 5 of "Congestion Control for RTP Media: A Comparison on Simulated Environment").

use super::inter_arrival::Deltas;
use weir_units::RemoteTimestamp;

/// Upper bound of the number of deltas counted; only small numbers matter (libwebrtc: `kDeltaCounterMax`).
const MAX_COUNT: u32 = 1_000;

/// Accumulates delay variations and fits a line. Times in ms, slope in ms of delay per ms.
#[derive(Clone, Debug)]
pub(super) struct Trendline {
    smoothing: f64,
    /// Arrival and smoothed delay of the last groups; a ring, since the fit does not depend on their order.
    arrivals: Box<[f64]>,
    delays: Box<[f64]>,
    next: usize,
    count: u32,
    first_arrival: Option<RemoteTimestamp>,
    accumulated: f64,
    smoothed: f64,
    slope: f64,
}

impl Trendline {
    pub(super) fn new(window: u32, smoothing: f64) -> Self {
        let window = window.max(2) as usize;
        Self {
            smoothing,
            arrivals: vec![0.0; window].into_boxed_slice(),
            delays: vec![0.0; window].into_boxed_slice(),
            next: 0,
            count: 0,
            first_arrival: None,
            accumulated: 0.0,
            smoothed: 0.0,
            slope: 0.0,
        }
    }

    pub(super) fn reset(&mut self) {
        self.next = 0;
        self.count = 0;
        self.first_arrival = None;
        (self.accumulated, self.smoothed, self.slope) = (0.0, 0.0, 0.0);
    }

    /// Number of groups seen, up to a bound.
    pub(super) fn count(&self) -> u32 {
        self.count
    }
    /// About (send rate - capacity) / capacity while a queue builds up; 0 while the window fills.
    pub(super) fn slope(&self) -> f64 {
        self.slope
    }

    /// Takes the delta between two groups, of which the later one arrived at `arrival`.
    pub(super) fn update(&mut self, deltas: Deltas, arrival: RemoteTimestamp) {
        let first = *self.first_arrival.get_or_insert(arrival);
        self.count = (self.count + 1).min(MAX_COUNT);
        self.accumulated += (deltas.arrival - deltas.departure).as_millis_f64();
        self.smoothed = self.smoothing * self.smoothed + (1.0 - self.smoothing) * self.accumulated;
        self.arrivals[self.next] = (arrival - first).as_millis_f64();
        self.delays[self.next] = self.smoothed;
        self.next = if self.next + 1 == self.arrivals.len() { 0 } else { self.next + 1 };
        if self.count as usize >= self.arrivals.len()
            && let Some(slope) = fit(&self.arrivals, &self.delays)
        {
            self.slope = slope;
        }
    }
}

/// libwebrtc's window (`kDefaultTrendlineWindowSize`).
const USUAL_WINDOW: usize = 20;

/// Least squares: sum (x - mean x)(y - mean y) / sum (x - mean x)^2; `None` if all x are equal.
fn fit(x: &[f64], y: &[f64]) -> Option<f64> {
    // A length known to the compiler leaves no loop: half the instructions, in the same order.
    match (<&[f64; USUAL_WINDOW]>::try_from(x), <&[f64; USUAL_WINDOW]>::try_from(y)) {
        (Ok(x), Ok(y)) => fit_line(x, y),
        _ => fit_line(x, y),
    }
}

#[inline(always)]
fn fit_line(x: &[f64], y: &[f64]) -> Option<f64> {
    let n = x.len() as f64;
    let (mean_x, mean_y) = (sum(x) / n, sum(y) / n);
    // Four partial sums instead of one: the loop is bound by the latency of additions.
    let (mut num, mut den) = ([0.0; 4], [0.0; 4]);
    let (mut cx, mut cy) = (x.chunks_exact(4), y.chunks_exact(4));
    for (a, b) in (&mut cx).zip(&mut cy) {
        for k in 0..4 {
            let dx = a[k] - mean_x;
            num[k] += dx * (b[k] - mean_y);
            den[k] += dx * dx;
        }
    }
    for (a, b) in cx.remainder().iter().zip(cy.remainder()) {
        num[0] += (a - mean_x) * (b - mean_y);
        den[0] += (a - mean_x) * (a - mean_x);
    }
    let (num, den) = (num[0] + num[1] + (num[2] + num[3]), den[0] + den[1] + (den[2] + den[3]));
    let slope = num / den;
    (den > 0.0 && slope.is_finite()).then_some(slope)
}

#[inline(always)]
fn sum(v: &[f64]) -> f64 {
    let mut s = [0.0; 4];
    let mut chunks = v.chunks_exact(4);
    for c in &mut chunks {
        for k in 0..4 {
            s[k] += c[k];
        }
    }
    let rest: f64 = chunks.remainder().iter().sum();
    s[0] + s[1] + (s[2] + s[3]) + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::TimeDelta;

    /// Groups 20 ms apart at the sender whose delay grows by `growth` per ms of arrival time.
    fn run(growth: f64, groups: usize) -> Trendline {
        let mut t = Trendline::new(20, 0.9);
        let departure = TimeDelta::from_millis(20);
        let gap = departure.mul_f64(1.0 / (1.0 - growth));
        let mut at = RemoteTimestamp::from_millis(7);
        for _ in 0..groups {
            at += gap;
            t.update(Deltas { departure, arrival: gap }, at);
        }
        t
    }

    #[test]
    fn the_slope_is_the_growth_of_delay() {
        // The smoothed ramp lags, but has the ramp's slope once the filter (0.9^200) has settled.
        for growth in [-0.3, -0.05, 0.0, 0.02, 0.2] {
            let s = run(growth, 200).slope();
            assert!((s - growth).abs() < 1e-6, "{growth}: {s}");
        }
    }

    #[test]
    fn there_is_no_slope_before_the_window_is_full() {
        assert_eq!(run(0.2, 19).slope(), 0.0);
        let s = run(0.2, 20).slope();
        assert!(s > 0.05 && s < 0.2, "{s}");
    }

    #[test]
    fn the_fit_is_that_of_the_textbook() {
        // Means 3 and 4; numerator 4*2+1*1+0+1*0+4*1... by hand: x 1..5, y 2 1 4 5 8 gives 16 / 10.
        let slope = fit(&[1.0, 2.0, 3.0, 4.0, 5.0], &[2.0, 1.0, 4.0, 5.0, 8.0]);
        assert!((slope.expect("x differ") - 1.6).abs() < 1e-12);
        assert_eq!(fit(&[3.0, 3.0], &[1.0, 2.0]), None);
    }
}
