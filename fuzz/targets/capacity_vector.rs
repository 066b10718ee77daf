//! Capacity vectors: the content of an APP packet after its name.
#![no_main]

use weir_wire::rtcp::{App, CAPACITY_NAME, CapacityVector};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let data = &data[..data.len() & !3];
    let app = App { subtype: 0, ssrc: 7, name: CAPACITY_NAME, data };
    let mut packet = Vec::new();
    app.write_into(&mut packet);
    weir_fuzz::rtcp(&packet);
    let Some(vector) = CapacityVector::from_app(&app) else { return };
    if vector.check().is_ok() {
        assert!(vector.entries.len() <= CapacityVector::MAX_ENTRIES && packet.len() <= 536);
        assert!(vector.entries.iter().all(|e| e.confidence == 0 || e.median.rate() <= CapacityVector::MAX_RATE));
    }
});
