//! Models for the tests, written as ONNX.

use prost::Message;
use tract_onnx::pb::tensor_shape_proto::{Dimension, dimension::Value as Size};
use tract_onnx::pb::type_proto::{Tensor, Value};
use tract_onnx::pb::{
    GraphProto, ModelProto, NodeProto, OperatorSetIdProto, StringStringEntryProto, TensorProto, TensorShapeProto,
    TypeProto, ValueInfoProto,
};

pub(crate) fn weights(name: &str, dims: &[i64], values: &[f32]) -> TensorProto {
    let raw_data = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    TensorProto { name: name.into(), dims: dims.into(), data_type: 1, raw_data, ..TensorProto::default() }
}

pub(crate) fn node(op: &str, inputs: &[&str], output: &str) -> NodeProto {
    NodeProto {
        name: format!("the {op}"),
        op_type: op.into(),
        input: inputs.iter().map(|i| (*i).into()).collect(),
        output: vec![output.into()],
        ..NodeProto::default()
    }
}

fn value(name: &str, elem_type: i32, dims: &[i64]) -> ValueInfoProto {
    let dim = dims.iter().map(|n| Dimension { value: Some(Size::DimValue(*n)), ..Dimension::default() }).collect();
    let tensor = Tensor { elem_type, shape: Some(TensorShapeProto { dim }) };
    let r#type = Some(TypeProto { value: Some(Value::TensorType(tensor)), ..TypeProto::default() });
    ValueInfoProto { name: name.into(), r#type, ..ValueInfoProto::default() }
}

/// A model from `observation`, of this many numbers, to `action`.
pub(crate) fn model(numbers: i64, nodes: Vec<NodeProto>, initializer: Vec<TensorProto>) -> ModelProto {
    let graph = GraphProto {
        name: "policy".into(),
        node: nodes,
        initializer,
        input: vec![value("observation", 1, &[1, numbers])],
        output: vec![value("action", 1, &[1, 1])],
        ..GraphProto::default()
    };
    ModelProto {
        ir_version: 8,
        graph: Some(graph),
        opset_import: vec![OperatorSetIdProto { domain: String::new(), version: 17 }],
        ..ModelProto::default()
    }
}

/// The weighted sum of the observation's numbers and `bias`.
pub(crate) fn linear(values: &[f32], bias: f32) -> ModelProto {
    let n = values.len() as i64;
    let gemm = node("Gemm", &["observation", "w", "b"], "action");
    model(n, vec![gemm], vec![weights("w", &[n, 1], values), weights("b", &[1], &[bias])])
}

/// A model of the second bandwidth estimation challenge: its estimate is the sum of the observation's first number and the hidden state,
/// which grows by `step` with each decision; the cell state, of two numbers, stays.
pub(crate) fn challenge(step: f32) -> ModelProto {
    let scale = |n: usize| (0..300).map(|i| if i / 2 == n { 1.0 } else { 0.0 }).collect::<Vec<f32>>();
    let mut nodes = vec![
        node("MatMul", &["obs", "first"], "seen"),
        node("Add", &["seen", "hidden_states"], "output"),
        node("Add", &["hidden_states", "step"], "state_out"),
        node("Identity", &["cell_states"], "cell_out"),
    ];
    nodes[2].name = "the other Add".into();
    let initializer = vec![weights("first", &[150, 2], &scale(0)), weights("step", &[1], &[step])];
    let mut model = model(150, nodes, initializer);
    if let Some(graph) = &mut model.graph {
        graph.input =
            vec![value("hidden_states", 1, &[1, 1]), value("obs", 1, &[1, 1, 150]), value("cell_states", 1, &[1, 2])];
        graph.output =
            vec![value("output", 1, &[1, 1, 2]), value("state_out", 1, &[1, 1]), value("cell_out", 1, &[1, 2])];
    }
    model
}

/// Another type of the observation's elements.
pub(crate) fn with_input(mut model: ModelProto, elem_type: i32, dims: &[i64]) -> ModelProto {
    if let Some(graph) = &mut model.graph {
        graph.input = vec![value("observation", elem_type, dims)];
    }
    model
}

pub(crate) fn with_metadata(mut model: ModelProto, key: &str, value: &str) -> ModelProto {
    model.metadata_props.push(StringStringEntryProto { key: key.into(), value: value.into() });
    model
}

pub(crate) fn bytes(model: &ModelProto) -> Vec<u8> {
    model.encode_to_vec()
}
