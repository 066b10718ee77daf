//! Combines deadlines of several parts.

use weir_units::Timestamp;

/// Lowers `at` to `other` if that is earlier; [`Timestamp::MAX`] means never.
#[inline(always)]
pub(crate) fn earliest(at: &mut Timestamp, other: Option<Timestamp>) {
    *at = (*at).min(other.unwrap_or(Timestamp::MAX));
}
