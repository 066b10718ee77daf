//! STUN at an end of a call by ICE, and candidates in descriptions.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::ice(data));
