//! Shared bottleneck detection (RFC 8382): flows whose one-way delays have distributions of like shape share a
//! bottleneck.
//!
//! Delays are summed up over base intervals of `T`. Skewness, variability and frequency of a flow's delays, and its
//! losses, come from the last `M` or `N` of them, with the weights of section 4.1 and without the noise of
//! section 4.2. Flows at a bottleneck are then divided into groups (section 3.3.1).

mod grouping;
mod statistics;

pub use statistics::Summary;

use grouping::{Measured, group};
use statistics::Statistics;
use weir_units::{TimeDelta, Timestamp};

crate::tunables! {
    /// Parameters of detection (RFC 8382, section 2.2).
    pub struct Config {
        /// T: base interval (350 ms).
        interval: TimeDelta = 350.0, 50.0 => 5_000.0;
        /// N: base intervals for frequency and losses (50).
        long: u32 = 50, 2 => 500;
        /// M: base intervals for skewness and variability (30), at most N.
        short: u32 = 30, 2 => 500;
        /// F: base intervals with full weight (20), below M.
        flat: u32 = 20, 1 => 499;
        /// c_s: a flow with less skewness is at a bottleneck (0.1).
        c_s: f64 = 0.1, -1 => 1;
        /// c_h: the same for a flow that was at one before (0.3).
        c_h: f64 = 0.3, -1 => 1;
        /// p_f: greatest difference of frequencies in a group (0.1).
        p_f: f64 = 0.1, 0 => 1;
        /// p_mad: greatest relative difference of variabilities (0.1).
        p_mad: f64 = 0.1, 0 => 1;
        /// p_s: greatest difference of skewness (0.15).
        p_s: f64 = 0.15, 0 => 2;
        /// p_d: greatest relative difference of loss rates (0.1).
        p_d: f64 = 0.1, 0 => 1;
        /// p_v: how far the mean has to cross, as a share of the variability (0.7).
        p_v: f64 = 0.7, 0 => 10;
        /// p_l: loss rate from which losses count. The RFC states no value; that of p_d.
        p_l: f64 = 0.1, 0 => 1;
        /// Base intervals before the first decision, as a multiple of M (2, section 3.3.2).
        settling: u32 = 2, 0 => 10;
    }
}

/// The group of a flow: flows of one group share a bottleneck.
pub(super) type Group = u32;

/// Measures flows and groups them, at the sender of all of them (section 3.1.1).
#[derive(Clone, Debug)]
pub struct Detector {
    config: Config,
    flows: Vec<Flow>,
    next: Timestamp,
    /// Base intervals with more than one flow.
    intervals: u32,
}

#[derive(Clone, Debug)]
struct Flow {
    key: u32,
    statistics: Statistics,
    group: Option<Group>,
}

impl Detector {
    /// A detector without flows. M and F are reduced where they exceed N and M.
    pub fn new(mut config: Config, now: Timestamp) -> Self {
        config.short = config.short.min(config.long);
        config.flat = config.flat.min(config.short.saturating_sub(1)).max(1);
        Self { config, flows: Vec::new(), next: now + config.interval, intervals: 0 }
    }

    /// Adds a flow under a key of the caller's; an existing one starts again.
    pub fn add(&mut self, key: u32) {
        self.remove(key);
        self.flows.push(Flow { key, statistics: Statistics::new(&self.config), group: None });
        self.intervals = 0;
    }
    /// Removes a flow.
    pub fn remove(&mut self, key: u32) {
        self.flows.retain(|f| f.key != key);
    }

    /// A packet of a flow has arrived after this one-way delay. Only differences matter, so clocks may be apart.
    pub fn on_packet(&mut self, key: u32, delay: TimeDelta) {
        if let Some(f) = self.flows.iter_mut().find(|f| f.key == key) {
            f.statistics.on_packet(delay);
        }
    }
    /// Packets of a flow were lost.
    pub fn on_lost(&mut self, key: u32, packets: u64) {
        if let Some(f) = self.flows.iter_mut().find(|f| f.key == key) {
            f.statistics.on_lost(packets);
        }
    }

    /// The end of the base interval.
    pub const fn poll_timeout(&self) -> Timestamp {
        self.next
    }

    /// Ends base intervals that have passed; returns whether flows were grouped.
    pub fn on_timeout(&mut self, now: Timestamp) -> bool {
        if now < self.next {
            return false;
        }
        // After a late call the intervals in between are left out.
        let following = self.next + self.config.interval;
        self.next = if following > now { following } else { now + self.config.interval };
        for f in &mut self.flows {
            f.statistics.end_interval(&self.config);
        }
        self.intervals = if self.flows.len() > 1 { self.intervals.saturating_add(1) } else { 0 };
        if self.intervals < self.config.short.saturating_mul(self.config.settling).max(2) {
            return false;
        }
        let measured: Vec<Measured> = (self.flows.iter().enumerate())
            .filter(|(_, f)| f.statistics.is_at_bottleneck())
            .map(|(index, f)| Measured { index, summary: f.statistics.summary() })
            .collect();
        self.flows.iter_mut().for_each(|f| f.group = None);
        for (number, members) in group(&self.config, measured).into_iter().enumerate() {
            for m in members {
                self.flows[m.index].group = Some(number as Group);
            }
        }
        true
    }

    /// The group of a flow; `None` if it is not at a bottleneck, is not known or no decision has been made.
    pub fn group(&self, key: u32) -> Option<Group> {
        self.flows.iter().find(|f| f.key == key)?.group
    }
    /// The summary statistics of a flow.
    pub fn summary(&self, key: u32) -> Option<Summary> {
        self.flows.iter().find(|f| f.key == key).map(|f| f.statistics.summary())
    }
}

#[cfg(test)]
mod tests;
