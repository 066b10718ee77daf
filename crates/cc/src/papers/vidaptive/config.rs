//! Parameters.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of [`Vidaptive`](crate::papers::Vidaptive). Defaults are those of the crate `vidaptive` 0.1.0 at 30 frames a second
    /// (`VidaptiveConfigBuilder::default`).
    pub struct Config {
        /// Age of the oldest queued packet from which on the encoder gets the floor (tau).
        pause: TimeDelta = 33.0, 1.0 => 10_000.0;
        /// Time in which a frame is to be sent (P).
        service_time: TimeDelta = 33.0, 1.0 => 1_000.0;
        /// Share of the frames that are to be sent in that time (lambda).
        percentile: f64 = 0.9, 0.0 => 1.0;
        /// Interval of updates of alpha, and age up to which a frame counts (D).
        window: TimeDelta = 1_000.0, 100.0 => 60_000.0;
        /// Weight of a new alpha.
        weight: f64 = 0.25, 0.0 => 1.0;
        /// Time without padding before the next frame is expected.
        withhold: TimeDelta = 8.25, 0.0 => 1_000.0;
    }
}
