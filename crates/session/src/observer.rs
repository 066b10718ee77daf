//! Callbacks on every packet in and out.

use core::net::SocketAddr;
use weir_units::Timestamp;

/// A datagram as it passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen<'a> {
    /// When.
    pub now: Timestamp,
    /// Its bytes, RTP or RTCP header included.
    pub bytes: &'a [u8],
    /// Payload bytes behind them that are carried as a length only.
    pub payload: u32,
    /// Where it came from, as given to [`Endpoint::handle_datagram_from`](crate::Endpoint::handle_datagram_from); none for what
    /// is sent.
    pub source: Option<SocketAddr>,
}

/// What wants to see packets pass. Every method does nothing unless it is written.
///
/// Callbacks are for looking: an endpoint cannot be called from within them, and what they take is taken from the call.
pub trait Observer: Send {
    /// An RTP packet of the media stream is about to leave.
    fn on_rtp_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// An RTP packet of the media stream has come.
    fn on_rtp_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// An RTCP datagram is about to leave.
    fn on_rtcp_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// An RTCP datagram has come; it is taken up afterwards.
    fn on_rtcp_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A repair packet is about to leave.
    fn on_fec_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A repair packet has come.
    fn on_fec_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A packet of the media stream is about to leave again, on the retransmission stream.
    fn on_retransmission_sent(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A packet of the retransmission stream has come.
    fn on_retransmission_received(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
    /// A packet of the media stream that was lost has been brought back, as it was sent.
    fn on_rtp_recovered(&mut self, packet: &Seen<'_>) {
        let _ = packet;
    }
}

/// One that may be there.
pub(crate) type MaybeObserver = Option<Box<dyn Observer>>;
