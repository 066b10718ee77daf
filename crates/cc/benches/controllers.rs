//! Time per media packet, for sending and feedback, of each built-in controller together with the sent history.
//!
//! `cargo bench -p weir-cc --bench controllers` prints nanoseconds per packet. Goals: nada 60, scream 250, gcc 300.

use cpu_time::ThreadTime;
use criterion::{Criterion, criterion_group, criterion_main};
use std::time::Duration;
use weir_cc::Registry;
use weir_cc::drive::{Drive, PACKETS_PER_STEP};

/// CPU time for at least `packets` packets, rounded up to whole steps of 100 ms of media. CPU time, so that other load
/// on the machine hardly counts.
fn time(drive: &mut Drive, packets: u64) -> Duration {
    let steps = packets.div_ceil(PACKETS_PER_STEP);
    let start = ThreadTime::now();
    (0..steps).for_each(|_| drive.step());
    start.elapsed().mul_f64(packets as f64 / (steps * PACKETS_PER_STEP) as f64)
}

fn per_packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("per_packet");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2)).sample_size(40);
    let registry = Registry::builtin();
    for spec in registry.specs().chain(registry.get("gcc+fec")) {
        let mut drive = Drive::new(&registry, &spec.name, None).expect("the defaults are valid");
        group.bench_function(&spec.name, |b| b.iter_custom(|packets| time(&mut drive, packets)));
        std::hint::black_box(drive.checksum());
    }
}

criterion_group!(benches, per_packet);
criterion_main!(benches);
