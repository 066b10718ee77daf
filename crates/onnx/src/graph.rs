//! Limits of a graph, checked before the inference library sees it.

use std::collections::BTreeSet;
use tract_onnx::pb::tensor_shape_proto::dimension::Value as Dimension;
use tract_onnx::pb::type_proto::Value as TypeValue;
use tract_onnx::pb::{GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto};

/// Nodes at most.
const MAX_NODES: usize = 1_000;
/// ONNX's number of 32-bit floating point numbers (`TensorProto.DataType`).
const FLOAT: i32 = 1;
/// `TensorProto.DataLocation`: in another file.
const EXTERNAL: i32 = 1;

/// Operators of feed-forward networks whose output is no larger than what they are given, or whose shape is known before they run.
const OPERATORS: [&str; 52] = [
    "Abs",
    "Add",
    "AveragePool",
    "BatchNormalization",
    "Cast",
    "Clip",
    "Concat",
    "Constant",
    "Conv",
    "Div",
    "Dropout",
    "Elu",
    "Erf",
    "Exp",
    "Flatten",
    "Gelu",
    "Gemm",
    "GlobalAveragePool",
    "HardSigmoid",
    "HardSwish",
    "Identity",
    "LayerNormalization",
    "LeakyRelu",
    "Log",
    "MatMul",
    "Max",
    "MaxPool",
    "Mean",
    "Min",
    "Mul",
    "Neg",
    "PRelu",
    "Pow",
    "Reciprocal",
    "ReduceMax",
    "ReduceMean",
    "ReduceMin",
    "ReduceSum",
    "Relu",
    "Reshape",
    "Selu",
    "Sigmoid",
    "Slice",
    "Softmax",
    "Softplus",
    "Softsign",
    "Split",
    "Sqrt",
    "Squeeze",
    "Sub",
    "Sum",
    "Tanh",
];
/// Those that may be applied to constants: their results are no larger.
const ON_CONSTANTS: [&str; 8] = ["Cast", "Constant", "Identity", "Neg", "Reshape", "Squeeze", "Transpose", "Unsqueeze"];

/// Names of the inputs and outputs of models for the second bandwidth estimation challenge (ACM MMSys 2024, requirement 1 and
/// `tf_policy.py` of `github.com/microsoft/RL4BandwidthEstimationChallenge`, commit fcf857c): the observation and two states
/// that come back with the next one; the estimate and the states after it.
const CHALLENGE_INPUTS: [&str; 3] = ["obs", "hidden_states", "cell_states"];
const CHALLENGE_OUTPUTS: [&str; 3] = ["output", "state_out", "cell_out"];
/// Numbers of a state at most.
const MAX_STATE: usize = 4_096;

/// The inputs of a policy, in the order of the file.
pub(crate) struct Inputs {
    pub(crate) all: Vec<Input>,
    /// The number of the observation among them.
    pub(crate) observation: usize,
    /// The numbers of the hidden and the cell state; `None` for a policy of `weir.gym`.
    pub(crate) states: Option<[usize; 2]>,
}

/// An input of a policy.
pub(crate) struct Input {
    pub(crate) name: String,
    /// Its shape, with 1 for dimensions that the file leaves open.
    pub(crate) shape: Vec<usize>,
}

impl Input {
    /// Numbers in it.
    pub(crate) fn len(&self) -> usize {
        self.shape.iter().try_fold(1_usize, |n, d| n.checked_mul(*d)).unwrap_or(usize::MAX)
    }
}

/// The policy's inputs. Errors: what the model has that a policy may not.
pub(crate) fn checked(model: &ModelProto) -> Result<Inputs, String> {
    let graph = model.graph.as_ref().ok_or("is no ONNX: it has no graph")?;
    if !model.functions.is_empty() {
        return Err("has functions of its own: expected the operators of ONNX alone".into());
    }
    if graph.node.len() > MAX_NODES {
        return Err(format!("has {} nodes: expected at most {MAX_NODES}", graph.node.len()));
    }
    if !graph.sparse_initializer.is_empty() {
        return Err("has sparse weights: expected dense ones".into());
    }
    graph.initializer.iter().try_for_each(tensor)?;
    let constants: BTreeSet<&str> = graph.initializer.iter().map(|t| t.name.as_str()).collect();
    let given: Vec<_> = graph.input.iter().filter(|i| !constants.contains(i.name.as_str())).collect();
    let names: Vec<&str> = given.iter().map(|i| i.name.as_str()).collect();
    let outputs: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
    let place = |name: &str| names.iter().position(|n| *n == name);
    let challenge = CHALLENGE_INPUTS.map(place);
    let (observation, states) = match challenge {
        _ if names.len() == 1 => (0, None),
        [Some(observation), Some(hidden), Some(cell)] if names.len() == 3 => (observation, Some([hidden, cell])),
        _ => {
            return Err(format!(
                "has the inputs [{}]: expected one, the observation, or [{}]",
                names.join(", "),
                CHALLENGE_INPUTS.join(", ")
            ));
        }
    };
    let expected = if states.is_some() { &CHALLENGE_OUTPUTS[..] } else { &["the action"] };
    if outputs.len() != expected.len() || states.is_some() && outputs != expected {
        let expected = if states.is_some() { format!("[{}]", expected.join(", ")) } else { "one, the action".into() };
        return Err(format!("has the outputs [{}]: expected {expected}", outputs.join(", ")));
    }
    nodes(graph, constants, &names)?;
    let all = given.into_iter().map(shape).collect::<Result<Vec<_>, _>>()?;
    if let Some(large) = states.and_then(|s| s.into_iter().map(|i| &all[i]).find(|s| s.len() > MAX_STATE)) {
        return Err(format!("input `{}` of shape {:?}: expected at most {MAX_STATE} numbers", large.name, large.shape));
    }
    Ok(Inputs { all, observation, states })
}

/// Every node in the order of the file, which ONNX demands to be that of computation.
fn nodes<'a>(graph: &'a GraphProto, mut constants: BTreeSet<&'a str>, inputs: &[&'a str]) -> Result<(), String> {
    let mut computed: BTreeSet<&str> = inputs.iter().copied().collect();
    for node in &graph.node {
        let named = || format!("node `{}` ({})", node.name, node.op_type);
        operator(node).map_err(|why| format!("{}: {why}", named()))?;
        let mut varies = false;
        for name in node.input.iter().map(String::as_str).filter(|n| !n.is_empty()) {
            varies |= computed.contains(name);
            if !computed.contains(name) && !constants.contains(name) {
                return Err(format!("{}: its input `{name}` is given nowhere before it", named()));
            }
        }
        if !varies && !ON_CONSTANTS.contains(&node.op_type.as_str()) {
            return Err(format!("{} computes a constant: fold constants when the policy is exported", named()));
        }
        let known = if varies { &mut computed } else { &mut constants };
        known.extend(node.output.iter().map(String::as_str));
    }
    match graph.output.iter().find(|o| !computed.contains(o.name.as_str())) {
        Some(output) => Err(format!("output `{}` does not depend on the input", output.name)),
        None => Ok(()),
    }
}

fn operator(node: &NodeProto) -> Result<(), String> {
    let is_plain = matches!(node.domain.as_str(), "" | "ai.onnx");
    let op = node.op_type.as_str();
    if matches!(op, "LSTM" | "GRU" | "RNN") {
        return Err("a policy has no memory between its decisions: give it more intervals instead".into());
    }
    if !is_plain || !(OPERATORS.contains(&op) || ON_CONSTANTS.contains(&op)) {
        return Err("not an operator that policies may have".into());
    }
    for attribute in &node.attribute {
        if attribute.g.is_some() || !attribute.graphs.is_empty() || attribute.sparse_tensor.is_some() {
            return Err(format!("attribute `{}` has a graph or a sparse tensor", attribute.name));
        }
        attribute.t.iter().chain(&attribute.tensors).try_for_each(tensor)?;
    }
    Ok(())
}

/// A tensor whose numbers are in the file.
fn tensor(t: &TensorProto) -> Result<(), String> {
    if t.data_location == Some(EXTERNAL) || !t.external_data.is_empty() {
        return Err(format!("tensor `{}` lies in another file: export one file", t.name));
    }
    let numbers = t.dims.iter().try_fold(1_usize, |n, d| usize::try_from(*d).ok().and_then(|d| n.checked_mul(d)));
    let stored = t.raw_data.len() + t.float_data.len() + t.int32_data.len() + t.int64_data.len() + t.double_data.len();
    match numbers {
        Some(n) if n <= stored + t.uint64_data.len() => Ok(()),
        _ => Err(format!("tensor `{}` of shape {:?} has fewer numbers than that", t.name, t.dims)),
    }
}

fn shape(input: &ValueInfoProto) -> Result<Input, String> {
    let name = &input.name;
    let Some(TypeValue::TensorType(found)) = input.r#type.as_ref().and_then(|t| t.value.as_ref()) else {
        return Err(format!("input `{name}` is no tensor"));
    };
    if found.elem_type != FLOAT {
        return Err(format!("input `{name}` has elements of ONNX's type {}: expected 1, float", found.elem_type));
    }
    let dims = found.shape.as_ref().map(|s| &s.dim[..]).unwrap_or_default();
    let open = |v: &Option<Dimension>| match v {
        Some(Dimension::DimValue(n)) => {
            usize::try_from(*n).map_err(|_| format!("input `{name}` has the dimension {n}"))
        }
        _ => Ok(1),
    };
    let shape = dims.iter().map(|d| open(&d.value)).collect::<Result<_, _>>()?;
    Ok(Input { name: name.clone(), shape })
}
