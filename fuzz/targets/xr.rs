//! Extended reports.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::rtcp_of(weir_wire::rtcp::XR, None, data));
