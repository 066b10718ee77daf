//! What becomes of a session's packets on their way into the connection.

/// What became of a session's packets on their way into the connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DccpCounters {
    /// Frames handed over, of which at least a packet was.
    pub frames: u64,
    /// Of these with refused packets, or with packets dropped from the queue since the frame before.
    pub frames_rejected: u64,
    /// RTP packets that the connection has taken.
    pub accepted: u64,
    /// RTP packets that its queue refused.
    pub rejected: u64,
    /// Frames whose first packet its queue refused.
    pub first_rejected: u64,
    /// RTP packets longer than a packet may be.
    pub too_long: u64,
    /// Packets, RTCP's too, for a connection that takes none any more.
    pub unsent: u64,
    /// RTCP datagrams that the connection has taken.
    pub rtcp: u64,
    /// RTCP datagrams that waited until a newer one took their place.
    pub rtcp_replaced: u64,
    /// Empty datagrams sent to keep bindings.
    pub keep_alives: u64,
    /// Times that the queue was made longer ...
    pub queue_grown: u64,
    /// ... and shorter.
    pub queue_shrunk: u64,
}
