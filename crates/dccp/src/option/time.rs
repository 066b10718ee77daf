//! The units of the timing options: 10 us (RFC 4340, section 13).

use weir_units::{TimeDelta, Timestamp};

const MICROS: i64 = 10;

/// A time that has elapsed, in whole units of 10 us: it is a lower bound. `u32::MAX` stands for all that is longer
/// (RFC 4340, section 13.2); below zero counts as zero.
pub fn ticks(elapsed: TimeDelta) -> u32 {
    u32::try_from(elapsed.as_micros().max(0) / MICROS).unwrap_or(u32::MAX)
}

/// The time of so many units.
pub const fn from_ticks(ticks: u32) -> TimeDelta {
    TimeDelta::from_micros(ticks as i64 * MICROS)
}

/// The value of a Timestamp option that leaves now. It wraps about every 11.9 hours (RFC 4340, section 13.1).
pub const fn timestamp(now: Timestamp) -> u32 {
    now.as_micros().div_euclid(MICROS) as u32
}
