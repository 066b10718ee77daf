//! Packets are parsed without allocation, and written without any once a buffer exists.

use weir_dccp::option::DccpOption;
use weir_dccp::packet::{Header, PacketType, PacketWriter, WireSequence, parse};
use weir_units::Seq48;

#[test]
fn nothing_is_allocated() {
    let header = Header {
        source_port: 1,
        destination_port: 2,
        ccval: 0,
        checksum_coverage: 1,
        packet_type: PacketType::DataAck,
        sequence: WireSequence::Long(Seq48::new(3)),
        acknowledgement: Some(WireSequence::Long(Seq48::new(4))),
    };
    let options =
        [DccpOption::NdpCount(1), DccpOption::TimestampEcho { echo: 1, elapsed: 70_000 }, DccpOption::DataChecksum(5)];
    let mut out = Vec::with_capacity(2_000);
    let mut read = 0;
    let counted = allocation_counter::measure(|| {
        for _ in 0..100 {
            out.clear();
            let mut w = PacketWriter::new(&mut out, &header);
            assert!(w.ack_vector(false, &[5; 300]));
            options.iter().for_each(|o| assert!(w.option(o)));
            w.finish();
            out.extend_from_slice(&[7; 1_000]);
            let p = parse(&out, 0).expect("what was written");
            read += p.options.entries().filter(|e| e.option.is_ok()).count() + p.options.iter().count();
        }
    });
    // Two Ack Vectors and three more, twice.
    assert_eq!((counted.count_total, read), (0, 100 * 10));
}
