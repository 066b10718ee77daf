//! FlexFEC payloads with up to 15 streams, FlexFEC-03, and interleaved parity.
#![no_main]

use weir_wire::List;
use weir_wire::fec::{Octets, flexfec, flexfec03, interleaved};

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(octets) = weir_fuzz::octets(data) else { return };
    if let Ok(repair) = interleaved::Repair::parse(octets) {
        assert_eq!(repair.coverage().sequences().count(), usize::from(repair.rows));
        let mut out = vec![];
        let zeros = repair.write_into(&mut out).expect("what is read can be written");
        assert_eq!(interleaved::Repair::parse(Octets { bytes: &out, zeros }), Ok(repair));
    }

    if let Ok(repair) = flexfec03::Repair::parse(octets) {
        let sequences: Vec<_> = repair.coverage().sequences().collect();
        assert!((1..=109).contains(&sequences.len()) && sequences.iter().all(|s| repair.coverage().contains(*s)));
        let mut out = vec![];
        let zeros = repair.write_into(&mut out).expect("what is read can be written");
        assert_eq!(flexfec03::Repair::parse(Octets { bytes: &out, zeros }), Ok(repair));
    }

    let Some((&count, bytes)) = octets.bytes.split_first() else { return };
    let octets = Octets { bytes, ..octets };
    let ssrcs: Vec<u32> = (0..u32::from(count & 15)).collect();
    match flexfec::Packet::parse(List::from(&ssrcs).iter(), octets) {
        Ok(flexfec::Packet::Repair(repair)) => {
            let blocks: Vec<_> = repair.blocks.iter().collect();
            assert!(blocks.iter().map(|b| b.ssrc).eq(ssrcs.iter().copied()));
            for block in &blocks {
                let coverage = block.coverage();
                let sequences: Vec<_> = coverage.sequences().collect();
                assert!((1..=255).contains(&sequences.len()) && sequences.iter().all(|s| coverage.contains(*s)));
            }
            let mut out = vec![];
            let zeros = repair.write_into(&mut out).expect("what is read can be written");
            let again = flexfec::Packet::parse(List::from(&ssrcs).iter(), Octets { bytes: &out, zeros });
            assert_eq!(again, Ok(flexfec::Packet::Repair(repair)));
        }
        Ok(flexfec::Packet::Retransmission(packet)) => assert_eq!(packet, octets),
        Err(_) => {}
    }
});
