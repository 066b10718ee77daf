//! The path's MTU and the longest packet (RFC 4340, section 14).

use super::{Config, Connection};
use weir_units::{DataSize, Timestamp};

/// Bytes that headers and options of a data packet may take: 24 of a DataAck's header, 16 of a long Timestamp Echo and a Timestamp, 5 of
/// an NDP Count, 6 each of Elapsed Time and Data Checksum, 35 of a short Ack Vector and Slow Receiver.
pub(super) const HEADER_RESERVE: u64 = 92;

/// What is known of the path.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    current: u64,
    overhead: u64,
}

impl PathMtu {
    pub(super) fn new(config: &Config) -> Self {
        Self { current: config.initial_mtu.as_bytes(), overhead: config.header_overhead.as_bytes() }
    }
    pub(super) fn max_packet_size(&self) -> DataSize {
        DataSize::from_bytes(self.current.saturating_sub(self.overhead + HEADER_RESERVE))
    }
    /// Most bytes of a UDP payload.
    pub(super) fn max_datagram(&self) -> u64 {
        self.current.saturating_sub(self.overhead)
    }
    pub(super) fn start(&mut self, _now: Timestamp) {}
    pub(super) fn poll_timeout(&self) -> Option<Timestamp> {
        None
    }
    pub(super) fn on_timeout(&mut self, _now: Timestamp) {}
}

impl Connection {
    /// A router says that packets longer than this do not pass.
    pub fn on_path_mtu(&mut self, _now: Timestamp, mtu: DataSize) {
        self.mtu.current = self.mtu.current.min(mtu.as_bytes()).max(576);
    }
}
