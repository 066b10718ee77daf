//! The hot path: RTP headers, and feedback per packet reported.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use weir_units::{Ecn, TimeDelta, Timestamp};
use weir_wire::rtcp::{Packet, Xr, ccfb, parse_compound, twcc, xr};
use weir_wire::rtp::{Header, PacketView};

fn rtp(c: &mut Criterion) {
    let header = Header {
        payload_type: 96,
        marker: true,
        sequence: 1_000,
        timestamp: 90_000,
        ssrc: 0x1234_5678,
        transport_sequence: Some((5, 4_000)),
        abs_send_time: Some((3, 0x12_3456)),
        ..Header::default()
    };
    let mut out = Vec::with_capacity(64);
    let mut g = c.benchmark_group("rtp");
    g.bench_function("write", |b| {
        b.iter(|| {
            out.clear();
            black_box(&header).write_into(&mut out);
            black_box(&out);
        });
    });
    g.bench_function("parse", |b| {
        b.iter(|| {
            let p = PacketView::parse(black_box(&out)).expect("the header just written");
            (p.sequence(), p.ssrc(), p.transport_sequence(5), p.abs_send_time(3), p.payload().len())
        });
    });
}

/// Arrivals 5 ms apart with jitter; if `lossy`, every seventh packet is missing and some arrival times jump.
fn arrivals(n: u16, lossy: bool) -> Vec<(u16, Option<Timestamp>)> {
    let arrival = |i: u16| {
        let jump = if lossy && i.is_multiple_of(11) { 80 } else { 0 };
        Timestamp::from_millis(1_000)
            + TimeDelta::from_micros(i64::from(i) * 5_000 + i64::from(i * 7 % 13) * 90)
            + TimeDelta::from_millis(jump)
    };
    (0..n).map(|i| (i, (!lossy || i % 7 != 3).then(|| arrival(i)))).collect()
}

fn twcc(c: &mut Criterion) {
    const N: u16 = 50;
    for (name, lossy) in [("twcc clean", false), ("twcc lossy", true)] {
        let packets = arrivals(N, lossy);
        let mut g = c.benchmark_group(name);
        g.throughput(Throughput::Elements(N.into()));
        let mut builder = twcc::Builder::new(1, 2, 0, 0, Timestamp::from_millis(1_000));
        let mut out = Vec::with_capacity(1_200);
        g.bench_function("build", |b| {
            b.iter(|| {
                out.clear();
                builder.reset(1, 0, Timestamp::from_millis(1_000));
                for &(sequence, arrival) in black_box(&packets) {
                    assert!(builder.push(sequence, arrival));
                }
                builder.finish_into(&mut out)
            });
        });
        g.bench_function("parse", |b| {
            b.iter(|| {
                let Some(Ok(Packet::Twcc(f))) = parse_compound(black_box(&out)).next() else { panic!() };
                f.statuses().filter_map(|(_, a)| a).map(TimeDelta::as_nanos).sum::<i64>()
            });
        });
    }
}

fn ccfb(c: &mut Criterion) {
    const N: u16 = 50;
    let packets = arrivals(N, true);
    let report = Timestamp::from_millis(1_300);
    let mut g = c.benchmark_group("ccfb");
    g.throughput(Throughput::Elements(N.into()));
    let mut out = Vec::with_capacity(1_200);
    g.bench_function("build", |b| {
        b.iter(|| {
            out.clear();
            let mut w = ccfb::Writer::new(&mut out, 1, report, 0x8000);
            w.stream(2, 0);
            for &(_, arrival) in black_box(&packets) {
                assert!(w.push(arrival.map(|a| (Ecn::Ect1, a))));
            }
            w.finish();
        });
    });
    g.bench_function("parse", |b| {
        b.iter(|| {
            let Some(Ok(Packet::Ccfb(f))) = parse_compound(black_box(&out)).next() else { panic!() };
            let mut sum = 0;
            for s in f.streams() {
                for (sequence, m) in s.packets() {
                    if let ccfb::Metric::Received { offset, .. } = m {
                        sum += offset.as_time_delta().map_or(0, TimeDelta::as_nanos) + i64::from(sequence);
                    }
                }
            }
            sum
        });
    });
}

/// A trace of one report interval with 2 % losses, and the maximum work that a datagram can cause.
fn rle(c: &mut Criterion) {
    const N: u16 = 500;
    let mut g = c.benchmark_group("rle");
    g.throughput(Throughput::Elements(N.into()));
    let (mut out, mut chunks) = (Vec::with_capacity(1_200), Vec::with_capacity(200));
    let received = (0..N).map(|i| i % 50 != 49);
    g.bench_function("build", |b| {
        b.iter(|| {
            out.clear();
            let trace = xr::RleBlock::encode(2, 0, 0, black_box(received.clone()), 1_000, &mut chunks);
            Xr { ssrc: 1, blocks: xr::Blocks::Own(&[xr::Block::LossRle(trace)]) }.write_into(&mut out);
        });
    });
    let lost = |datagram: &[u8]| {
        let Some(Ok(Packet::Xr(x))) = parse_compound(datagram).next() else { panic!() };
        let traces = x.blocks.iter().map(|b| if let xr::Block::LossRle(t) = b { t } else { panic!() });
        traces.map(|t| t.packets().filter(|(_, received)| !received).count()).sum::<usize>()
    };
    g.bench_function("parse", |b| b.iter(|| lost(black_box(&out))));
    let chunks = [xr::Chunk::run(false, xr::MAX_RUN).expect("a run"); 4];
    let long = xr::RleBlock { ssrc: 2, begin: 0, end: 4 * xr::MAX_RUN, thinning: 0, chunks: (&chunks).into() };
    let mut worst = vec![];
    Xr { ssrc: 1, blocks: xr::Blocks::Own(&[xr::Block::LossRle(long); 73]) }.write_into(&mut worst);
    assert!(worst.len() <= 1_500);
    g.throughput(Throughput::Elements(73 * 4 * u64::from(xr::MAX_RUN)));
    g.bench_function("parse 1,500 bytes of runs", |b| b.iter(|| lost(black_box(&worst))));
}

criterion_group!(benches, rtp, twcc, ccfb, rle);
criterion_main!(benches);
