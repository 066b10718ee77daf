use super::*;
use crate::rtcp::{Packet, parse_compound};
use proptest::prelude::*;
use weir_units::Timestamp;

fn at(ms: i64) -> Timestamp {
    Timestamp::from_millis(ms)
}

fn parse(bytes: &[u8]) -> Feedback<'_> {
    match parse_compound(bytes).next() {
        Some(Ok(Packet::Twcc(f))) => f,
        other => panic!("not TWCC: {other:?}"),
    }
}

fn finish(b: &Builder) -> Vec<u8> {
    let mut out = vec![];
    assert!(b.finish_into(&mut out));
    out
}

#[test]
fn message_by_hand() {
    let mut b = Builder::new(0x0102_0304, 0x0506_0708, 9, 100, at(1_000));
    // 1,000 ms is 15 units of 64 ms (960 ms) and 40 ms, 160 units of 250 us.
    assert!(b.push(100, Some(at(1_000))));
    assert!(b.push(101, Some(at(1_010))));
    assert!(b.push(104, Some(at(1_000))));
    let bytes = finish(&b);
    let want = [
        0x8f,
        205,
        0,
        6,
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        0,
        100,
        0,
        5,
        0,
        0,
        15,
        9, // fixed fields
        0b1101_0100,
        0b0010_0000, // two-bit: small, small, none, none, large
        160,
        40,
        0xff,
        0xd8,
        0,
        0, // 40 ms, 10 ms, -10 ms, filling
    ];
    assert_eq!(bytes, want);
    let f = parse(&bytes);
    assert_eq!((f.sender_ssrc, f.media_ssrc, f.feedback_count), (0x0102_0304, 0x0506_0708, 9));
    assert_eq!(f.reference_time(), RemoteTimestamp::from_millis(960));
    let got: Vec<_> = f.statuses().collect();
    let ms = |n| Some(TimeDelta::from_millis(n));
    assert_eq!(got, [(100, ms(40)), (101, ms(50)), (102, None), (103, None), (104, ms(40))]);
}

#[test]
fn chunk_examples_of_the_draft() {
    // Sections 3.1.3 and 3.1.4.
    assert_eq!(Chunk::from_bits(0b0000_0000_1101_1101), Chunk::Run { symbol: 0, length: 221 });
    assert_eq!(Chunk::from_bits(0b0110_0000_0001_1000), Chunk::Run { symbol: 3, length: 24 });
    assert_eq!(Chunk::from_bits(0b1001_1111_0001_1100), Chunk::OneBit(0b01_1111_0001_1100));
    assert_eq!(Chunk::from_bits(0b1100_1101_0101_0000), Chunk::TwoBit(0b00_1101_0101_0000));
}

#[test]
fn reserved_symbol_is_refused() {
    for chunk in [0b0110_0000_0000_0001u16, 0b1111_0000_0000_0000] {
        let mut bytes = vec![0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0];
        bytes.extend_from_slice(&chunk.to_be_bytes());
        bytes.extend_from_slice(&[0, 0]);
        let error = parse_compound(&bytes).next().unwrap().unwrap_err();
        assert!(matches!(error, Error::Value { field: "TWCC packet status symbol", offset: 20, value: 3, .. }));
    }
}

#[test]
fn cut_messages_are_refused() {
    // One packet with a large delta, of which one byte is missing.
    let bytes = [0x8f, 205, 0, 5, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0, 0x40, 2, 0, 0];
    let error = parse_compound(&bytes).next().unwrap().unwrap_err();
    assert_eq!(error, Error::Truncated { field: "TWCC receive deltas", offset: 22, needed: 4, available: 2 });
    let bytes = [0x8f, 205, 0, 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0, 0];
    let error = parse_compound(&bytes).next().unwrap().unwrap_err();
    assert_eq!(error, Error::Truncated { field: "TWCC packet status chunk", offset: 20, needed: 2, available: 0 });
}

#[test]
fn builder_closes_where_it_must() {
    let mut b = Builder::new(1, 2, 0, 65_534, at(0));
    assert!(b.push(65_534, Some(at(0))));
    assert!(!b.push(65_534, Some(at(1))), "again");
    assert!(!b.push(65_533, Some(at(1))), "from before");
    assert!(!b.push(65_535, Some(at(8_193))), "too late for a 16-bit delta");
    assert!(!b.push(65_535, Some(at(-8_193))), "too early for a 16-bit delta");
    assert_eq!(b.status_count(), 1);
    assert!(b.push(1, Some(at(8_191))), "over the wrap");
    assert_eq!(b.status_count(), 4);
    b.reset(1, 7, at(0));
    assert!(!b.finish_into(&mut vec![]));
    assert!(b.push(7 + 20_000, Some(at(5))), "a long gap fits into runs");
    assert!(finish(&b).len() <= 40);
    let mut pushed = 20_001;
    while b.push(7 + pushed, Some(at(5))) {
        pushed += 1;
    }
    let size = finish(&b).len();
    assert!(size <= DEFAULT_MAX_SIZE && pushed > 20_001 + 800, "{size} bytes, {pushed} packets");
}

#[test]
fn status_count_stays_within_its_field() {
    let mut b = Builder::new(1, 2, 0, 0, at(0));
    assert!(b.push(32_767, None) && b.push(65_534, None));
    assert!(!b.push(65_535, None), "would be the 65,536th");
    assert_eq!(parse(&finish(&b)).status_count, 65_535);
}

#[test]
fn reference_time_wraps() {
    let mut clock = ReferenceClock::new();
    let start = clock.unwrap(0x7f_ffff);
    assert_eq!(clock.unwrap(-0x80_0000) - start, TimeDelta::from_millis(64));
    assert_eq!(clock.unwrap(0x7f_fffe) - start, TimeDelta::from_millis(-64));
    // The builder writes the low 24 bits of a late reference, and of a negative one.
    for ms in [64i64 << 24, -64] {
        let mut b = Builder::new(1, 2, 0, 0, at(ms));
        assert!(b.push(0, Some(at(ms))));
        assert_eq!(parse(&finish(&b)).reference, if ms < 0 { -1 } else { 0 });
    }
}

/// Fewest chunks that can hold the symbols, by trying all.
fn fewest_chunks(symbols: &[u8]) -> usize {
    let n = symbols.len();
    let mut cost = vec![0; n + 1];
    for i in (0..n).rev() {
        let rest = &symbols[i..];
        let run = rest.iter().take_while(|&&s| s == rest[0]).count();
        let mut best = (1..=run).map(|l| cost[i + l]).min().unwrap();
        best = best.min(cost[i + rest.len().min(7)]);
        if rest.iter().take(14).all(|&s| s != LARGE_DELTA) {
            best = best.min(cost[i + rest.len().min(14)]);
        }
        cost[i] = best + 1;
    }
    cost[0]
}

fn arrivals() -> impl Strategy<Value = Vec<(u16, Option<i64>)>> {
    let step = prop_oneof![5 => 0i64..30_000, 1 => -2_000_000i64..6_000_000];
    let one = (prop_oneof![8 => Just(0u16), 2 => 1u16..5, 1 => 1u16..200], proptest::option::weighted(0.9, step));
    proptest::collection::vec(one, 1..250)
}

proptest! {
    #[test]
    fn built_packets_are_read_back(base: u16, steps in arrivals(), start in -1_000_000_000i64..1_000_000_000_000) {
        let mut b = Builder::new(1, 2, 3, base, Timestamp::from_micros(start)).with_max_size(60_000);
        let (mut sequence, mut us, mut want) = (base, start, vec![]);
        for (gap, step) in steps {
            for _ in 0..gap {
                want.push((sequence, None));
                sequence = sequence.wrapping_add(1);
            }
            us += step.unwrap_or(0);
            prop_assert!(b.push(sequence, step.map(|_| Timestamp::from_micros(us))));
            want.push((sequence, step.map(|_| us)));
            sequence = sequence.wrapping_add(1);
        }
        let bytes = finish(&b);
        let f = parse(&bytes);
        let base_us = start.div_euclid(64_000) * 64_000;
        prop_assert_eq!(f.statuses().count(), want.len());
        for ((got_seq, got), (want_seq, want)) in f.statuses().zip(&want) {
            prop_assert_eq!(got_seq, *want_seq);
            match (got, want) {
                (None, None) => {}
                (Some(got), Some(want)) => prop_assert!((got.as_micros() + base_us - want).abs() <= 125),
                other => prop_assert!(false, "{:?}", other),
            }
        }
        let mut again = vec![];
        f.write_into(&mut again);
        prop_assert_eq!(&again, &bytes);
        let fewest = fewest_chunks(b.symbols());
        prop_assert!(f.chunks().len() <= fewest + 1 + fewest / 3, "{} chunks, {} would do", f.chunks().len(), fewest);
    }

    #[test]
    fn size_stays_within_the_bound(base: u16, steps in arrivals(), max in 64usize..400) {
        let mut b = Builder::new(1, 2, 3, base, at(0)).with_max_size(max);
        let (mut sequence, mut us) = (base, 0);
        for (gap, step) in steps {
            sequence = sequence.wrapping_add(gap);
            us += step.unwrap_or(0);
            if !b.push(sequence, step.map(|_| Timestamp::from_micros(us))) {
                prop_assert!(b.status_count() > 0);
                break;
            }
            sequence = sequence.wrapping_add(1);
        }
        prop_assert!(finish(&b).len() <= max);
    }

    #[test]
    fn extreme_instants_do_not_panic(base: u16, reference: i64, arrival: i64, sequence: u16) {
        let mut b = Builder::new(1, 2, 3, base, Timestamp::from_nanos(reference));
        let _ = b.push(sequence, Some(Timestamp::from_nanos(arrival)));
        let mut out = vec![];
        b.finish_into(&mut out);
        prop_assert!(parse_compound(&out).all(|p| p.is_ok()));
    }

    #[test]
    fn any_body_reads_without_panic(body in proptest::collection::vec(any::<u8>(), 0..100)) {
        let mut bytes = vec![0x8f, 205, 0, 0];
        bytes.extend_from_slice(&body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes[3] = (bytes.len() / 4 - 1) as u8;
        let ours = parse_compound(&bytes).next().unwrap();
        if let Ok(Packet::Twcc(f)) = ours {
            prop_assert_eq!(f.statuses().count(), usize::from(f.status_count));
        }
    }
}
