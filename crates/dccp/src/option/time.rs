//! The units of the timing options: 10 us (RFC 4340, section 13).

use weir_units::{TimeDelta, Timestamp};

const MICROS: i64 = 10;

/// An elapsed time, in whole units of 10 us: a lower bound. `u32::MAX` represents all longer times (RFC 4340,
/// section 13.2); negative ones count as zero.
pub fn ticks(elapsed: TimeDelta) -> u32 {
    u32::try_from(elapsed.as_micros().max(0) / MICROS).unwrap_or(u32::MAX)
}

/// The time of this many units.
pub const fn from_ticks(ticks: u32) -> TimeDelta {
    TimeDelta::from_micros(ticks as i64 * MICROS)
}

/// The value of a Timestamp option sent now. It wraps about every 11.9 hours (RFC 4340, section 13.1).
pub const fn timestamp(now: Timestamp) -> u32 {
    now.as_micros().div_euclid(MICROS) as u32
}
