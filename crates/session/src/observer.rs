//! Callbacks on every packet sent and received.

use core::net::SocketAddr;
use weir_units::Timestamp;

/// A datagram passed to an observer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen<'a> {
    /// When it was sent or received.
    pub now: Timestamp,
    /// Its bytes, RTP or RTCP header included.
    pub bytes: &'a [u8],
    /// Payload bytes that follow, carried as a length only.
    pub payload: u32,
    /// Its source, as passed to [`Endpoint::handle_datagram_from`](crate::Endpoint::handle_datagram_from); `None` for
    /// sent packets.
    pub source: Option<SocketAddr>,
}

/// Observes packets. The default methods do nothing.
///
/// Callbacks cannot call the endpoint, and their run time adds to the call's.
pub trait Observer: Send {
    /// An RTP packet of the media stream is about to be sent.
    fn on_rtp_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// An RTP packet of the media stream was received.
    fn on_rtp_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// An RTCP datagram is about to be sent.
    fn on_rtcp_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// An RTCP datagram was received; it is handled afterwards.
    fn on_rtcp_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A repair packet is about to be sent.
    fn on_fec_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A repair packet was received.
    fn on_fec_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A packet of the media stream is about to be retransmitted, on the retransmission stream.
    fn on_retransmission_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A packet of the retransmission stream was received.
    fn on_retransmission_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A lost packet of the media stream was recovered, as it was sent.
    fn on_rtp_recovered(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
}

/// An optional observer.
pub(crate) type MaybeObserver = Option<Box<dyn Observer>>;
