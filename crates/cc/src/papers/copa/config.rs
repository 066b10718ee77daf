//! Parameters.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of [`Copa`](crate::papers::Copa). Sections are those of the NSDI paper; genericCC is its authors' program.
    pub struct Config {
        /// δ without flows that fill buffers (section 2.1; mvfst has 0.05): a flow alone keeps about 1 / δ packets in the queue.
        delta: f64 = 0.5, 0.004 => 10.0;
        /// Whether δ falls beside flows that fill buffers (section 2.2).
        competes: bool = 1.0, 0.0 => 1.0;
        /// Round trips without a nearly empty queue after which it competes (section 2.2).
        empty_within: u32 = 5.0, 1.0 => 100.0;
        /// Queueing delay below which the queue is nearly empty, as a share of the greatest one of four round trips (section 2.2).
        nearly_empty: f64 = 0.1, 0.0 => 1.0;
        /// Span of the least round-trip time (section 2.1).
        least_window: TimeDelta = 10_000.0, 100.0 => 600_000.0;
        /// Span of the standing round-trip time, in smoothed ones (section 2.1; mvfst has an option for 1).
        standing_window: f64 = 0.5, 0.1 => 10.0;
        /// Share of packets lost in two round trips above which the window falls (genericCC, `ReduceOnLoss`) ...
        loss_threshold: f64 = 0.3, 0.0 => 1.0;
        /// ... to this share of itself.
        loss_decrease: f64 = 0.7, 0.1 => 1.0;
    }
}
