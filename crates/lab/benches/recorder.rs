//! Time per packet event of a recorder, without and with time series.
//!
//! `cargo bench -p weir-lab --bench recorder`. Goal: about 10 ns per event.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use weir_lab::metrics::{Capacity, FlowInfo, LinkInfo, Recorder, RecorderConfig};
use weir_lab::results::FlowKind;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const FLOWS: usize = 3;
const PACKETS: i64 = 30_000;

fn recorder(series: bool) -> Recorder {
    Recorder::new(RecorderConfig {
        scenario: "bench".into(),
        condition: String::new(),
        controller: "gcc".into(),
        seed: 1,
        flows: (0..FLOWS)
            .map(|i| FlowInfo {
                name: format!("flow {i}"),
                controller: "gcc".into(),
                kind: FlowKind::Rtp,
                adapts: true,
                start: Timestamp::ZERO,
                stop: None,
                playout_deadline: None,
                reported_headers: 0,
                bottleneck: 0,
                further: vec![],
                links: vec![0],
                most: None,
            })
            .collect(),
        links: vec![LinkInfo { name: "link".into(), capacity: Capacity::constant(DataRate::from_mbps(2)) }],
        bottleneck: 0,
        sampling: TimeDelta::from_millis(100),
        series,
        duration: TimeDelta::from_millis(4 * PACKETS),
        burstiness: false,
        windows: vec![],
    })
}

/// A packet every 4 ms, as of 2 Mbit/s: sent and received, with delays that wander over the histogram.
fn feed(mut recorder: Recorder) -> Option<f64> {
    let (size, wire) = (DataSize::from_bytes(1_000), DataSize::from_bytes(1_028));
    for i in 0..PACKETS {
        let (flow, now) = (i as usize % FLOWS, Timestamp::from_millis(4 * i));
        recorder.sent(flow, now, size, wire);
        recorder.received(flow, now, now - TimeDelta::from_micros(100_000 + i * 7_919 % 300_000), size);
    }
    recorder.finish(Timestamp::from_millis(4 * PACKETS)).flows[0].utilisation_goodput
}

fn per_event(c: &mut Criterion) {
    let mut group = c.benchmark_group("per_event");
    group.throughput(Throughput::Elements(2 * PACKETS as u64)).sample_size(20);
    for (name, series) in [("summary", false), ("series", true)] {
        group.bench_function(name, |b| b.iter(|| feed(recorder(series))));
    }
    group.finish();
}

criterion_group!(benches, per_event);
criterion_main!(benches);
