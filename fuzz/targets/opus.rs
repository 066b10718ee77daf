//! Packets of Opus (RFC 6716, section 3; RFC 7587), their playout, and their parameters in SDP.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::opus(data));
