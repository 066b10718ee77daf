//! Parameters.

use weir_units::{DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of [`Ndtc`](crate::papers::Ndtc). Defaults are those that the draft recommends (*Variables and Parameters*).
    pub struct Config {
        /// Duration in which a frame is to arrive, as a share of the frame interval (TRECV).
        receive_share: f64 = 0.6, 0.05 => 1.0;
        /// Least duration in which a frame is sent, as a share of that in which it is to arrive (TSEND); the reciprocal is the greatest
        /// growth in a step.
        send_share: f64 = 0.5, 0.1 => 0.95;
        /// Amplitude of the dithering, as a share of the send duration (DELTA).
        dither: f64 = 0.5, 0.0 => 0.9;
        /// Weight of a new frame in the regression (LAMBDA).
        regression_weight: f64 = 0.04, 0.001 => 1.0;
        /// Steps from the mean receive duration to where the regression's line meets that of equal durations (ITERATIONS).
        iterations: u32 = 3.0, 0.0 => 32.0;
        /// Margin, as a share of the receive durations' deviation that the regression leaves unexplained (KMARGIN).
        margin: f64 = 0.25, 0.0 => 10.0;
        /// Least size of a frame (MIN_TARGET); the regression takes frames from half of it on.
        min_target: DataSize = 2_000.0, 200.0 => 1e6;
        /// Growth of the congestion bound a frame without loss (ALPHA).
        increase: DataSize = 40.0, 0.0 => 1e6;
        /// The same after marks (EALPHA).
        increase_marked: DataSize = 400.0, 0.0 => 1e6;
        /// The bound after a loss, as a share of itself (BETA).
        decrease: f64 = 0.7, 0.1 => 1.0;
        /// Time without a report that counts as a loss; the draft says "a significant duration". Zero for never.
        feedback_timeout: TimeDelta = 500.0, 0.0 => 60_000.0;
    }
}

impl Config {
    /// MIN_LENGTH: the least size of a frame that samples the capacity.
    pub(super) fn min_length(&self) -> DataSize {
        DataSize::from_bytes(self.min_target.as_bytes() / 2)
    }
}
