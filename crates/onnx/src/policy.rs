//! A policy in an ONNX file.

use crate::graph::{self, Input};
use sha2::{Digest, Sha256};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::*;
use weir_cc::intervals::{Observation, STEP};
use weir_units::TimeDelta;

/// Largest file in bytes: a policy of a million parameters has 4 MB.
pub const MAX_FILE: u64 = 64 << 20;
/// Numbers in any tensor between two nodes at most.
const MAX_NUMBERS: usize = 1 << 22;
/// Shortest and longest interval of decisions in ms: those of `weir.gym`.
const STEPS_MS: std::ops::RangeInclusive<f64> = 5.0..=10_000.0;
/// Key of the file's metadata that gives the interval of decisions.
const STEP_KEY: &str = "weir.step_ms";

/// A policy that has been read and checked. It has no state: a call's observations are all that its actions depend on.
pub struct Policy {
    plan: Arc<TypedRunnableModel>,
    shape: Vec<usize>,
    observation: Observation,
    step: TimeDelta,
    digest: String,
}

impl Policy {
    /// Reads a policy from a file.
    ///
    /// # Errors
    /// In words, what is wrong and what is expected: no regular file, or larger than [`MAX_FILE`]; no ONNX; an operator that is not in
    /// the list of feed-forward networks' operators, a subgraph, weights outside the file, constants that are computed when it is loaded;
    /// not one input of 32-bit floating point numbers as long as an observation, or not one such output of one number.
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
        let input = graph::checked(&proto)?;
        let observation = Observation::of_len(input.len()).ok_or_else(|| {
            let Input { name, shape } = &input;
            format!(
                "input `{name}` of shape {shape:?} has {} numbers: expected [1, 8 n] (weir.gym's observation \"recent\" of n \
                 intervals, 1 to 64) or [1, 150] (\"mmsys2024\")",
                input.len()
            )
        })?;
        let step = step(&proto, observation)?;
        // The library is not ours, and files are anyone's.
        let made = catch_unwind(AssertUnwindSafe(|| compiled(&proto, &input)));
        let plan = made.map_err(|_| "is an ONNX model that the inference library fails on".to_owned())??;
        let digest = Sha256::digest(bytes).iter().map(|b| format!("{b:02x}")).collect();
        let policy = Self { plan, shape: input.shape, observation, step, digest };
        match policy.run(&vec![0.0; observation.len()]) {
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

    /// Its action after an observation of [`Self::observation`]'s length; `None` if that is no finite number, or inference failed.
    pub fn action(&self, observation: &[f32]) -> Option<f64> {
        self.run(observation).ok().map(f64::from).filter(|a| a.is_finite())
    }

    fn run(&self, observation: &[f32]) -> Result<f32, String> {
        let run = || -> TractResult<f32> {
            let input = Tensor::from_shape(&self.shape, observation)?;
            let outputs = self.plan.run(tvec!(input.into()))?;
            let output = outputs.first().ok_or_else(|| TractError::msg("no output"))?;
            output.try_as_plain_ram()?.as_slice::<f32>()?.first().copied().ok_or_else(|| TractError::msg("no number"))
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

fn compiled(proto: &ModelProto, input: &Input) -> Result<Arc<TypedRunnableModel>, String> {
    let failed = |e: TractError| format!("cannot be compiled: {e:#}");
    let parsed = tract_onnx::onnx().with_ignore_output_shapes(true).with_ignore_value_info(true).parse(proto, None);
    let mut model = parsed.map_err(failed)?.model;
    model.set_input_fact(0, f32::fact(&input.shape).into()).map_err(failed)?;
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
    let fact = model.output_outlets().map_err(failed)?.first().and_then(|o| model.outlet_fact(*o).ok());
    let is_one = |f: &&TypedFact| f.datum_type == f32::datum_type() && f.shape.volume() == 1.to_dim();
    if fact.as_ref().filter(|f| is_one(&&***f)).is_none() {
        let found = fact.map_or_else(|| "nothing".into(), |f| format!("{:?} of {:?}", f.shape, f.datum_type));
        return Err(format!(
            "the output is {found}: expected one 32-bit floating point number, the action of weir.gym"
        ));
    }
    model.into_optimized().and_then(|m| m.into_runnable()).map_err(failed)
}
