use super::*;

/// A packet of three bytes that contain its number, followed by zeros.
fn push(encoder: &mut Encoder, sequence: u64, importance: Importance) {
    let s = sequence as u8;
    encoder.push(sequence, Symbol { bytes: &[s, s + 1, s + 2], zeros: u32::from(s) }, importance);
}

/// Coverage, shape and symbol of all waiting repair packets.
fn poll(encoder: &mut Encoder) -> Vec<(Vec<u64>, Code, Vec<u8>, u32)> {
    let mut all = Vec::new();
    while let Some(r) = encoder.poll_repair() {
        all.push((r.coverage.iter().collect(), r.code, r.symbol.bytes.to_vec(), r.symbol.zeros));
    }
    all
}

fn covered(encoder: &mut Encoder) -> Vec<Vec<u64>> {
    poll(encoder).into_iter().map(|r| r.0).collect()
}

#[test]
fn parity_is_the_exclusive_or() {
    let mut encoder = Encoder::new(Scheme::Parity { interval: 3 }).unwrap();
    for s in [1, 2, 5, 6] {
        push(&mut encoder, s, Importance::Other);
    }
    let x = |i: u8| (1 + i) ^ (2 + i) ^ (5 + i);
    // The longest of the three has 3 bytes and 5 zeros.
    assert_eq!(poll(&mut encoder), [(vec![1, 2, 5], Code::PARITY, vec![x(0), x(1), x(2)], 5)]);
    assert_eq!(encoder.open(), 1);
    encoder.flush_before(6);
    assert_eq!(encoder.open(), 1);
    encoder.flush_before(7);
    assert_eq!(poll(&mut encoder), [(vec![6], Code::PARITY, vec![6, 7, 8], 6)]);
    encoder.flush();
    assert_eq!(encoder.poll_repair(), None);
    let counts = EncoderCounts { protected: 4, blocks: 2, repairs: 2, ..EncoderCounts::default() };
    assert_eq!(encoder.counts(), counts);
}

#[test]
fn unequal_lengths_are_padded_with_zeros() {
    let mut encoder = Encoder::new(Scheme::Parity { interval: 3 }).unwrap();
    encoder.push(0, Symbol { bytes: &[1], zeros: 1 }, Importance::Other);
    encoder.push(1, Symbol::new(&[2, 4, 8, 16]), Importance::Other);
    encoder.push(2, Symbol { bytes: &[], zeros: 3 }, Importance::Other);
    assert_eq!(poll(&mut encoder), [(vec![0, 1, 2], Code::PARITY, vec![3, 4, 8, 16], 0)]);
}

#[test]
fn a_shorter_interval_closes_the_group_and_a_longer_one_lets_it_grow() {
    let mut encoder = Encoder::new(Scheme::Parity { interval: 10 }).unwrap();
    for s in 0..4 {
        push(&mut encoder, s, Importance::Other);
    }
    encoder.set_scheme(Some(Scheme::Parity { interval: 3 })).unwrap();
    assert_eq!(covered(&mut encoder), [vec![0, 1, 2, 3]]);
    push(&mut encoder, 4, Importance::Other);
    encoder.set_scheme(Some(Scheme::Parity { interval: 5 })).unwrap();
    for s in 5..9 {
        push(&mut encoder, s, Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [vec![4, 5, 6, 7, 8]]);
    assert!(encoder.set_scheme(Some(Scheme::Parity { interval: 0 })).is_err());
    assert_eq!(encoder.protection(), Protection::Equal(Scheme::Parity { interval: 5 }));
}

#[test]
fn the_end_of_standby_makes_the_packet_of_the_open_group() {
    let mut encoder = Encoder::new(Scheme::Parity { interval: 4 }).unwrap();
    push(&mut encoder, 0, Importance::Other);
    // The open group is dropped, and so is the full one after it.
    encoder.set_standby(true);
    for s in 1..8 {
        push(&mut encoder, s, Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [[0; 0]; 0]);
    encoder.set_standby(false);
    assert_eq!(covered(&mut encoder), [[5, 6, 7]]);
    let counts = EncoderCounts { protected: 4, unprotected: 4, blocks: 1, repairs: 1, ..EncoderCounts::default() };
    assert_eq!(encoder.counts(), counts);
    for s in 8..12 {
        push(&mut encoder, s, Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [[8, 9, 10, 11]]);
    // An empty group has no packet, and blocks go on.
    encoder.set_standby(true);
    encoder.set_standby(false);
    assert_eq!(covered(&mut encoder), [[0; 0]; 0]);
    let mut encoder = Encoder::new(Scheme::ReedSolomon { n: 4, repair: 1 }).unwrap();
    encoder.set_standby(true);
    for s in 0..3 {
        push(&mut encoder, s, Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [[0, 1, 2]]);
}

#[test]
fn other_changes_wait_for_the_next_block() {
    let mut encoder = Encoder::new(Scheme::Interleaved { columns: 2, rows: 2 }).unwrap();
    push(&mut encoder, 0, Importance::Other);
    encoder.set_scheme(None).unwrap();
    for s in 1..6 {
        push(&mut encoder, s, Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [[0, 2], [1, 3]]);
    assert_eq!(encoder.counts().unprotected, 2);
    encoder.set_scheme(Some(Scheme::Parity { interval: 1 })).unwrap();
    push(&mut encoder, 6, Importance::Other);
    assert_eq!(covered(&mut encoder), [[6]]);
}

#[test]
fn interleaving_takes_every_columnth_packet() {
    let mut encoder = Encoder::new(Scheme::Interleaved { columns: 3, rows: 2 }).unwrap();
    for s in 10..16 {
        push(&mut encoder, s, Importance::Other);
    }
    let column = Code::Parity(Shape::Column { columns: 3 });
    let all = poll(&mut encoder);
    assert_eq!(all.iter().map(|r| r.0.clone()).collect::<Vec<_>>(), [[10, 13], [11, 14], [12, 15]]);
    assert!(all.iter().all(|r| r.1 == column));
    assert_eq!(all[0].2, [10 ^ 13, 11 ^ 14, 12 ^ 15]);
    for s in 16..20 {
        push(&mut encoder, s, Importance::Other);
    }
    encoder.flush();
    assert_eq!(covered(&mut encoder), [vec![16, 19], vec![17], vec![18]]);
}

#[test]
fn two_dimensions_have_rows_as_they_fill_and_columns_at_the_end() {
    let mut encoder = Encoder::new(Scheme::TwoDimensional { columns: 2, rows: 2 }).unwrap();
    for s in 0..3 {
        push(&mut encoder, s, Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [[0, 1]]);
    push(&mut encoder, 3, Importance::Other);
    let all = poll(&mut encoder);
    assert_eq!(all.iter().map(|r| r.0.clone()).collect::<Vec<_>>(), [[2, 3], [0, 2], [1, 3]]);
    assert_eq!((all[0].1, all[1].1), (Code::Parity(Shape::Row), Code::Parity(Shape::Column { columns: 2 })));
    for s in 4..7 {
        push(&mut encoder, s, Importance::Other);
    }
    encoder.flush();
    assert_eq!(covered(&mut encoder), [vec![4, 5], vec![6], vec![4, 6]]);
}

#[test]
fn importance_has_blocks_of_its_own() {
    let plan = Protection::ByImportance {
        key: Some(Scheme::Parity { interval: 2 }),
        reference: Some(Scheme::Parity { interval: 3 }),
        other: None,
    };
    let mut encoder = Encoder::new(plan).unwrap();
    use Importance::{Key, Other, Reference};
    for (s, importance) in [Key, Other, Reference, Key, Reference, Key, Other, Reference].into_iter().enumerate() {
        push(&mut encoder, s as u64, importance);
    }
    assert_eq!(covered(&mut encoder), [vec![0, 3], vec![2, 4, 7]]);
    // Another kind of plan completes open blocks.
    encoder.set_scheme(Some(Scheme::Parity { interval: 2 })).unwrap();
    assert_eq!(covered(&mut encoder), [[5]]);
    push(&mut encoder, 8, Key);
    push(&mut encoder, 9, Other);
    assert_eq!(covered(&mut encoder), [[8, 9]]);
    assert_eq!(encoder.counts().unprotected, 2);
}

#[test]
fn a_gap_beyond_the_span_closes_the_block() {
    let mut encoder = Encoder::new(Scheme::Parity { interval: 4 }).unwrap();
    for s in [0, 1, 256, 256, 3] {
        encoder.push(s, Symbol::new(&[1]), Importance::Other);
    }
    assert_eq!(covered(&mut encoder), [[0, 1]]);
    assert_eq!((encoder.open(), encoder.counts().out_of_order), (1, 2));
}

#[test]
fn unpolled_repairs_are_bounded() {
    let mut encoder = Encoder::new(Scheme::Parity { interval: 1 }).unwrap();
    for s in 0..MAX_WAITING as u64 + 10 {
        encoder.push(s, Symbol::new(&[0; 100]), Importance::Other);
    }
    assert_eq!(encoder.counts().dropped, 10);
    let held = encoder.out.pool.held();
    assert!((MAX_WAITING * 100..=(MAX_WAITING + 2) * 256).contains(&held), "{held}");
    assert_eq!(encoder.poll_repair().map(|r| r.coverage.base()), Some(10));
    encoder.abandon();
    assert_eq!(encoder.poll_repair(), None);
}
