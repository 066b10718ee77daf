use crate::{
    Detector, Direction, EstimateKind, EventKind, Format, PairChange, ProbeStep, ReadError, RtcpKind, StreamKind, read,
};
use proptest::prelude::*;

fn varint(mut value: u64) -> Vec<u8> {
    let mut out = vec![];
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
    out
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [varint(field << 3 | 2), varint(value.len() as u64), value.to_vec()].concat()
}

/// Values after the first, as signed deltas of `width` bits with none missing.
fn column(first: u64, values: &[u64], width: u32) -> Vec<u8> {
    let mut bits: Vec<u8> = vec![0, 1];
    let mut push = |value: u64, n: u32| bits.extend((0..n).rev().map(|i| (value >> i & 1) as u8));
    push(u64::from(width) - 1, 6);
    push(1, 1);
    push(0, 1);
    push(63, 6);
    let mut last = first;
    for value in values {
        push(value.wrapping_sub(last), width);
        last = *value;
    }
    bits.chunks(8).map(|c| c.iter().enumerate().fold(0, |v, (i, b)| v | b << (7 - i))).collect()
}

/// A batch: field, values, width of deltas; the first value is a plain field, and `counter` counts the others.
fn batch(counter: u64, columns: &[(u64, &[u64], u32)]) -> Vec<u8> {
    let mut out = number(counter, columns[0].1.len() as u64 - 1);
    for (field, values, width) in columns {
        out.extend(number(*field, values[0]));
        if values[1..].iter().any(|v| *v != values[0]) {
            out.extend(bytes(field + 100, &column(values[0], &values[1..], *width)));
        }
    }
    out
}

/// 2023-11-14T22:13:20Z in ms; the log's own clock begins at -500 ms.
const UTC: u64 = 1_700_000_000_000;

fn log() -> Vec<u8> {
    let begin = [number(1, -500i64 as u64), number(2, 2), number(3, UTC)].concat();
    let sent = batch(
        11,
        &[
            (1, &[0, 20, 20, 45], 8),
            (2, &[0, 0, 1, 1], 2),
            (3, &[96, 96, 96, 96], 1),
            (4, &[65_535, 0, 1, 2], 20),
            (5, &[3000, 3000, 3000, 6000], 16),
            (6, &[7, 7, 7, 7], 1),
            (8, &[1100, 1100, 300, 900], 12),
            (9, &[20, 20, 20, 20], 1),
            (10, &[0, 0, 0, 30], 8),
            (15, &[1, 2, 3, 4], 4),
        ],
    );
    // A receiver report of SSRC 9 without blocks, then a PLI from 9 about 7.
    let rr = [0x80, 201, 0, 1, 0, 0, 0, 9];
    let pli = [0x81, 206, 0, 2, 0, 0, 0, 9, 0, 0, 0, 7];
    let rtcp = [
        number(1, 30),
        bytes(2, &rr),
        number(3, 1),
        bytes(101, &column(30, &[60], 8)),
        bytes(102, &[varint(12), pli.to_vec()].concat()),
    ]
    .concat();
    let delay = batch(4, &[(1, &[10, 1010], 12), (2, &[300_000, 250_000], 20), (3, &[1, 3], 4)]);
    let loss = batch(5, &[(1, &[10, 1010], 12), (2, &[400_000, 350_000], 20), (3, &[0, 64], 8), (4, &[10, 20], 8)]);
    let frames = batch(15, &[(1, &[40, 73], 8), (4, &[640, 320], 12), (5, &[480, 240], 12)]);
    let one = |fields: &[(u64, u64)]| fields.iter().flat_map(|(f, v)| number(*f, *v)).collect::<Vec<u8>>();
    [
        bytes(16, &begin),
        bytes(3, &sent),
        bytes(4, &rtcp),
        bytes(19, &delay),
        bytes(18, &loss),
        bytes(7, &frames),
        bytes(21, &one(&[(1, 5), (2, 1), (3, 900_000), (4, 5), (5, 1800)])),
        bytes(22, &one(&[(1, 25), (2, 1), (3, 850_000)])),
        bytes(23, &one(&[(1, 35), (2, 2), (3, 3)])),
        bytes(24, &one(&[(1, 50), (2, 1)])),
        bytes(25, &one(&[(1, 1), (2, 4), (3, 77), (6, 3)])),
        bytes(32, &one(&[(1, 2), (2, 1), (3, 48)])),
        bytes(104, &one(&[(1, 0), (2, 7), (3, 8)])),
        // A field that no reader knows.
        bytes(30, &one(&[(1, 7), (2, 9)])),
        bytes(17, &one(&[(1, 2000)])),
    ]
    .concat()
}

#[test]
fn every_record_becomes_rows_at_utc() {
    let log = read("log", log().as_slice()).expect("a log");
    assert_eq!((log.format, log.stop.clone(), log.faults.len()), (Format::EventLog, None, 0), "{:?}", log.faults);
    let at = |ms: i64| ms + UTC as i64 + 500;
    let times: Vec<i64> = log.packets.iter().map(|p| p.at.as_millis()).collect();
    assert_eq!(times, [at(0), at(20), at(20), at(45)]);
    let sequences: Vec<u16> = log.packets.iter().map(|p| p.sequence).collect();
    assert_eq!(sequences, [65_535, 0, 1, 2]);
    let last = log.packets[3];
    assert_eq!((last.direction, last.ssrc, last.timestamp, last.marker), (Direction::Sent, 7, 6000, true));
    assert_eq!((last.size, last.padding, last.transport_sequence), (950, Some(30), Some(4)));
    let kinds: Vec<(i64, RtcpKind)> = log.rtcp.iter().map(|r| (r.at.as_millis(), r.kind)).collect();
    assert_eq!(kinds, [(at(30), RtcpKind::ReceiverReport), (at(60), RtcpKind::Pli)]);
    let delay: Vec<(u64, Option<Detector>)> =
        log.estimates.iter().filter(|e| e.kind == EstimateKind::Delay).map(|e| (e.rate.as_bps(), e.detector)).collect();
    assert_eq!(delay, [(300_000, Some(Detector::Normal)), (250_000, Some(Detector::Overuse))]);
    let loss: Vec<Option<f64>> =
        log.estimates.iter().filter(|e| e.kind == EstimateKind::Loss).map(|e| e.loss).collect();
    assert_eq!(loss, [Some(0.0), Some(0.25)]);
    assert_eq!(log.frames.iter().map(|f| (f.width, f.height)).collect::<Vec<_>>(), [(640, 480), (320, 240)]);
    let steps: Vec<ProbeStep> = log.probes.iter().map(|p| p.step).collect();
    let made = ProbeStep::Made { packets: 5, bytes: 1800 };
    assert_eq!(steps, [made, ProbeStep::Succeeded, ProbeStep::Failed("timeout")]);
    assert_eq!((log.limited.len(), log.limited[0].begins), (1, true));
    assert_eq!((log.pairs[0].change, log.pairs[0].pair.as_str()), (PairChange::Selected, "77"));
    assert_eq!((log.streams[0].kind, log.streams[0].rtx), (StreamKind::Video, Some(8)));
    assert_eq!(log.events[0].kind, EventKind::Begin);
    assert!(log.events.iter().any(|e| e.kind == EventKind::Route { connected: true, overhead: 48 }));
}

#[test]
fn a_cut_log_gives_the_whole_records_before_and_says_where() {
    let whole = log();
    let all = read("log", whole.as_slice()).expect("a log");
    let mut before = 0;
    for length in 10..whole.len() {
        let Ok(cut) = read("log", &whole[..length]) else { continue };
        let rows = cut.packets.len() + cut.rtcp.len() + cut.estimates.len() + cut.probes.len() + cut.events.len();
        assert!(rows >= before, "{length}");
        before = rows;
        if let Some(stop) = cut.stop {
            assert!(stop.offset < length as u64 && !stop.why.is_empty(), "{stop:?}");
        }
    }
    let cut = read("log", &whole[..whole.len() - 1]).expect("a log");
    assert_eq!((cut.packets, cut.rtcp), (all.packets, all.rtcp));
    assert!(cut.stop.is_some());
}

#[test]
fn counts_that_no_bits_bear_are_refused() {
    // A thousand million packets in twelve bytes.
    let packets = [number(1, 0), number(11, 1_000_000_000)].concat();
    let file = [bytes(16, &[number(1, 0), number(2, 2), number(3, UTC)].concat()), bytes(3, &packets)].concat();
    let log = read("log", file.as_slice()).expect("a log");
    assert_eq!((log.packets.len(), log.faults.values().sum::<u64>()), (0, 1), "{:?}", log.faults);
    assert!(log.faults.keys().all(|k| k.contains("more rows")), "{:?}", log.faults);
}

#[test]
fn the_old_log_is_refused_by_name() {
    let old = bytes(1, &[number(1, 5), number(2, 3)].concat());
    assert!(matches!(read("old", old.as_slice()), Err(ReadError::OldEventLog)));
}

proptest! {
    #[test]
    fn damage_is_an_error_and_no_panic(at in 0usize..600, byte: u8, cut in 0usize..600) {
        let mut file = log();
        let length = file.len();
        file[at % length] = byte;
        file.truncate(length - cut % length);
        if let Ok(log) = read("log", file.as_slice()) {
            prop_assert!(log.packets.len() <= 8 * length && log.rtcp.len() <= 8 * length);
            let _ = (log.counts(), log.span());
        }
    }
}
