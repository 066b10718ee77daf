use crate::WallTime;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use weir_units::Timestamp;

/// The service's clocks: the time of day, which may jump, and one that only goes forward, for limits.
#[derive(Clone)]
pub struct Clock {
    wall: Arc<dyn Fn() -> WallTime + Send + Sync>,
    started: Instant,
}

#[expect(clippy::disallowed_methods, reason = "the service is where clocks are read")]
fn monotonic() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "the service is where clocks are read")]
fn system() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    WallTime::from_unix_millis(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}

impl Clock {
    /// The system's clocks.
    pub fn system() -> Self {
        Self::with_wall(system)
    }

    /// A time of day of one's own, for tests and replays.
    pub fn with_wall(wall: impl Fn() -> WallTime + Send + Sync + 'static) -> Self {
        Self { wall: Arc::new(wall), started: monotonic() }
    }

    /// The time of day.
    pub fn wall(&self) -> WallTime {
        (self.wall)()
    }

    /// The time since this clock was made.
    pub fn elapsed(&self) -> Timestamp {
        let since = monotonic().saturating_duration_since(self.started);
        Timestamp::from_nanos(i64::try_from(since.as_nanos()).unwrap_or(i64::MAX))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Clock").field("wall", &self.wall()).finish_non_exhaustive()
    }
}
