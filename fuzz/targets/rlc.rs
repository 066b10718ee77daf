//! Repair packets of sliding-window codes: the payload ID, and a receiver's window that gets several of them.
#![no_main]

use weir_fec::{Code, Combination, Coverage, Repair, RepairWindow, RlcField, Symbol, WindowLimits};
use weir_units::Timestamp;
use weir_wire::fec::rlc::{RepairId, SchemeInfo, parse_repair, write_repair_into};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(octets) = weir_fuzz::octets(data) else { return };
    if let Some(info) = octets.bytes.first_chunk() {
        assert_eq!(SchemeInfo::from_bytes(*info).to_bytes(), *info);
    }
    let Ok((id, symbol)) = parse_repair(octets) else { return };
    let mut out = vec![];
    assert_eq!(write_repair_into(&id, symbol, &mut out), Some(octets.zeros));
    assert_eq!(out, octets.bytes);

    // Each eight bytes of the symbol are the ID of a further repair packet, or a source packet.
    let limits =
        WindowLimits { packets: 128, repairs: 20, repair_bytes: 20_000, verify: true, ..WindowLimits::default() };
    let mut window = RepairWindow::new(limits);
    let now = Timestamp::ZERO;
    window.on_source(now, 1_000, Symbol::new(symbol.bytes));
    for (i, chunk) in symbol.bytes.chunks_exact(8).enumerate() {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(chunk);
        let contents = Symbol { bytes: &symbol.bytes[..symbol.bytes.len().min(8 * i)], zeros: symbol.zeros };
        match RepairId::from_bytes(bytes) {
            Ok(id) if id.key % 4 > 0 => {
                let field = if id.key % 4 == 1 { RlcField::Gf2 } else { RlcField::Gf256 };
                let code = Code::Rlc(Combination { key: id.key, density: id.density, field });
                let coverage = Coverage::every(1_000 + u64::from(id.first % 256), 1, id.symbols.into());
                window.on_repair(now, Repair { coverage, code, symbol: contents });
            }
            _ => window.on_source(now, 1_000 + u64::from(bytes[7]), contents),
        }
        while window.poll_recovered().is_some() {}
        assert!(window.held_bytes() <= limits.source_bytes + limits.repair_bytes && window.waiting() <= limits.repairs);
        let c = window.counts();
        let ends = c.used + c.unused + c.late + c.duplicate + c.inconsistent + c.rejected + c.expired;
        assert_eq!(ends + window.waiting() as u64, c.repairs);
    }
});
