//! Payloads of VP8 (RFC 7741), assembled to frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::depacketise(weir_media::VideoCodec::Vp8, data));
