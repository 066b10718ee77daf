//! Parameters, in the groups of the parts that read them.

use weir_units::TimeDelta;

crate::tunables! {
    /// Configuration of Sluice. `docs/sluice.md`, *Sources of the numbers*, says which defaults are measured.
    pub struct Config {
        /// The queue wanted.
        queue: QueueConfig;
        /// Capacity from the service of the link, and its falls.
        service: ServiceConfig;
        /// Stalls, jitter, and delay that is no queue.
        noise: NoiseConfig;
        /// Correction of the rate on a busy link.
        correction: CorrectionConfig;
        /// Growth where there is room.
        growth: GrowthConfig;
        /// Pacing rate.
        pacing: PacingConfig;
        /// Competitive mode.
        compete: CompeteConfig;
        /// Response to ECN marks.
        marks: MarkConfig;
        /// Losses without a queue: whether they answer to the rate.
        answer: AnswerConfig;
        /// Drains, by which the least delay is measured again.
        drain: DrainConfig;
    }
}

crate::tunables! {
    /// The queue wanted.
    pub struct QueueConfig {
        /// Queueing delay held at 4 Mbit/s.
        target as queue_target: TimeDelta = 7.8, 1.0 => 200.0;
        /// Addition to the queueing delay held for each factor of e below 4 Mbit/s: slower flows on one queue want a longer
        /// one, so that their rates meet.
        slope as queue_slope: TimeDelta = 11.9, 0.0 => 100.0;
        /// Least queueing delay held.
        least as queue_least: TimeDelta = 5.0, 1.0 => 200.0;
        /// Greatest queueing delay held, without the additions for stalls, jitter and delay that remains after drains.
        most as queue_most: TimeDelta = 40.0, 1.0 => 500.0;
        /// Addition to the queueing delay held, in mean stalls.
        stalls as stall_share: f64 = 0.27, 0.0 => 4.0;
        /// Power of the mean share of packets without a mark by which the queueing delay held is multiplied.
        mark_power: f64 = 4.0, 0.0 => 20.0;
        /// Power of the mean share of packets not lost by which the queueing delay held is multiplied: queue management drops
        /// packets that wait longer than it allows.
        loss_power: f64 = 12.0, 0.0 => 50.0;
    }
}

crate::tunables! {
    /// Capacity from the service of the link, and its falls.
    pub struct ServiceConfig {
        /// Busy time over which the service rate is taken.
        time as service_time: TimeDelta = 230.0, 5.0 => 2_000.0;
        /// Busy time over which the service rate is taken after a fall of the capacity, and for growth.
        fall_time as service_time_fall: TimeDelta = 14.0, 5.0 => 2_000.0;
        /// Least busy time that shows a fall of the capacity, in mean stalls.
        fall_stalls: f64 = 2.9, 0.0 => 50.0;
        /// Least number of packets that shows a fall of the capacity.
        fall_packets: f64 = 2.0, 1.0 => 50.0;
        /// Rise of the queueing delay in 150 ms from which a fall of the capacity is believed.
        fall_rise: TimeDelta = 3.9, 0.0 => 1_000.0;
        /// Addition to `fall_rise`, as a multiple of the noise of the delay.
        fall_noise: f64 = 5.0, 0.0 => 20.0;
        /// Age at which the least delay expires.
        base_window: TimeDelta = 10_000.0, 1_000.0 => 600_000.0;
    }
}

crate::tunables! {
    /// Stalls, jitter, and delay that is no queue.
    pub struct NoiseConfig {
        /// Least time over which the least queueing delay and the service rate are taken, in mean stalls.
        stall_window: f64 = 2.8, 0.0 => 20.0;
        /// Least time over which the least queueing delay and the service rate are taken, in deviations of jitter.
        jitter_window: f64 = 14.0, 0.0 => 50.0;
        /// Greatest delay that remains after a drain and is not taken for a queue, as a multiple of the noise of the delay.
        residual_share: f64 = 40.0, 0.0 => 200.0;
        /// Greatest delay that remains after a drain and is not taken for a queue.
        residual_most: TimeDelta = 40.0, 0.0 => 200.0;
        /// Time constant with which the noise of the delay is forgotten.
        memory as noise_memory: TimeDelta = 120_000.0, 1_000.0 => 600_000.0;
    }
}

crate::tunables! {
    /// Correction of the rate on a busy link.
    pub struct CorrectionConfig {
        /// Time in which the difference between the queue expected and the queue wanted is made up.
        time as drain_time: TimeDelta = 122.0, 20.0 => 5_000.0;
        /// Addition to `drain_time`, in mean stalls or deviations of jitter, whichever is longer.
        stalls as drain_stalls: f64 = 4.8, 0.0 => 50.0;
    }
}

crate::tunables! {
    /// Growth where there is room.
    pub struct GrowthConfig {
        /// Factor of growth per round of feedback where there is room.
        factor as growth: f64 = 2.0, 1.01 => 4.0;
        /// Factor of growth in the first round after the rate had been held.
        first as growth_first: f64 = 1.67, 1.01 => 4.0;
        /// Share of a measured service rate up to which the rate grows.
        share as growth_share: f64 = 1.05, 0.5 => 1.5;
        /// Factor of growth that a measured service rate does not limit, where the link serves unevenly.
        uneven as growth_uneven: f64 = 1.01, 1.01 => 4.0;
        /// Greatest factor of growth on a busy link that serves in clumps.
        clumps as growth_clumps: f64 = 1.36, 1.0 => 4.0;
    }
}

crate::tunables! {
    /// Pacing rate.
    pub struct PacingConfig {
        /// Pacing rate as a multiple of the media rate, where no other case below applies.
        factor as pacing_factor: f64 = 1.5, 1.0 => 10.0;
        /// Pacing rate as a multiple of the media rate at the start.
        start as pacing_start: f64 = 2.2, 1.0 => 10.0;
        /// Pacing rate as a multiple of the media rate on a busy link that serves this flow alone.
        settled as pacing_settled: f64 = 1.0, 1.0 => 10.0;
        /// Pacing rate as a multiple of the media rate where the source sends in bursts.
        bursts as pacing_bursts: f64 = 1.1, 1.0 => 10.0;
        /// Mean deviation of the data sent from the data that the rate allows, as time at the rate, from which the source sends in
        /// bursts.
        burst_least: TimeDelta = 11.0, 1.0 => 1_000.0;
        /// Time in which five packets may leave however low the rate is, so that short frames show dispersion.
        burst_time: TimeDelta = 10.0, 0.1 => 100.0;
        /// Time in which five packets may leave however low the rate is, on a busy link that serves this flow alone.
        burst_time_settled: TimeDelta = 20.0, 0.1 => 200.0;
    }
}

crate::tunables! {
    /// Competitive mode.
    pub struct CompeteConfig {
        /// Queueing delay beyond the one wanted that counts as another flow's if it persists.
        margin as compete_margin: TimeDelta = 16.4, 1.0 => 1_000.0;
        /// Time, by departure, for which such a queue has to persist before competitive mode begins.
        after as compete_after: TimeDelta = 1_200.0, 100.0 => 60_000.0;
        /// Share of the rate before the queue grew at which competitive mode begins.
        share as compete_share: f64 = 0.45, 0.1 => 1.0;
        /// Packets per round trip by which the rate grows in each round trip in competitive mode.
        increase as compete_increase: f64 = 1.2, 0.0 => 10.0;
        /// Factor on the rate at a loss in competitive mode, once per round trip.
        decrease as compete_decrease: f64 = 0.83, 0.1 => 1.0;
        /// Time with a short queue that ends competitive mode.
        calm as compete_calm: TimeDelta = 200.0, 0.0 => 10_000.0;
    }
}

crate::tunables! {
    /// Response to ECN marks.
    pub struct MarkConfig {
        /// Weight of each message in the mean shares of packets marked and lost.
        weight as mark_weight: f64 = 0.0625, 0.001 => 1.0;
        /// Factor on the rate at a classic mark, once per round trip.
        decrease as mark_decrease: f64 = 0.85, 0.1 => 1.0;
    }
}

crate::tunables! {
    /// Losses without a queue: whether they answer to the rate.
    pub struct AnswerConfig {
        /// Least share of packets lost for which the rate is lowered to see whether losses answer: less than the twentieth
        /// that no rate may lose for long where half of it would have arrived whole.
        share as answer_share: f64 = 0.04, 0.005 => 0.5;
        /// Least number of packets lost before that: the error of the share is by its square root.
        losses as answer_losses: f64 = 30.0, 2.0 => 1_000.0;
        /// The lowered rate, as a share of what arrives: lower than a policer needs for one flow, since others may share it.
        depth as answer_depth: f64 = 0.7, 0.1 => 1.0;
        /// Logarithm of the ratio of likelihoods from which losses have answered: 3 is 20 to 1.
        certainty as answer_certainty: f64 = 3.0, 0.1 => 20.0;
        /// Logarithm of the ratio of likelihoods from which losses have not answered: such a verdict is tested again.
        doubt as answer_doubt: f64 = 1.5, 0.1 => 20.0;
        /// Time after which losses that have not answered are tested again; twice as long each time, up to 64 s.
        interval as answer_interval: TimeDelta = 8_000.0, 500.0 => 600_000.0;
        /// Share of packets lost beyond chance at which a bounded rate of 1 Mbit/s settles; in inverse proportion to the rate
        /// less at higher ones, so that flows that lose alike meet.
        lost as answer_lost: f64 = 0.006, 0.001 => 0.1;
        /// Greatest growth of a bounded rate in each round.
        growth as answer_growth: f64 = 0.02, 0.001 => 0.5;
    }
}

crate::tunables! {
    /// Drains, by which the least delay is measured again.
    pub struct DrainConfig {
        /// Interval between two short drains.
        interval as drain_interval: TimeDelta = 8_000.0, 500.0 => 600_000.0;
        /// Queueing delay that a drain takes out beyond the queue expected.
        depth as drain_depth: TimeDelta = 30.0, 0.0 => 1_000.0;
        /// Share of the service rate that is sent during a drain where jitter alone keeps the delay long: jitter that keeps
        /// packets in order shows the delay of the full rate near that rate only. Measured beside 0.8 and 0.9 (`docs/sluice-tried.md`).
        shallow as drain_shallow: f64 = 0.85, 0.1 => 0.95;
    }
}
