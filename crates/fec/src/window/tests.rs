use super::*;
use crate::{Encoder, Importance, Scheme};
use weir_units::TimeDelta;

const NOW: Timestamp = Timestamp::from_millis(100);

fn packet(sequence: u64) -> Vec<u8> {
    let len = 40 + sequence * 37 % 100;
    (0..len).map(|i| (i * 31 + sequence * 7 + 1) as u8).collect()
}

fn padded(sequence: u64) -> Symbol<'static> {
    Symbol { bytes: packet(sequence).leak(), zeros: (sequence % 3) as u32 * 100 }
}

/// Sends packets `0..count` except for lost ones, then all repair packets except for lost ones.
fn run(scheme: Scheme, count: u64, lost: &[u64], lost_repairs: &[usize]) -> RepairWindow {
    let mut encoder = Encoder::new(scheme).unwrap();
    let mut window = RepairWindow::new(WindowLimits { verify: true, ..WindowLimits::default() });
    for s in 0..count {
        encoder.push(s, padded(s), Importance::Other);
        if !lost.contains(&s) {
            window.on_source(NOW, s, padded(s));
        }
    }
    let mut i = 0;
    while let Some(repair) = encoder.poll_repair() {
        if !lost_repairs.contains(&i) {
            window.on_repair(NOW, repair);
        }
        i += 1;
    }
    window
}

/// The recovered packets, each compared with the sent one.
fn recovered(window: &mut RepairWindow) -> Vec<u64> {
    let mut all = Vec::new();
    while let Some(Recovered { sequence, symbol }) = window.poll_recovered() {
        assert!(begins_with(symbol, padded(sequence)), "{sequence}");
        all.push(sequence);
    }
    all
}

#[test]
fn parity_recovers_one_and_not_two() {
    let mut window = run(Scheme::Parity { interval: 4 }, 12, &[2, 5, 6], &[]);
    assert_eq!(recovered(&mut window), [2]);
    let counts = window.counts();
    assert_eq!((counts.used, counts.unused, counts.recovered, window.waiting()), (1, 1, 1, 1));
    window.expire(NOW + TimeDelta::from_millis(999));
    assert_eq!(window.counts().unrecoverable, 0);
    assert_eq!(window.expires_at(), Some(NOW + TimeDelta::from_secs(1)));
    window.expire(NOW + TimeDelta::from_secs(1));
    assert_eq!((window.counts().unrecoverable, window.counts().expired, window.packets()), (2, 1, 0));
}

#[test]
fn a_source_that_comes_late_frees_the_other() {
    let mut window = run(Scheme::Parity { interval: 4 }, 4, &[1, 2], &[]);
    assert_eq!(recovered(&mut window), []);
    window.on_source(NOW, 1, padded(1));
    assert_eq!(recovered(&mut window), [2]);
    // The original of the other arrives later without effect.
    window.on_source(NOW, 2, padded(2));
    assert_eq!((window.counts().late_sources, window.counts().contradicted), (1, 0));
    assert_eq!(recovered(&mut window), []);
}

#[test]
fn received_packets_are_not_returned() {
    let mut window = run(Scheme::Parity { interval: 4 }, 4, &[1], &[]);
    window.on_source(NOW, 1, padded(1));
    assert_eq!(recovered(&mut window), []);
    // Nor after its bytes have been dropped.
    let repair = Repair { coverage: Coverage::every(1, 1, 1), code: Code::PARITY, symbol: Symbol::new(&[9]) };
    window.on_repair(NOW + TimeDelta::from_secs(2), repair);
    assert_eq!((recovered(&mut window), window.counts().unused), (vec![], 1));
}

#[test]
fn a_burst_as_wide_as_the_block_is_recovered() {
    let mut window = run(Scheme::Interleaved { columns: 4, rows: 3 }, 12, &[3, 4, 5, 6], &[]);
    let mut all = recovered(&mut window);
    all.sort();
    assert_eq!(all, [3, 4, 5, 6]);
}

#[test]
fn two_dimensions_iterate() {
    // Losses x in three rows of four; row repairs 0 to 2, column repairs 3 to 6:
    //   x x . .    the second and third columns free 1 and 10, then the first row frees 0,
    //   . . . .    the first column 8.
    //   x . x .
    let mut window = run(Scheme::TwoDimensional { columns: 4, rows: 3 }, 12, &[0, 1, 8, 10], &[]);
    let mut all = recovered(&mut window);
    all.sort();
    assert_eq!(all, [0, 1, 8, 10]);
    // Four at the corners of a rectangle cannot be recovered.
    let mut window = run(Scheme::TwoDimensional { columns: 4, rows: 3 }, 12, &[0, 1, 8, 9], &[]);
    assert_eq!((recovered(&mut window), window.waiting()), (vec![], 4));
}

#[test]
fn forged_repairs_are_counted() {
    let mut window = run(Scheme::Parity { interval: 4 }, 4, &[], &[]);
    let repair = |base, count, code, symbol| Repair { coverage: Coverage::every(base, 1, count), code, symbol };
    let text = Symbol::new(&[1; 2_000]);
    window.on_repair(NOW, repair(0, 4, Code::PARITY, text));
    assert_eq!(window.counts().inconsistent, 1);
    // Shorter than a packet that it claims to protect.
    window.on_repair(NOW, repair(1, 4, Code::PARITY, Symbol::new(&[1; 5])));
    assert_eq!(window.counts().inconsistent, 2);
    let reed_solomon = |sources, repairs, row| Code::ReedSolomon { sources, repairs, row };
    for (i, bad) in [
        repair(1, 0, Code::PARITY, text),
        repair(1, 4, Code::PARITY, Symbol { bytes: &[], zeros: u32::MAX }),
        repair(u64::MAX - 2, 2, Code::PARITY, text),
        repair(1_500, 2, Code::PARITY, text),
        repair(1, 4, reed_solomon(5, 1, 0), text),
        repair(1, 4, reed_solomon(4, 1, 1), text),
        repair(1, 4, reed_solomon(4, 252, 1), text),
    ]
    .into_iter()
    .enumerate()
    {
        window.on_repair(NOW, bad);
        assert_eq!(window.counts().rejected, i as u64 + 1, "{bad:?}");
    }
    window.on_repair(NOW, repair(3, 3, Code::PARITY, text));
    window.on_repair(NOW, repair(3, 3, Code::PARITY, text));
    assert_eq!((window.counts().duplicate, window.waiting()), (1, 1));
    // A forged recovery is detected when the original arrives.
    window.on_repair(NOW, repair(6, 1, Code::PARITY, text));
    assert_eq!(window.poll_recovered().map(|r| r.sequence), Some(6));
    window.on_source(NOW, 6, padded(6));
    assert_eq!(window.counts().contradicted, 1);
}

#[test]
fn late_repairs_are_counted() {
    let mut window = run(Scheme::Parity { interval: 4 }, 12, &[1], &[0]);
    let coverage = Coverage::every(0, 1, 4);
    let repair = Repair { coverage, code: Code::PARITY, symbol: Symbol::new(&[0; 400]) };
    window.on_repair(NOW + TimeDelta::from_secs(1), repair);
    assert_eq!((window.counts().late, window.counts().unrecoverable), (1, 1));
    window.on_repair(NOW + TimeDelta::from_secs(1), repair);
    assert_eq!((window.counts().late, window.counts().unrecoverable), (2, 1));
}

#[test]
fn a_flood_costs_bounded_memory() {
    let limits = WindowLimits {
        packets: 100,
        source_bytes: 30_000,
        repairs: 20,
        repair_bytes: 10_000,
        ..WindowLimits::default()
    };
    let mut window = RepairWindow::new(limits);
    for s in 0..2_000_u64 {
        window.on_source(NOW, s, Symbol::new(&vec![1; (s * 7 % 900) as usize]));
        let symbol = Symbol::new(&[2; 1_000][..(s * 13 % 1_000) as usize]);
        window.on_repair(NOW, Repair { coverage: Coverage::every(s + 1, 1, 2 + s % 60), code: Code::PARITY, symbol });
        assert!(window.held_bytes() <= 40_000, "{}", window.held_bytes());
        assert!(window.packets() <= 100 && window.waiting() <= 20);
    }
    let c = window.counts();
    assert!(c.expired > 100 && c.unkept_sources < 10, "{c:?}");
    let ends = c.used + c.unused + c.late + c.duplicate + c.inconsistent + c.rejected + c.expired;
    assert_eq!(ends + window.waiting() as u64, c.repairs);
}
