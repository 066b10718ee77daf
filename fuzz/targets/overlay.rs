//! Control messages of an overlay; the first byte selects the message.
#![no_main]

use weir_wire::rtcp::overlay::{Message, OVERLAY_NAME};
use weir_wire::rtcp::{App, Overlay};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&subtype, data)) = data.split_first() else { return };
    let data = &data[..data.len() & !3];
    let app = App { subtype: subtype & 0x1f, ssrc: 7, name: OVERLAY_NAME, data };
    let Some(overlay) = Overlay::from_app(&app) else { return };
    if let Message::Assign(assign) = overlay.message {
        assert!(assign.places.len() * 32 <= data.len());
    }
    let mut written = Vec::new();
    overlay.write_into(&mut written);
    // The common header, the SSRC and the name.
    let again = App { data: &written[12..], ..app };
    if data.len() <= 44 + 255 * 32 {
        assert_eq!(Overlay::from_app(&again), Some(overlay));
    }
    weir_fuzz::rtcp(&written);
});
