//! Frames a second of every built-in codec on one thread: `cargo bench -p weir-codecs --features vpx,x264`.
#![expect(clippy::unwrap_used, reason = "a bench may stop")]

#[path = "../tests/common/mod.rs"]
mod common;

use common::{decoder_for, encoders, picture};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::Duration;
use weir_codecs::encoder_of;
use weir_media::{CodedFrame, EncoderConfig, Picture};
use weir_units::DataRate;

/// Pictures forwards and backwards, so that the last leads to the first.
const PICTURES: u32 = 16;

fn codecs(c: &mut Criterion) {
    for (width, height, kbps) in [(640, 480, 1000), (1920, 1080, 4000)] {
        let mut pictures: Vec<_> = (0..PICTURES).map(|n| picture(width, height, n)).collect();
        let back: Vec<_> = pictures[1..pictures.len() - 1].iter().rev().cloned().collect();
        pictures.extend(back);
        let config = EncoderConfig {
            bit_rate: DataRate::from_kbps(kbps),
            may_drop: false,
            ..EncoderConfig::live(width, height)
        };
        let mut group = c.benchmark_group(format!("{width}x{height}"));
        group.throughput(Throughput::Elements(1)).sample_size(10).measurement_time(Duration::from_secs(2));
        for (library, codec) in encoders() {
            let name = format!("{codec} {library}");
            let mut encoder = encoder_of(library, codec, &config).unwrap();
            let mut frame = CodedFrame::default();
            let mut n = 0u64;
            let mut encode = |frame: &mut CodedFrame| {
                encoder.encode(&pictures[n as usize % pictures.len()], n * 3000, frame).unwrap();
                n += 1;
            };
            let mut coded = Vec::new();
            for _ in 0..60 {
                encode(&mut frame);
                coded.push(frame.clone());
            }
            group.bench_function(BenchmarkId::new("encode", &name), |b| b.iter(|| encode(black_box(&mut frame))));
            let mut decoder = decoder_for(codec);
            let mut shown = Picture::new(width, height).unwrap();
            let mut frames = coded.iter().cycle();
            group.bench_function(BenchmarkId::new("decode", &name), |b| {
                b.iter(|| decoder.decode(&frames.next().unwrap().data, true, black_box(&mut shown)));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, codecs);
criterion_main!(benches);
