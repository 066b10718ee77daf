//! Payloads of VP9 (RFC 9628), assembled to frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::depacketise(weir_media::VideoCodec::Vp9, data));
