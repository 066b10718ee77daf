//! Time per media packet through both ends of a call: packetised, paced, written, parsed, reported and fed to the
//! controller.

mod two_ends;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use two_ends::Call;
use weir_cc::Registry;
use weir_media::PerfectCodec;
use weir_units::{DataSize, Timestamp};

/// Packets sent per measured step: one second of 2 Mbit/s in packets of 1,000 bytes.
const PACKETS: u64 = 250;

fn calls(c: &mut Criterion) {
    let all: Vec<String> = Registry::builtin().specs().map(|s| s.name.to_string()).collect();
    let some = ["gcc", "nada", "scream2"].map(String::from).to_vec();
    for (group, paths, names) in [("call", 1, all), ("call over two paths", 2, some)] {
        let mut group = c.benchmark_group(group);
        group.throughput(Throughput::Elements(PACKETS));
        for name in names {
            let source = PerfectCodec::packets(DataSize::from_bytes(1_000), Timestamp::ZERO);
            let mut call = Call::new(&name, paths, source);
            call.send(2_500);
            assert_eq!(call.sent().len(), paths);
            group.bench_function(&name, |b| b.iter(|| black_box(&mut call).send(PACKETS)));
        }
        group.finish();
    }
}

criterion_group!(benches, calls);
criterion_main!(benches);
