//! Shared bottlenecks by correlation: the delays of flows through one queue rise and fall together.
//!
//! RFC 8382 compares the shapes of delay distributions, since its flows may have different senders and clocks. At one
//! sender the delays themselves can be compared, which also separates bottlenecks that are alike, and finds those whose
//! queue is mostly empty. Packets are grouped by departure, so that paths of unlike latency compare; what is correlated
//! are the changes from one interval's mean delay to the next, since slow trends of unrelated queues coincide often. The
//! use of correlation follows D. Rubenstein, J. Kurose and D. Towsley, "Detecting Shared Congestion of Flows Via
//! End-to-End Measurement", IEEE/ACM Transactions on Networking 10 (3), 2002; their test compares correlations of
//! single packets.

use std::collections::VecDeque;
use weir_units::{TimeDelta, Timestamp};

/// Interval over which delays are averaged: T of RFC 8382.
const INTERVAL: TimeDelta = TimeDelta::from_millis(350);
/// Intervals compared (calibrated: with 50, twice as few, two bottlenecks of one call correlate by 0.98 at times).
const WINDOW: usize = 100;
/// Intervals before the present one that feedback may not have covered yet.
const OPEN: u64 = 3;
/// Share of the window's changes that both flows must have.
const LEAST_SHARE: f64 = 0.8;
/// Mean change in seconds below which a delay counts as constant: the resolution of arrival times.
const LEAST_CHANGE: f64 = 1e-6;

/// Mean delays of flows by intervals.
#[derive(Clone, Debug, Default)]
pub struct DelayCorrelation {
    flows: Vec<Flow>,
}

#[derive(Clone, Debug)]
struct Flow {
    key: u32,
    /// Intervals with packets, the oldest first.
    intervals: VecDeque<Interval>,
}

#[derive(Clone, Copy, Debug)]
struct Interval {
    number: u64,
    /// Sum of the delays in seconds.
    sum: f64,
    packets: u32,
}

impl Interval {
    fn mean(&self) -> f64 {
        self.sum / f64::from(self.packets.max(1))
    }
}

fn number_of(at: Timestamp) -> u64 {
    u64::try_from(at.as_nanos() / INTERVAL.as_nanos()).unwrap_or(0)
}

impl DelayCorrelation {
    /// Without flows.
    pub const fn new() -> Self {
        Self { flows: Vec::new() }
    }

    /// A packet of a flow that departed then has arrived after this one-way delay. Only changes matter, so clocks may be
    /// apart. Packets older than the window are left out.
    pub fn on_packet(&mut self, key: u32, departure: Timestamp, delay: TimeDelta) {
        let index = self.flows.iter().position(|f| f.key == key).unwrap_or_else(|| {
            self.flows.push(Flow { key, intervals: VecDeque::new() });
            self.flows.len() - 1
        });
        let all = &mut self.flows[index].intervals;
        let number = number_of(departure);
        let at = all.partition_point(|i| i.number < number);
        if all.get(at).is_none_or(|i| i.number != number) {
            if at == 0 && all.len() >= WINDOW {
                return;
            }
            all.insert(at, Interval { number, sum: 0.0, packets: 0 });
        }
        all[at].sum += delay.as_secs_f64();
        all[at].packets = all[at].packets.saturating_add(1);
        // The window, its first change's start, and what is open.
        while all.len() > WINDOW + 1 + OPEN as usize {
            all.pop_front();
        }
    }

    /// Removes a flow.
    pub fn remove(&mut self, key: u32) {
        self.flows.retain(|f| f.key != key);
    }

    /// Correlation, -1 to 1, of two flows' changes of delay over the last 100 intervals of 350 ms; `None` while fewer
    /// than 80 changes are known of both, or if a delay does not change.
    pub fn of(&self, a: u32, b: u32, now: Timestamp) -> Option<f64> {
        let flow = |key| self.flows.iter().find(|f| f.key == key);
        let (a, b) = (flow(a)?, flow(b)?);
        let last = number_of(now).checked_sub(OPEN)?;
        let first = last.saturating_sub(WINDOW as u64);
        let mut others = b.intervals.iter().peekable();
        let (mut before, mut n) = (None, 0.0);
        let (mut sum, mut squares, mut product) = ((0.0, 0.0), (0.0, 0.0), 0.0);
        for i in a.intervals.iter().filter(|i| (first..=last).contains(&i.number)) {
            while others.next_if(|o| o.number < i.number).is_some() {}
            let Some(other) = others.peek().filter(|o| o.number == i.number) else { continue };
            let means = (i.mean(), other.mean());
            if let Some((number, x, y)) = before.replace((i.number, means.0, means.1))
                && number + 1 == i.number
            {
                let (x, y): (f64, f64) = (means.0 - x, means.1 - y);
                n += 1.0;
                sum = (sum.0 + x, sum.1 + y);
                squares = (squares.0 + x * x, squares.1 + y * y);
                product += x * y;
            }
        }
        if n < LEAST_SHARE * WINDOW as f64 {
            return None;
        }
        let variances = (squares.0 - sum.0 * sum.0 / n, squares.1 - sum.1 * sum.1 / n);
        let least = n * LEAST_CHANGE * LEAST_CHANGE;
        let covariance = product - sum.0 * sum.1 / n;
        (variances.0.min(variances.1) > least)
            .then(|| (covariance / (variances.0 * variances.1).sqrt()).clamp(-1.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    /// Delays that wander between 0 and 100 ms, one a packet.
    struct Queue(Pcg64Mcg, f64);

    impl Queue {
        fn step(&mut self) -> f64 {
            self.1 = (self.1 + self.0.random_range(-2.0..2.0)).clamp(0.0, 100.0);
            self.1
        }
    }

    /// Two flows of 50 packets a second through one queue or two, with `noise` milliseconds of their own.
    fn correlation(queues: usize, noise: f64, seconds: i64, seed: u64) -> Option<f64> {
        let mut c = DelayCorrelation::new();
        let queue = |n: u64| Queue(Pcg64Mcg::seed_from_u64(seed + n * 100), 50.0);
        let mut all = [queue(0), queue(1)];
        let mut own = Pcg64Mcg::seed_from_u64(seed + 7);
        for packet in 0..seconds * 50 {
            let departure = Timestamp::from_millis(packet * 20);
            let delays = [all[0].step(), all[1].step()];
            for (flow, base) in [(0u32, 20.0), (1, 300.0)] {
                let delay = base + delays[flow as usize % queues] + own.random_range(0.0..noise);
                c.on_packet(flow, departure, TimeDelta::from_millis_f64(delay));
            }
        }
        assert!(c.flows.iter().all(|f| f.intervals.len() <= WINDOW + 1 + OPEN as usize));
        c.of(0, 1, Timestamp::from_secs(seconds))
    }

    #[test]
    fn one_queue_correlates_and_two_do_not() {
        for seed in 0..20 {
            let one = correlation(1, 5.0, 60, seed).expect("enough");
            let two = correlation(2, 5.0, 60, seed).expect("enough");
            assert!(one > 0.9, "{seed}: {one}");
            assert!(two.abs() < 0.5, "{seed}: {two}");
        }
    }

    #[test]
    fn it_waits_for_eighty_changes_and_a_constant_delay_has_none() {
        assert_eq!(correlation(1, 5.0, 28, 1), None);
        assert!(correlation(1, 5.0, 31, 1).is_some());
        let mut c = DelayCorrelation::new();
        for i in 0..2_000 {
            let at = Timestamp::from_millis(i * 20);
            c.on_packet(1, at, TimeDelta::from_millis(10));
            c.on_packet(2, at, TimeDelta::from_millis(i % 90));
        }
        assert_eq!(c.of(1, 2, Timestamp::from_secs(40)), None);
        assert_eq!(c.of(1, 3, Timestamp::from_secs(40)), None);
        c.remove(2);
        assert_eq!(c.of(1, 2, Timestamp::from_secs(40)), None);
    }

    /// By hand: changes of 1, -1, 1, ... and of 1, -3, 1, -3, ... milliseconds.
    #[test]
    fn opposite_changes_have_minus_one() {
        let mut c = DelayCorrelation::new();
        for i in 0..110i64 {
            let at = Timestamp::ZERO + INTERVAL * i;
            c.on_packet(1, at, TimeDelta::from_millis(10 + i % 2));
            c.on_packet(2, at, TimeDelta::from_millis(40 - 3 * (i % 2)));
            c.on_packet(3, at, TimeDelta::from_millis(70 + 5 * (i % 2)));
        }
        let now = Timestamp::ZERO + INTERVAL * 112;
        assert!((c.of(1, 2, now).expect("enough") + 1.0).abs() < 1e-9);
        assert!((c.of(1, 3, now).expect("enough") - 1.0).abs() < 1e-9);
    }

    #[test]
    fn late_and_ancient_packets_take_no_memory() {
        let mut c = DelayCorrelation::new();
        for i in (0..100_000i64).rev() {
            c.on_packet(1, Timestamp::from_millis(i * 100), TimeDelta::ZERO);
        }
        assert!(c.flows[0].intervals.len() <= WINDOW + 1 + OPEN as usize);
    }
}
