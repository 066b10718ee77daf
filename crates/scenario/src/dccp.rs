//! DCCP in a scenario.

use weir_dccp::queue::QueueConfig;
use weir_units::{DataRate, DataSize, TimeDelta};

/// A DCCP flow without RTP.
#[derive(Clone, PartialEq, Debug)]
pub struct DccpFlow {
    /// Rate of a live source's data, without headers; bulk data if absent.
    pub rate: Option<DataRate>,
    /// Application data of a packet.
    pub payload: DataSize,
    /// The connection.
    pub connection: DccpSettings,
}

/// A DCCP connection.
#[derive(Clone, PartialEq, Debug)]
pub struct DccpSettings {
    /// Congestion control by number, both ways.
    pub ccid: u8,
    /// Its parameters, known to exist and to be in range.
    pub params: Vec<(String, f64)>,
    /// Whether packets are sent as ECN-capable.
    pub ecn: bool,
    /// Whether data and acknowledgements have 24-bit sequence numbers.
    pub short_sequence_numbers: bool,
    /// Number of valid sequence numbers around the newest.
    pub sequence_window: u64,
    /// The initial send queue.
    pub queue: QueueConfig,
    /// Whether that queue follows the sizes of frames (Jero, 2013, section 3.2.1); for RTP.
    pub sized_by_frames: bool,
    /// Maximum age of a frame's packets when they are sent; for RTP.
    pub max_wait: Option<TimeDelta>,
    /// UDP and IP headers around each packet.
    pub header_overhead: DataSize,
}
