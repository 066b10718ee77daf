//! The vertical axis of a plot.

use super::plot::{Plot, Scale};

/// Its scale.
pub(super) struct ValueAxis {
    low: f64,
    high: f64,
    is_log: bool,
    /// Labelled values.
    pub(super) ticks: Vec<f64>,
}

impl ValueAxis {
    /// The axis of a plot of this height in points.
    pub(super) fn of(plot: &Plot, height: f64) -> Self {
        let values = || plot.lines.iter().flat_map(|l| &l.points).map(|p| p.1).filter(|v| v.is_finite());
        let high = values().fold(0.0, f64::max);
        if plot.scale == Scale::Log && high > 0.0 {
            let low = values().filter(|v| *v > 0.0).fold(high, f64::min);
            let (from, to) =
                (low.log10().floor() as i32, (high.log10().ceil() as i32).max(low.log10().floor() as i32 + 1));
            let ticks = (from..=to).map(|power| 10f64.powi(power)).collect();
            return Self { low: 10f64.powi(from), high: 10f64.powi(to), is_log: true, ticks };
        }
        let given = if let Scale::UpTo(most) = plot.scale { Some(most) } else { None };
        let step = nice(given.unwrap_or(high * 1.04).max(1e-9) / (height / 46.0));
        let end = given.unwrap_or(if high > 0.0 { high * 1.04 } else { step });
        let count = (end / step * (1.0 + 1e-9)) as usize;
        Self { low: 0.0, high: end, is_log: false, ticks: (0..=count).map(|i| i as f64 * step).collect() }
    }

    /// Relative height of a value, clamped to 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        let share = if self.is_log {
            (value.max(self.low) / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        share.clamp(0.0, 1.0)
    }
}

/// The next greater step of 1, 2 or 5 times a power of ten.
pub(super) fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    let k = [1.0, 2.0, 5.0, 10.0].into_iter().find(|k| k * power >= step * (1.0 - 1e-9)).unwrap_or(10.0);
    k * power
}

#[cfg(test)]
mod tests {
    use super::super::plot::Line;
    use super::*;

    fn plot(values: &[f64], scale: Scale) -> Plot {
        let points = values.iter().map(|&v| (0.0, v)).collect();
        Plot { lines: vec![Line { points, ..Line::default() }], scale, ..Plot::default() }
    }

    #[test]
    fn a_logarithmic_axis_goes_from_power_to_power() {
        let v = ValueAxis::of(&plot(&[0.3, 1.0, 40.0, f64::NAN], Scale::Log), 270.0);
        assert_eq!(v.ticks, [0.1, 1.0, 10.0, 100.0]);
        for (value, share) in [(0.1, 0.0), (1.0, 1.0 / 3.0), (10.0, 2.0 / 3.0), (100.0, 1.0), (0.0, 0.0), (1e9, 1.0)] {
            assert!((v.share(value) - share).abs() < 1e-9, "{value}");
        }
        // Nothing above zero, or a single value.
        assert_eq!(ValueAxis::of(&plot(&[0.0], Scale::Log), 270.0).share(0.0), 0.0);
        assert_eq!(ValueAxis::of(&plot(&[10.0], Scale::Log), 270.0).ticks, [10.0, 100.0]);
    }

    #[test]
    fn a_plain_axis_has_the_highest_value_or_the_given_end() {
        let v = ValueAxis::of(&plot(&[1.0, 10.0], Scale::Zero), 270.0);
        assert_eq!((v.ticks[0], v.ticks[1], v.ticks.len()), (0.0, 2.0, 6));
        assert!((v.share(10.0) - 1.0 / 1.04).abs() < 1e-9);
        let v = ValueAxis::of(&plot(&[1.0, 100.0], Scale::UpTo(9.0)), 270.0);
        assert_eq!((v.ticks.last(), v.share(100.0), v.share(4.5)), (Some(&8.0), 1.0, 0.5));
    }
}
