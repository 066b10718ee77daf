//! Decoding never yields wrong bytes, recovers all that its code can, and tolerates any input from the network.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_fec::{
    Code, Combination, Coverage, Encoder, Importance, Protection, Repair, RepairCounts, RepairWindow, RlcField, Scheme,
    Symbol, WindowLimits,
};
use weir_units::{TimeDelta, Timestamp};

/// A packet as sent: its bytes and its zeros.
type Packet = (Vec<u8>, u32);

/// A repair packet in flight.
#[derive(Clone, Debug)]
struct Sent {
    coverage: Coverage,
    code: Code,
    bytes: Vec<u8>,
    zeros: u32,
}

impl Sent {
    /// The packets on which the symbol depends.
    fn packets(&self) -> BTreeSet<u64> {
        let mut coefficients = vec![1; self.coverage.len()];
        if let Code::Rlc(combination) = self.code {
            combination.coefficients(&mut coefficients);
        }
        self.coverage.iter().zip(coefficients).filter(|(_, c)| *c != 0).map(|(s, _)| s).collect()
    }
    fn repair(&self) -> Repair<'_> {
        let symbol = Symbol { bytes: &self.bytes, zeros: self.zeros };
        Repair { coverage: self.coverage, code: self.code, symbol }
    }
}

fn scheme() -> impl Strategy<Value = Scheme> {
    prop_oneof![
        (1..=20_u8).prop_map(|interval| Scheme::Parity { interval }),
        (1..=8_u8, 1..=8_u8).prop_map(|(columns, rows)| Scheme::Interleaved { columns, rows }),
        (1..=8_u8, 1..=8_u8).prop_map(|(columns, rows)| Scheme::TwoDimensional { columns, rows }),
        (1..=40_u8, 0..=40_u8).prop_map(|(k, repair)| Scheme::ReedSolomon { n: k + repair, repair }),
        (1..=64_u8).prop_map(|repair| Scheme::ReedSolomon { n: 127, repair }),
        rlc(),
    ]
}

fn rlc() -> impl Strategy<Value = Scheme> {
    let density = prop_oneof![1 => Just(15_u8), 1 => 0..=15_u8];
    let field = prop_oneof![3 => Just(RlcField::Gf256), 1 => Just(RlcField::Gf2)];
    (1..=255_u8, 1..=20_u8, 0..=10_u8, density, field).prop_map(|(window, sources, repairs, density, field)| {
        Scheme::Rlc { window: window.max(sources), sources, repairs: repairs.min(sources), density, field }
    })
}

/// Packets of unequal lengths, some followed by zeros, some zeros only; sequence numbers with gaps.
fn stream(rng: &mut Pcg64Mcg, count: usize) -> BTreeMap<u64, Packet> {
    let mut sequence = rng.random_range(0..1_u64 << 40);
    let longest = rng.random_range(1..300);
    let mut stream = BTreeMap::new();
    for _ in 0..count {
        sequence += if rng.random_bool(0.05) { rng.random_range(1..4) } else { 1 };
        let mut bytes = vec![0; rng.random_range(0..=longest)];
        rng.fill_bytes(&mut bytes);
        let zeros = if rng.random_bool(0.3) { rng.random_range(0..200) } else { 0 };
        stream.insert(sequence, (bytes, zeros));
    }
    stream
}

const fn symbol(packet: &Packet) -> Symbol<'_> {
    Symbol { bytes: packet.0.as_slice(), zeros: packet.1 }
}

fn encode(protection: Protection, stream: &BTreeMap<u64, Packet>, rng: &mut Pcg64Mcg) -> Vec<Sent> {
    let mut encoder = Encoder::new(protection).unwrap();
    let mut sent = Vec::new();
    for (&sequence, packet) in stream {
        let importance = Importance::ALL[rng.random_range(0..3)];
        encoder.push(sequence, symbol(packet), importance);
        while let Some(r) = encoder.poll_repair() {
            let (bytes, zeros) = (r.symbol.bytes.to_vec(), r.symbol.zeros);
            sent.push(Sent { coverage: r.coverage, code: r.code, bytes, zeros });
        }
    }
    encoder.flush();
    while let Some(r) = encoder.poll_repair() {
        sent.push(Sent { coverage: r.coverage, code: r.code, bytes: r.symbol.bytes.to_vec(), zeros: r.symbol.zeros });
    }
    sent
}

/// The product in GF(2^8), by shift and add.
fn product(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0_u8, |sum, bit| {
        let doubled = sum << 1 ^ if sum & 0x80 != 0 { 0x1d } else { 0 };
        doubled ^ if b >> bit & 1 == 1 { a } else { 0 }
    })
}

/// The missing packets that combinations determine: those alone in a row of the reduced row echelon form.
fn determined(known: &BTreeSet<u64>, repairs: &[&Sent]) -> BTreeSet<u64> {
    let combinations = || repairs.iter().filter(|r| matches!(r.code, Code::Rlc(_)));
    let missing: BTreeSet<u64> =
        combinations().flat_map(|r| r.coverage.iter()).filter(|s| !known.contains(s)).collect();
    let columns: BTreeMap<u64, usize> = missing.iter().copied().zip(0..).collect();
    let mut rows = Vec::new();
    for repair in combinations() {
        let Code::Rlc(combination) = repair.code else { continue };
        let (mut coefficients, mut row) = (vec![0; repair.coverage.len()], vec![0; columns.len()]);
        combination.coefficients(&mut coefficients);
        for (s, c) in repair.coverage.iter().zip(coefficients) {
            columns.get(&s).into_iter().for_each(|&column| row[column] = c);
        }
        rows.push(row);
    }
    let table: Vec<Vec<u8>> = (0..=255).map(|a| (0..=255).map(|b| product(a, b)).collect()).collect();
    let (mut done, mut alone) = (0, BTreeSet::new());
    for column in 0..columns.len() {
        let Some(r) = (done..rows.len()).find(|&r| rows[r][column] != 0) else { continue };
        rows.swap(done, r);
        let inverse = (1..=255).position(|x| product(x, rows[done][column]) == 1).unwrap() + 1;
        rows[done].iter_mut().for_each(|c| *c = table[inverse][usize::from(*c)]);
        let own = rows[done].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(i, row)| *i != done && row[column] != 0) {
            let by = &table[usize::from(row[column])];
            row.iter_mut().zip(&own).for_each(|(a, &b)| *a ^= by[usize::from(b)]);
        }
        done += 1;
    }
    for row in &rows[..done] {
        if row.iter().filter(|c| **c != 0).count() == 1 {
            let column = row.iter().position(|c| *c != 0);
            alone.extend(missing.iter().zip(0..).filter(|(_, i)| Some(*i) == column).map(|(s, _)| *s));
        }
    }
    alone
}

/// All packets that the repair packets can recover: the result of peeling (RFC 8627, section 1.1.4), for
/// Reed-Solomon any block with as many repair packets as losses, and for RLC what Gaussian elimination leaves alone.
fn recoverable(mut known: BTreeSet<u64>, repairs: &[&Sent]) -> BTreeSet<u64> {
    let start = known.clone();
    loop {
        let before = known.len();
        known.extend(determined(&known, repairs));
        for repair in repairs {
            let missing: Vec<u64> = repair.coverage.iter().filter(|s| !known.contains(s)).collect();
            let rows = match repair.code {
                Code::Parity(_) => 1,
                Code::Rlc(_) => continue,
                Code::ReedSolomon { .. } => {
                    let rows = repairs.iter().filter(|r| r.coverage == repair.coverage).map(|r| match r.code {
                        Code::ReedSolomon { row, .. } => Some(row),
                        Code::Parity(_) | Code::Rlc(_) => None,
                    });
                    rows.collect::<BTreeSet<_>>().len()
                }
            };
            if missing.len() <= rows {
                known.extend(missing);
            }
        }
        if known.len() == before {
            return known.difference(&start).copied().collect();
        }
    }
}

/// The recovered packets, all checked to equal what was sent, followed by zeros only.
fn poll(window: &mut RepairWindow, stream: &BTreeMap<u64, Packet>) -> Result<BTreeSet<u64>, TestCaseError> {
    let mut all = BTreeSet::new();
    while let Some(recovered) = window.poll_recovered() {
        let packet = stream.get(&recovered.sequence);
        prop_assert!(packet.is_some(), "{} was never sent", recovered.sequence);
        let packet = packet.unwrap();
        prop_assert!(recovered.symbol.len() >= packet.0.len() + packet.1 as usize);
        let mut expected = packet.0.clone();
        expected.resize(recovered.symbol.len(), 0);
        let mut found = recovered.symbol.bytes.to_vec();
        found.resize(recovered.symbol.len(), 0);
        prop_assert!(found == expected, "{} is not what was sent", recovered.sequence);
        prop_assert!(all.insert(recovered.sequence), "{} is handed out once", recovered.sequence);
    }
    Ok(all)
}

fn settled(c: &RepairCounts) -> u64 {
    c.used + c.unused + c.late + c.duplicate + c.inconsistent + c.rejected + c.expired
}

/// Order of arrival in a network with random delay.
fn shuffle<T>(items: &mut Vec<T>, reach: u64, rng: &mut Pcg64Mcg) {
    let mut keyed: Vec<(u64, T)> =
        items.drain(..).zip(0_u64..).map(|(item, i)| (i + rng.random_range(0..=reach), item)).collect();
    keyed.sort_by_key(|(key, _)| *key);
    items.extend(keyed.into_iter().map(|(_, item)| item));
}

enum Event<'a> {
    Source(u64),
    Repair(&'a Sent),
}

/// One run with random losses and reordering.
fn run(protection: Protection, seed: u64, loss: f64, reach: u64) -> Result<(), TestCaseError> {
    let rng = &mut Pcg64Mcg::seed_from_u64(seed);
    let count = rng.random_range(1..300);
    let stream = stream(rng, count);
    let repairs = encode(protection, &stream, rng);
    // A window needs a source packet to locate the stream: the first one arrives.
    let first = *stream.keys().next().unwrap();
    let mut received = BTreeSet::from([first]);
    received.extend(stream.keys().copied().filter(|_| !rng.random_bool(loss)));
    let here: Vec<&Sent> = repairs.iter().filter(|_| !rng.random_bool(loss)).collect();
    let mut events: Vec<Event<'_>> = received.iter().map(|&s| Event::Source(s)).collect();
    for repair in &here {
        let at = events.iter().position(|e| matches!(e, Event::Source(s) if *s > repair.coverage.last().unwrap()));
        events.insert(at.unwrap_or(events.len()), Event::Repair(repair));
        if rng.random_bool(0.1) {
            events.push(Event::Repair(repair));
        }
    }
    if reach > 0 {
        shuffle(&mut events, reach, rng);
    }
    let limits = WindowLimits { verify: true, repairs: 4_096, repair_bytes: 1 << 24, ..WindowLimits::default() };
    let mut window = RepairWindow::new(limits);
    let now = Timestamp::from_millis(7);
    window.on_source(now, first, symbol(&stream[&first]));
    let mut out = BTreeSet::new();
    for event in events {
        match event {
            Event::Source(s) => window.on_source(now, s, symbol(&stream[&s])),
            Event::Repair(r) => window.on_repair(now, r.repair()),
        }
        out.append(&mut poll(&mut window, &stream)?);
    }
    let expected = recoverable(received.clone(), &here);
    // Reordered sources may have been recovered before they arrived: the set of final losses is the same.
    let lost: BTreeSet<u64> = out.difference(&received).copied().collect();
    prop_assert_eq!(&lost, &expected);
    if reach == 0 {
        prop_assert_eq!(&out, &expected);
    }
    let c = window.counts();
    prop_assert_eq!((c.inconsistent, c.rejected, c.late, c.expired, c.contradicted), (0, 0, 0, 0, 0));
    prop_assert_eq!(settled(&c) + window.waiting() as u64, c.repairs);
    prop_assert!(c.recovered >= expected.len() as u64);
    window.expire(now + TimeDelta::from_secs(1));
    let protected: BTreeSet<u64> = here.iter().flat_map(|r| r.packets()).collect();
    let given_up = protected.iter().filter(|s| !received.contains(s) && !expected.contains(s)).count();
    prop_assert_eq!(window.counts().unrecoverable, given_up as u64);
    prop_assert_eq!(window.waiting(), 0);
    // Those of sliding windows are kept twice as long.
    window.expire(now + TimeDelta::from_secs(2));
    prop_assert_eq!(window.packets(), 0);
    Ok(())
}

proptest! {
    #[test]
    fn recovered_packets_equal_the_sent_ones(scheme in scheme(), seed: u64, loss in 0.0..0.7_f64) {
        run(Protection::Equal(scheme), seed, loss, 0)?;
    }

    #[test]
    fn in_any_order(scheme in scheme(), seed: u64, loss in 0.0..0.5_f64, reach in 1..200_u64) {
        run(Protection::Equal(scheme), seed, loss, reach)?;
    }

    #[test]
    fn with_unequal_protection(
        key in proptest::option::of(scheme()),
        reference in proptest::option::of(scheme()),
        other in proptest::option::of(scheme()),
        seed: u64,
        loss in 0.0..0.5_f64,
    ) {
        run(Protection::ByImportance { key, reference, other }, seed, loss, 0)?;
    }

    /// Repair packets forged, corrupted in any field or genuine, sources in any order: no panic, bounded memory, every
    /// repair packet counted once, and no packet returned that arrived.
    #[test]
    fn forgery_costs_little(scheme in scheme(), seed: u64, packets in 1..200_usize, repairs in 0..50_usize, verify: bool) {
        let rng = &mut Pcg64Mcg::seed_from_u64(seed);
        let stream = stream(rng, 400);
        let genuine = encode(Protection::Equal(scheme), &stream, rng);
        let limits = WindowLimits {
            age: TimeDelta::from_millis(50),
            packets,
            source_bytes: 20_000,
            repairs,
            repair_bytes: 10_000,
            length: 700,
            verify,
        };
        let mut window = RepairWindow::new(limits);
        let mut now = Timestamp::ZERO;
        let mut arrived = BTreeSet::new();
        let sequences: Vec<u64> = stream.keys().copied().collect();
        for i in 0..1_000_usize {
            now += TimeDelta::from_micros(rng.random_range(0..500));
            let near = sequences[(i * 2 / 5 + rng.random_range(0..20)).min(399)];
            if rng.random_bool(0.5) {
                window.on_source(now, near, symbol(&stream[&near]));
                arrived.insert(near);
            } else {
                let mut forged = match genuine.get(rng.random_range(0..=genuine.len())) {
                    Some(genuine) => genuine.clone(),
                    None => Sent { coverage: Coverage::every(near, 1, 4), code: Code::PARITY, bytes: vec![7; 300], zeros: 0 },
                };
                match rng.random_range(0..11) {
                    0 => forged.coverage = Coverage::from_mask(near, [rng.random(), 0, rng.random(), rng.random()]),
                    1 => forged.coverage = Coverage::from_mask(rng.random(), forged.coverage.mask()),
                    2 => forged.coverage = Coverage::from_mask(u64::MAX - rng.random_range(0..300), [u64::MAX; 4]),
                    3 => forged.code = Code::ReedSolomon { sources: rng.random(), repairs: rng.random(), row: rng.random() },
                    4 => {
                        let sources = forged.coverage.len() as u8;
                        forged.code = Code::ReedSolomon { sources, repairs: 60, row: rng.random_range(0..60) };
                    }
                    5 => forged.bytes.truncate(rng.random_range(0..300)),
                    6 => forged.zeros = rng.random(),
                    7 => forged.bytes.iter_mut().for_each(|b| *b ^= 0x11),
                    8 | 9 => {
                        let field = if rng.random_bool(0.5) { RlcField::Gf2 } else { RlcField::Gf256 };
                        let density = rng.random_range(0..18);
                        forged.code = Code::Rlc(Combination { key: rng.random(), density, field });
                        forged.coverage = Coverage::every(near.saturating_sub(rng.random_range(0..300)), 1, rng.random_range(0..300));
                    }
                    _ => {}
                }
                window.on_repair(now, forged.repair());
            }
            while let Some(recovered) = window.poll_recovered() {
                prop_assert!(!arrived.contains(&recovered.sequence));
                prop_assert!(recovered.symbol.len() <= 700);
            }
            prop_assert!(window.held_bytes() <= 30_000, "{} bytes", window.held_bytes());
            prop_assert!(window.packets() <= packets && window.waiting() <= repairs);
            let c = window.counts();
            prop_assert_eq!(settled(&c) + window.waiting() as u64, c.repairs);
        }
    }
}

/// Any m losses of a Reed-Solomon block, including repair packets, are recovered: all patterns of a small code.
#[test]
fn every_pattern_of_losses_up_to_the_repair_packets() {
    let scheme = Scheme::reed_solomon(9, 4).unwrap();
    let rng = &mut Pcg64Mcg::seed_from_u64(1);
    let packets: BTreeMap<u64, Packet> =
        stream(rng, 6).into_values().zip(99_u64..).map(|(packet, sequence)| (sequence, packet)).collect();
    let block: BTreeMap<u64, Packet> = packets.range(100..).map(|(&s, p)| (s, p.clone())).collect();
    let repairs = encode(scheme.into(), &block, rng);
    assert_eq!(repairs.len(), 4);
    let mut patterns = 0;
    for lost in (0..1_u32 << 9).filter(|lost| lost.count_ones() <= 4) {
        let mut window = RepairWindow::new(WindowLimits::default());
        // The packet before the block locates the stream.
        window.on_source(Timestamp::ZERO, 99, symbol(&packets[&99]));
        for (i, (&sequence, packet)) in block.iter().enumerate() {
            if lost >> i & 1 == 0 {
                window.on_source(Timestamp::ZERO, sequence, symbol(packet));
            }
        }
        for (i, repair) in repairs.iter().enumerate() {
            if lost >> (5 + i) & 1 == 0 {
                window.on_repair(Timestamp::ZERO, repair.repair());
            }
        }
        let expected: BTreeSet<u64> = (0..5).filter(|i| lost >> i & 1 == 1).map(|i| 100 + i).collect();
        assert_eq!(poll(&mut window, &packets).unwrap(), expected, "{lost:b}");
        patterns += 1;
    }
    // 9 choose 0 to 4.
    assert_eq!(patterns, 1 + 9 + 36 + 84 + 126);
}

/// In steady state neither half allocates.
#[test]
fn nothing_is_allocated_per_packet() {
    let data: Vec<Vec<u8>> = (0..64).map(|i| vec![i as u8 + 1; 1_000 + i]).collect();
    for scheme in [
        Scheme::parity(5),
        Scheme::interleaved(4, 4),
        Scheme::two_dimensional(4, 4),
        Scheme::reed_solomon(24, 8),
        Scheme::rlc(30, 5, 1),
    ] {
        let scheme = scheme.unwrap();
        let mut encoder = Encoder::new(scheme).unwrap();
        let mut window =
            RepairWindow::new(WindowLimits { age: TimeDelta::from_millis(200), ..WindowLimits::default() });
        let mut recovered = 0;
        let mut run = |from: u64, to: u64| {
            for s in from..to {
                let now = Timestamp::from_millis(s as i64);
                let symbol = Symbol::new(&data[s as usize % 64]);
                encoder.push(s, symbol, Importance::Other);
                if s % 11 != 7 {
                    window.on_source(now, s, symbol);
                }
                while let Some(repair) = encoder.poll_repair() {
                    window.on_repair(now, repair);
                }
                while window.poll_recovered().is_some() {
                    recovered += 1;
                }
            }
        };
        run(0, 4_000);
        let info = allocation_counter::measure(|| run(4_000, 12_000));
        assert_eq!(info.count_total, 0, "{scheme:?}");
        assert!(recovered > 500, "{scheme:?}: {recovered}");
    }
}
