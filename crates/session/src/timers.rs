//! Deadlines of several parts, of which the soonest counts.

use weir_units::Timestamp;

/// Moves `at`, [`Timestamp::MAX`] for never, forward to `other` where that is sooner.
#[inline(always)]
pub(crate) fn earliest(at: &mut Timestamp, other: Option<Timestamp>) {
    *at = (*at).min(other.unwrap_or(Timestamp::MAX));
}
