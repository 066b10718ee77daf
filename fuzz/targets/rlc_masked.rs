//! Repair packets of some packets of a window: the payload ID with its mask, and a receiver's window that gets several of them.
#![no_main]

use weir_fec::{Code, Combination, Coverage, Repair, RepairWindow, RlcField, Symbol, WindowLimits};
use weir_units::Timestamp;
use weir_wire::fec::rlc::{parse_masked, write_masked_into};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(octets) = weir_fuzz::octets(data) else { return };
    let Ok((id, mask, symbol)) = parse_masked(octets) else { return };
    let mut out = vec![];
    assert_eq!(write_masked_into(&id, mask.positions(), symbol, &mut out), Some(octets.zeros));
    assert_eq!(out, octets.bytes);
    assert!(mask.positions().all(|position| position < id.symbols));

    // Each four bytes of the symbol are the bits of a further repair packet's set, or a source packet.
    let limits =
        WindowLimits { packets: 128, repairs: 20, repair_bytes: 20_000, verify: true, ..WindowLimits::default() };
    let mut window = RepairWindow::new(limits);
    let now = Timestamp::ZERO;
    window.on_source(now, 1_000, Symbol::new(symbol.bytes));
    let mut coverage = Coverage::new(1_000);
    for position in mask.positions() {
        coverage.insert(1_000 + u64::from(position));
    }
    for (i, chunk) in symbol.bytes.chunks_exact(4).enumerate() {
        let contents = Symbol { bytes: &symbol.bytes[..symbol.bytes.len().min(8 * i)], zeros: symbol.zeros };
        if chunk[0] % 3 > 0 {
            let key = id.key.wrapping_add(i as u16);
            let code = Code::Rlc(Combination { key, density: id.density, field: RlcField::Gf256 });
            window.on_repair(now, Repair { coverage, code, symbol: contents });
            let [a, b] = [u64::from(chunk[1]), u64::from(chunk[2])];
            coverage = Coverage::from_mask(1_000 + a, [a << 32 | b << 8 | u64::from(chunk[3]), b, a, b << 56]);
        } else {
            window.on_source(now, 1_000 + u64::from(chunk[1]), contents);
        }
        while window.poll_recovered().is_some() {}
        assert!(window.held_bytes() <= limits.source_bytes + limits.repair_bytes && window.waiting() <= limits.repairs);
        let c = window.counts();
        let ends = c.used + c.unused + c.late + c.duplicate + c.inconsistent + c.rejected + c.expired;
        assert_eq!(ends + window.waiting() as u64, c.repairs);
    }
});
