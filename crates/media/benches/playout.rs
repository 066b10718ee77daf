//! The cost of a packet in playout, deadlines included, and of a frame from each source.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use weir_media::{
    FrameTraces, MaterialConfig, MediaPacket, PerfectCodec, Playout, ScenesConfig, ScenesSource, Source,
    StatisticalConfig, StatisticalSource, TraceSource,
};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const PACKETS: u64 = 10_000;
const KB: DataSize = DataSize::from_bytes(1_000);

/// Frames of so many packets, 4 ms a packet, played 400 ms after capture.
fn play(playout: &mut Playout, per_frame: u64) -> u64 {
    let mut played = 0;
    for sequence in 0..PACKETS {
        let now = Timestamp::from_millis(50 + 4 * sequence as i64);
        while playout.next_event().is_some_and(|at| at <= now) {
            played += u64::from(playout.poll(now).is_some());
        }
        let (frame, place) = (sequence / per_frame, sequence % per_frame);
        playout.on_packet(
            now,
            &MediaPacket {
                sequence,
                rtp_timestamp: (frame * per_frame * 360) as u32,
                start: Some(place == 0),
                marker: place + 1 == per_frame,
                size: KB,
            },
        );
    }
    played
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("playout");
    group.throughput(Throughput::Elements(PACKETS));
    for per_frame in [1, 5] {
        group.bench_function(format!("{per_frame}_packets_a_frame"), |b| {
            let fresh = || Playout::new(TimeDelta::from_millis(400));
            b.iter_batched_ref(fresh, |p| black_box(play(p, per_frame)), BatchSize::SmallInput);
        });
    }
    group.finish();
    let (start, interval) = (Timestamp::ZERO, TimeDelta::from_millis(33));
    let statistical = StatisticalSource::new(StatisticalConfig::default(), start, 1).expect("sound");
    let scenes = ScenesSource::new(ScenesConfig::new(MaterialConfig::movie()), start, 1).expect("sound");
    let sources: [(&str, Source); 4] = [
        ("perfect", PerfectCodec::packets(KB, start).into()),
        ("statistical", statistical.into()),
        ("scenes", scenes.into()),
        ("trace", TraceSource::new(FrameTraces::chat_720p(), interval, start).into()),
    ];
    let mut group = c.benchmark_group("source");
    for (name, mut source) in sources {
        source.on_target(DataRate::from_kbps(1_000), start);
        group.bench_function(name, |b| b.iter(|| source.next_frame_at().and_then(|at| source.poll_frame(at))));
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
