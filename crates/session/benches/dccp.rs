//! Time per media packet through both ends of a call, over plain datagrams and over DCCP.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;

#[path = "../tests/dccp_steady/mod.rs"]
mod dccp_steady;
use dccp_steady::Call;

/// Packets sent per measured step: one second of 2 Mbit/s in packets of 1,000 bytes.
const PACKETS: u64 = 250;

fn calls(c: &mut Criterion) {
    let mut group = c.benchmark_group("transport");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, ccid) in [("udp", None), ("dccp-ccid2", Some(2)), ("dccp-ccid3", Some(3))] {
        let mut call = Call::new(ccid);
        call.deliver(5_000);
        group.bench_function(name, |b| b.iter(|| black_box(&mut call).deliver(PACKETS)));
    }
    group.finish();
}

criterion_group!(benches, calls);
criterion_main!(benches);
