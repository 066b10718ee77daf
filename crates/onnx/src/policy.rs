//! A policy in an ONNX file.

use crate::graph::{self, Input, Inputs};
use sha2::{Digest, Sha256};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::*;
use weir_cc::intervals::{Observation, STEP, rate};
use weir_units::{DataRate, TimeDelta};

/// Largest file in bytes: a policy of a million parameters has 4 MB.
pub const MAX_FILE: u64 = 64 << 20;
/// Numbers in any tensor between two nodes at most.
const MAX_NUMBERS: usize = 1 << 22;
/// Shortest and longest interval of decisions in ms: those of `weir.gym`.
const STEPS_MS: std::ops::RangeInclusive<f64> = 5.0..=10_000.0;
/// Key of the file's metadata that gives the interval of decisions.
const STEP_KEY: &str = "weir.step_ms";

/// Greatest estimate in bit/s: beyond any call's.
const MAX_ESTIMATE: f64 = 1e12;

/// A policy that has been read and checked. Its actions depend on a call's observations alone, and for models of the challenge on the
/// [`Memory`] of the call.
pub struct Policy {
    plan: Arc<TypedRunnableModel>,
    inputs: Inputs,
    observation: Observation,
    step: TimeDelta,
    digest: String,
}

/// The states that a model of the challenge gives back after each decision and gets with the next; empty for other policies.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Memory {
    states: [Vec<f32>; 2],
}

/// An answer of a policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Decision {
    /// The first number of its output: an action from -1 to 1, or for models of the challenge an estimate in bit/s.
    pub output: f64,
    /// The rate that it stands for.
    pub rate: DataRate,
}

impl Policy {
    /// Reads a policy from a file.
    ///
    /// # Errors
    /// In words, what is wrong and what is expected: no regular file, or larger than [`MAX_FILE`]; no ONNX; an operator that is not in
    /// the list of feed-forward networks' operators, a subgraph, weights outside the file, constants that are computed when it is loaded;
    /// neither one input of 32-bit floating point numbers as long as an observation and one such output of one number, nor the three
    /// inputs and outputs of the second bandwidth estimation challenge.
    pub fn load(path: &Path) -> Result<Self, String> {
        let bytes = weir_files::read(path, MAX_FILE).map_err(|e| format!("cannot be read: {e}"))?;
        Self::parse(&bytes)
    }

    /// Reads a policy from a file's bytes.
    ///
    /// # Errors
    /// As of [`Self::load`].
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        if bytes.len() as u64 > MAX_FILE {
            return Err(format!("has more than {} MiB: the limit of policies", MAX_FILE >> 20));
        }
        let proto = <ModelProto as prost::Message>::decode(bytes).map_err(|e| format!("is no ONNX: {e}"))?;
        let inputs = graph::checked(&proto)?;
        let input = &inputs.all[inputs.observation];
        let is_known = |o: &Observation| inputs.states.is_none() || *o == Observation::Mmsys2024;
        let observation = Observation::of_len(input.len()).filter(is_known).ok_or_else(|| {
            let Input { name, shape } = input;
            let expected = match inputs.states {
                None => {
                    "[1, 8 n] (weir.gym's observation \"recent\" of n intervals, 1 to 64) or [1, 150] (\"mmsys2024\")"
                }
                Some(_) => "[1, 1, 150] (\"mmsys2024\")",
            };
            format!("input `{name}` of shape {shape:?} has {} numbers: expected {expected}", input.len())
        })?;
        let step = step(&proto, observation)?;
        // The library is not ours, and files are anyone's.
        let made = catch_unwind(AssertUnwindSafe(|| compiled(&proto, &inputs)));
        let plan = made.map_err(|_| "is an ONNX model that the inference library fails on".to_owned())??;
        let digest = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        let policy = Self { plan, inputs, observation, step, digest };
        match policy.run(&vec![0.0; observation.len()], &policy.memory()) {
            Ok(_) => Ok(policy),
            Err(e) => Err(format!("cannot be run: {e}")),
        }
    }

    /// The observation that it is given.
    pub const fn observation(&self) -> Observation {
        self.observation
    }
    /// The interval of its decisions.
    pub const fn step(&self) -> TimeDelta {
        self.step
    }
    /// The SHA-256 of its file, as digits to the base 16.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether it is a model of the second bandwidth estimation challenge, whose output is an estimate in bit/s.
    pub const fn estimates(&self) -> bool {
        self.inputs.states.is_some()
    }
    /// The memory of a call that begins: zeros, as in the challenge's `run_baseline_model.py`.
    pub fn memory(&self) -> Memory {
        let zeros = |i: usize| vec![0.0; self.inputs.all[i].len()];
        Memory { states: self.inputs.states.map_or_else(Default::default, |states| states.map(zeros)) }
    }

    /// Its decision after an observation of [`Self::observation`]'s length; `memory` is that of the call, from [`Self::memory`]. `None`,
    /// with the memory as it was, if the output or a state is no finite number, or inference failed.
    pub fn decide(&self, observation: &[f32], memory: &mut Memory) -> Option<Decision> {
        let (output, states) = self.run(observation, memory).ok()?;
        if !states.iter().flatten().chain([&output]).all(|n| n.is_finite()) {
            return None;
        }
        memory.states = states;
        let output = f64::from(output);
        let rate =
            if self.estimates() { DataRate::from_bps_f64(output.clamp(0.0, MAX_ESTIMATE)) } else { rate(output) };
        Some(Decision { output, rate })
    }

    /// Its action at the beginning of a call: as [`Self::decide`] with the memory of one that begins.
    pub fn action(&self, observation: &[f32]) -> Option<f64> {
        self.decide(observation, &mut self.memory()).map(|d| d.output)
    }

    /// The first number of the output, and the states.
    fn run(&self, observation: &[f32], memory: &Memory) -> Result<(f32, [Vec<f32>; 2]), String> {
        let run = || -> TractResult<(f32, [Vec<f32>; 2])> {
            let numbers = |i: usize| match self.inputs.states {
                Some([hidden, _]) if i == hidden => &memory.states[0][..],
                Some([_, cell]) if i == cell => &memory.states[1][..],
                _ => observation,
            };
            let given = self.inputs.all.iter().enumerate();
            let given = given.map(|(i, input)| Ok(Tensor::from_shape(&input.shape, numbers(i))?.into()));
            let outputs = self.plan.run(given.collect::<TractResult<TVec<_>>>()?)?;
            let read = |i: usize| -> TractResult<Vec<f32>> {
                let output = outputs.get(i).ok_or_else(|| TractError::msg("no output"))?;
                Ok(output.try_as_plain_ram()?.as_slice::<f32>()?.to_vec())
            };
            let first = read(0)?.first().copied().ok_or_else(|| TractError::msg("no number"))?;
            let states = if self.estimates() { [read(1)?, read(2)?] } else { Default::default() };
            Ok((first, states))
        };
        match catch_unwind(AssertUnwindSafe(run)) {
            Ok(done) => done.map_err(|e| format!("{e:#}")),
            Err(_) => Err("the inference library failed".into()),
        }
    }
}

fn step(proto: &ModelProto, observation: Observation) -> Result<TimeDelta, String> {
    let Some(given) = proto.metadata_props.iter().find(|p| p.key == STEP_KEY) else { return Ok(STEP) };
    let ms = given.value.parse().ok().filter(|ms| STEPS_MS.contains(ms));
    let step = ms.map(TimeDelta::from_millis_f64).ok_or_else(|| {
        let (least, most) = (STEPS_MS.start(), STEPS_MS.end());
        format!("metadata `{STEP_KEY}` is \"{}\": expected milliseconds, {least} to {most}", given.value)
    })?;
    if observation == Observation::Mmsys2024 && step != STEP {
        return Err(format!("metadata `{STEP_KEY}` is \"{}\": the observation \"mmsys2024\" has 60", given.value));
    }
    Ok(step)
}

fn compiled(proto: &ModelProto, inputs: &Inputs) -> Result<Arc<TypedRunnableModel>, String> {
    let failed = |e: TractError| format!("cannot be compiled: {e:#}");
    let parsed = tract_onnx::onnx().with_ignore_output_shapes(true).with_ignore_value_info(true).parse(proto, None);
    let mut model = parsed.map_err(failed)?.model;
    for (i, input) in inputs.all.iter().enumerate() {
        model.set_input_fact(i, f32::fact(&input.shape).into()).map_err(failed)?;
    }
    let model = model.into_typed().map_err(failed)?;
    for node in model.nodes() {
        for fact in node.outputs.iter().map(|o| &o.fact) {
            let numbers = fact.shape.as_concrete().and_then(|s| s.iter().try_fold(1_usize, |n, d| n.checked_mul(*d)));
            if numbers.is_none_or(|n| n > MAX_NUMBERS) {
                return Err(format!(
                    "node `{}` gives {:?}: expected at most {MAX_NUMBERS} numbers",
                    node.name, fact.shape
                ));
            }
        }
    }
    let outlets = model.output_outlets().map_err(failed)?;
    let facts: Vec<_> = outlets.iter().filter_map(|o| model.outlet_fact(*o).ok()).collect();
    let is_of = |i: usize, len: usize| {
        facts.get(i).is_some_and(|f| f.datum_type == f32::datum_type() && f.shape.volume() == len.to_dim())
    };
    let found = |i: usize| facts.get(i).map_or("nothing".into(), |f| format!("{:?} of {:?}", f.shape, f.datum_type));
    match inputs.states {
        None if !is_of(0, 1) => {
            return Err(format!(
                "the output is {}: expected one 32-bit floating point number, the action of weir.gym",
                found(0)
            ));
        }
        Some(_) if !is_of(0, 2) => {
            return Err(format!("output `output` is {}: expected two 32-bit numbers, mean and deviation", found(0)));
        }
        Some(states) => {
            for (i, state) in (1..).zip(states.map(|s| &inputs.all[s])) {
                if !is_of(i, state.len()) {
                    let (found, name) = (found(i), &state.name);
                    return Err(format!("output {i} is {found}: expected as many 32-bit numbers as `{name}` has"));
                }
            }
        }
        None => {}
    }
    model.into_optimized().and_then(|m| m.into_runnable()).map_err(failed)
}
