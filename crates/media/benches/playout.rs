//! The cost of playout per packet, deadlines included, and of a frame from each source.

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use weir_media::audio::{AudioConfig, AudioDelay, AudioPacket, AudioPlayout, AudioSource};
use weir_media::{
    FrameTraces, LayeredConfig, LayeredSource, MaterialConfig, MediaPacket, PerfectCodec, Playout, ScenesConfig,
    ScenesSource, Source, StatisticalConfig, StatisticalSource, TraceSource,
};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

const PACKETS: u64 = 10_000;
const KB: DataSize = DataSize::from_bytes(1_000);

/// Frames of `per_frame` packets 4 ms apart, played 400 ms after capture.
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

/// Packets of 20 ms with jitter of up to 15 ms, one in a hundred lost.
fn listen(playout: &mut AudioPlayout) -> u64 {
    let mut slots = 0;
    for sequence in (0..PACKETS).filter(|n| n % 100 != 50) {
        let now = Timestamp::from_millis(50 + 20 * sequence as i64 + (sequence * 7 % 15) as i64);
        while playout.poll(now).is_some() {
            slots += 1;
        }
        let size = DataSize::from_bytes(60);
        playout.on_packet(now, &AudioPacket::sized(sequence, sequence as u32 * 960, size));
    }
    slots
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
    for (name, delay) in [
        ("audio_fixed", AudioDelay::fixed(TimeDelta::from_millis(100))),
        ("audio_adaptive", AudioDelay::up_to(TimeDelta::from_millis(400))),
    ] {
        group.bench_function(name, |b| {
            b.iter_batched_ref(|| AudioPlayout::new(delay), |p| black_box(listen(p)), BatchSize::SmallInput);
        });
    }
    group.finish();
    let (start, interval) = (Timestamp::ZERO, TimeDelta::from_millis(33));
    let statistical = StatisticalSource::new(StatisticalConfig::default(), start, 1).expect("sound");
    let scenes = ScenesSource::new(ScenesConfig::new(MaterialConfig::movie()), start, 1).expect("sound");
    let audio = AudioSource::new(AudioConfig { talk: None, ..AudioConfig::default() }, start, 1).expect("sound");
    let layers = LayeredConfig { layering: "L3T3".parse().expect("a mode"), ..LayeredConfig::default() };
    let sources: [(&str, Source); 6] = [
        ("audio", audio.into()),
        ("layered", LayeredSource::new(layers, start, 1).expect("sound").into()),
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
