//! Counters of a session's packets handed over to the connection.

/// Counters of a session's packets handed over to the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DccpCounters {
    /// Frames of which at least one packet was handed over.
    pub frames: u64,
    /// Those with refused packets, or with packets dropped from the queue since the previous frame.
    pub frames_rejected: u64,
    /// RTP packets accepted by the connection.
    pub accepted: u64,
    /// RTP packets refused by its queue.
    pub rejected: u64,
    /// Frames whose first packet was refused by the queue.
    pub first_rejected: u64,
    /// RTP packets above the packet size limit.
    pub too_long: u64,
    /// RTP and RTCP packets for a connection that accepts no more.
    pub unsent: u64,
    /// RTCP datagrams accepted by the connection.
    pub rtcp: u64,
    /// RTCP datagrams replaced by a newer one while waiting.
    pub rtcp_replaced: u64,
    /// Empty datagrams sent to keep bindings.
    pub keep_alives: u64,
    /// Times that the queue was enlarged ...
    pub queue_grown: u64,
    /// ... and shrunk.
    pub queue_shrunk: u64,
}
