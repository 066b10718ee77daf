//! Parameters.

use weir_units::{DataRate, TimeDelta};

crate::tunables! {
    /// Configuration of [`Sqp`](crate::papers::Sqp). Defaults are those of LapseLove/Python-tquic at dc11911 (`SQPConfig`), but for the
    /// last one, which it does not have.
    pub struct Config {
        /// Rate of a frame's packets as a multiple of the bitrate (m).
        pacing: f64 = 2.0, 1.0 => 10.0;
        /// Share of a sample that is aimed for (T).
        target: f64 = 0.9, 0.1 => 1.0;
        /// Step of the bitrate (delta).
        step: DataRate = 320.0, 1.0 => 100_000.0;
        /// Weight of what a higher bitrate gains beside what the queue costs (r).
        reward: f64 = 0.25, 0.0 => 10.0;
        /// Smoothed round trips for which a one-way delay counts for the least one.
        delay_window: f64 = 2.0, 0.1 => 1_000.0;
        /// Time without a report after which the bitrate is halved. Zero for never.
        feedback_timeout: TimeDelta = 500.0, 0.0 => 60_000.0;
    }
}
