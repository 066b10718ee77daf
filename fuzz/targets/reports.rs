//! SR, RR, SDES, BYE and APP, selected by the first byte.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some((&choice, rest)) = data.split_first() else { return };
    weir_fuzz::rtcp_of(200 + choice % 5, None, rest);
});
