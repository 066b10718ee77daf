//! Sliding-window random linear codes: what is recovered and when, and what hostile repair packets cost.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use proptest::prelude::*;
use rand::{Rng, RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;
use weir_fec::{
    Code, Combination, Coverage, Encoder, Importance, Repair, RepairWindow, RlcField, Scheme, Symbol, WindowLimits,
};
use weir_units::{TimeDelta, Timestamp};

const NOW: Timestamp = Timestamp::from_millis(100);

fn packet(sequence: u64) -> Vec<u8> {
    (0..30 + sequence * 37 % 100).map(|i| (i * 31 + sequence * 7 + 1) as u8).collect()
}

/// Sends packets `0..count` except for lost ones; returns the recovered ones, each with the packet after which it was.
fn run(scheme: Scheme, count: u64, lost: &[u64], lost_repairs: &[usize]) -> Vec<(u64, u64)> {
    let mut encoder = Encoder::new(scheme).unwrap();
    let mut window = RepairWindow::new(WindowLimits { verify: true, ..WindowLimits::default() });
    let (mut made, mut recovered) = (0, Vec::new());
    for s in 0..count {
        let bytes = packet(s);
        encoder.push(s, Symbol::new(&bytes), Importance::Other);
        if !lost.contains(&s) {
            window.on_source(NOW, s, Symbol::new(&bytes));
        }
        while let Some(repair) = encoder.poll_repair() {
            if !lost_repairs.contains(&made) {
                window.on_repair(NOW, repair);
            }
            made += 1;
        }
        while let Some(r) = window.poll_recovered() {
            let expected = packet(r.sequence);
            assert_eq!(r.symbol.bytes[..expected.len()], expected, "{}", r.sequence);
            assert!(r.symbol.bytes[expected.len()..].iter().all(|&b| b == 0));
            recovered.push((r.sequence, s));
        }
    }
    assert_eq!(window.counts().inconsistent, 0);
    recovered
}

#[test]
fn a_single_loss_waits_for_the_next_repair_packet_and_not_for_a_block() {
    // Repair packets after 4, 9, 14 and so on.
    assert_eq!(run(Scheme::rlc(20, 5, 1).unwrap(), 60, &[21], &[]), [(21, 24)]);
    // Two for each five packets come after the third and the fifth.
    assert_eq!(run(Scheme::rlc(20, 5, 2).unwrap(), 60, &[21, 33], &[]), [(21, 22), (33, 34)]);
    // The block code at the same overhead waits for its end.
    assert_eq!(run(Scheme::reed_solomon(24, 4).unwrap(), 60, &[21], &[]), [(21, 39)]);
}

#[test]
fn a_burst_waits_for_as_many_repair_packets_as_it_has_losses() {
    assert_eq!(run(Scheme::rlc(20, 5, 1).unwrap(), 60, &[21, 22, 23], &[]), [(21, 34), (22, 34), (23, 34)]);
    // A lost repair packet delays it.
    assert_eq!(run(Scheme::rlc(30, 5, 1).unwrap(), 60, &[21, 22, 23], &[5]), [(21, 39), (22, 39), (23, 39)]);
    // Longer than the window has repair packets.
    assert_eq!(run(Scheme::rlc(10, 5, 1).unwrap(), 60, &[21, 22, 23], &[]), []);
    // With as many repair packets as losses, none of which has all of them: 15 to 24, 20 to 29, 25 to 34.
    assert_eq!(run(Scheme::rlc(10, 5, 1).unwrap(), 60, &[21, 24, 25], &[]), [(21, 34), (24, 34), (25, 34)]);
}

#[test]
fn numbers_change_at_once_and_the_window_stays() {
    let mut encoder = Encoder::new(Scheme::rlc(8, 4, 1).unwrap()).unwrap();
    let push = |encoder: &mut Encoder, from: u64, to: u64| {
        let mut all = Vec::new();
        for s in from..to {
            encoder.push(s, Symbol::new(&packet(s)), Importance::Other);
            while let Some(r) = encoder.poll_repair() {
                let Code::Rlc(Combination { key, density: 15, field: RlcField::Gf256 }) = r.code else {
                    panic!("{r:?}")
                };
                all.push((s, r.coverage.first().unwrap(), r.coverage.len(), key));
            }
        }
        all
    };
    assert_eq!(push(&mut encoder, 0, 10), [(3, 0, 4, 0), (7, 0, 8, 1)]);
    // Two packets of the open group.
    encoder.set_scheme(Some(Scheme::rlc(6, 3, 1).unwrap())).unwrap();
    assert_eq!(push(&mut encoder, 10, 14), [(10, 5, 6, 2), (13, 8, 6, 3)]);
    encoder.flush();
    assert_eq!(encoder.poll_repair(), None);
    push(&mut encoder, 14, 15);
    encoder.flush();
    assert_eq!(encoder.poll_repair().map(|r| r.coverage.last()), Some(Some(14)));
    // Off, and on again: the window begins again.
    encoder.set_scheme(None).unwrap();
    push(&mut encoder, 15, 20);
    encoder.set_scheme(Some(Scheme::rlc(6, 3, 1).unwrap())).unwrap();
    assert_eq!(push(&mut encoder, 20, 23), [(22, 20, 3, 5)]);
}

#[test]
fn standby_keeps_the_window_and_sends_nothing() {
    let mut encoder = Encoder::new(Scheme::rlc(10, 5, 1).unwrap()).unwrap();
    encoder.set_standby(true);
    for s in 0..13 {
        encoder.push(s, Symbol::new(&packet(s)), Importance::Other);
    }
    assert_eq!((encoder.counts().protected, encoder.poll_repair()), (0, None));
    encoder.set_standby(false);
    assert_eq!(encoder.poll_repair().map(|r| (r.coverage.first(), r.coverage.last())), Some((Some(3), Some(12))));
    assert_eq!(encoder.counts().protected, 3);
}

#[test]
fn binary_windows_with_no_zeros_are_parity() {
    let scheme = Scheme::Rlc { window: 4, sources: 4, repairs: 1, density: 15, field: RlcField::Gf2 };
    let mut encoder = Encoder::new(scheme).unwrap();
    for s in 0..8 {
        encoder.push(s, Symbol::new(&packet(s)), Importance::Other);
    }
    for base in [0, 4] {
        let repair = encoder.poll_repair().unwrap();
        // The key is zero (RFC 8681, section 5.1.3).
        assert_eq!(repair.code, Code::Rlc(Combination { key: 0, density: 15, field: RlcField::Gf2 }));
        let packets: Vec<Vec<u8>> = (base..base + 4).map(packet).collect();
        let mut sum = Vec::new();
        weir_fec::parity(&packets.iter().map(|p| Symbol::new(p)).collect::<Vec<_>>(), &mut sum);
        assert_eq!(repair.symbol.bytes, sum);
    }
}

#[test]
fn sources_are_kept_for_windows_longer_than_repair_packets_wait() {
    let age = TimeDelta::from_millis(100);
    let mut encoder = Encoder::new(Scheme::rlc(15, 5, 1).unwrap()).unwrap();
    let mut window = RepairWindow::new(WindowLimits { age, ..WindowLimits::default() });
    let mut recovered = Vec::new();
    // A packet each 10 ms: windows of 150 ms.
    for s in 0..200 {
        let (now, bytes) = (NOW + TimeDelta::from_millis(10) * s as i64, packet(s));
        encoder.push(s, Symbol::new(&bytes), Importance::Other);
        if s != 101 {
            window.on_source(now, s, Symbol::new(&bytes));
        }
        while let Some(repair) = encoder.poll_repair() {
            window.on_repair(now, repair);
        }
        recovered.extend(std::iter::from_fn(|| window.poll_recovered().map(|r| (r.sequence, s))));
        assert!(window.packets() <= 21);
    }
    assert_eq!((recovered, window.counts().late), (vec![(101, 104)], 0));
}

/// Repair packets over windows of any size with any key and contents, at the greatest rate: memory and equations stay within
/// the limits, and every repair packet is counted.
#[test]
fn a_repair_packet_may_claim_any_window() {
    let rng = &mut Pcg64Mcg::seed_from_u64(5);
    let limits = WindowLimits { repairs: 60, repair_bytes: 40_000, ..WindowLimits::default() };
    let mut window = RepairWindow::new(limits);
    let mut bytes = vec![0; 1_400];
    for s in 0..3_000_u64 {
        let now = NOW + TimeDelta::from_millis(s as i64);
        if s % 4 == 0 {
            window.on_source(now, 1_000 + s, Symbol::new(&packet(s)));
        }
        rng.fill_bytes(&mut bytes);
        let field = if s % 3 == 0 { RlcField::Gf2 } else { RlcField::Gf256 };
        let combination = Combination { key: rng.random(), density: rng.random_range(0..20), field };
        let base = 1_000 + s - rng.random_range(0..900).min(s);
        let coverage = match s % 5 {
            0 => Coverage::from_mask(base, [rng.random(), rng.random(), rng.random(), rng.random()]),
            1 => Coverage::from_mask(rng.random(), [u64::MAX; 4]),
            _ => Coverage::every(base, 1, rng.random_range(0..5_000)),
        };
        let symbol = Symbol { bytes: &bytes[..rng.random_range(0..1_400)], zeros: rng.random_range(0..2_000) };
        window.on_repair(now, Repair { coverage, code: Code::Rlc(combination), symbol });
        while window.poll_recovered().is_some() {}
        assert!(window.held_bytes() <= 40_000 + limits.source_bytes, "{}", window.held_bytes());
        assert!(window.waiting() <= 60);
        let c = window.counts();
        let ends = c.used + c.unused + c.late + c.duplicate + c.inconsistent + c.rejected + c.expired;
        assert_eq!(ends + window.waiting() as u64, c.repairs);
    }
    let c = window.counts();
    assert!(c.expired > 100 && c.rejected > 400 && c.late > 100, "{c:?}");
}

proptest! {
    /// As many losses as there are repair packets after them within the window are recovered, but for few: over GF(2^8) one
    /// set of equations in 255 is singular.
    #[test]
    fn enough_repair_packets_recover_any_losses(seed: u64, window in 40..=255_u8) {
        let rng = &mut Pcg64Mcg::seed_from_u64(seed);
        let scheme = Scheme::rlc(window, 4, 1).unwrap();
        // Losses among ten packets, and the repair packets after 103, 107 and so on to 135.
        let lost: Vec<u64> = (100..110).filter(|_| rng.random_bool(0.6)).collect();
        let recovered = run(scheme, 140, &lost, &[]);
        let at = |n: usize| 103 + 4 * (n as u64 + 1);
        let back = recovered.iter().filter(|(s, _)| lost.contains(s)).count();
        prop_assert_eq!(back, recovered.len());
        if lost.len() <= 6 {
            prop_assert_eq!(back, lost.len());
            // Two repair packets more than by count.
            prop_assert!(recovered.iter().all(|(_, after)| *after <= at(lost.len() + 2)), "{recovered:?} of {lost:?}");
        }
    }
}
