//! FEC source and repair packets of the Reed-Solomon scheme, and ADU information.
#![no_main]

use weir_wire::fec::reed_solomon::{
    Field, SchemeInfo, parse_repair, parse_source, protect_into, rebuild, write_repair_into, write_source_into,
};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&m, data)) = data.split_first() else { return };
    let Some(octets) = weir_fuzz::octets(data) else { return };
    if let Some(info) = octets.bytes.first_chunk::<3>() {
        if let Ok(read) = SchemeInfo::from_bytes(*info) {
            assert_eq!(read.to_bytes(), *info);
        }
    }
    let Some(field) = Field::new(m % 18) else { return };
    let mut out = vec![];
    if let Ok((adu, id)) = parse_source(octets, field) {
        assert!(id.symbol < id.source_symbols);
        assert_eq!(write_source_into(adu, &id, field, &mut out), Some(octets.zeros));
        assert_eq!(out, octets.bytes);
    }
    out.clear();
    if let Ok((id, symbol)) = parse_repair(octets, field) {
        assert!(id.symbol >= id.source_symbols && id.symbol < field.max_symbols());
        assert_eq!(write_repair_into(&id, symbol, field, &mut out), Some(octets.zeros));
        assert_eq!(out, octets.bytes);
    }
    out.clear();
    if let Ok((flow, adu)) = rebuild(octets) {
        assert_eq!(protect_into(flow, adu, &mut out), Some(adu.zeros));
        assert!(out.len() + adu.zeros as usize <= octets.len());
    }
});
