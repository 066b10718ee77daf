//! Streams sent by an end.

use crate::call::observer::{CallObserver, LivePacket};
use weir_session::{Endpoint, OutgoingId, StreamIdentity};
use weir_units::{DataSize, Timestamp};
use weir_wire::rtp::PacketView;

/// A stream sent by an end.
pub(crate) struct SendingStream {
    id: OutgoingId,
    identity: StreamIdentity,
    is_on: bool,
    /// Times that the share-out switched it on or off.
    pub(crate) switches: u64,
    /// RTP packets sent.
    pub(crate) packets: u64,
    /// Their size as UDP payload.
    pub(crate) size: DataSize,
}

impl SendingStream {
    pub(crate) fn new(id: OutgoingId, identity: StreamIdentity) -> Self {
        Self { id, identity, is_on: true, switches: 0, packets: 0, size: DataSize::ZERO }
    }
    /// Mean rate over this time.
    pub(crate) fn rate_bps(&self, seconds: f64) -> f64 {
        self.size.as_bytes() as f64 * 8.0 / seconds.max(1e-9)
    }
}

/// Observes what each stream sends, and when the allocation enables or disables it.
#[derive(Default)]
pub(crate) struct Sending {
    pub(crate) streams: Vec<SendingStream>,
}

impl CallObserver for Sending {
    fn on_packet(&mut self, packet: &LivePacket<'_>) {
        let Some(view) =
            Some(packet).filter(|p| p.sent && p.is_rtp).and_then(|p| PacketView::parse_header(p.bytes).ok())
        else {
            return;
        };
        if let Some(s) = self.streams.iter_mut().find(|s| s.identity.has(view.ssrc())) {
            s.packets += 1;
            s.size += packet.size;
        }
    }
    fn on_look(&mut self, _: Timestamp, endpoint: &mut Endpoint) {
        for s in &mut self.streams {
            let is_on = endpoint.outgoing(s.id).is_some_and(|o| o.is_on());
            s.switches += u64::from(is_on != s.is_on);
            s.is_on = is_on;
        }
    }
}
