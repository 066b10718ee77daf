//! ULPFEC payloads, and recovered strings of XOR codes converted to RTP packets.
#![no_main]

use weir_wire::fec::parity::{PREFIX, protect_into, rebuild_into};
use weir_wire::fec::ulpfec::Repair;

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let Some(octets) = weir_fuzz::octets(data) else { return };
    if let Ok(repair) = Repair::parse(octets) {
        let levels: Vec<_> = repair.levels.iter().collect();
        assert!(!levels.is_empty() && levels.len() * 4 <= octets.len());
        for level in &levels {
            let sequences: Vec<_> = repair.coverage(level).sequences().collect();
            assert!(!sequences.is_empty() && sequences.len() <= 48);
            assert!(sequences.iter().all(|s| repair.coverage(level).contains(*s)));
        }
        let mut string = vec![];
        let zeros = repair.string_into(&mut string);
        assert_eq!(string.len() + zeros as usize, PREFIX + levels[0].payload.len());
        let mut out = vec![];
        let zeros = repair.write_into(&mut out).expect("what is read can be written");
        assert_eq!(Repair::parse(weir_wire::fec::Octets { bytes: &out, zeros }), Ok(repair));
    }

    let mut packet = vec![];
    if let Ok(zeros) = rebuild_into(octets, 7, 9, &mut packet) {
        let packet = weir_wire::fec::Octets { bytes: &packet, zeros };
        let view = weir_wire::rtp::PacketView::parse_header(packet.bytes).expect("a sound header");
        assert_eq!((view.sequence(), view.ssrc()), (7, 9));
        let mut string = vec![];
        let behind = protect_into(packet, &mut string).expect("a packet can be protected");
        let string = weir_wire::fec::Octets { bytes: &string, zeros: behind };
        // The two bits of the version are not part of the string.
        assert_eq!(string.slice(1, usize::MAX), octets.slice(1, string.len() - 1));
    } else {
        assert!(packet.is_empty());
    }
});
