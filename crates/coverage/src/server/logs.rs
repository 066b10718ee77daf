//! Structured logs.

use tracing::Level;
use tracing_subscriber::fmt::time::SystemTime;
use weir_units::{TimeDelta, Timestamp};

/// Writes logs to standard error from now on: lines of text, or of JSON. `detailed` adds each request's route and status; no
/// log has a place, a key's secret or an address. Returns whether nothing wrote logs before.
pub fn log_to_stderr(json: bool, detailed: bool) -> bool {
    let level = if detailed { Level::DEBUG } else { Level::INFO };
    let lines = tracing_subscriber::fmt()
        .with_max_level(level)
        .with_writer(std::io::stderr)
        .with_timer(SystemTime)
        .with_target(false)
        .with_ansi(false);
    if json { lines.json().try_init().is_ok() } else { lines.try_init().is_ok() }
}

/// Something that may happen very often, and makes one line of log a second.
#[derive(Debug, Default)]
pub(super) struct Repeated {
    said: Option<Timestamp>,
    count: u64,
}

impl Repeated {
    /// It has happened; returns how often since the last line if there is to be one now.
    pub(super) fn note(&mut self, now: Timestamp) -> Option<u64> {
        self.count += 1;
        if self.said.is_some_and(|said| now.saturating_since(said) < TimeDelta::from_secs(1)) {
            return None;
        }
        self.said = Some(now);
        Some(std::mem::take(&mut self.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_a_second_says_how_often() {
        let mut repeated = Repeated::default();
        let lines: Vec<u64> = (0..5_000).filter_map(|ms| repeated.note(Timestamp::from_millis(ms))).collect();
        assert_eq!(lines, [1, 1_000, 1_000, 1_000, 1_000]);
    }
}
