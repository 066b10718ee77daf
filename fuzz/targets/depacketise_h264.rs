//! Payloads of H.264 (RFC 6184), assembled to frames.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::depacketise(weir_media::VideoCodec::H264, data));
