//! Multipath RTCP: reports on subflows and addresses.
#![no_main]

use weir_wire::rtcp::MPRTCP;

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::rtcp_of(MPRTCP, None, data));
