//! Deadlines of several parts, of which the soonest counts.

use weir_units::Timestamp;

/// Moves `at` forward to `other` where that is sooner.
pub(crate) fn earliest(at: &mut Option<Timestamp>, other: Option<Timestamp>) {
    *at = match (*at, other) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    };
}
