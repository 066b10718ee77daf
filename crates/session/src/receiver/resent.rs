//! The other end's retransmission stream.

use crate::arrivals::ArrivalLog;
use crate::statistics::ReceiveStatistics;

/// The other end's retransmission stream as received.
#[derive(Debug)]
pub(crate) struct ResentStream {
    pub stats: ReceiveStatistics,
    /// Arrivals, where feedback goes by the streams' own numbers.
    pub log: Option<ArrivalLog>,
    /// The original packet.
    pub packet: Vec<u8>,
}
