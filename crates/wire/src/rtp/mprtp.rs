//! The header extension element of Multipath RTP (draft-ietf-avtcore-mprtp-03, section 9.1): which subflow carries a
//! packet, and its number there.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   ID  | LEN=4 | MPID=0| LEN=4 |          Subflow ID           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  Subflow-specific Seq Number  |    Pad (0)    |    Pad (0)    |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use crate::read::be16;
use crate::rtp::PacketView;

/// URI that signals the element (section 11.1).
pub const MPRTP_URI: &str = "urn:ietf:params:rtp-hdrext:mprtp";
/// Bytes of the element's data.
pub const SUBFLOW_SIZE: usize = 5;
/// First octet of the data: MPID 0, "subflow RTP header", and the 4 bytes that follow.
const SUBFLOW_HEADER: u8 = 0x04;

/// Position of a packet in a subflow.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SubflowNumber {
    /// The subflow's identifier.
    pub subflow: u16,
    /// The packet's number in the subflow (FSSN): one more than that of the packet before it there.
    pub sequence: u16,
}

impl SubflowNumber {
    /// The data of the element.
    pub const fn to_data(self) -> [u8; SUBFLOW_SIZE] {
        let ([a, b], [c, d]) = (self.subflow.to_be_bytes(), self.sequence.to_be_bytes());
        [SUBFLOW_HEADER, a, b, c, d]
    }
    /// Parses the data of an element; `None` if its MPID or its length is another.
    pub fn from_data(data: &[u8]) -> Option<Self> {
        (data.len() == SUBFLOW_SIZE && data[0] == SUBFLOW_HEADER)
            .then(|| Self { subflow: be16(data, 1), sequence: be16(data, 3) })
    }
}

/// Replaces the subflow number in a written packet, whose element has identifier `id`: for a copy on another path.
/// Returns `false`, with nothing changed, if there is no such element.
pub fn renumber(packet: &mut [u8], id: u8, number: SubflowNumber) -> bool {
    let Ok(view) = PacketView::parse_header(packet) else { return false };
    let Some(data) = view.extension(id).filter(|data| SubflowNumber::from_data(data).is_some()) else { return false };
    // The element is part of the packet.
    let at = data.as_ptr().addr() - packet.as_ptr().addr();
    packet[at..at + SUBFLOW_SIZE].copy_from_slice(&number.to_data());
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rtp::extension::Element;
    use crate::rtp::{Header, PacketView};
    use crate::testing::hex;
    use proptest::prelude::*;

    #[test]
    fn is_as_in_figure_8_of_the_draft() {
        let data = SubflowNumber { subflow: 0x0102, sequence: 0xfffe }.to_data();
        let elements = [Element::new(6, &data).unwrap()];
        let mut out = vec![];
        Header { payload_type: 96, sequence: 1, timestamp: 2, ssrc: 3, elements: &elements, ..Header::default() }
            .write_into(&mut out);
        assert_eq!(out, hex("90600001 00000002 00000003 bede0002 64040102 fffe0000"));
    }

    #[test]
    fn another_kind_or_length_is_no_subflow_number() {
        for data in ["", "04010203", "0401020304 05", "1401020304", "0301020304"] {
            assert_eq!(SubflowNumber::from_data(&hex(data)), None, "{data}");
        }
    }

    #[test]
    fn a_copy_is_renumbered_in_place() {
        let mut out = hex("90600001 00000002 00000003 bede0003 31000764 04010200 05000000 aabb");
        assert!(!renumber(&mut out, 5, SubflowNumber { subflow: 1, sequence: 2 }));
        assert!(!renumber(&mut out, 3, SubflowNumber { subflow: 1, sequence: 2 }));
        assert!(renumber(&mut out, 6, SubflowNumber { subflow: 0x0a0b, sequence: 0x0c0d }));
        assert_eq!(out, hex("90600001 00000002 00000003 bede0003 31000764 040a0b0c 0d000000 aabb"));
        assert!(!renumber(&mut out[..10], 6, SubflowNumber { subflow: 1, sequence: 2 }));
    }

    proptest! {
        #[test]
        fn numbers_survive_both_forms_of_the_extension(subflow: u16, sequence: u16, id in 1u8..=255, transport: u16) {
            let number = SubflowNumber { subflow, sequence };
            let data = number.to_data();
            let elements = [Element::new(id, &data).unwrap()];
            let transport_id = if id == 3 { 4 } else { 3 };
            let mut out = vec![];
            let transport_sequence = Some((transport_id, transport));
            Header { transport_sequence, elements: &elements, ..Header::default() }.write_into(&mut out);
            let view = PacketView::parse(&out).unwrap();
            prop_assert_eq!(view.extension(id).and_then(SubflowNumber::from_data), Some(number));
            prop_assert_eq!(view.transport_sequence(transport_id), Some(transport));
        }

        #[test]
        fn any_data_parses_to_what_it_says_or_to_nothing(data in proptest::collection::vec(any::<u8>(), 0..20)) {
            if let Some(number) = SubflowNumber::from_data(&data) {
                prop_assert_eq!(&number.to_data()[..], &data[..]);
            }
        }
    }
}
