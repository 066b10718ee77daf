//! A live DCCP connection whose peer knows all numbers and sends anything: what stands on the network is the input's alone.
#![no_main]

#[path = "../../crates/dccp/tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::play(data));
