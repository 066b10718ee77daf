//! The other end's retransmission stream.

use crate::arrivals::ArrivalLog;
use crate::statistics::ReceiveStatistics;

/// Receive state of the other end's retransmission stream.
#[derive(Debug)]
pub(crate) struct ResentStream {
    pub stats: ReceiveStatistics,
    /// Arrivals, if feedback uses the streams' own numbers.
    pub log: Option<ArrivalLog>,
    /// The reconstructed original packet.
    pub packet: Vec<u8>,
}
