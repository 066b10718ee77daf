//! A packet that has arrived.

use crate::packet::{Packet, PacketType};
use weir_units::{DataSize, Ecn, Seq48, Timestamp};

/// A packet that has arrived, its numbers extended to 48 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming<'a> {
    pub(super) now: Timestamp,
    pub(super) packet: Packet<'a>,
    pub(super) packet_type: PacketType,
    pub(super) sequence: Seq48,
    pub(super) ack: Option<Seq48>,
    /// Bytes of data carried as a length only.
    pub(super) payload: u32,
    pub(super) ecn: Ecn,
}

impl Incoming<'_> {
    pub(super) fn data_size(&self) -> DataSize {
        let bytes =
            if self.packet_type.may_carry_data() { self.packet.data.len() as u64 + u64::from(self.payload) } else { 0 };
        DataSize::from_bytes(bytes)
    }
    /// Whether there is a datagram of the application's in it.
    pub(super) fn has_data(&self) -> bool {
        self.packet_type.is_data() || !self.data_size().is_zero()
    }
}
