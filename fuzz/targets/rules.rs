//! Files of rules of users: a fault with its place, or rules whose causes are within bounds whatever a call's numbers are.
#![no_main]

#[path = "../../crates/timeline/tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::rules(data));
