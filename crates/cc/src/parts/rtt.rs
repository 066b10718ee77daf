//! Bounds on round-trip times reported by others.

use weir_units::TimeDelta;

/// Upper bound of a round-trip time, so that a forged one cannot stop a reaction or delay a probe.
const MAX: TimeDelta = TimeDelta::from_secs(3);

/// The round-trip time limited to 0 to 3 s.
pub(crate) fn bounded(rtt: TimeDelta) -> TimeDelta {
    rtt.max(TimeDelta::ZERO).min(MAX)
}
