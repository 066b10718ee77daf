//! Data Dropped as sent by this end: data received that did not reach the application (RFC 4340, section 11.7).

use crate::ack_vector::AckRun;
use crate::data_dropped::{DropCode, push};
use crate::option::DccpOption;
use crate::packet::PacketWriter;
use std::collections::VecDeque;
use weir_units::Seq48;

/// Maximum packets remembered; the oldest are removed first. Reports only help congestion control, so that is safe.
const MAX_DROPPED: usize = 128;
/// Maximum reports awaiting acknowledgement.
const MAX_REPORTS: usize = 32;
/// Maximum bytes of one option, and packets before which it can omit others.
const MAX_BLOCKS: usize = 253;
const MAX_GAP: u64 = MAX_BLOCKS as u64 * 128;

/// Dropped packets that the other end may not know of yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Dropped {
    /// In the order of numbers.
    packets: VecDeque<(Seq48, DropCode)>,
    /// Acknowledgements that reported drops: their number, and the newest packet that they cover.
    reports: VecDeque<(Seq48, Seq48)>,
    /// Scratch.
    blocks: Vec<u8>,
}

impl Dropped {
    /// A packet's data were dropped.
    pub(super) fn on_dropped(&mut self, sequence: Seq48, code: DropCode) {
        let at = self.packets.iter().rposition(|p| !p.0.is_after(sequence)).map_or(0, |i| i + 1);
        if at > 0 && self.packets[at - 1].0 == sequence {
            return;
        }
        self.packets.insert(at, (sequence, code));
        if self.packets.len() > MAX_DROPPED {
            self.packets.pop_front();
        }
    }
    /// Writes the option into an acknowledgement of `acknowledged`; whether there was anything to write.
    pub(super) fn write(&mut self, acknowledged: Seq48, sequence: Seq48, out: &mut PacketWriter<'_>) -> bool {
        if self.packets.is_empty() {
            return false;
        }
        self.blocks.clear();
        let mut next = acknowledged;
        for &(packet, code) in self.packets.iter().rev() {
            let Ok(gap) = u64::try_from(next.since(packet)) else { continue };
            if gap > MAX_GAP {
                break;
            }
            if gap > 0 {
                push(&mut self.blocks, None, gap);
            }
            push(&mut self.blocks, Some(code), 1);
            next = packet.sub(1);
        }
        let len = self.blocks.len().min(MAX_BLOCKS);
        let wrote = len > 0 && out.option(&DccpOption::DataDropped(&self.blocks[..len]));
        if wrote && self.reports.len() < MAX_REPORTS {
            self.reports.push_back((sequence, acknowledged));
        }
        wrote
    }
    /// The other end acknowledged a packet of this end, so it has received the report on it.
    pub(super) fn on_acknowledged(&mut self, ack: Seq48) {
        while let Some(&(ours, newest)) = self.reports.front() {
            if ours.is_after(ack) {
                break;
            }
            self.reports.pop_front();
            if ours == ack {
                self.packets.retain(|p| p.0.is_after(newest));
            }
        }
    }
    /// Likewise by the other end's Ack Vector, newest run first.
    pub(super) fn on_ack_runs(&mut self, runs: impl Iterator<Item = AckRun> + Clone) {
        let came = |n: Seq48| runs.clone().any(|r| r.state.came() && n.is_within(r.oldest(), r.newest));
        if let Some(&(ours, _)) = self.reports.iter().rev().find(|t| came(t.0)) {
            self.on_acknowledged(ours);
        }
    }
    /// Whether there is nothing to report.
    #[cfg(test)]
    fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ack_vector::runs;
    use crate::packet::{Header, PacketType, WireSequence, parse};

    fn written(dropped: &mut Dropped, acknowledged: u64, sequence: u64) -> Option<Vec<u8>> {
        let header = Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Ack,
            sequence: WireSequence::Long(Seq48::new(sequence)),
            acknowledgement: Some(WireSequence::Long(Seq48::new(acknowledged))),
        };
        let mut out = Vec::new();
        let mut writer = PacketWriter::new(&mut out, &header);
        dropped.write(Seq48::new(acknowledged), Seq48::new(sequence), &mut writer);
        writer.finish();
        let packet = parse(&out, 0).expect("what was written");
        packet.options.iter().find_map(|o| match o {
            Ok(DccpOption::DataDropped(d)) => Some(d.to_vec()),
            _ => None,
        })
    }

    #[test]
    fn the_example_of_the_rfc() {
        // RFC 4340, section 11.7: 0,160,3,162 on an acknowledgement of 100: 99, then 94, 93 and 92 (whose text
        // miscounts by one) were dropped in a receive buffer.
        let mut d = Dropped::default();
        for n in [99, 93, 92, 94, 93] {
            d.on_dropped(Seq48::new(n), DropCode::RECEIVE_BUFFER);
        }
        assert_eq!(written(&mut d, 100, 1), Some(vec![0, 160, 3, 162]));
    }

    #[test]
    fn a_drop_is_reported_until_a_packet_that_reported_it_is_acknowledged() {
        let mut d = Dropped::default();
        d.on_dropped(Seq48::new(10), DropCode::CORRUPT);
        assert_eq!(written(&mut d, 10, 500), Some(vec![0xb0]));
        assert_eq!(written(&mut d, 300, 501), Some(vec![127, 127, 33, 0xb0]));
        d.on_dropped(Seq48::new(301), DropCode::APPLICATION_NOT_LISTENING);
        d.on_acknowledged(Seq48::new(499));
        assert!(!d.is_empty());
        // 501 reported 10 and not 301.
        d.on_acknowledged(Seq48::new(501));
        assert_eq!(written(&mut d, 302, 502), Some(vec![0, 0x90]));
        d.on_acknowledged(Seq48::new(502));
        assert_eq!((d.is_empty(), written(&mut d, 303, 503)), (true, None));
    }

    #[test]
    fn an_ack_vector_of_the_other_end_acknowledges_reports_too() {
        let mut d = Dropped::default();
        d.on_dropped(Seq48::new(10), DropCode::CORRUPT);
        for sequence in [500, 503] {
            assert!(written(&mut d, 10, sequence).is_some());
        }
        // 505 and 504 were received, 503 was not, 502 to 501 were; then 500 as well.
        d.on_ack_runs(runs(Seq48::new(505), &[1, 0xc0, 1]));
        assert!(!d.is_empty());
        d.on_ack_runs(runs(Seq48::new(505), &[1, 0xc0, 2]));
        assert!(d.is_empty());
    }

    #[test]
    fn long_runs_are_split_and_memory_is_bounded() {
        let mut d = Dropped::default();
        (0..1_000).for_each(|n| d.on_dropped(Seq48::new(n), DropCode::RECEIVE_BUFFER));
        assert_eq!(written(&mut d, 999, 1), Some(vec![0xaf; MAX_DROPPED / 16]));
        for s in 0..100 {
            written(&mut d, 999, s);
        }
        assert!(d.reports.len() <= MAX_REPORTS && d.packets.len() <= MAX_DROPPED);
    }
}
