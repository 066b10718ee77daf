//! RED payloads, and whole RED packets without RED.
#![no_main]

use weir_wire::fec::red::{MAX_BLOCK, Red, virtual_packet_into};
use weir_wire::fec::{Octets, ulpfec};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(octets) = weir_fuzz::octets(data) else { return };
    if let Ok(red) = Red::parse(octets) {
        let blocks = red.redundant.iter();
        let length: usize = blocks.map(|b| 4 + b.data.len()).sum();
        assert_eq!(length + 1 + red.primary.len(), octets.len());
        for block in red.redundant.iter() {
            assert!(block.data.len() <= MAX_BLOCK);
            let _ = ulpfec::Repair::parse(block.data);
        }
        let mut out = vec![];
        let zeros = red.write_into(&mut out).expect("what is read can be written");
        assert_eq!(Octets { bytes: &out, zeros }, octets);
    }
    let mut bare = vec![];
    match virtual_packet_into(octets, &mut bare) {
        Ok(zeros) => assert!(Octets { bytes: &bare, zeros }.len() < octets.len()),
        Err(_) => assert!(bare.is_empty()),
    }
});
