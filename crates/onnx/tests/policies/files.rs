//! Files that are policies, and the errors for others.

use super::models::{bytes, challenge, linear, model, node, weights, with_input, with_metadata};
use proptest::prelude::*;
use std::path::Path;
use tract_onnx::pb::{AttributeProto, GraphProto, ModelProto, StringStringEntryProto, ValueInfoProto};
use weir_cc::intervals::Observation;
use weir_onnx::{MAX_FILE, Policy};
use weir_units::TimeDelta;

fn refused(model: &ModelProto) -> String {
    Policy::parse(&bytes(model)).err().expect("refused")
}

#[test]
fn a_policys_action_is_the_output_of_its_graph() {
    let mut values = [0.0; 16];
    (values[2], values[9]) = (0.5, -0.25);
    let policy = Policy::parse(&bytes(&linear(&values, 0.125))).expect("sound");
    assert_eq!((policy.observation(), policy.step()), (Observation::Recent(2), TimeDelta::from_millis(60)));
    let mut observation = [0.0; 16];
    (observation[2], observation[9]) = (1.0, 0.5);
    assert_eq!(policy.action(&observation), Some(0.5));
    // An observation longer than the input is not one of this policy.
    assert_eq!(policy.action(&[0.0; 17]), None);
}

#[test]
fn a_model_of_the_challenge_estimates_in_bits_a_second_and_gets_its_states_back() {
    let policy = Policy::parse(&bytes(&challenge(1_000.0))).expect("sound");
    assert_eq!((policy.observation(), policy.estimates()), (Observation::Mmsys2024, true));
    let mut observation = [0.0; 150];
    observation[0] = 5e5;
    let (mut memory, mut other) = (policy.memory(), policy.memory());
    let mut estimates = Vec::new();
    for _ in 0..3 {
        let decision = policy.decide(&observation, &mut memory).expect("finite");
        assert_eq!(decision.rate.as_bps_f64(), decision.output);
        estimates.push(decision.output);
    }
    assert_eq!(estimates, [500e3, 501e3, 502e3]);
    // Another call has a memory of its own, and an estimate below zero is none of a rate.
    observation[0] = -7.0;
    let decision = policy.decide(&observation, &mut other).expect("finite");
    assert_eq!((decision.output, decision.rate.as_bps_f64()), (-7.0, 0.0));
    // An estimate that is not finite leaves the memory as it was.
    observation[0] = f32::INFINITY;
    let before = memory.clone();
    assert_eq!(policy.decide(&observation, &mut memory), None);
    assert_eq!(memory, before);
}

#[test]
fn models_beside_the_challenges_signature_are_refused() {
    let changed = |change: &dyn Fn(&mut GraphProto)| {
        let mut model = challenge(0.0);
        change(model.graph.as_mut().expect("a graph"));
        refused(&model)
    };
    let why = changed(&|g| g.input[0].name = "memory".into());
    assert!(why.contains("[memory, obs, cell_states]") && why.contains("hidden_states"), "{why}");
    let why = changed(&|g| g.output.swap(1, 2));
    assert!(why.contains("[output, state_out, cell_out]"), "{why}");
    let why = changed(&|g| g.output.truncate(1));
    assert!(why.contains("has the outputs [output]"), "{why}");
    let wider = with_input(challenge(0.0), 1, &[1, 9_000]).graph.expect("a graph").input.remove(0);
    let why = changed(&|g| g.input[2].r#type = wider.r#type.clone());
    assert!(why.contains("cell_states") && why.contains("4096"), "{why}");
    let eight = with_input(challenge(0.0), 1, &[1, 8]).graph.expect("a graph").input.remove(0);
    let why = changed(&|g| g.input[1].r#type = eight.r#type.clone());
    assert!(why.contains("`obs`") && why.contains("[1, 1, 150]"), "{why}");
    // The cell state goes in with two numbers, and would come out with one.
    let why = changed(&|g| g.node[3].input = vec!["hidden_states".into()]);
    assert!(why.contains("as many") && why.contains("cell_states"), "{why}");
    let why = changed(&|g| g.node[1] = super::models::node("Neg", &["hidden_states"], "output"));
    assert!(why.contains("`output`") && why.contains("two"), "{why}");
}

#[test]
fn the_length_of_the_input_names_the_observation_and_metadata_the_step() {
    for (n, observation) in [(8, Observation::Recent(1)), (512, Observation::Recent(64)), (150, Observation::Mmsys2024)]
    {
        let policy = Policy::parse(&bytes(&linear(&vec![0.1; n], 0.0))).expect("sound");
        assert_eq!(policy.observation(), observation);
    }
    let stepped = |n: usize, ms| with_metadata(linear(&vec![0.1; n], 0.0), "weir.step_ms", ms);
    let policy = Policy::parse(&bytes(&stepped(8, "100"))).expect("sound");
    assert_eq!(policy.step(), TimeDelta::from_millis(100));
    for (n, ms) in [(8, "fast"), (8, "NaN"), (8, "1"), (8, "1e9"), (150, "100")] {
        let why = refused(&stepped(n, ms));
        assert!(why.contains("weir.step_ms") && why.contains(ms), "{why}");
    }
}

#[test]
fn models_that_are_no_policies_are_refused_with_what_is_expected() {
    let sum = |n: i64, op: &str| model(n, vec![node(op, &["observation"], "action")], Vec::new());
    let with = |change: &dyn Fn(&mut GraphProto)| {
        let mut m = linear(&[0.0; 8], 0.0);
        change(m.graph.as_mut().expect("made"));
        m
    };
    let external = with(&|g| g.initializer[0].data_location = Some(1));
    let located = with(&|g| {
        g.initializer[0].external_data =
            vec![StringStringEntryProto { key: "location".into(), value: "/etc/passwd".into() }];
    });
    let subgraph = with(&|g| {
        let attribute =
            AttributeProto { name: "body".into(), g: Some(GraphProto::default()), ..AttributeProto::default() };
        g.node[0].attribute.push(attribute);
    });
    let large = [weights("a", &[2_000_000, 1], &vec![0.0; 2_000_000]), weights("b", &[8], &[0.0; 8])];
    // Sums of constants are computed when a graph is loaded; this one would have 16 million numbers.
    let computed =
        model(8, vec![node("Add", &["a", "b"], "c"), node("Add", &["observation", "c"], "action")], large.to_vec());
    let spread =
        model(8, vec![node("Add", &["observation", "a"], "c"), node("ReduceMax", &["c"], "action")], large.to_vec());
    for (model, words) in [
        (ModelProto::default(), &["no graph"][..]),
        (linear(&[0.0; 12], 0.0), &["`observation`", "[1, 12]", "[1, 8 n]", "[1, 150]"]),
        (linear(&[0.0; 520], 0.0), &["520", "1 to 64"]),
        (with_input(linear(&[0.0; 8], 0.0), 11, &[1, 8]), &["type 11", "float"]),
        (with_input(linear(&[0.0; 8], 0.0), 1, &[-3, 8]), &["dimension -3"]),
        (with_input(linear(&[0.0; 8], 0.0), 1, &[i64::MAX, i64::MAX]), &["expected [1, 8 n]"]),
        (sum(8, "Tanh"), &["the output is", "expected one", "action"]),
        (sum(8, "LSTM"), &["LSTM", "memory"]),
        (sum(8, "ConstantOfShape"), &["ConstantOfShape", "not an operator"]),
        (sum(8, "Loop"), &["Loop", "not an operator"]),
        (with(&|g| g.node[0].domain = "com.example".into()), &["not an operator"]),
        (with(&|g| g.node[0].input[1] = "nothing".into()), &["`nothing`", "before"]),
        (with(&|g| g.node = vec![node("Identity", &["b"], "action")]), &["`action`", "does not depend"]),
        (with(&|g| g.node = vec![node("Identity", &["action"], "action")]), &["`action`", "before"]),
        (with(&|g| g.output.clear()), &["outputs []", "expected one"]),
        (
            with(&|g| g.input.push(ValueInfoProto { name: "state".into(), ..ValueInfoProto::default() })),
            &["state", "expected one"],
        ),
        (with(&|g| g.input.clear()), &["inputs []"]),
        (with(&|g| g.node = vec![g.node[0].clone(); 1_001]), &["1001 nodes"]),
        (with(&|g| g.initializer[0].dims = vec![1 << 40, 1 << 40]), &["`w`", "fewer"]),
        (with(&|g| g.initializer[0].dims = vec![1 << 20]), &["`w`", "fewer"]),
        (with(&|g| g.initializer[0].dims = vec![-8]), &["`w`", "fewer"]),
        (external, &["`w`", "another file"]),
        (located, &["`w`", "another file"]),
        (subgraph, &["`body`", "graph"]),
        (computed, &["computes a constant", "fold"]),
        (spread, &["the Add", "4194304"]),
    ] {
        let why = refused(&model);
        assert!(words.iter().all(|w| why.contains(w)), "{why}: expected {words:?}");
    }
}

#[test]
fn files_that_are_none_are_refused_before_they_are_read() {
    let folder = tempfile::tempdir().expect("writable");
    let load = |path: &Path| Policy::load(path).err().expect("refused");
    assert!(load(&folder.path().join("absent")).contains("cannot be read"));
    assert!(load(folder.path()).contains("a folder, not a file"));
    assert!(load(Path::new("/dev/zero")).contains("only regular files"));
    let large = folder.path().join("large.onnx");
    std::fs::File::create(&large).and_then(|f| f.set_len(MAX_FILE + 1)).expect("a file with a hole");
    assert!(load(&large).contains("64 MiB"));
    let text = folder.path().join("text.onnx");
    std::fs::write(&text, "weights").expect("writable");
    assert!(load(&text).contains("no ONNX"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]
    /// Whatever was done to a file, it is a policy or refused, and a policy gives finite actions or none.
    #[test]
    fn damaged_files_do_no_harm(is_challenge: bool, cut in any::<prop::sample::Index>(), flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)) {
        let model = if is_challenge { challenge(1.0) } else { linear(&[0.25; 8], 0.0) };
        let mut whole = bytes(&with_metadata(model, "weir.step_ms", "60"));
        for (at, value) in &flips {
            let at = at.index(whole.len());
            whole[at] = *value;
        }
        let length = if flips.is_empty() { cut.index(whole.len()) } else { whole.len() };
        if let Ok(policy) = Policy::parse(&whole[..length]) {
            let action = policy.action(&vec![0.5; policy.observation().len()]);
            prop_assert!(action.is_none_or(f64::is_finite));
        }
    }
}
