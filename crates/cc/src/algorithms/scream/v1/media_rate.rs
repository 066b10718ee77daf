//! Media rate control of one stream (RFC 8298, section 4.1.3).

use super::config::Config;
use super::events::Congestion;
use crate::controller::Limits;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Samples of rate_media in its median: at the usual 200 ms they span "more than 10 s".
const MEDIAN_SAMPLES: usize = 51;
/// Least rate from which the rate can still rise, since increases are relative.
const LEAST_RATE: f64 = 1_000.0;

/// Inflection points remembered (C++).
const PAST_MAX: usize = 3;
/// Ratio of the intervals between changes of the inflection point for losses and for delay (C++).
const LOSS_INTERVALS: i64 = 15;
/// Most intervals over which rates are averaged.
const RATES: usize = 8;
/// A longer RTP queue, in bits, stops the rate's growth where only a part of it counts (C++).
const MUCH_QUEUED: f64 = 12_000.0;
/// After this time without feedback rate_ack is zero: twice the longest interval (RFC 8298, section 4.2.2).
const FEEDBACK_GONE: TimeDelta = TimeDelta::from_millis(800);
/// A source below this share of its target is application-limited (C++) ...
const IDLE_SHARE: f64 = 0.9;
/// ... unless the queue-delay trend is above this (C++).
const IDLE_TREND: f64 = 0.5;

/// Weights of an adjustment's rates in those of a coupled flow and in its share of payload, and the least such share:
/// small packets of audio (calibrated).
const RATE_WEIGHT: f64 = 1.0 / 4.0;
const PAYLOAD_WEIGHT: f64 = 1.0 / 16.0;
const MIN_PAYLOAD_SHARE: f64 = 0.5;

/// The network congestion control's state, for every stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct NetworkState {
    pub(super) fast_increase: bool,
    pub(super) trend: f64,
    pub(super) trend_memory: f64,
}

/// Bytes since the last adjustment, and the rates of the previous interval in bit/s.
#[derive(Clone, Debug, Default)]
struct Rates {
    transmitted_bytes: DataSize,
    /// Those of transmitted, acknowledged and media bytes in the intervals before, of which up to [`RATES`] are averaged.
    past: [[f64; 3]; RATES],
    count: usize,
    /// Acknowledged from the feedback at `acknowledged_from` up to that at `acknowledged_to`.
    acknowledged_bytes: DataSize,
    acknowledged_from: Option<Timestamp>,
    acknowledged_to: Timestamp,
    media_bytes: DataSize,
    transmit: f64,
    latest_acknowledged: f64,
    acknowledged: f64,
    media: f64,
}

impl Rates {
    /// rate_ack, measured between feedback messages: over a fixed interval it would vary with the number of messages
    /// that fall into it.
    fn measure_acknowledged(&mut self, now: Timestamp) {
        let Some(from) = self.acknowledged_from else { return };
        if let Some(rate) = DataRate::from_size_over(self.acknowledged_bytes, self.acknowledged_to - from) {
            self.latest_acknowledged = rate.as_bps_f64();
            (self.acknowledged_bytes, self.acknowledged_from) = (DataSize::ZERO, Some(self.acknowledged_to));
        } else if now - self.acknowledged_to > FEEDBACK_GONE {
            self.latest_acknowledged = 0.0;
        }
        self.acknowledged = self.latest_acknowledged;
    }

    /// Replaces the interval's rates by their means over so many intervals.
    fn average(&mut self, intervals: u32) {
        let intervals = (intervals as usize).clamp(1, RATES);
        if intervals == 1 {
            return;
        }
        self.past[self.count % intervals] = [self.transmit, self.latest_acknowledged, self.media];
        self.count += 1;
        let kept = &self.past[..self.count.min(intervals)];
        let mean = |i: usize| kept.iter().map(|rates| rates[i]).sum::<f64>() / kept.len() as f64;
        (self.transmit, self.acknowledged, self.media) = (mean(0), mean(1), mean(2));
    }
}

/// Median of the last samples.
#[derive(Clone, Debug)]
struct Median {
    samples: [f64; MEDIAN_SAMPLES],
    filled: usize,
    next: usize,
}

impl Median {
    fn push(&mut self, x: f64) -> f64 {
        self.samples[self.next] = x;
        self.next = (self.next + 1) % MEDIAN_SAMPLES;
        self.filled = (self.filled + 1).min(MEDIAN_SAMPLES);
        let mut sorted = self.samples;
        *sorted[..self.filled].select_nth_unstable_by(self.filled / 2, f64::total_cmp).1
    }
}

/// The target bit rate of one stream.
#[derive(Clone, Debug)]
pub(super) struct MediaRate {
    /// target_bitrate.
    target: f64,
    /// target_bitrate_last_max, the inflection point.
    last_max: f64,
    /// When it was last set, and its latest values (C++: the highest of three).
    last_max_at: Timestamp,
    past_max: [f64; PAST_MAX],
    was_fast_increase: bool,
    rates: Rates,
    median: Median,
    media_median: f64,
    measured_at: Timestamp,
    /// Factor on increases: the share of a group of coupled flows.
    share: f64,
    /// The part of the RTP queue that counts, averaged, in bits.
    counted_queue: f64,
    /// Smoothed rates: transmitted and acknowledged; and of frames and transmitted over a longer time.
    smoothed: [f64; 2],
    payload: [f64; 2],
}

impl MediaRate {
    pub(super) fn new(start: DataRate, limits: Limits, now: Timestamp) -> Self {
        Self {
            target: limits.clamp(start).as_bps_f64().max(LEAST_RATE),
            last_max: 1.0,
            last_max_at: now,
            past_max: [0.0; PAST_MAX],
            was_fast_increase: true,
            rates: Rates::default(),
            median: Median { samples: [0.0; MEDIAN_SAMPLES], filled: 0, next: 0 },
            media_median: 0.0,
            measured_at: now,
            share: 1.0,
            counted_queue: 0.0,
            smoothed: [0.0; 2],
            payload: [0.0; 2],
        }
    }

    /// Coupling with other flows has set the rate (RFC 8699), and this flow adds its share of one flow's increase.
    pub(super) fn couple(&mut self, rate: Option<DataRate>, share: f64, limits: &Limits) {
        self.share = share;
        if let Some(rate) = rate {
            self.set(rate.as_bps_f64(), limits);
        }
    }

    pub(super) fn on_frame(&mut self, size: DataSize) {
        self.rates.media_bytes += size;
    }
    pub(super) fn on_packet_sent(&mut self, size: DataSize) {
        self.rates.transmitted_bytes += size;
    }
    pub(super) fn on_acknowledged(&mut self, size: DataSize, now: Timestamp) {
        let r = &mut self.rates;
        r.acknowledged_to = now;
        match r.acknowledged_from {
            Some(_) => r.acknowledged_bytes += size,
            None => r.acknowledged_from = Some(now),
        }
    }

    /// Immediate reaction to a loss or an ECN mark.
    pub(super) fn on_congestion(&mut self, event: Congestion, now: Timestamp, limits: &Limits, config: &Config) {
        self.remember_max(config.inflection_interval * LOSS_INTERVALS, now);
        let factor = match event {
            Congestion::Loss => config.beta_r,
            Congestion::Ecn => config.beta_r_ecn,
        };
        self.set(self.target * factor, limits);
    }

    /// New bounds apply at once.
    pub(super) fn on_limits(&mut self, limits: &Limits) {
        self.set(self.target, limits);
    }

    fn set(&mut self, target: f64, limits: &Limits) {
        self.target = limits.clamp(DataRate::from_bps_f64(target)).as_bps_f64().max(LEAST_RATE);
    }

    /// The regular adjustment, every RATE_ADJUST_INTERVAL.
    pub(super) fn adjust(
        &mut self,
        now: Timestamp,
        network: &NetworkState,
        queue: DataSize,
        limits: &Limits,
        config: &Config,
    ) {
        // As in the C++, which adjusts as frames come: a source that is muted shows nothing of the path, and the median of its rates
        // would bring the target to the floor.
        let is_muted = self.rates.media_bytes.is_zero() && self.rates.transmitted_bytes.is_zero() && queue.is_zero();
        self.measure(now, config);
        if is_muted {
            // Nor does the time in it count as one in which packets are acknowledged.
            self.rates.acknowledged_from = None;
            return;
        }
        self.media_median = self.median.push(self.rates.media);
        let interval = config.rate_adjust_interval.as_secs_f64();
        let ramp_up = config.ramp_up_speed.as_bps_f64().min(self.target * config.ramp_up_scale) * interval;
        let current = self.current(config);
        let queue_bits = queue.as_bits() as f64;
        // Before the first feedback there is no throughput to measure the queue by.
        let is_known = self.rates.acknowledged_from.is_some();
        let queue_exceeds = |delay: TimeDelta| is_known && queue_bits > current * delay.as_secs_f64();
        let fast_increase = network.fast_increase && !queue_exceeds(config.fast_increase_rtp_qdelay);
        if self.was_fast_increase && !fast_increase {
            // Congestion is what ended fast increase.
            self.remember_max(config.inflection_interval, now);
        }
        self.was_fast_increase = fast_increase;
        let scale = self.inflection_scale();
        // An increase does nothing for a source that is not limited by the target.
        let is_idle = self.target > config.idle_ratio * current;
        let ramp_up = if is_idle { 0.0 } else { ramp_up * self.share };
        let mut target = self.target;
        if fast_increase {
            target += ramp_up * scale;
        } else {
            let counted = self.count_queue(queue_bits, config);
            let mut delta =
                current * (1.0 - config.pre_congestion_guard * network.trend) - config.tx_queue_size_factor * counted;
            if config.follow_throughput {
                delta -= self.target;
                // As in the C++: a source below its target without a queue does not signal congestion.
                if self.rates.media < IDLE_SHARE * self.target && network.trend < IDLE_TREND {
                    delta = delta.max(0.0);
                }
            }
            if config.counted_queue > TimeDelta::ZERO && queue_bits.min(self.most_counted(config)) > MUCH_QUEUED {
                delta = delta.min(0.0);
            }
            if delta > 0.0 {
                delta = (delta * scale).min(ramp_up);
                // As in the C++, growth out of fast increase also ends in an inflection point.
                self.was_fast_increase |= config.inflection_interval > TimeDelta::ZERO;
            }
            target += delta;
            if queue_exceeds(config.rtp_qdelay_th) {
                target *= config.target_rate_scale_rtp_qdelay;
            }
        }
        if is_known && config.bound_by_trend {
            let limit = current.max(self.rates.media).max(self.media_median);
            target = target.min(limit * (2.0 - network.trend_memory));
        }
        self.set(target, limits);
    }

    /// The throughput to which the target is compared.
    ///
    /// RFC 8298 counts headers, so that a flow with larger ones holds its rate against a longer queue: 12 bytes more,
    /// those of a subflow's number, are enough to leave another flow next to nothing. It also takes the greater of two
    /// rates over 200 ms, which is too high where a scheduler moves packets between paths. A coupled flow has the mean
    /// of its frames instead.
    fn current(&self, config: &Config) -> f64 {
        if config.follow_least {
            return self.rates.transmit.min(self.rates.acknowledged);
        }
        if self.share == 1.0 {
            return self.rates.transmit.max(self.rates.acknowledged);
        }
        let [transmitted, acknowledged] = self.smoothed;
        let [frames, packets] = self.payload;
        let payload = if packets > 0.0 { (frames / packets).clamp(MIN_PAYLOAD_SHARE, 1.0) } else { 1.0 };
        transmitted.max(acknowledged) * payload
    }

    /// Most of the RTP queue that counts, in bits.
    fn most_counted(&self, config: &Config) -> f64 {
        self.target * config.counted_queue.as_secs_f64()
    }

    /// The part of the RTP queue that limits the rate, in bits.
    fn count_queue(&mut self, queue_bits: f64, config: &Config) -> f64 {
        if config.counted_queue <= TimeDelta::ZERO {
            return queue_bits;
        }
        self.counted_queue = 0.5 * (self.counted_queue + queue_bits.min(self.most_counted(config)));
        self.counted_queue
    }

    /// Sets the inflection point, unless it was set within `interval`.
    fn remember_max(&mut self, interval: TimeDelta, now: Timestamp) {
        if now - self.last_max_at < interval {
            return;
        }
        self.last_max_at = now;
        self.past_max.rotate_left(1);
        // Rate that the path has carried, where that is known.
        let throughput = self.rates.transmit.max(self.rates.acknowledged);
        let latest = if throughput > 0.0 { throughput.min(self.target) } else { self.target };
        self.past_max[PAST_MAX - 1] = latest;
        self.last_max = self.past_max.iter().copied().fold(latest, f64::max);
    }

    /// scale_t: slow near the last known congestion point, but never stuck at it.
    fn inflection_scale(&self) -> f64 {
        let distance = 4.0 * (self.target - self.last_max) / self.last_max;
        (distance * distance).clamp(0.2, 1.0)
    }

    fn measure(&mut self, now: Timestamp, config: &Config) {
        let r = &mut self.rates;
        let elapsed = (now - self.measured_at).max(TimeDelta::from_millis(1)).as_secs_f64();
        self.measured_at = now;
        let rate = |bytes: &mut DataSize| core::mem::take(bytes).as_bits() as f64 / elapsed;
        r.transmit = rate(&mut r.transmitted_bytes);
        r.media = rate(&mut r.media_bytes);
        r.measure_acknowledged(now);
        r.average(config.rate_intervals);
        for (mean, rate) in self.smoothed.iter_mut().zip([r.transmit, r.acknowledged]) {
            *mean += RATE_WEIGHT * (rate - *mean);
        }
        for (mean, rate) in self.payload.iter_mut().zip([r.media, r.transmit]) {
            *mean += PAYLOAD_WEIGHT * (rate - *mean);
        }
    }

    /// target_bitrate.
    pub(super) fn target(&self) -> DataRate {
        DataRate::from_bps_f64(self.target)
    }
    /// Names and values for plots, in bit/s.
    pub(super) fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("rate_transmit_bps", self.rates.transmit);
        out("rate_ack_bps", self.rates.acknowledged);
        out("rate_media_bps", self.rates.media);
        out("rate_media_median_bps", self.media_median);
        out("target_last_max_bps", self.last_max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }
    fn limits() -> Limits {
        Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(5_000) }
    }
    fn rate(kbps: u64) -> MediaRate {
        MediaRate::new(DataRate::from_kbps(kbps), limits(), at(0))
    }
    /// The RFC's letter, without the bounds that the C++ adds.
    fn rfc() -> Config {
        Config {
            ramp_up_scale: 0.5,
            idle_ratio: 1_000.0,
            inflection_interval: TimeDelta::ZERO,
            fast_increase_rtp_qdelay: TimeDelta::from_secs(1_000),
            ..Config::default()
        }
    }
    const CALM: NetworkState = NetworkState { fast_increase: false, trend: 0.0, trend_memory: 0.0 };
    const FAST: NetworkState = NetworkState { fast_increase: true, ..CALM };

    /// Adjusts once after 200 ms with these media, sending and acknowledged rates.
    fn step(m: &mut MediaRate, kbps: [u64; 3], network: NetworkState, queue: u64, config: &Config) -> f64 {
        let bytes = kbps.map(|k| DataSize::from_bytes(k * 25));
        m.on_frame(bytes[0]);
        m.on_packet_sent(bytes[1]);
        m.on_acknowledged(DataSize::ZERO, m.measured_at);
        m.on_acknowledged(bytes[2], m.measured_at + TimeDelta::from_millis(200));
        m.adjust(m.measured_at + TimeDelta::from_millis(200), &network, DataSize::from_bytes(queue), &limits(), config);
        m.target().as_kbps_f64()
    }

    #[test]
    fn the_throughput_may_be_the_smaller_of_two_rates() {
        let least = Config { follow_least: true, ..rfc() };
        let followed = |config: &Config| step(&mut rate(1_000), [1_000, 1_000, 800], CALM, 0, config);
        assert_eq!([followed(&rfc()), followed(&least)], [1_000.0, 800.0]);
    }

    #[test]
    fn a_part_of_the_queue_may_count_averaged() {
        let c = Config { counted_queue: TimeDelta::from_millis(20), target_rate_scale_rtp_qdelay: 1.0, ..rfc() };
        // Of 80 kbit 20 count, of which half in the first average: 1,000 - 10.
        let mut m = rate(1_000);
        assert!((step(&mut m, [1_000; 3], CALM, 10_000, &c) - 990.0).abs() < 1e-9);
        // More than 12,000 bits: no growth, whatever the throughput.
        let held = step(&mut rate(1_000), [1_100; 3], CALM, 10_000, &c);
        assert_eq!(held, 1_000.0);
        assert!(step(&mut rate(1_000), [1_100; 3], CALM, 1_000, &c) > 1_000.0);
    }

    #[test]
    fn rates_may_be_means_of_several_intervals() {
        let c = Config { rate_intervals: 2, ..rfc() };
        let mut m = rate(1_000);
        assert_eq!(step(&mut m, [1_000; 3], CALM, 0, &c), 1_000.0, "one interval so far");
        // 1,000 and 800: 900.
        assert!((step(&mut m, [800; 3], CALM, 0, &c) - 900.0).abs() < 1e-6);
    }

    #[test]
    fn the_trends_memory_may_be_left_out() {
        let remembered = NetworkState { trend_memory: 1.0, ..FAST };
        let free = Config { bound_by_trend: false, ..rfc() };
        let kept = |c: &Config| step(&mut rate(1_000), [1_000; 3], remembered, 0, c);
        assert_eq!([kept(&rfc()), kept(&free)], [1_000.0, 1_040.0]);
    }

    #[test]
    fn fast_increase_ramps_at_its_speed() {
        let c = rfc();
        // 200 kbit/s a second for 0.2 s; scale 1 far from the inflection point.
        assert_eq!(step(&mut rate(1_000), [1_000; 3], FAST, 0, &c), 1_040.0);
        // Below 400 kbit/s half of the rate a second binds.
        assert_eq!(step(&mut rate(200), [200; 3], FAST, 0, &c), 220.0);
    }

    #[test]
    fn a_long_rtp_queue_ends_fast_increase_where_a_bound_is_set() {
        let c = Config { fast_increase_rtp_qdelay: TimeDelta::from_millis(100), ..rfc() };
        // 12,500 bytes at 1 Mbit/s are 100 ms, not more.
        assert_eq!(step(&mut rate(1_000), [1_000; 3], FAST, 12_500, &c), 1_040.0);
        // A byte more: 1,000 - 100.008 - 1,000 and 5 % off.
        let slower = step(&mut rate(1_000), [1_000; 3], FAST, 12_501, &c);
        assert!((slower - 899.992 * 0.95).abs() < 1e-3, "{slower}");
        assert_eq!(step(&mut rate(1_000), [1_000; 3], FAST, 12_501, &rfc()), 1_040.0);
    }

    #[test]
    fn near_the_inflection_point_it_goes_slowly() {
        let c = rfc();
        let mut m = rate(1_000);
        m.last_max = 1_000_000.0;
        assert_eq!(step(&mut m, [1_000; 3], FAST, 0, &c), 1_008.0, "0.2 of 40");
        let mut m = rate(1_000);
        m.last_max = 1_200_000.0;
        // (4 x 200 / 1200)^2 = 0.4444 of 40.
        assert!((step(&mut m, [1_000; 3], FAST, 0, &c) - 1_017.778).abs() < 0.001);
    }

    #[test]
    fn out_of_fast_increase_the_rate_follows_throughput_less_trend_and_queue() {
        let c = Config { tx_queue_size_factor: 0.2, ..rfc() };
        let half = NetworkState { trend: 0.5, ..CALM };
        // 900 x (1 - 0.1 x 0.5) - 0.2 x 16 - 1,000 = -148.2; 17.8 ms of queue cause no reduction.
        assert!((step(&mut rate(1_000), [1_000, 900, 800], half, 2_000, &c) - 851.8).abs() < 1e-9);
        // 20 ms of queue cause no reduction, 24 ms cause 5 %.
        assert!((step(&mut rate(1_000), [1_000; 3], CALM, 2_500, &c) - 996.0).abs() < 1e-9);
        assert!((step(&mut rate(1_000), [1_000; 3], CALM, 3_000, &c) - 995.2 * 0.95).abs() < 1e-9);
        // An increase is scaled by the distance from the inflection point and limited by the ramp-up speed.
        let mut m = rate(1_000);
        m.was_fast_increase = false;
        assert_eq!(step(&mut m, [1_000, 1_020, 1_000], CALM, 0, &c), 1_020.0);
        let mut m = rate(1_000);
        m.was_fast_increase = false;
        assert_eq!(step(&mut m, [1_000, 1_090, 1_000], CALM, 0, &c), 1_040.0);
        assert_eq!(step(&mut rate(1_000), [1_000, 1_020, 1_000], CALM, 0, &c), 1_004.0);
    }

    #[test]
    fn by_the_letter_the_throughput_itself_is_added() {
        let c = Config { follow_throughput: false, ..rfc() };
        let mut m = rate(1_000);
        m.was_fast_increase = false;
        assert_eq!(step(&mut m, [1_000; 3], CALM, 2_000, &c), 1_040.0);
        // A queue of 1.2 s outweighs the throughput: 1,000 + 1,000 - 1,200, less 5 %.
        assert_eq!(step(&mut rate(1_000), [1_000; 3], CALM, 150_000, &c), 800.0 * 0.95);
    }

    #[test]
    fn a_source_below_its_target_holds_it_back() {
        let c = rfc();
        // At most twice the throughput, once congestion has been seen.
        assert_eq!(step(&mut rate(1_000), [300, 200, 250], FAST, 0, &c), 600.0);
        let remembered = NetworkState { trend_memory: 1.0, ..FAST };
        assert_eq!(step(&mut rate(1_000), [300, 200, 350], remembered, 0, &c), 350.0);
        // The median of ten seconds outlasts one that sends little, and a mute changes nothing.
        let mut m = rate(1_000);
        (0..20).for_each(|_| {
            step(&mut m, [1_000; 3], CALM, 0, &c);
        });
        let before = m.target();
        step(&mut m, [100; 3], CALM, 0, &c);
        assert_eq!(m.target(), before.min(DataRate::from_kbps(2_000)));
        let before = m.target();
        (0..200).for_each(|_| {
            step(&mut m, [0; 3], CALM, 0, &c);
        });
        assert_eq!((m.target(), m.media_median), (before, 1e6));
        // Nor is what is acknowledged after it divided by its length.
        step(&mut m, [1_000; 3], CALM, 0, &c);
        assert_eq!((m.target(), m.rates.acknowledged), (before, 1e6));
    }

    #[test]
    fn acknowledgements_are_measured_from_feedback_to_feedback() {
        let mut m = rate(1_000);
        let mut tick = |feedback: &[(i64, u64)], now: i64| {
            feedback.iter().for_each(|&(t, bytes)| m.on_acknowledged(DataSize::from_bytes(bytes), at(t)));
            m.on_frame(DataSize::from_bytes(1));
            m.adjust(at(now), &CALM, DataSize::ZERO, &limits(), &rfc());
            m.rates.acknowledged
        };
        // The first covers packets sent over an unknown time. Then one or two of 130 ms at 800 kbit/s.
        assert_eq!(tick(&[(130, 13_000)], 200), 0.0);
        assert_eq!(tick(&[(260, 13_000), (390, 13_000)], 400), 800_000.0);
        assert_eq!(tick(&[(520, 13_000)], 600), 800_000.0);
        assert_eq!(tick(&[], 800), 800_000.0);
        assert_eq!(tick(&[], 1_320), 800_000.0);
        assert_eq!(tick(&[], 1_321), 0.0);
    }

    #[test]
    fn events_scale_the_rate_and_set_the_inflection_point() {
        let c = Config { beta_r_ecn: 0.95, ..rfc() };
        let mut m = rate(1_000);
        m.on_congestion(Congestion::Loss, at(0), &limits(), &c);
        assert_eq!((m.target(), m.last_max), (DataRate::from_kbps(900), 1e6));
        m.on_congestion(Congestion::Ecn, at(0), &limits(), &c);
        assert_eq!(m.target(), DataRate::from_kbps(855));
        (0..40).for_each(|_| m.on_congestion(Congestion::Loss, at(0), &limits(), &c));
        assert_eq!(m.target(), DataRate::from_kbps(100));
    }

    #[test]
    fn a_coupled_rate_continues_from_the_one_given_and_leaves_out_headers() {
        // A tenth more with headers than frames.
        let throughput = [1_000, 1_100, 1_100];
        let congested = NetworkState { fast_increase: false, trend: 0.2, trend_memory: 0.2 };
        let mut alone = rate(1_000);
        let mut coupled = rate(1_000);
        coupled.couple(Some(DataRate::from_kbps(900)), 0.5, &limits());
        assert_eq!(coupled.target(), DataRate::from_kbps(900));
        for _ in 0..100 {
            step(&mut alone, throughput, congested, 0, &Config::default());
            step(&mut coupled, throughput, congested, 0, &Config::default());
        }
        let kbps = [&alone, &coupled].map(|m| m.target().as_kbps_f64());
        assert!((1_050.0..1_100.0).contains(&kbps[0]), "{kbps:?}");
        assert!((950.0..1_000.0).contains(&kbps[1]), "{kbps:?}");
        coupled.couple(None, 1.0, &limits());
        assert_eq!(coupled.current(&Config::default()), 1_100_000.0);
    }
}
