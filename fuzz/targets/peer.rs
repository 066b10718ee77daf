//! A call with a browser, its ICE, DTLS, SRTP and session: datagrams of strangers, forged ones, and any content that the other end protects.
#![no_main]

#[allow(dead_code)]
#[path = "../../crates/peer/tests/support/hostile.rs"]
mod hostile;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hostile::play(data));
