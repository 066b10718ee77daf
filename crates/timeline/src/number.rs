//! Numbers of files, as counts.

/// Largest magnitude of a number of statistics that is kept: priorities of candidate pairs have 64 bits (RFC 8445, section 6.1.2.3), and
/// no counter has more. Sums of all that a recording keeps, and squares of them, stay finite.
const LARGEST: f64 = 18_446_744_073_709_551_616.0;

/// Whether a number of statistics can have been measured.
pub(crate) fn is_measured(value: f64) -> bool {
    value.abs() <= LARGEST
}

/// A counter as a whole number: not below zero, and saturated. What is no number is zero.
pub(crate) fn count(value: f64) -> u64 {
    value as u64
}

/// A sum of counts, saturated.
pub(crate) fn total(counts: impl Iterator<Item = u64>) -> u64 {
    counts.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_saturate_at_both_ends() {
        assert_eq!([-3.0, f64::NAN, 6.9, 1e300].map(count), [0, 0, 6, u64::MAX]);
        assert_eq!(total([count(1e300), 7].into_iter()), u64::MAX);
        assert!(
            is_measured(-4e17)
                && is_measured(9_115_005_270_282_354_687.0)
                && !is_measured(2e19)
                && !is_measured(f64::NAN)
                && !is_measured(f64::NEG_INFINITY)
        );
    }
}
