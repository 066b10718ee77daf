//! The parameters of C-NADU.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of both halves. Defaults without a source were chosen here.
    pub struct Config {
        /// Ticks of the RTP timestamp a second (video: 90,000).
        clock_rate: f64 = 90_000.0, 1_000.0 => 1_000_000.0;
        /// Window of the least delay, from which frames are expected: long against a queue, short against clock drift.
        base_window: TimeDelta = 10_000.0, 1_000.0 => 120_000.0;
        /// How much later than expected a frame is late: the time that a larger frame may take longer on a slow link.
        late_margin: TimeDelta = 40.0, 1.0 => 1_000.0;
        /// Late frames in a row that are congestion; fewer are a large frame or a transient.
        late_frames: u32 = 3.0, 1.0 => 100.0;
        /// Window of the incoming rate.
        rate_window: TimeDelta = 500.0, 100.0 => 5_000.0;
        /// Share of the incoming rate that is kept on congestion, at most.
        beta: f64 = 0.9, 0.5 => 0.99;
        /// The same where frames missed their playout.
        discard_beta: f64 = 0.8, 0.3 => 0.99;
        /// Least share that is kept.
        least_beta: f64 = 0.3, 0.05 => 0.99;
        /// Time in which the rate after a decrease shall drain the queue that was there.
        drain_time: TimeDelta = 2_000.0, 100.0 => 60_000.0;
        /// Increase of the receiver's estimate in a second while frames are on time, with care (GCC: 0.08).
        increase: f64 = 0.05, 0.0 => 1.0;
        /// Increase near the rate at which frames were late before, in mean packets a round-trip time and report interval
        /// (as in GCC: half a packet). That it does not grow with the rate brings flows to equal shares.
        near_increase: f64 = 0.5, 0.0 => 100.0;
        /// Bound of the estimate as a multiple of the incoming rate (as in GCC: 1.5). It stops the increase.
        incoming_bound: f64 = 1.5, 1.0 => 100.0;
        /// Reports of the receiver's estimate: this many round-trip times apart ...
        report_round_trips: f64 = 1.0, 0.0 => 10.0;
        /// ... but no less than this ...
        min_interval: TimeDelta = 200.0, 20.0 => 10_000.0;
        /// ... and no more than this.
        max_interval: TimeDelta = 1_000.0, 20.0 => 10_000.0;
        /// Percentile of past round-trip times up to which there is no congestion (section 4.1.3: 75).
        low_percentile: f64 = 75.0, 1.0 => 100.0;
        /// Percentile of past round-trip times from which there is congestion (section 4.1.3: 90).
        high_percentile: f64 = 90.0, 1.0 => 100.0;
        /// Multiple of the low percentile that holds the rate.
        low_factor: f64 = 1.1, 1.0 => 10.0;
        /// Multiple of the high percentile that lowers it to the lesser estimate.
        high_factor: f64 = 1.3, 1.0 => 10.0;
        /// Share of discarded packets from which a report tells of congestion.
        discard_share: f64 = 0.005, 0.0 => 1.0;
        /// Raise of the sender's bound a second after discards, while there are none.
        discard_recovery: f64 = 0.2, 0.0 => 10.0;
        /// Where between the lesser (0) and the greater estimate (1) the rate lies without congestion (section 4.1.3:
        /// between them).
        between: f64 = 0.5, 0.0 => 1.0;
        /// Bound of the sender's estimate as a multiple of the receiver's, so that a TCP-friendly rate without meaning
        /// for the path does not carry the rate away.
        sender_bound: f64 = 1.1, 1.0 => 10.0;
        /// Time without reports after which the rate is halved, again and again; 0 for never (as FBRA: 2 s).
        feedback_timeout: TimeDelta = 2_000.0, 0.0 => 120_000.0;
        /// Pacing rate as a multiple of the media rate, so that a large frame does not wait.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}
