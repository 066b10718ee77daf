//! Time of CCIDs 2 and 5 with windows of 10 and 1,000 packets: a packet sent, an acknowledgement of two of them taken, and such an
//! acknowledgement made by the receiver (two packets into the Ack Vector, and it written and read once).
//!
//! `cargo bench -p weir-dccp --bench ccid2` prints nanoseconds each.

#[path = "../tests/half_connection/mod.rs"]
mod half_connection;
mod timing;

use criterion::{Criterion, criterion_group, criterion_main};
use half_connection::window::Drive;
use std::time::Duration;
use timing::{Part, time};

/// Packets of a batch that is timed as one: many half-connections where windows are small.
const BATCH: u32 = 10_000;

const PARTS: [Part<Drive>; 3] = [Drive::send, Drive::receive, Drive::acknowledge];

fn per_packet(c: &mut Criterion) {
    let mut group = c.benchmark_group("window");
    group.warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1)).sample_size(20);
    for ccid in [2, 5] {
        for window in [10, 1_000] {
            let mut drives: Vec<_> = (0..BATCH / window).map(|_| Drive::new(ccid, window, u64::MAX)).collect();
            for drive in &mut drives {
                (0..2_000).for_each(|_| {
                    drive.round();
                });
                assert_eq!(drive.window(), f64::from(window), "the window is full");
            }
            for (part, name) in ["packet_sent", "acknowledgement_made", "acknowledgement_taken"].iter().enumerate() {
                let name = format!("ccid{ccid}/{window}/{name}");
                group.bench_function(name, |b| b.iter_custom(|n| time(&mut drives, &PARTS, part, n)));
            }
        }
    }
}

criterion_group!(benches, per_packet);
criterion_main!(benches);
