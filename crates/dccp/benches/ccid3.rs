//! Time of CCIDs 3, 4 and 248 at loss event rates of 1 in 100 and 1 in 10,000, per packet sent (permission, window
//! counter, bookkeeping), per packet received, and per feedback packet processed (once per round trip, options parsed).
//!
//! `cargo bench -p weir-dccp --bench ccid3` prints nanoseconds for each.

#[path = "../tests/half_connection/mod.rs"]
mod half_connection;
mod timing;

use criterion::{Criterion, criterion_group, criterion_main};
use half_connection::rate::Drive;
use std::time::Duration;
use timing::{Part, time};

/// Half-connections timed as one, so that the clock is read rarely.
const BATCH: usize = 64;

const PARTS: [Part<Drive>; 3] = [Drive::send, Drive::receive, Drive::acknowledge];

fn per_packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("rate");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    for ccid in [3, 4, 248] {
        for lose_every in [100, 10_000] {
            let mut drives: Vec<_> = (0..BATCH).map(|_| Drive::new(ccid, lose_every)).collect();
            for drive in &mut drives {
                (0..12_000).for_each(|_| {
                    drive.step();
                });
                assert!(drive.metric("loss_event_rate") > 0.0, "past slow start");
            }
            for (part, name) in ["packet_sent", "packet_received", "feedback_taken"].iter().enumerate() {
                let name = format!("ccid{ccid}/1 in {lose_every}/{name}");
                group.bench_function(name, |b| b.iter_custom(|n| time(&mut drives, &PARTS, part, n)));
            }
        }
    }
}

criterion_group!(benches, per_packet);
criterion_main!(benches);
