//! Counters of an endpoint, beside those of its streams.

use crate::capacity_vector::CapacityVectorCounters;

/// Counters of datagrams that were not accepted, and of RTCP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct EndpointCounters {
    /// Datagrams or RTCP packets that do not parse.
    pub malformed: u64,
    /// RTP, or feedback about a source, that does not belong to the call.
    pub unknown_source: u64,
    /// Run-length reports and next data units about packets never sent, or no longer remembered.
    pub unknown_packet: u64,
    /// RTCP datagrams sent.
    pub rtcp_sent: u64,
    /// RTCP bytes sent, UDP and IP headers included.
    pub rtcp_bytes: u64,
    /// RTCP datagrams received.
    pub rtcp_received: u64,
    /// Sources accepted as the other end's: the first if it was unknown, and their replacements.
    pub sources: u64,
    /// BYEs of the other end's source.
    pub byes: u64,
    /// Packets with this end's own source identifier (RFC 3550, section 8.2).
    pub collisions: u64,
    /// RTP without a subflow number, or with one that belongs to no path, and reports on such subflows.
    pub unknown_subflow: u64,
    /// Addresses offered in-band for further paths.
    pub interfaces_offered: u64,
    /// Those of them that were not kept: names, addresses to which no media can be sent, those beyond
    /// [`MAX_OFFERED`](super::MAX_OFFERED), and those in packets of another source.
    pub interfaces_refused: u64,
    /// Packets of a path's check that answer none, or come on a path that was removed.
    pub checks_refused: u64,
    /// Changes of [`RemoteEnd::offered_addresses`](super::RemoteEnd::offered_addresses).
    pub offers: u64,
    /// Capacity vectors.
    pub vectors: CapacityVectorCounters,
}
