//! Episodes for reinforcement learning: stepped calls over scenarios that a seed chooses, with observations and rewards.

mod links;
mod reward;

pub use links::{LinkRanges, RangeError};
pub use reward::{REWARDS, Reward};

use crate::run::{RunError, SteppedCall, Stepping};
use crate::scenario::Scenario;
use std::sync::Arc;
use weir_cc::intervals::{Interval, Observation, rate};
use weir_sim::mix;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Configuration of an environment: the calls that its episodes are drawn from, the observation and the reward.
pub struct Course {
    /// Makes the calls.
    pub stepping: Stepping,
    /// One of these a call, at random; never empty.
    pub scenarios: Vec<Scenario>,
    /// Changes its bottleneck at random.
    pub links: Option<LinkRanges>,
    /// The observation that the policy is given.
    pub observation: Observation,
    /// The reward that the policy is to maximise.
    pub reward: Reward,
}

/// The numbers of a step beside observation and reward, in this order: see [`Numbers`].
pub const NUMBERS: [&str; 10] = [
    "receive_rate_bps",
    "send_rate_bps",
    "target_bps",
    "capacity_bps",
    "delay_ms",
    "queue_delay_ms",
    "rtt_ms",
    "loss",
    "received_packets",
    "lost_packets",
];

/// [`NUMBERS`] of a step. Delays are relative to the call's first packet (`delay_ms`) and to its least delay; NaN for those
/// without a sample.
pub type Numbers = [f64; NUMBERS.len()];

/// One environment.
pub struct Episodes {
    course: Arc<Course>,
    seed: u64,
    /// Episodes begun with this seed.
    begun: u64,
    call: Option<Running>,
}

struct Running {
    call: SteppedCall,
    scenario: Scenario,
}

/// Result of a step, beside the observation.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Stepped {
    /// The reward; 0 if the call has just begun.
    pub reward: f64,
    /// Whether the call has ended with this step; the next one begins another.
    pub is_over: bool,
    /// Further numbers.
    pub numbers: Numbers,
}

impl Episodes {
    /// An environment before its first episode.
    pub fn new(course: Arc<Course>, seed: u64) -> Self {
        Self { course, seed, begun: 0, call: None }
    }

    /// The next episodes follow this seed from the first one on.
    pub fn seed(&mut self, seed: u64) {
        (self.seed, self.begun) = (seed, 0);
    }

    /// Begins the next episode and writes its first observation. Errors: as of [`Stepping::call`].
    pub fn begin(&mut self, observation: &mut [f32]) -> Result<(), RunError> {
        let seed = mix(self.seed, self.begun);
        self.begun += 1;
        self.call = None;
        let chosen = mix(seed, 1) % self.course.scenarios.len().max(1) as u64;
        let Some(scenario) = self.course.scenarios.get(chosen as usize) else {
            let message = "no scenario to draw from".into();
            return Err(RunError::Traffic { flow: String::new(), message });
        };
        let mut scenario = scenario.clone();
        if let Some(links) = &self.course.links {
            links.apply(&mut scenario, mix(seed, 2));
        }
        let call = self.course.stepping.call(&scenario, mix(seed, 3))?;
        self.call = Some(Running { call, scenario });
        observation.fill(0.0);
        Ok(())
    }

    /// Runs a step at the rate of an action (-1 to 1, see [`rate`]) and writes the observation after it. After the end of an
    /// episode, and before the first, it begins the next one instead. Errors: as of [`Self::begin`]; time stands still.
    pub fn step(&mut self, action: f64, observation: &mut [f32]) -> Result<Stepped, RunError> {
        let Some(running) = self.call.as_mut().filter(|r| !r.call.is_over()) else {
            self.begin(observation)?;
            return Ok(Stepped { reward: 0.0, is_over: false, numbers: [f64::NAN; NUMBERS.len()] });
        };
        let interval = *running.call.step(rate(action))?;
        running.call.with_meter(|meter| self.course.observation.write(meter, observation));
        let link = &running.scenario.links[running.scenario.bottleneck].config;
        let capacity = link.sustained().rate_at(running.call.now() - TimeDelta::from_nanos(1));
        Ok(Stepped {
            reward: self.course.reward.of(&interval),
            is_over: running.call.is_over(),
            numbers: numbers(&interval, capacity),
        })
    }

    /// The time of the call.
    pub fn now(&self) -> Timestamp {
        self.call.as_ref().map_or(Timestamp::ZERO, |r| r.call.now())
    }
}

fn numbers(i: &Interval, capacity: DataRate) -> Numbers {
    [
        i.receive_rate(),
        i.send_rate(),
        i.target_bps,
        capacity.as_bps_f64(),
        i.delay_ms().unwrap_or(f64::NAN),
        if i.received_packets > 0 { i.queue_delay_ms() } else { f64::NAN },
        i.rtt_ms().unwrap_or(f64::NAN),
        i.loss(),
        f64::from(i.received_packets),
        f64::from(i.lost),
    ]
}
