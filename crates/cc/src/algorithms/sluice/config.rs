//! Parameters.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of Sluice. Values without another source are measured: `docs/sluice.md` has the runs.
    pub struct Config {
        /// Queueing delay held at 4 Mbit/s.
        queue_target: TimeDelta = 7.8, 1.0 => 200.0;
        /// What is added to that for each factor of e below 4 Mbit/s: slower flows on one queue want a longer one, so that
        /// their rates meet.
        queue_slope: TimeDelta = 11.9, 0.0 => 100.0;
        /// Least of the target ...
        queue_least: TimeDelta = 5.0, 1.0 => 200.0;
        /// ... and greatest.
        queue_most: TimeDelta = 40.0, 1.0 => 500.0;
        /// Time in which the difference between the queue expected and the target is made up.
        drain_time: TimeDelta = 122.0, 20.0 => 5_000.0;
        /// What is added to that, in mean stalls.
        drain_stalls: f64 = 4.8, 0.0 => 50.0;
        /// Busy time over which the service rate is taken.
        service_time: TimeDelta = 230.0, 5.0 => 2_000.0;
        /// The same after a fall of the capacity: ...
        service_time_fall: TimeDelta = 14.0, 5.0 => 2_000.0;
        /// ... a service rate below this share of that over the longer time, ...
        fall_share: f64 = 1.0, 0.1 => 1.0;
        /// ... over at least so many mean stalls, ...
        fall_stalls: f64 = 2.9, 0.0 => 50.0;
        /// ... over at least so many packets, ...
        fall_packets: f64 = 2.0, 1.0 => 50.0;
        /// ... and a queueing delay that has risen by this in 150 ms.
        fall_rise: TimeDelta = 3.9, 0.0 => 1_000.0;
        /// Factor of growth per round of feedback where there is room.
        growth: f64 = 2.0, 1.01 => 4.0;
        /// First factor after the rate had been held.
        growth_first: f64 = 1.67, 1.01 => 4.0;
        /// Share of a measured service rate up to which the rate grows.
        growth_share: f64 = 1.05, 0.5 => 1.5;
        /// Factor of growth where the link serves unevenly.
        growth_uneven: f64 = 1.01, 1.01 => 4.0;
        /// Greatest factor of growth on a busy link that serves in clumps.
        growth_clumps: f64 = 1.36, 1.0 => 4.0;
        /// Time over which the least queueing delay and the service rate are taken at least, in mean stalls.
        stall_window: f64 = 2.8, 0.0 => 20.0;
        /// What is added to the queue wanted, in mean stalls.
        stall_share: f64 = 0.27, 0.0 => 4.0;
        /// Time over which the least queueing delay is taken at least, in deviations of jitter.
        jitter_window: f64 = 14.0, 0.0 => 50.0;
        /// What is added to the queue wanted, in deviations of jitter.
        jitter_share: f64 = 1.0, 0.0 => 10.0;
        /// Delay that remains after a drain and is not taken for a queue: at most so many times the noise of the delay, ...
        residual_share: f64 = 40.0, 0.0 => 200.0;
        /// ... and at most this.
        residual_most: TimeDelta = 25.0, 0.0 => 200.0;
        /// Time constant with which the noise is forgotten.
        noise_memory: TimeDelta = 120_000.0, 1_000.0 => 600_000.0;
        /// What is added to `fall_rise`, in the same noise.
        fall_noise: f64 = 5.0, 0.0 => 20.0;
        /// Pacing rate as a multiple of the media rate.
        pacing_factor: f64 = 1.5, 1.0 => 10.0;
        /// The same at the start ...
        pacing_start: f64 = 2.2, 1.0 => 10.0;
        /// ... and on a busy link that serves this flow alone.
        pacing_settled: f64 = 1.0, 1.0 => 10.0;
        /// The same where the source sends in bursts, that is where what it sends deviates from the rate ...
        pacing_bursts: f64 = 1.1, 1.0 => 10.0;
        /// ... by more than this time's worth on average.
        burst_least: TimeDelta = 11.0, 1.0 => 1_000.0;
        /// Time in which five packets may leave however low the rate is, so that short frames show dispersion.
        burst_time: TimeDelta = 10.0, 0.1 => 100.0;
        /// Queueing delay beyond the one wanted that counts as another flow's if it persists ...
        compete_margin: TimeDelta = 16.4, 1.0 => 1_000.0;
        /// ... for this, by departure: then competitive mode begins ...
        compete_after: TimeDelta = 1_200.0, 100.0 => 60_000.0;
        /// ... at this share of the rate before.
        compete_share: f64 = 0.45, 0.1 => 1.0;
        /// Packets per round trip by which the rate grows in each round trip in competitive mode.
        compete_increase: f64 = 1.2, 0.0 => 10.0;
        /// Factor on the rate at a loss in competitive mode, once per round trip.
        compete_decrease: f64 = 0.83, 0.1 => 1.0;
        /// Time with a short queue that ends competitive mode.
        compete_calm: TimeDelta = 200.0, 0.0 => 10_000.0;
        /// The same on a busy link that serves this flow alone.
        burst_time_settled: TimeDelta = 20.0, 0.1 => 200.0;
        /// Weight of each message in the mean share of marks, by which the queue wanted is shortened: ...
        mark_weight: f64 = 0.0625, 0.001 => 1.0;
        /// ... by this power of the share that is not marked.
        mark_power: f64 = 4.0, 0.0 => 20.0;
        /// The queue wanted is shortened by this power of the mean share of packets that is not lost: queue management drops what
        /// stands longer than it allows.
        loss_power: f64 = 12.0, 0.0 => 50.0;
        /// Pacing rate as a multiple of the media rate where marks hold the queue.
        pacing_marked: f64 = 1.0, 1.0 => 10.0;
        /// Factor on the rate at a classic mark, once per round trip.
        mark_decrease: f64 = 0.85, 0.1 => 1.0;
        /// Age at which the least delay expires.
        base_window: TimeDelta = 10_000.0, 1_000.0 => 600_000.0;
        /// Interval between two short drains, by which the least delay is measured again.
        drain_interval: TimeDelta = 8_000.0, 500.0 => 600_000.0;
        /// What a drain takes out of the queue beyond what is known of it.
        drain_depth: TimeDelta = 30.0, 0.0 => 1_000.0;
    }
}
