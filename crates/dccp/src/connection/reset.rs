//! Resets by ends that have no connection (RFC 4340, section 8.3.1).

use crate::packet::{Header, Packet, PacketType, PacketWriter, ResetCode, WireSequence};
use weir_units::Seq48;

/// The Reset's sequence and acknowledgement number.
pub(super) fn numbers_for(packet: &Packet<'_>) -> (Seq48, Seq48) {
    // Of short numbers the upper 24 bits are zero.
    let sequence = packet.header.acknowledgement.map_or(Seq48::new(0), |a| match a {
        WireSequence::Long(a) => a.next(),
        WireSequence::Short(low) => Seq48::new((u64::from(low) + 1) & 0xff_ffff),
    });
    (sequence, packet.header.sequence.zero_extended())
}

/// Appends to `out` the Reset in reply to a packet without a connection, for listeners and sockets. Returns `false`
/// without writing for a Reset, which is never answered. `text` is an optional explanation in UTF-8. The caller limits
/// the rate (section 8.1.3 gives 1,024 per second as an example).
pub fn reset_for(packet: &Packet<'_>, code: ResetCode, data: [u8; 3], text: &str, out: &mut Vec<u8>) -> bool {
    if packet.header.packet_type == PacketType::Reset {
        return false;
    }
    let (sequence, acknowledgement) = numbers_for(packet);
    let reset = Reset {
        source_port: packet.header.destination_port,
        destination_port: packet.header.source_port,
        sequence,
        acknowledgement,
        code,
        data,
    };
    reset.write(out);
    out.extend_from_slice(text.as_bytes());
    true
}

/// A Reset without options.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reset {
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) sequence: Seq48,
    pub(super) acknowledgement: Seq48,
    pub(super) code: ResetCode,
    pub(super) data: [u8; 3],
}

impl Reset {
    /// Appends it to `out`; returns its length.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> usize {
        let header = Header {
            source_port: self.source_port,
            destination_port: self.destination_port,
            ccval: 0,
            checksum_coverage: 0,
            packet_type: PacketType::Reset,
            sequence: WireSequence::Long(self.sequence),
            acknowledgement: Some(WireSequence::Long(self.acknowledgement)),
        };
        let mut writer = PacketWriter::new(out, &header);
        writer.reset(self.code, self.data);
        writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::parse;

    fn answer(header: Header) -> Option<Header> {
        let mut bytes = Vec::new();
        let mut writer = PacketWriter::new(&mut bytes, &header);
        if header.packet_type == PacketType::Reset {
            writer.reset(ResetCode::CLOSED, [0; 3]);
        }
        writer.finish();
        let packet = parse(&bytes, 0).expect("what was written");
        let mut out = Vec::new();
        if !reset_for(&packet, ResetCode::NO_CONNECTION, [0; 3], "nobody", &mut out) {
            assert!(out.is_empty());
            return None;
        }
        let reset = parse(&out, 0).expect("what was written");
        assert_eq!((reset.reset, reset.data), (Some((ResetCode::NO_CONNECTION, [0; 3])), &b"nobody"[..]));
        assert_eq!((reset.header.source_port, reset.header.destination_port), (2, 1));
        Some(reset.header)
    }

    #[test]
    fn numbers_are_taken_from_the_packet() {
        use WireSequence::{Long, Short};
        let h = |packet_type, sequence, acknowledgement| Header {
            source_port: 1,
            destination_port: 2,
            ccval: 0,
            checksum_coverage: 0,
            packet_type,
            sequence,
            acknowledgement,
        };
        let n = Seq48::new;
        let sent = |r: Option<Header>| r.map(|r| (r.sequence, r.acknowledgement));
        let long = answer(h(PacketType::Ack, Long(n(7)), Some(Long(n((1 << 48) - 1)))));
        assert_eq!(sent(long), Some((Long(n(0)), Some(Long(n(7))))));
        let data = answer(h(PacketType::Data, Long(n(9)), None));
        assert_eq!(sent(data), Some((Long(n(0)), Some(Long(n(9))))));
        let short = answer(h(PacketType::Ack, Short(0xff_fff0), Some(Short(5))));
        assert_eq!(sent(short), Some((Long(n(6)), Some(Long(n(0xff_fff0))))));
        assert_eq!(answer(h(PacketType::Reset, Long(n(7)), Some(Long(n(8))))), None);
    }
}
