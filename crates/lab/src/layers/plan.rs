//! Parameters of a run of layers, and their ranges.

use crate::plan::PlanError;
use serde::Serialize;
use weir_session::MAX_LAYERS;
use weir_units::{DataRate, TimeDelta};

/// Most receivers of a run, and most sites: as many links.
const MAX_RECEIVERS: u32 = 20_000;
/// Most packets a second times receivers times seconds.
const MAX_DELIVERIES: f64 = 2e9;

/// From whose experiments receivers learn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Learning {
    /// From nobody's: nothing is announced.
    None,
    /// From those at their own site: announcements do not leave it (a scoped group, RFC 2365).
    Site,
    /// From everybody's, as in the paper of 1996: announcements cross every site's link.
    Session,
}

/// Receivers of layers to be run.
#[derive(Clone, PartialEq, Debug)]
pub struct LayersPlan {
    /// Receivers.
    pub receivers: u32,
    /// Sites, each with one link, among which receivers are divided.
    pub sites: u32,
    /// Rates of the sites' links, in turn.
    pub classes: Vec<DataRate>,
    /// Rates of the layers from the lowest on, with all headers.
    pub layers: Vec<DataRate>,
    /// From whose experiments receivers learn.
    pub learning: Learning,
    /// Receivers start at random times within this span.
    pub arrivals: TimeDelta,
    /// From the last receiver's leave until a router stops a group (RFC 2236, section 8.8: two queries of a second; RFC 9776's
    /// routers, which know each receiver, need less).
    pub leave_latency: TimeDelta,
    /// Queue of a site's link.
    pub queue: TimeDelta,
    /// Duration of the run.
    pub duration: TimeDelta,
    /// Seed of delays, starts and join times.
    pub seed: u64,
}

impl Default for LayersPlan {
    /// 1,000 receivers at 40 sites of five classes, and the paper's layers: 32 kbit/s, and twice as much each.
    fn default() -> Self {
        let kbps = |rates: &[u64]| rates.iter().map(|r| DataRate::from_kbps(*r)).collect();
        Self {
            receivers: 1_000,
            sites: 40,
            classes: kbps(&[128, 300, 640, 1_300, 2_600]),
            layers: kbps(&[32, 64, 128, 256, 512, 1_024]),
            learning: Learning::Site,
            arrivals: TimeDelta::from_secs(10),
            leave_latency: TimeDelta::from_secs(2),
            queue: TimeDelta::from_millis(200),
            duration: TimeDelta::from_secs(300),
            seed: 1,
        }
    }
}

impl LayersPlan {
    /// Rate of the layers up to this one.
    pub(super) fn cumulative(&self, level: u8) -> f64 {
        self.layers.iter().take(level.into()).map(|r| r.as_bps_f64()).sum()
    }
    /// The layers that a class's link carries: the highest level whose layers together are no more than it, at least 1.
    pub fn right_level(&self, class: usize) -> u8 {
        let rate = self.classes.get(class).map_or(0.0, |r| r.as_bps_f64());
        (1..=self.layers.len() as u8).rev().find(|level| self.cumulative(*level) <= rate).unwrap_or(1)
    }

    /// Checks every value.
    ///
    /// # Errors
    /// The first that is out of its range.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |what, value: String, expected: String| Err(PlanError::value(what, value, expected));
        if self.receivers == 0 || self.receivers > MAX_RECEIVERS {
            return wrong("the number of receivers", self.receivers.to_string(), format!("1 to {MAX_RECEIVERS}"));
        }
        if self.sites == 0 || self.sites > self.receivers {
            return wrong("the number of sites", self.sites.to_string(), format!("1 to {}", self.receivers));
        }
        if self.layers.is_empty() || self.layers.len() > usize::from(MAX_LAYERS) {
            return wrong("the number of layers", self.layers.len().to_string(), format!("1 to {MAX_LAYERS}"));
        }
        if self.classes.is_empty() || self.classes.len() > self.sites as usize {
            let expected = format!("1 to {}, the number of sites", self.sites);
            return wrong("the number of classes", self.classes.len().to_string(), expected);
        }
        let (low, high) = (DataRate::from_kbps(1), DataRate::from_mbps(1_000));
        for (what, rates) in [("a layer's rate", &self.layers), ("a class's rate", &self.classes)] {
            if let Some(rate) = rates.iter().find(|r| **r < low || **r > high) {
                return wrong(what, rate.to_string(), format!("{low} to {high}"));
            }
        }
        let longest = TimeDelta::from_secs(7_200);
        if self.duration <= TimeDelta::ZERO || self.duration > longest {
            return wrong("the duration", self.duration.to_string(), format!("up to {longest}"));
        }
        if self.queue <= TimeDelta::ZERO || self.queue > TimeDelta::from_secs(10) {
            return wrong("the queue", self.queue.to_string(), "up to 10 s".into());
        }
        for (what, span) in [("the span of arrivals", self.arrivals), ("the time to leave", self.leave_latency)] {
            if span.is_negative() || span > self.duration {
                return wrong(what, span.to_string(), format!("up to {}, the duration", self.duration));
            }
        }
        let packets = self.cumulative(MAX_LAYERS) / (super::message::PACKET.as_bits() as f64);
        let deliveries = packets * f64::from(self.receivers) * self.duration.as_secs_f64();
        if deliveries > MAX_DELIVERIES {
            let value = format!("{deliveries:.0}");
            return wrong("the number of receivers times packets", value, format!("at most {MAX_DELIVERIES}"));
        }
        Ok(())
    }
}
