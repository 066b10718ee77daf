//! An open DCCP connection whose peer knows all sequence numbers and sends what the input determines.
#![no_main]

#[path = "../../crates/dccp/tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::play(data));
