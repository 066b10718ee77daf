//! A client and a listener with a link between them that does what the input says.
#![no_main]

#[path = "../../crates/dccp/tests/support/script.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|data: &[u8]| script::play(data));
