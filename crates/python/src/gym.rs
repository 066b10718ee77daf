//! Environments for reinforcement learning, many in one and stepped together over threads. `python/weir/gym.py` has the classes of
//! Gymnasium around them; what passes between the two is bytes of arrays.

mod shard;

use crate::scenario::Given;
use crate::value_error;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use shard::{Answer, Order, Shard, Worker};
use std::sync::{Arc, Mutex, PoisonError};
use weir_cc::Registry;
use weir_cc::intervals::{Observation, STEP};
use weir_lab::episode::{Course, Episodes, LinkRanges, NUMBERS, REWARDS, Reward};
use weir_lab::run::Stepping;
use weir_lab::scenario::{InputError, Scenario};
use weir_units::TimeDelta;

/// Environments in one object at most.
const MOST: usize = 1 << 16;
/// Shortest and longest step in ms.
const STEPS_MS: (f64, f64) = (5.0, 10_000.0);

/// Environments that are stepped together.
#[pyclass]
pub(crate) struct Calls {
    /// Stepped by the caller's thread; the workers have the others. Behind a lock, since calls cannot be read by two threads.
    own: Mutex<Shard>,
    workers: Vec<Worker>,
    count: usize,
}

/// How environments are made, as `python/weir/gym.py` passes it.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    count: usize,
    threads: Option<usize>,
    step_ms: f64,
    duration_s: Option<f64>,
    /// Numbers of an observation.
    numbers: usize,
    reward: String,
    links: Option<LinkRanges>,
    /// Observed in place of actions.
    controller: Option<String>,
}

fn refused(what: String) -> PyErr {
    PyValueError::new_err(what)
}

impl Settings {
    fn course(&self, scenarios: &[Given], registry: &Registry) -> PyResult<Course> {
        let (least, most) = STEPS_MS;
        if !(least..=most).contains(&self.step_ms) {
            return Err(refused(format!("step_ms: {}: expected {least} to {most}", self.step_ms)));
        }
        let step = TimeDelta::from_millis_f64(self.step_ms);
        let observation = Observation::of_len(self.numbers)
            .ok_or_else(|| refused(format!("observation: there is none with {} numbers", self.numbers)))?;
        if observation == Observation::Mmsys2024 && step != STEP {
            return Err(refused(format!(
                "step_ms: {}: the observation \"mmsys2024\" has steps of 60 ms",
                self.step_ms
            )));
        }
        let reward = Reward::named(&self.reward).ok_or_else(|| {
            let names = REWARDS.map(|(name, _)| format!("\"{name}\"")).join(", ");
            refused(format!("reward: \"{}\" is none: there are {names}, or a function", self.reward))
        })?;
        if let Some(links) = &self.links {
            links.check().map_err(|e| refused(format!("links: {e}")))?;
        }
        let stepping = Stepping::new(registry, step, observation.intervals(), self.controller.as_deref())
            .map_err(|e| refused(format!("controller: {e}")))?;
        let mut all = Vec::new();
        for given in scenarios {
            let found = || -> Result<Vec<Scenario>, InputError> {
                let file = given.open(stepping.registry())?;
                file.variants().into_iter().map(|v| stepping.scenario(&file, v)).collect()
            };
            all.extend(found().map_err(|e| value_error(&e))?);
        }
        if let Some(seconds) = self.duration_s {
            let least = self.step_ms / 1e3;
            if !(least..=1e6).contains(&seconds) {
                return Err(refused(format!("duration_s: {seconds}: expected {least} to 1000000")));
            }
            all.iter_mut().for_each(|s| last(s, TimeDelta::from_secs_f64(seconds)));
        }
        if all.is_empty() {
            return Err(refused("scenario: none was given".into()));
        }
        Ok(Course { stepping, scenarios: all, links: self.links.clone(), observation, reward })
    }
}

/// Makes a scenario so long; flows that lasted to its end still do.
fn last(scenario: &mut Scenario, duration: TimeDelta) {
    for flow in &mut scenario.flows {
        flow.stop = if flow.stop >= scenario.duration { duration } else { flow.stop.min(duration) };
    }
    scenario.windows.retain(|w| w.to <= duration);
    scenario.duration = duration;
}

/// Observations, rewards, ends of episodes (one byte each) and further numbers, as arrays by environment.
type Arrays<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>, Bound<'py, PyBytes>);

#[pymethods]
impl Calls {
    #[new]
    fn new(scenarios: Vec<Given>, settings: &str) -> PyResult<Self> {
        let settings: Settings = serde_json::from_str(settings).map_err(|e| refused(e.to_string()))?;
        if !(1..=MOST).contains(&settings.count) {
            return Err(refused(format!("num_envs: {}: expected 1 to {MOST}", settings.count)));
        }
        let course = Arc::new(settings.course(&scenarios, &crate::base_registry())?);
        let width = course.observation.len();
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZeroUsize::get);
        let threads = settings.threads.unwrap_or(all).clamp(1, settings.count.min(256));
        let shard = |count: usize| {
            let episodes = (0..count).map(|_| Episodes::new(Arc::clone(&course), 0)).collect();
            Shard::new(episodes, width)
        };
        // The first shards have one more where the numbers do not divide.
        let sizes = (0..threads).map(|n| settings.count / threads + usize::from(n < settings.count % threads));
        let mut sizes = sizes.collect::<Vec<_>>().into_iter();
        let own = Mutex::new(shard(sizes.next().unwrap_or(settings.count)));
        let workers = sizes.map(|n| Worker::start(shard(n))).collect::<std::io::Result<Vec<_>>>();
        let workers = workers.map_err(|e| PyRuntimeError::new_err(format!("no thread for environments: {e}")))?;
        Ok(Self { own, workers, count: settings.count })
    }

    /// Begins episodes: those of the environments whose byte in `which` is not 0, with a seed each. Gives all observations of
    /// these, zeros for the others.
    fn reset<'py>(&mut self, py: Python<'py>, which: &[u8], seeds: Vec<u64>) -> PyResult<Bound<'py, PyBytes>> {
        if which.len() != self.count || seeds.len() != self.count {
            return Err(refused(format!("expected a mask and seeds of {} environments", self.count)));
        }
        let seeds: Vec<_> = which.iter().zip(seeds).map(|(w, seed)| (*w != 0).then_some(seed)).collect();
        let answers = self.all(py, &|range| Order::Begin(seeds[range].to_vec()))?;
        Ok(bytes(py, &answers, |a| &a.observations, |v| v.to_ne_bytes()))
    }

    /// Runs one step with an action each (32-bit floating point numbers).
    fn step<'py>(&mut self, py: Python<'py>, actions: &[u8]) -> PyResult<Arrays<'py>> {
        let actions: Vec<f32> = actions.as_chunks().0.iter().map(|c| f32::from_ne_bytes(*c)).collect();
        if actions.len() != self.count {
            return Err(refused(format!("{} actions: expected {}", actions.len(), self.count)));
        }
        let answers = self.all(py, &|range| Order::Step(actions[range].to_vec()))?;
        Ok((
            bytes(py, &answers, |a| &a.observations, |v| v.to_ne_bytes()),
            bytes(py, &answers, |a| &a.rewards, |v| v.to_ne_bytes()),
            bytes(py, &answers, |a| &a.over, |v| [u8::from(*v)]),
            bytes(py, &answers, |a| &a.numbers, |v| v.to_ne_bytes()),
        ))
    }

    /// Names of the further numbers.
    #[staticmethod]
    fn names() -> Vec<&'static str> {
        NUMBERS.to_vec()
    }
}

impl Calls {
    /// Gives each shard its part of an order and waits for all, without Python's lock.
    fn all(
        &mut self,
        py: Python<'_>,
        order: &(dyn Fn(std::ops::Range<usize>) -> Order + Sync),
    ) -> PyResult<Vec<Answer>> {
        let own = self.own.get_mut().unwrap_or_else(PoisonError::into_inner);
        let workers = &self.workers;
        let answers = py.detach(|| {
            let mut at = own.len();
            for worker in workers {
                worker.send(order(at..at + worker.len));
                at += worker.len;
            }
            let mut answers = vec![Ok(own.follow(order(0..own.len())))];
            answers.extend(workers.iter().map(Worker::receive));
            answers
        });
        let answers = answers.into_iter().collect::<Result<Vec<_>, _>>().map_err(PyRuntimeError::new_err)?;
        match answers.iter().find_map(|a| a.error.clone()) {
            Some(e) => Err(PyRuntimeError::new_err(e)),
            None => Ok(answers),
        }
    }
}

/// A field of all answers as the machine's bytes.
fn bytes<'py, T: 'static, const N: usize>(
    py: Python<'py>,
    answers: &[Answer],
    field: impl Fn(&Answer) -> &Vec<T>,
    raw: impl Fn(&T) -> [u8; N],
) -> Bound<'py, PyBytes> {
    let mut all = Vec::with_capacity(N * answers.iter().map(|a| field(a).len()).sum::<usize>());
    for value in answers.iter().flat_map(field) {
        all.extend(raw(value));
    }
    PyBytes::new(py, &all)
}
