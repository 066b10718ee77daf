//! DCCP packets: parsed packets are written to something that parses equally.
#![no_main]

use weir_dccp::ack_vector;
use weir_dccp::data_dropped;
use weir_dccp::option::{DccpOption, OptionFault};
use weir_dccp::packet::{Packet, PacketType, PacketWriter, PseudoHeader, covered_checksum, data_checksum, parse};

/// All valid options, and whether they are mandatory.
fn read<'a>(p: &Packet<'a>) -> Vec<(bool, DccpOption<'a>)> {
    p.options.entries().filter_map(|e| Some((e.mandatory, e.option.ok()?))).collect()
}

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    let pseudo = PseudoHeader::V4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    let _ = covered_checksum(data, 0, &pseudo);
    let beyond = data.first().map_or(0, |&b| u32::from(b) * 7);
    let Ok(p) = parse(data, beyond) else { return };
    assert!(p.options.entries().count() <= p.options.iter().count());
    assert!(p.options.iter().count() <= p.options.as_bytes().len());
    let faults = p.options.entries().filter(|e| matches!(e.option, Err(b) if b.fault == OptionFault::Mandatory));
    assert!(faults.count() <= 1);
    assert!(p.header.packet_type != PacketType::Data || p.options.entries().all(|e| e.due_reset().is_none()));

    let options = read(&p);
    let mut out = Vec::new();
    let mut w = PacketWriter::new(&mut out, &p.header);
    p.service_code.into_iter().for_each(|c| w.service_code(c));
    p.reset.into_iter().for_each(|(code, data)| w.reset(code, data));
    for (mandatory, option) in &options {
        assert!(!mandatory || w.option(&DccpOption::Mandatory));
        assert!(w.option(option), "no longer than it was");
    }
    let len = w.finish();
    assert!(len + p.data.len() <= data.len());
    out.extend_from_slice(p.data);
    let again = parse(&out, beyond).expect("what is written can be read");
    assert_eq!(
        (again.header, again.service_code, again.reset, again.data),
        (p.header, p.service_code, p.reset, p.data)
    );
    assert_eq!(read(&again), options);
    assert!(covered_checksum(&out, beyond as usize, &pseudo).is_some());

    let zeros = p.data.len().min(100);
    let whole = [p.data, &vec![0; zeros]].concat();
    assert_eq!(data_checksum(p.data, zeros as u32), data_checksum(&whole, 0));
    let acknowledged = p.header.acknowledgement.map(|a| a.zero_extended()).unwrap_or_default();
    for (_, option) in options {
        match option {
            DccpOption::DataDropped(blocks) => {
                let mut pushed = Vec::new();
                data_dropped::blocks(acknowledged, blocks).for_each(|b| data_dropped::push(&mut pushed, b.code, b.len));
                assert!(pushed.len() <= blocks.len());
                let len = |blocks| data_dropped::blocks(acknowledged, blocks).map(|b| b.len).sum::<u64>();
                assert_eq!(len(&pushed), len(blocks));
            }
            DccpOption::AckVector { runs, .. } => {
                assert!(ack_vector::runs(acknowledged, runs).map(|r| r.len).sum::<u64>() <= 64 * runs.len() as u64);
            }
            _ => {}
        }
    }
});
