//! The parameters of the receiver-driven control.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of both halves. The defaults were chosen here.
    pub struct Config {
        /// RTP clock rate in ticks a second (video: 90,000).
        clock_rate: f64 = 90_000.0, 1_000.0 => 1_000_000.0;
        /// The observation period over which the time between frames is averaged.
        period: TimeDelta = 500.0, 50.0 => 10_000.0;
        /// Consecutive periods that signal over-use; fewer are a transient.
        periods: u32 = 2.0, 1.0 => 100.0;
        /// Over-use: relative excess of the mean time between frames over the expected one.
        over_margin: f64 = 0.05, 0.0 => 10.0;
        /// Size of a frame, as a multiple of the running mean, above which it is an I-frame.
        large_frame: f64 = 2.0, 1.0 => 100.0;
        /// Window of the incoming rate.
        rate_window: TimeDelta = 1_000.0, 100.0 => 5_000.0;
        /// Share of the incoming rate that is requested on over-use: the queue must drain before the rate has grown
        /// back.
        beta: f64 = 0.75, 0.1 => 0.99;
        /// Multiplicative increase per second while frames are early or on time.
        increase: f64 = 0.08, 0.0 => 1.0;
        /// Bound of the estimate as a multiple of the incoming rate; the increase stops there.
        incoming_bound: f64 = 1.5, 1.0 => 100.0;
        /// Interval of messages without a decrease.
        interval: TimeDelta = 1_000.0, 50.0 => 10_000.0;
        /// Pacing rate as a multiple of the media rate, so that a large frame does not wait.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}
