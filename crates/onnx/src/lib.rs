//! Learned policies as congestion controllers: `onnx:FILE` in place of a controller's name.
//!
//! A policy is an ONNX file with one input, an observation of `weir.gym` (its length says which:
//! [`Observation`](weir_cc::intervals::Observation)), and one output, the action: a number from -1 to 1 that
//! [`rate`](weir_cc::intervals::rate) turns into the media rate. It is asked every 60 ms, or at the interval that the file's
//! metadata gives as `weir.step_ms`. A model of the second bandwidth estimation challenge (ACM MMSys 2024) is used as it is: inputs
//! `obs` of 150 numbers, `hidden_states` and `cell_states`, which come back with the next decision; outputs `output`, whose first number is
//! the estimate in bit/s, `state_out` and `cell_out`. Observations are computed by the code that training uses, so that a policy sees in a call
//! what it saw in training.
//!
//! Files are not trusted: [`Policy::load`] says what it refuses. Inference is by tract, on the thread of the caller. It gives the same
//! bytes on every run and at any number of threads; processors with other vector units may differ in the last bits of an action.
//!
//! ```
//! let mut registry = weir_cc::Registry::builtin();
//! weir_onnx::add_to(&mut registry);
//! let refused = registry.find("onnx:absent.onnx").expect_err("there is no such file");
//! assert!(refused.to_string().contains("absent.onnx"));
//! ```

mod graph;
mod learned;
mod policy;

pub use learned::Learned;
pub use policy::{Decision, MAX_FILE, Memory, Policy};

use std::path::Path;
use std::sync::Arc;
use weir_cc::intervals::IntervalController;
use weir_cc::tunable::SetupError;
use weir_cc::{Entry, Pair, Registry, Sender};

/// Begins the names of learned policies; the path of the file follows.
pub const PREFIX: &str = "onnx:";

/// Adds the controllers `onnx:FILE` to a registry. A file is read once, by [`Registry::find`].
pub fn add_to(registry: &mut Registry) {
    registry.add_family(PREFIX, |name| {
        let file = name.strip_prefix(PREFIX).unwrap_or(name);
        let refused = |why| SetupError::Refused { controller: name.into(), why };
        let policy = Arc::new(Policy::load(Path::new(file)).map_err(refused)?);
        let step = policy.step();
        let source = format!("the file of SHA-256 {}", policy.digest());
        let spec = weir_cc::intervals::spec(name, "a learned policy", &source, step);
        Ok(Entry::new(spec, move |name, setup| {
            if let Some((param, _)) = setup.params.first() {
                let (controller, name) = (name.into(), param.clone());
                return Err(SetupError::UnknownParam { controller, name, known: Vec::new() });
            }
            let learned = Learned::new(Arc::clone(&policy), &setup.start());
            Ok(Pair::alone(Sender::Custom(Box::new(IntervalController::new(learned, &setup.start(), step)))))
        }))
    });
}
