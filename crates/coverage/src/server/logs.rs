//! Structured logs.

use tracing::Level;
use tracing_subscriber::fmt::time::SystemTime;

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
