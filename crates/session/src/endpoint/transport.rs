//! What an endpoint and a transport with congestion control of its own tell each other.

use super::{Bye, Endpoint};
use crate::queue::QueuedPacket;
use weir_cc::cue::{Cue, SendRejected, TransportRate};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

impl Endpoint {
    /// The media packet that leaves next.
    pub(crate) fn next_media(&self) -> Option<&QueuedPacket> {
        self.sender.as_ref()?.queue().front()
    }
    /// Packets and RTP bytes of the frame that leaves next, or of what is left of it, and the time until there is another.
    pub(crate) fn next_frame(&self, now: Timestamp) -> (usize, DataSize, TimeDelta) {
        let Some(sender) = &self.sender else { return (0, DataSize::ZERO, TimeDelta::ZERO) };
        let (packets, payload) = sender.queue().front_frame();
        let size = payload + DataSize::from_bytes(packets as u64 * u64::from(self.rtp_overhead));
        let interval = sender.source().next_frame_at().map_or(TimeDelta::ZERO, |at| at - now);
        (packets, size, interval)
    }
    /// Packets of media may be so long, from the next frame on.
    pub(crate) fn limit_packet_size(&mut self, size: DataSize) {
        let overhead = DataSize::from_bytes(self.rtp_overhead.into());
        if let Some(s) = &mut self.sender {
            s.limit_payload(size.saturating_sub(overhead));
        }
    }
    /// A packet of this size that [`Self::poll_transmit`] gave has not left.
    pub(crate) fn on_not_sent(&mut self, size: DataSize) {
        let payload = size.as_bytes().saturating_sub(self.rtp_overhead.into());
        if let Some(s) = &mut self.sender {
            s.counters.refused_packets += 1;
            s.counters.refused_payload += payload;
        }
    }
    /// The transport has refused packets of the frame that was handed over just now.
    pub(crate) fn on_send_rejected(&mut self, packets: u32, now: Timestamp) {
        if let Some(s) = &mut self.sender {
            s.on_cue(&Cue::SendRejected(SendRejected { now, packets }));
        }
    }
    /// The transport tells its rate.
    pub(crate) fn on_transport_rate(
        &mut self,
        rate: DataRate,
        smoothed: DataRate,
        rtt: Option<TimeDelta>,
        now: Timestamp,
    ) {
        if let Some(s) = &mut self.sender {
            s.on_cue(&Cue::TransportRate(TransportRate { now, rate, smoothed, rtt }));
        }
    }
    /// Whether the goodbye has been given out.
    pub(crate) fn has_left(&self) -> bool {
        self.bye == Bye::Sent
    }
}
