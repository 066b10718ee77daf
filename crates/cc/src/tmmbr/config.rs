//! The parameters of the receiver-driven control.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of both halves. The defaults were chosen here.
    pub struct Config {
        /// Ticks of the RTP timestamp a second (video: 90,000).
        clock_rate: f64 = 90_000.0, 1_000.0 => 1_000_000.0;
        /// The observed period over which the time between frames is averaged.
        period: TimeDelta = 500.0, 50.0 => 10_000.0;
        /// Periods of over-use in a row that count; fewer are a transient.
        periods: u32 = 2.0, 1.0 => 100.0;
        /// Over-use: mean time between frames above the expected one, as a share of it.
        over_margin: f64 = 0.05, 0.0 => 10.0;
        /// Size of a frame, as a multiple of the running mean, from which it is an I-frame.
        large_frame: f64 = 2.0, 1.0 => 100.0;
        /// Window of the incoming rate.
        rate_window: TimeDelta = 1_000.0, 100.0 => 5_000.0;
        /// Share of the incoming rate that is asked for on over-use: the queue must drain before the rate has grown back.
        beta: f64 = 0.75, 0.1 => 0.99;
        /// Increase in a second where frames are early or on time.
        increase: f64 = 0.08, 0.0 => 1.0;
        /// Bound of the estimate as a multiple of the incoming rate. It stops the increase.
        incoming_bound: f64 = 1.5, 1.0 => 100.0;
        /// Interval of messages that tell no decrease.
        interval: TimeDelta = 1_000.0, 50.0 => 10_000.0;
        /// Pacing rate as a multiple of the media rate, so that a large frame does not wait.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}
