//! Answers to packets of no connection without a listener.

use weir_dccp::connection::{Datagram, reset_for};
use weir_dccp::packet::{PacketType, ResetCode, parse};
use weir_units::{TimeDelta, Timestamp};

/// Resets per second for packets of no connection (RFC 4340, section 8.1.3, has this as an example).
const RESETS_PER_SECOND: u32 = 1_024;

/// Resets for packets of no connection, limited per second.
#[derive(Debug, Default)]
pub(super) struct Resets {
    second: i64,
    count: u32,
}

impl Resets {
    /// Whether the buffer holds an answer to a datagram of no connection.
    pub(super) fn answer(&mut self, now: Timestamp, datagram: &Datagram<'_>, out: &mut Vec<u8>) -> bool {
        out.clear();
        let Ok(packet) = parse(datagram.bytes, datagram.payload) else { return false };
        let second = now.as_nanos() / TimeDelta::from_secs(1).as_nanos();
        if second != self.second {
            *self = Self { second, count: 0 };
        }
        self.count += 1;
        let is_request = packet.header.packet_type == PacketType::Request;
        let code = if is_request { ResetCode::CONNECTION_REFUSED } else { ResetCode::NO_CONNECTION };
        self.count <= RESETS_PER_SECOND && reset_for(&packet, code, [0; 3], "", out)
    }
}
