//! NACK, TMMBR, TMMBN, PLI, SLI, RPSI, FIR, REMB and RTCP-SR-REQ, selected by the first byte.
#![no_main]

use weir_wire::rtcp::{PSFB, RTPFB};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    const FORMATS: [(u8, u8); 9] =
        [(RTPFB, 1), (RTPFB, 3), (RTPFB, 4), (PSFB, 1), (PSFB, 2), (PSFB, 3), (PSFB, 4), (PSFB, 15), (RTPFB, 5)];
    let Some((&choice, rest)) = data.split_first() else { return };
    let (packet_type, format) = FORMATS[usize::from(choice) % FORMATS.len()];
    if format != 15 || rest.len() < 9 {
        return weir_fuzz::rtcp_of(packet_type, Some(format), rest);
    }
    // The identifier is supplied, which the fuzzer would take long to find.
    let mut remb = rest[..9].to_vec();
    remb.extend_from_slice(b"REMB");
    remb.extend_from_slice(&rest[9..]);
    weir_fuzz::rtcp_of(packet_type, Some(format), &remb);
});
