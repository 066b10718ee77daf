//! The cost of a packet through a link: one push and one pop.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use weir_path::queue::codel;
use weir_path::{
    Capacity, Discipline, GilbertElliott, Limit, Link, LinkConfig, Loss, Opportunities, Packet, Schedule, Step, Verdict,
};
use weir_units::{DataRate, DataSize, Ecn, TimeDelta, Timestamp};

const PACKETS: u64 = 10_000;

/// The flow and the ECN field of a packet.
type Kind = fn(u64) -> (u32, Ecn);

/// All packets of one flow.
fn alike(_: u64) -> (u32, Ecn) {
    (0, Ecn::Ect0)
}

/// Four flows, one of each ECN field.
fn mixed(i: u64) -> (u32, Ecn) {
    (i as u32 % 4, Ecn::from_bits(i as u8 % 4))
}

/// Packets at `load` times 2 Mbit/s, each popped when it is due.
fn run(link: &mut Link<u32>, load: f64, kind: Kind) -> u64 {
    let size = DataSize::from_bytes(1_000);
    let gap = TimeDelta::from_millis(4).mul_f64(1.0 / load);
    let (mut now, mut sum) = (Timestamp::ZERO, 0);
    for i in 0..PACKETS {
        now += gap;
        while let Some(at) = link.next_event().filter(|&at| at <= now) {
            sum += u64::from(link.pop(at).is_some());
        }
        let (flow, ecn) = kind(i);
        let packet = Packet { item: i as u32, size, ecn, flow };
        sum += u64::from(link.push(now, packet) == Verdict::Queued);
    }
    sum
}

fn bench(c: &mut Criterion) {
    let plain = || {
        let mut c = LinkConfig::constant(DataRate::from_mbps(2), TimeDelta::from_millis(100));
        c.limit = Limit::Size(DataSize::from_bytes(75_000));
        c
    };
    let changed = |change: &dyn Fn(&mut LinkConfig)| {
        let mut c = plain();
        change(&mut c);
        c
    };
    let steps = |n: i64| {
        let step = |i| Step { at: TimeDelta::from_millis(100 * i), rate: DataRate::from_kbps(2_000) };
        Schedule::new((0..n).map(step).collect(), Some(TimeDelta::from_millis(100 * n))).expect("sound")
    };
    let trace = Opportunities::new((0..1_000).map(|i| 6 * i + 5).collect()).expect("sound");
    let mut cases: Vec<(String, LinkConfig, f64, Kind)> = [
        ("light", plain(), 0.9),
        ("overload", plain(), 1.2),
        ("codel_light", changed(&|c| c.discipline = Discipline::CoDel(codel::Config::default())), 0.9),
        ("codel_overload", changed(&|c| c.discipline = Discipline::CoDel(codel::Config::default())), 1.2),
        ("schedule", changed(&|c| c.capacity = Capacity::Schedule(steps(600))), 0.95),
        ("opportunities", changed(&|c| c.capacity = Capacity::Opportunities(trace.clone())), 0.9),
        ("bursty_loss", changed(&|c| c.loss = Loss::GilbertElliott(GilbertElliott::bursts(0.02, 3.0))), 0.9),
    ]
    .map(|(name, config, load)| (name.to_owned(), config, load, alike as Kind))
    .into();
    for discipline in Discipline::all() {
        for (name, load) in [("light", 0.9), ("overload", 1.2)] {
            let config = changed(&|c| c.discipline = discipline);
            cases.push((format!("{}_{name}_mixed", discipline.name()), config, load, mixed));
        }
    }
    let mut group = c.benchmark_group("link");
    group.throughput(Throughput::Elements(PACKETS));
    for (name, config, load, kind) in cases {
        group.bench_function(name, |b| {
            let fresh = || Link::new(&config, 1).expect("sound");
            b.iter_batched_ref(fresh, |link| black_box(run(link, load, kind)), BatchSize::SmallInput);
        });
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
