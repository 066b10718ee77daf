//! Pictures a second: of the built-in clips, of each quality metric, and of reading and writing files.

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use std::hint::black_box;
use std::io::Cursor;
use weir_media::clip::{Character, Clip, ClipSpec};
use weir_media::quality::{Activity, Comparer, LumaRange, Measures, MeterConfig, QualityMeter};
use weir_media::y4m::{Y4mReader, Y4mWriter};
use weir_media::{Decoded, FrameRate, Picture, PictureSource};

const SIZES: [(&str, u32, u32); 2] = [("vga", 640, 480), ("1080p", 1_920, 1_080)];

fn rate() -> FrameRate {
    FrameRate::new(30, 1).expect("a rate")
}

fn pictures(width: u32, height: u32) -> (Picture, Picture) {
    let mut clip = Clip::new(ClipSpec::new(Character::HandHeld, width, height, rate())).expect("a clip");
    let (mut a, mut b) = (Picture::new(1, 1).expect("a size"), Picture::new(1, 1).expect("a size"));
    clip.draw(10, &mut a);
    clip.draw(11, &mut b);
    (a, b)
}

fn group<'a>(c: &'a mut Criterion, name: &str) -> BenchmarkGroup<'a, WallTime> {
    let mut g = c.benchmark_group(name);
    g.throughput(Throughput::Elements(1)).sample_size(20);
    g
}

fn clips(c: &mut Criterion) {
    let mut g = group(c, "clip");
    for (size, width, height) in SIZES {
        for character in Character::ALL {
            let mut clip = Clip::new(ClipSpec::new(character, width, height, rate())).expect("a clip");
            let mut picture = Picture::new(width, height).expect("a size");
            g.bench_function(format!("{character}-{size}"), |b| {
                b.iter(|| clip.next_picture(&mut picture).expect("drawn"))
            });
        }
    }
}

fn measures(c: &mut Criterion) {
    let mut g = group(c, "quality");
    for (size, width, height) in SIZES {
        let (reference, picture) = pictures(width, height);
        let kinds = [
            ("psnr", Measures::PSNR),
            ("psnr-ssim", Measures { ssim: true, gaussian: false }),
            ("psnr-gaussian", Measures { ssim: false, gaussian: true }),
        ];
        for (name, kind) in kinds {
            let mut comparer = Comparer::new(kind);
            g.bench_function(format!("{name}-{size}"), |b| {
                b.iter(|| comparer.compare(black_box(&reference), black_box(&picture)).expect("compared"));
            });
        }
        let mut activity = Activity::new(LumaRange::Stored);
        g.bench_function(format!("si-ti-{size}"), |b| b.iter(|| activity.push(black_box(&picture))));
        let mut meter = QualityMeter::new(MeterConfig { measures: Measures::PSNR, ..MeterConfig::default() });
        let mut at = 0u32;
        g.bench_function(format!("meter-psnr-{size}"), |b| {
            b.iter(|| {
                meter.on_reference(at, &reference);
                meter.on_received(at, Decoded::Intact, &picture);
                at = at.wrapping_add(3_000);
            });
        });
    }
}

fn files(c: &mut Criterion) {
    let mut g = group(c, "y4m");
    for (size, width, height) in SIZES {
        let (picture, _) = pictures(width, height);
        let mut writer = Y4mWriter::new(vec![], (width, height), rate()).expect("written");
        for _ in 0..4 {
            writer.write(&picture).expect("written");
        }
        let mut reader = Y4mReader::new("memory", Cursor::new(writer.finish().expect("written"))).expect("a header");
        let mut picture = Picture::new(width, height).expect("a size");
        g.bench_function(format!("read-{size}"), |b| {
            b.iter(|| {
                if !reader.next_picture(&mut picture).expect("read") {
                    reader.rewind().expect("rewound");
                }
            });
        });
    }
}

criterion_group!(benches, clips, measures, files);
criterion_main!(benches);
