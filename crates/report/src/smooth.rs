//! Columns made ready for plots.

use weir_lab::results::FlowSummary;

/// Span of the mean that rates are plotted as, in s (RFC 8868, section 3: plots at one-second intervals).
const SPAN_S: f64 = 1.0;

/// Mean of the values that are there, NaN of none.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.filter(|v| !v.is_nan()).fold((0.0, 0.0), |(s, n), v| (s + v, n + 1.0));
    if n > 0.0 { sum / n } else { f64::NAN }
}

/// The mean of the second that ends with each row; NaN where the row itself has no value.
pub(crate) fn trailing_mean(values: &[f64], interval_s: f64) -> Vec<f64> {
    let span = ((SPAN_S / interval_s).round() as usize).max(1);
    let at = |i: usize| {
        if values[i].is_nan() { f64::NAN } else { mean(values[(i + 1).saturating_sub(span)..=i].iter().copied()) }
    };
    (0..values.len()).map(at).collect()
}

/// The values while a flow is active, NaN before and after.
pub(crate) fn while_active(mut values: Vec<f64>, time_s: &[f64], flow: &FlowSummary) -> Vec<f64> {
    for (v, &t) in values.iter_mut().zip(time_s) {
        if t <= flow.start_s || t > flow.stop_s {
            *v = f64::NAN;
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smoothing_is_a_trailing_second() {
        let s = trailing_mean(&[0.0, 0.0, 4.0, f64::NAN, 8.0], 0.5);
        assert_eq!(s[..3], [0.0, 0.0, 2.0]);
        assert!(s[3].is_nan());
        assert_eq!(s[4], 8.0);
    }
}
