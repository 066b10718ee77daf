//! The time of a decision: one inference of a network of two layers of 64, the size of `examples/python/train.py`.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use weir_onnx::Policy;

fn policy(c: &mut Criterion) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/python/policy.onnx");
    let policy = Policy::load(file.as_ref()).expect("the example's policy");
    let observation = vec![0.1; policy.observation().len()];
    c.bench_function("a decision of examples/python/policy.onnx", |b| {
        b.iter(|| policy.action(black_box(&observation)))
    });
}

criterion_group!(benches, policy);
criterion_main!(benches);
