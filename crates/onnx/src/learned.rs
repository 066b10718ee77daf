//! A policy as what decides on a call's rate.

use crate::policy::{Memory, Policy};
use std::sync::Arc;
use weir_cc::Start;
use weir_cc::cue::{SentPacket, TransportFeedback};
use weir_cc::intervals::{Decide, Meter};
use weir_units::{DataRate, Timestamp};

/// Asks a policy for the rate of each interval.
///
/// An output that is no finite number changes nothing: the rate before is held, and `invalid_outputs` among the metrics counts it.
pub struct Learned {
    policy: Arc<Policy>,
    memory: Memory,
    meter: Meter,
    observation: Vec<f32>,
    /// The rate of the last valid output, before the flow's bounds: what the observation has as target, as in training.
    target: DataRate,
    output: f64,
    decisions: u64,
    invalid: u64,
}

impl Learned {
    /// A policy at the start of a call.
    pub fn new(policy: Arc<Policy>, start: &Start) -> Self {
        let observation = policy.observation();
        Self {
            memory: policy.memory(),
            meter: Meter::new(start.now, observation.intervals()),
            observation: vec![0.0; observation.len()],
            target: start.rate,
            output: f64::NAN,
            decisions: 0,
            invalid: 0,
            policy,
        }
    }
}

impl Decide for Learned {
    fn on_sent(&mut self, packet: &SentPacket) {
        self.meter.on_sent(packet);
    }
    fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        self.meter.on_feedback(feedback);
    }
    fn decide(&mut self, ended: bool, now: Timestamp) -> DataRate {
        if ended {
            self.meter.end(now, self.target.as_bps_f64());
        }
        self.policy.observation().write(&self.meter, &mut self.observation);
        self.decisions += 1;
        match self.policy.decide(&self.observation, &mut self.memory) {
            Some(decision) => (self.output, self.target) = (decision.output, decision.rate),
            None => self.invalid += 1,
        }
        self.target
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out(if self.policy.estimates() { "estimate" } else { "action" }, self.output);
        out("decisions", self.decisions as f64);
        out("invalid_outputs", self.invalid as f64);
    }
}
