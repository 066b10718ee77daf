//! Interface between an endpoint and a transport with its own congestion control.

use super::{Bye, Endpoint};
use crate::queue::QueuedPacket;
use weir_cc::cue::{Cue, SendRejected, TransportRate};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

impl Endpoint {
    /// The media packet to be sent next.
    pub(crate) fn next_media(&self) -> Option<&QueuedPacket> {
        let sender = self.sender.as_ref()?;
        sender.streams[sender.next_media()?].queue().front()
    }
    /// Packets and RTP bytes of the frame to be sent next, or of the rest of it, and the time until the next frame.
    pub(crate) fn next_frame(&self, now: Timestamp) -> (usize, DataSize, TimeDelta) {
        let next = self.sender.as_ref().and_then(|s| Some(&s.streams[s.next_media()?]));
        let Some(stream) = next else { return (0, DataSize::ZERO, TimeDelta::ZERO) };
        let (packets, payload) = stream.queue().front_frame();
        let size = payload + DataSize::from_bytes(packets as u64 * u64::from(stream.overhead));
        let interval = stream.source().next_frame_at().map_or(TimeDelta::ZERO, |at| at - now);
        (packets, size, interval)
    }
    /// Limits the size of media packets, from the next frame on.
    pub(crate) fn limit_packet_size(&mut self, size: DataSize) {
        for s in self.sender.iter_mut().flat_map(|s| &mut s.streams) {
            s.limit_payload(size.saturating_sub(DataSize::from_bytes(s.overhead.into())));
        }
    }
    /// A packet of this size, returned by [`Self::poll_transmit`], was not sent.
    pub(crate) fn on_not_sent(&mut self, size: DataSize) {
        if let Some(sender) = &mut self.sender {
            let s = &mut sender.streams[sender.outgoing.stream];
            let payload = size.as_bytes().saturating_sub(s.overhead.into());
            s.counters.refused_packets += 1;
            s.counters.refused_payload += payload;
        }
    }
    /// The transport has refused packets of the frame just handed over.
    pub(crate) fn on_send_rejected(&mut self, packets: u32, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_cue(0, &Cue::SendRejected(SendRejected { now, packets }));
        }
    }
    /// The transport reports its rate.
    pub(crate) fn on_transport_rate(
        &mut self,
        rate: DataRate,
        smoothed: DataRate,
        rtt: Option<TimeDelta>,
        now: Timestamp,
    ) {
        if let Some(s) = &mut self.sender {
            s.on_cue(0, &Cue::TransportRate(TransportRate { now, rate, smoothed, rtt }));
        }
    }
    /// Whether the BYE has been returned for sending.
    pub(crate) fn has_left(&self) -> bool {
        self.bye == Bye::Sent
    }
}
