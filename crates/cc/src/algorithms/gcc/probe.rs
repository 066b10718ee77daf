//! When to probe, and at what rate (libwebrtc's branch 7871 of June 2026: `ProbeController`).
//!
//! Initially two clusters at three and six times the start rate, then further ones at twice the result while results
//! come close to the probed rate; every 5 s at twice the estimate while the application is limited; once after a
//! large drop has passed; and when the application that has limited the estimate can send more.

use crate::controller::ProbeCluster;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// How long to wait for a result.
const MAX_WAIT: TimeDelta = TimeDelta::from_secs(1);
/// A fall of the estimate below this share is a large drop.
const DROP: f64 = 0.66;
/// A large drop is probed within this time ...
const DROP_TIMEOUT: TimeDelta = TimeDelta::from_secs(5);
/// ... at this share of the rate before it ...
const DROP_PROBE: f64 = 0.85;
/// ... if that, less this uncertainty, exceeds the estimate ...
const UNCERTAINTY: f64 = 0.05;
/// ... and at most once in this time.
const DROP_INTERVAL: TimeDelta = TimeDelta::from_secs(5);
/// The application-limited region still counts for this time after its end.
const ALR_ENDED: TimeDelta = TimeDelta::from_secs(3);
/// A probe of a higher ceiling is at most at this multiple of the estimate (`allocation_probe_limit_by_current_scale`).
const ALLOCATION_LIMIT: f64 = 2.0;
/// Most clusters pending.
const PENDING: usize = 4;

/// The constants of probing.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProbeConfig {
    pub(super) initial: bool,
    pub(super) first_scale: f64,
    pub(super) second_scale: f64,
    pub(super) further_scale: f64,
    pub(super) further_threshold: f64,
    pub(super) in_alr: bool,
    pub(super) alr_interval: TimeDelta,
    pub(super) alr_scale: f64,
    pub(super) rapid_recovery: bool,
    pub(super) min_packets: u32,
    pub(super) min_duration: TimeDelta,
}

/// Decides on probes. The kernel computes in bits per second.
#[derive(Clone, Debug)]
pub(super) struct ProbeController {
    config: ProbeConfig,
    max: f64,
    estimate: f64,
    /// Whether neither overuse, underuse, loss nor a long round-trip time limits the estimate.
    free: bool,
    /// Results above this lead to a further probe; `None` if none is awaited.
    further_above: Option<f64>,
    last: Timestamp,
    alr_since: Option<Timestamp>,
    alr_ended: Option<Timestamp>,
    last_drop: Timestamp,
    before_drop: f64,
    last_drop_probe: Timestamp,
    next_id: u32,
    pending: [Option<ProbeCluster>; PENDING],
}

impl ProbeController {
    /// Starts with the initial clusters pending.
    pub(super) fn new(config: ProbeConfig, start: DataRate, ceiling: DataRate, now: Timestamp) -> Self {
        let start = start.as_bps_f64();
        let mut c = Self {
            config,
            max: ceiling.as_bps_f64(),
            estimate: start,
            free: true,
            further_above: None,
            last: now,
            alr_since: None,
            alr_ended: None,
            last_drop: now,
            before_drop: 0.0,
            last_drop_probe: now,
            next_id: 1,
            pending: [None; PENDING],
        };
        if config.initial {
            c.start(&[config.first_scale * start, config.second_scale * start], true, now);
        }
        c
    }

    /// The application's maximum has changed (`OnMaxTotalAllocatedBitrate`). If it has limited the estimate so far, a
    /// greater one is probed, with further probes if that needs more than twice the estimate. libwebrtc requires the
    /// application-limited region, in which a sender at its maximum is there, since the maximum does not bind the
    /// estimate; here it does.
    pub(super) fn set_ceiling(&mut self, ceiling: DataRate, now: Timestamp) {
        let old = self.max;
        self.max = ceiling.as_bps_f64();
        let was_limited = self.alr_since.is_some() || self.estimate >= old;
        if self.further_above.is_none() && was_limited && old < self.max && self.estimate < self.max {
            let most = ALLOCATION_LIMIT * self.estimate;
            self.start(&[self.max.min(most)], most < self.max, now);
        }
    }

    pub(super) fn set_alr(&mut self, since: Option<Timestamp>) {
        self.alr_since = since;
    }
    pub(super) fn on_alr_ended(&mut self, now: Timestamp) {
        self.alr_ended = Some(now);
    }

    /// The estimate has been updated.
    pub(super) fn on_estimate(&mut self, rate: DataRate, free: bool, now: Timestamp) {
        let rate = rate.as_bps_f64();
        self.free = free;
        if rate < DROP * self.estimate {
            self.last_drop = now;
            self.before_drop = self.estimate;
        }
        self.estimate = rate;
        if self.further_above.is_some_and(|above| rate > above) {
            self.start(&[self.config.further_scale * rate], true, now);
        }
    }

    /// Overuse has ended: the drop may have been transient.
    pub(super) fn on_recovered(&mut self, now: Timestamp) {
        let was_limited = self.alr_since.is_some() || self.alr_ended.is_some_and(|t| now - t < ALR_ENDED);
        if self.further_above.is_some() || !(was_limited || self.config.rapid_recovery) {
            return;
        }
        let rate = DROP_PROBE * self.before_drop;
        if (1.0 - UNCERTAINTY) * rate > self.estimate
            && now - self.last_drop < DROP_TIMEOUT
            && now - self.last_drop_probe > DROP_INTERVAL
        {
            self.last_drop_probe = now;
            self.start(&[rate], false, now);
        }
    }

    /// Handles the time announced by [`Self::next`].
    pub(super) fn process(&mut self, now: Timestamp) {
        if self.further_above.is_some() && now >= self.last + MAX_WAIT {
            self.further_above = None;
        }
        if self.next_in_alr().is_some_and(|t| now >= t) {
            self.start(&[self.config.alr_scale * self.estimate], true, now);
        }
    }

    /// When [`Self::process`] is due.
    #[inline]
    pub(super) fn next(&self) -> Option<Timestamp> {
        if self.further_above.is_some() { Some(self.last + MAX_WAIT) } else { self.next_in_alr() }
    }

    fn next_in_alr(&self) -> Option<Timestamp> {
        let since = self.alr_since?;
        let may = self.config.in_alr && self.further_above.is_none() && self.free;
        may.then(|| since.max(self.last) + self.config.alr_interval)
    }

    /// Whether a cluster is pending.
    #[inline]
    pub(super) fn is_pending(&self) -> bool {
        self.pending[0].is_some()
    }

    /// Takes a pending cluster. If the ceiling has fallen or the estimate has grown since, it is limited, or dropped if
    /// it can no longer show more than the estimate.
    #[inline]
    pub(super) fn take(&mut self) -> Option<ProbeCluster> {
        // Most often there is none.
        if self.pending[0].is_none() { None } else { self.take_pending() }
    }

    #[inline(never)]
    fn take_pending(&mut self) -> Option<ProbeCluster> {
        loop {
            let mut cluster = self.pending[0].take()?;
            self.pending.rotate_left(1);
            cluster.rate = cluster.rate.min(DataRate::from_bps_f64(self.max));
            if cluster.rate.as_bps_f64() > self.estimate {
                return Some(cluster);
            }
        }
    }

    fn start(&mut self, rates: &[f64], mut further: bool, now: Timestamp) {
        if !self.free {
            return;
        }
        self.last = now;
        self.further_above = None;
        for &rate in rates {
            // A rate limited by the ceiling is probed once; at or below the estimate a probe shows nothing.
            let top = rate >= self.max;
            let rate = rate.min(self.max);
            if rate > self.estimate {
                self.push(rate);
                self.further_above = Some(rate * self.config.further_threshold);
            }
            if top {
                further = false;
                break;
            }
        }
        if !further {
            self.further_above = None;
        }
    }

    fn push(&mut self, rate: f64) {
        let rate = DataRate::from_bps_f64(rate);
        let cluster = ProbeCluster {
            id: self.next_id,
            rate,
            min_packets: self.config.min_packets,
            min_size: rate.size_in(self.config.min_duration),
        };
        self.next_id = self.next_id.checked_add(1).unwrap_or(1);
        if self.pending[PENDING - 1].is_some() {
            self.pending[0] = None;
            self.pending.rotate_left(1);
        }
        if let Some(free) = self.pending.iter_mut().find(|p| p.is_none()) {
            *free = Some(cluster);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KBPS: fn(u64) -> DataRate = DataRate::from_kbps;

    fn config() -> ProbeConfig {
        ProbeConfig {
            initial: true,
            first_scale: 3.0,
            second_scale: 6.0,
            further_scale: 2.0,
            further_threshold: 0.7,
            in_alr: true,
            alr_interval: TimeDelta::from_secs(5),
            alr_scale: 2.0,
            rapid_recovery: false,
            min_packets: 5,
            min_duration: TimeDelta::from_millis(15),
        }
    }
    fn controller(ceiling: u64) -> ProbeController {
        ProbeController::new(config(), KBPS(500), KBPS(ceiling), Timestamp::ZERO)
    }
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn taken(c: &mut ProbeController) -> Vec<u64> {
        std::iter::from_fn(|| c.take()).map(|p| p.rate.as_bps() / 1_000).collect()
    }

    #[test]
    fn starts_at_three_and_six_times_and_goes_on_by_two() {
        let mut c = controller(100_000);
        let first = c.take().expect("waiting");
        assert_eq!((first.id, first.rate, first.min_packets), (1, KBPS(1_500), 5));
        assert_eq!(first.min_size.as_bytes(), 2_812, "15 ms of 1.5 Mbit/s");
        assert_eq!(taken(&mut c), [3_000]);
        c.on_estimate(KBPS(1_500), true, at(200));
        assert_eq!(taken(&mut c), [0u64; 0], "1.5 is less than 0.7 of 3");
        c.on_estimate(KBPS(2_200), true, at(300));
        assert_eq!(taken(&mut c), [4_400]);
        c.process(at(1_300));
        assert_eq!(c.next(), None);
        c.on_estimate(KBPS(4_400), true, at(1_400));
        assert_eq!(taken(&mut c), [0u64; 0], "the wait is over");
    }

    #[test]
    fn the_ceiling_cuts_and_ends() {
        let mut c = controller(1_200);
        assert_eq!(taken(&mut c), [1_200]);
        assert_eq!(c.next(), None);
        assert_eq!(taken(&mut controller(500)), [0u64; 0], "already there");
        let mut c = controller(5_000);
        c.set_ceiling(KBPS(2_000), at(100));
        assert_eq!(taken(&mut c), [1_500, 2_000]);
        let mut c = controller(5_000);
        c.set_ceiling(KBPS(0), at(100));
        assert_eq!(taken(&mut c), [0u64; 0]);
    }

    #[test]
    fn a_higher_ceiling_is_probed_at_twice_the_estimate_at_most() {
        let mut c = controller(1_200);
        taken(&mut c);
        c.set_ceiling(KBPS(5_000), at(100));
        assert_eq!(taken(&mut c), [0u64; 0], "500 was below the ceiling");
        c.set_ceiling(KBPS(1_200), at(100));
        c.on_estimate(KBPS(1_200), true, at(200));
        c.set_ceiling(KBPS(2_000), at(2_000));
        assert_eq!(taken(&mut c), [2_000]);
        c.on_estimate(KBPS(2_000), true, at(2_200));
        assert_eq!(taken(&mut c), [0u64; 0], "the ceiling itself needs no further probe");
        c.set_ceiling(KBPS(20_000), at(4_000));
        assert_eq!(taken(&mut c), [4_000]);
        c.on_estimate(KBPS(2_800), true, at(4_200));
        assert_eq!(taken(&mut c), [0u64; 0], "0.7 of 4,000");
        c.on_estimate(KBPS(2_801), true, at(4_300));
        assert_eq!(taken(&mut c), [5_602]);
        // In the application-limited region below the ceiling too.
        c.process(at(6_000));
        c.set_alr(Some(at(6_000)));
        c.set_ceiling(KBPS(30_000), at(7_000));
        assert_eq!(taken(&mut c), [5_602]);
    }

    #[test]
    fn probes_every_five_seconds_while_the_application_is_the_limit() {
        let mut c = controller(100_000);
        taken(&mut c);
        c.process(at(1_000));
        c.set_alr(Some(at(2_000)));
        assert_eq!(c.next(), Some(at(7_000)));
        c.process(at(6_999));
        assert_eq!(taken(&mut c), [0u64; 0]);
        c.process(at(7_000));
        assert_eq!(taken(&mut c), [1_000]);
        assert_eq!(c.next(), Some(at(8_000)), "now it waits for the result");
        c.process(at(8_000));
        assert_eq!(c.next(), Some(at(12_000)));
        c.on_estimate(KBPS(500), false, at(9_000));
        assert_eq!(c.next(), None);
    }

    #[test]
    fn a_large_drop_is_probed_once() {
        let mut c = controller(1_200);
        taken(&mut c);
        c.on_estimate(KBPS(1_000), true, at(6_000));
        c.on_estimate(KBPS(400), true, at(7_000));
        c.on_recovered(at(8_000));
        assert_eq!(taken(&mut c), [0u64; 0], "not application-limited");
        c.on_alr_ended(at(8_000));
        c.on_recovered(at(8_100));
        assert_eq!(taken(&mut c), [850]);
        c.on_recovered(at(8_200));
        assert_eq!(taken(&mut c), [0u64; 0]);
    }
}
