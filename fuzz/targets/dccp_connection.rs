//! A client and a listener with a link controlled by the input.
#![no_main]

#[path = "../../crates/dccp/tests/support/script.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|data: &[u8]| script::play(data));
