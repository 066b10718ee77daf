use serde::{Deserialize, Serialize};
use weir_units::TimeDelta;

/// A time of day on some wall clock, in milliseconds since 1970-01-01 UTC. Clocks of different machines differ, and may go
/// back: no difference of two wall times is assumed to be positive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
#[cfg_attr(feature = "server", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "server", schema(value_type = u64, example = 1_700_000_000_000_u64))]
pub struct WallTime(u64);

impl WallTime {
    /// A time in milliseconds since 1970-01-01 UTC.
    pub const fn from_unix_millis(ms: u64) -> Self {
        Self(ms)
    }

    /// Milliseconds since 1970-01-01 UTC.
    pub const fn as_unix_millis(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this one: negative if `earlier` is later.
    pub fn since(self, earlier: Self) -> TimeDelta {
        let ms = i128::from(self.0) - i128::from(earlier.0);
        // 100 years in nanoseconds fit into 63 bits.
        let most = 3_153_600_000_000;
        TimeDelta::from_millis(i64::try_from(ms.clamp(-most, most)).unwrap_or(0))
    }

    /// This time, later by `delta`.
    #[must_use]
    pub fn plus(self, delta: TimeDelta) -> Self {
        Self(self.0.saturating_add_signed(delta.as_millis()))
    }
}
