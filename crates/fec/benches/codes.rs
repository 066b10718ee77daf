//! Codes compared with other libraries', in source bytes per second: 1,200-byte packets, one thread.
#![expect(clippy::unwrap_used, reason = "a bench may stop")]

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use reed_solomon_erasure::galois_8;
use weir_fec::{Encoder, Importance, RepairWindow, Scheme, Symbol, WindowLimits};
use weir_units::Timestamp;

const LEN: usize = 1_200;

fn packets(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|p| (0..LEN).map(|i| (i * 31 + p * 17 + i * i / 7) as u8).collect()).collect()
}

fn block(encoder: &mut Encoder, packets: &[Vec<u8>], sequence: &mut u64) {
    for packet in packets {
        encoder.push(*sequence, Symbol::new(packet), Importance::Other);
        *sequence += 1;
    }
    while let Some(repair) = encoder.poll_repair() {
        black_box(repair.symbol.bytes);
    }
}

fn encode(c: &mut Criterion) {
    let schemes = [
        ("xor 10", Scheme::parity(10)),
        ("two-dimensional 8x8", Scheme::two_dimensional(8, 8)),
        ("rs 10+4", Scheme::reed_solomon(14, 4)),
        ("rs 64+7", Scheme::reed_solomon(71, 7)),
        ("rs 64+63", Scheme::reed_solomon(127, 63)),
        ("rlc 1 in 5 of 20", Scheme::rlc(20, 5, 1)),
        ("rlc 1 in 5 of 60", Scheme::rlc(60, 5, 1)),
    ];
    let mut group = c.benchmark_group("encode");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let data = packets(10);
    group.throughput(Throughput::Bytes((data.len() * LEN) as u64));
    group.bench_function(BenchmarkId::new("weir", "xor 10, all at hand"), |b| {
        let data: Vec<Symbol<'_>> = data.iter().map(|packet| Symbol::new(packet)).collect();
        let mut sum = Vec::new();
        b.iter(|| weir_fec::parity(black_box(&data), black_box(&mut sum)));
    });
    for (name, scheme) in schemes {
        let scheme = scheme.unwrap();
        let data = packets(scheme.sources());
        group.throughput(Throughput::Bytes((data.len() * LEN) as u64));
        group.bench_function(BenchmarkId::new("weir", name), |b| {
            let (mut encoder, mut sequence) = (Encoder::new(scheme).unwrap(), 0);
            b.iter(|| block(&mut encoder, &data, &mut sequence));
        });
        let Scheme::ReedSolomon { repair, .. } = scheme else { continue };
        let (k, m) = (scheme.sources(), usize::from(repair));
        group.bench_function(BenchmarkId::new("reed-solomon-simd", name), |b| {
            let mut encoder = reed_solomon_simd::ReedSolomonEncoder::new(k, m, LEN).unwrap();
            b.iter(|| {
                for packet in &data {
                    encoder.add_original_shard(packet).unwrap();
                }
                let result = encoder.encode().unwrap();
                for repair in result.recovery_iter() {
                    black_box(repair);
                }
            });
        });
        group.bench_function(BenchmarkId::new("reed-solomon-erasure", name), |b| {
            let code = galois_8::ReedSolomon::new(k, m).unwrap();
            let mut repairs = vec![vec![0; LEN]; m];
            b.iter(|| code.encode_sep(&data, black_box(&mut repairs)).unwrap());
        });
    }
}

/// Packets 0, 2, 4 and so on.
fn is_lost(i: usize, losses: usize) -> bool {
    i.is_multiple_of(2) && i / 2 < losses
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("decode");
    group.warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let rs = |n, repair| Scheme::reed_solomon(n, repair);
    for (name, scheme, losses) in [
        ("xor 10, 1 lost", Scheme::parity(10), 1),
        ("rs 10+4, 4 lost", rs(14, 4), 4),
        ("rs 64+7, 7 lost", rs(71, 7), 7),
        ("rs 64+63, 7 lost", rs(127, 63), 7),
        ("rs 64+63, 32 lost", rs(127, 63), 32),
        // As much at once as of blocks: windows of the first to the last of these packets.
        ("rlc 10+4, 4 lost", Scheme::rlc(10, 10, 4), 4),
        ("rlc 64+7, 7 lost", Scheme::rlc(64, 64, 7), 7),
    ] {
        let scheme = scheme.unwrap();
        let data = packets(scheme.sources());
        group.throughput(Throughput::Bytes((data.len() * LEN) as u64));
        group.bench_function(BenchmarkId::new("weir", name), |b| {
            // The window's whole work: sources arrive and are kept, repair packets arrive, lost packets are returned.
            let mut encoder = Encoder::new(scheme).unwrap();
            block_of(&mut encoder, &data);
            let mut repairs = Vec::new();
            while let Some(repair) = encoder.poll_repair() {
                repairs.push((repair.coverage, repair.code, repair.symbol.bytes.to_vec()));
            }
            repairs.truncate(losses);
            let mut window = RepairWindow::new(WindowLimits { packets: 256, ..WindowLimits::default() });
            let mut base = 0;
            b.iter(|| {
                for (i, packet) in data.iter().enumerate().filter(|(i, _)| !is_lost(*i, losses)) {
                    window.on_source(Timestamp::ZERO, base + i as u64, Symbol::new(packet));
                }
                for (coverage, code, bytes) in &repairs {
                    let coverage = weir_fec::Coverage::from_mask(base, coverage.mask());
                    let repair = weir_fec::Repair { coverage, code: *code, symbol: Symbol::new(bytes) };
                    window.on_repair(Timestamp::ZERO, repair);
                }
                let mut count = 0;
                while let Some(recovered) = window.poll_recovered() {
                    black_box(recovered.symbol.bytes);
                    count += 1;
                }
                assert_eq!(count, losses);
                base += data.len() as u64;
            });
        });
        let Scheme::ReedSolomon { repair, .. } = scheme else { continue };
        let (k, m) = (scheme.sources(), usize::from(repair));
        group.bench_function(BenchmarkId::new("reed-solomon-simd", name), |b| {
            let repairs = reed_solomon_simd::encode(k, m, &data).unwrap();
            let mut decoder = reed_solomon_simd::ReedSolomonDecoder::new(k, m, LEN).unwrap();
            b.iter(|| {
                for (i, packet) in data.iter().enumerate().filter(|(i, _)| !is_lost(*i, losses)) {
                    decoder.add_original_shard(i, packet).unwrap();
                }
                for (i, repair) in repairs.iter().enumerate().take(losses) {
                    decoder.add_recovery_shard(i, repair).unwrap();
                }
                let result = decoder.decode().unwrap();
                for restored in result.restored_original_iter() {
                    black_box(restored);
                }
            });
        });
        group.bench_function(BenchmarkId::new("reed-solomon-erasure", name), |b| {
            let code = galois_8::ReedSolomon::new(k, m).unwrap();
            let mut all = data.clone();
            all.extend(vec![vec![0; LEN]; m]);
            code.encode(&mut all).unwrap();
            let mut shards: Vec<(Vec<u8>, bool)> = all.into_iter().map(|shard| (shard, true)).collect();
            b.iter(|| {
                for (i, shard) in shards.iter_mut().enumerate() {
                    shard.1 = if i < k { !is_lost(i, losses) } else { i - k < losses };
                }
                code.reconstruct_data(black_box(&mut shards)).unwrap();
            });
        });
    }
}

fn block_of(encoder: &mut Encoder, data: &[Vec<u8>]) {
    for (packet, sequence) in data.iter().zip(0..) {
        encoder.push(sequence, Symbol::new(packet), Importance::Other);
    }
}

criterion_group!(benches, encode, decode);
criterion_main!(benches);
