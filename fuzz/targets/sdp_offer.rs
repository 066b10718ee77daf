//! An offer of a browser, and the answers to it.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/peer/tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::offer(data));
