//! The fixed scenarios under criterion; `weir bench` prints the same compared with ns-3.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_bench::simulator;
use weir_units::TimeDelta;

fn engine(c: &mut Criterion) {
    let mut group = c.benchmark_group("engine");
    group.sample_size(10);
    for scenario in simulator::SCENARIOS {
        let duration = if scenario.name == "gigabit" { TimeDelta::from_secs(1) } else { TimeDelta::from_secs(1_000) };
        group.throughput(Throughput::Elements((scenario.run)(duration).packets));
        group.bench_function(scenario.name, |b| b.iter(|| (scenario.run)(duration)));
    }
    let second = TimeDelta::from_secs(1);
    group.throughput(Throughput::Elements(simulator::many_calls(10_000, second).packets));
    group.bench_function("ten-thousand-calls", |b| b.iter(|| simulator::many_calls(10_000, second)));
    group.finish();
}

criterion_group!(benches, engine);
criterion_main!(benches);
