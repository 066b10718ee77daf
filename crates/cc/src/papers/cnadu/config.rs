//! The parameters of C-NADU.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of both halves. Defaults without a source are this implementation's.
    pub struct Config {
        /// RTP clock rate in ticks a second (video: 90,000).
        clock_rate: f64 = 90_000.0, 1_000.0 => 1_000_000.0;
        /// Window of the minimum delay, from which expected arrivals follow: long against a queue, short against clock
        /// drift.
        base_window: TimeDelta = 10_000.0, 1_000.0 => 120_000.0;
        /// How much later than expected a frame is late: the extra time that a larger frame may take on a slow link.
        late_margin: TimeDelta = 40.0, 1.0 => 1_000.0;
        /// Consecutive late frames that signal congestion; fewer are a large frame or a transient.
        late_frames: u32 = 3.0, 1.0 => 100.0;
        /// Window of the incoming rate.
        rate_window: TimeDelta = 500.0, 100.0 => 5_000.0;
        /// Most of the incoming rate that is kept on congestion.
        beta: f64 = 0.9, 0.5 => 0.99;
        /// The same after frames missed their playout.
        discard_beta: f64 = 0.8, 0.3 => 0.99;
        /// Least share of the incoming rate that is kept.
        least_beta: f64 = 0.3, 0.05 => 0.99;
        /// Time in which the rate after a decrease shall drain the queue.
        drain_time: TimeDelta = 2_000.0, 100.0 => 60_000.0;
        /// Multiplicative increase of the receiver's estimate per second while frames are on time; cautious (GCC:
        /// 0.08).
        increase: f64 = 0.05, 0.0 => 1.0;
        /// Additive increase near the rate at which frames were last late, in mean packets per round-trip time and
        /// report interval (as in GCC: half a packet). It does not grow with the rate, so flows converge to equal
        /// shares.
        near_increase: f64 = 0.5, 0.0 => 100.0;
        /// Bound of the estimate as a multiple of the incoming rate (as in GCC: 1.5); the increase stops there.
        incoming_bound: f64 = 1.5, 1.0 => 100.0;
        /// Interval of the receiver's reports in round-trip times ...
        report_round_trips: f64 = 1.0, 0.0 => 10.0;
        /// ... at least this ...
        min_interval: TimeDelta = 200.0, 20.0 => 10_000.0;
        /// ... and at most this.
        max_interval: TimeDelta = 1_000.0, 20.0 => 10_000.0;
        /// Percentile of past round-trip times up to which there is no congestion (section 4.1.3: 75).
        low_percentile: f64 = 75.0, 1.0 => 100.0;
        /// Percentile of past round-trip times from which there is congestion (section 4.1.3: 90).
        high_percentile: f64 = 90.0, 1.0 => 100.0;
        /// Multiple of the low percentile above which the rate is held.
        low_factor: f64 = 1.1, 1.0 => 10.0;
        /// Multiple of the high percentile above which the rate falls to the lesser estimate.
        high_factor: f64 = 1.3, 1.0 => 10.0;
        /// Share of discarded packets from which a report signals congestion.
        discard_share: f64 = 0.005, 0.0 => 1.0;
        /// Relative increase per second of the sender's bound after discards, while there are no more.
        discard_recovery: f64 = 0.2, 0.0 => 10.0;
        /// Position of the rate between the lesser (0) and the greater estimate (1) without congestion (section 4.1.3:
        /// between them).
        between: f64 = 0.5, 0.0 => 1.0;
        /// Bound of the sender's estimate as a multiple of the receiver's, since a TCP-friendly rate far above it says
        /// nothing about the path.
        sender_bound: f64 = 1.1, 1.0 => 10.0;
        /// Time without reports after which the rate is halved, repeatedly; 0 disables it (as FBRA: 2 s).
        feedback_timeout: TimeDelta = 2_000.0, 0.0 => 120_000.0;
        /// Pacing rate as a multiple of the media rate, so that a large frame does not wait.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}
