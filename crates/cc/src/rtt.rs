//! Round-trip times as others tell them, brought to what can be.

use weir_units::TimeDelta;

/// Round-trip times count up to this, so that a forged one cannot stop a reaction or hold a probe.
const MAX: TimeDelta = TimeDelta::from_secs(3);

/// The round-trip time between zero and 3 s.
pub(crate) fn bounded(rtt: TimeDelta) -> TimeDelta {
    rtt.max(TimeDelta::ZERO).min(MAX)
}
