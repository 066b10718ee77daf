//! Packets on the wire, each with the options that connections put on it, and both checksums over 1,400 bytes of data.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use weir_dccp::option::DccpOption;
use weir_dccp::packet::{
    Header, PacketType, PacketWriter, PseudoHeader, WireSequence, covered_checksum, data_checksum, parse,
};
use weir_units::Seq48;

const DATA: usize = 1_400;

fn header(packet_type: PacketType) -> Header {
    Header {
        source_port: 5_004,
        destination_port: 6_000,
        ccval: 3,
        checksum_coverage: 0,
        packet_type,
        sequence: WireSequence::Long(Seq48::new(0x0102_0304_0506)),
        acknowledgement: packet_type.has_acknowledgement().then_some(WireSequence::Long(Seq48::new(0x0f0e_0d0c_0b0a))),
    }
}

/// Twenty runs: ten bursts of loss.
const RUNS: [u8; 20] = {
    let mut runs = [5; 20];
    let mut i = 1;
    while i < 20 {
        runs[i] = 0xc0;
        i += 2;
    }
    runs
};

const ON_DATA: &[DccpOption<'static>] = &[DccpOption::NdpCount(1), DccpOption::Timestamp(123_456)];
const CCID_2: &[DccpOption<'static>] =
    &[DccpOption::TimestampEcho { echo: 123_456, elapsed: 900 }, DccpOption::AckVector { nonce: false, runs: &RUNS }];
const CCID_3: &[DccpOption<'static>] = &[
    DccpOption::ElapsedTime(900),
    DccpOption::Ccid { number: 192, data: &[0, 0, 0, 200] },
    DccpOption::Ccid { number: 194, data: &[0, 1, 0x86, 0xa0] },
    DccpOption::Ccid { number: 193, data: &[3, 0, 0, 9, 0x80, 0, 1, 0, 0, 9] },
];

const PACKETS: [(&str, PacketType, &[DccpOption<'static>]); 4] = [
    ("data", PacketType::Data, &[]),
    ("data with options", PacketType::Data, ON_DATA),
    ("ack of ccid 2", PacketType::Ack, CCID_2),
    ("ack of ccid 3", PacketType::Ack, CCID_3),
];

fn write(out: &mut Vec<u8>, packet_type: PacketType, options: &[DccpOption<'_>]) -> usize {
    out.clear();
    let mut w = PacketWriter::new(out, &header(packet_type));
    for o in options {
        w.option(o);
    }
    w.finish()
}

fn packets(c: &mut Criterion) {
    let mut out = Vec::with_capacity(2_000);
    let mut g = c.benchmark_group("write");
    for (name, packet_type, options) in PACKETS {
        g.bench_function(name, |b| b.iter(|| write(&mut out, black_box(packet_type), black_box(options))));
    }
    g.finish();
    // As a connection reads: the header, then its options one by one.
    let mut g = c.benchmark_group("parse");
    for (name, packet_type, options) in PACKETS {
        write(&mut out, packet_type, options);
        out.resize(out.len() + if packet_type == PacketType::Data { DATA } else { 0 }, 0);
        g.bench_function(name, |b| {
            b.iter(|| {
                let p = parse(black_box(&out), 0).expect("what was written");
                for e in p.options.entries() {
                    black_box(e);
                }
                (p.header, p.data.len())
            });
        });
    }
}

fn checksums(c: &mut Criterion) {
    let mut packet = Vec::new();
    write(&mut packet, PacketType::Data, ON_DATA);
    packet.resize(packet.len() + DATA, 0xa5);
    let pseudo = PseudoHeader::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let data = [0xa5; DATA];
    let mut g = c.benchmark_group("checksum");
    g.throughput(Throughput::Bytes(DATA as u64));
    g.bench_function("internet", |b| b.iter(|| covered_checksum(black_box(&packet), 0, &pseudo)));
    g.bench_function("crc-32c", |b| b.iter(|| data_checksum(black_box(&data), 0)));
    g.bench_function("crc-32c of a length", |b| b.iter(|| data_checksum(&[], black_box(DATA as u32))));
}

criterion_group!(benches, packets, checksums);
criterion_main!(benches);
