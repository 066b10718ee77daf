//! Samples of bandwidth and round-trip time, one for each packet acknowledged (libwebrtc's `bandwidth_sampler`, after
//! "Delivery Rate Estimation", draft-ietf-ccwg-bbr).
//!
//! A sample is the lower of the rates at which packets were sent and acknowledged, from the packet that was acknowledged
//! last when this one was sent. Acknowledged means that feedback has reported it received; the time is that of the
//! feedback, as in libwebrtc, since it is the queue and the flight up to there that the window covers.

use crate::cue::SentPacket;
use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Most packets remembered; older ones give no sample (`kMaxTrackedPackets`, where libwebrtc only warns).
const MAX_PACKETS: usize = 10_000;

/// A sample, by a packet just acknowledged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Sample {
    pub(super) bandwidth: DataRate,
    pub(super) rtt: TimeDelta,
    /// Whether the packet was sent while there was too little to send.
    pub(super) is_app_limited: bool,
}

/// The sampler's state when a packet was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    departure: Timestamp,
    size: DataSize,
    /// All bytes sent, this packet included.
    sent: DataSize,
    /// Of the packet acknowledged last: all bytes sent with it, its departure, and when it was acknowledged.
    anchor: Anchor,
    /// All bytes acknowledged.
    acked: DataSize,
    is_app_limited: bool,
    /// Neither acknowledged nor lost.
    is_open: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Anchor {
    sent: DataSize,
    departed_and_acked_at: Option<(Timestamp, Timestamp)>,
}

/// Takes packets and their fate, and returns samples.
#[derive(Clone, Debug, Default)]
pub(super) struct Sampler {
    sent: DataSize,
    acked: DataSize,
    anchor: Anchor,
    /// The last packet sent when the application was last found to be limited; later ones are not marked.
    app_limited_until: Option<u64>,
    last_sent: Option<u64>,
    /// Consecutive packets, of which the first has this number.
    packets: VecDeque<Sent>,
    first: u64,
}

impl Sampler {
    /// A packet was sent; `is_first` if nothing else was in flight.
    pub(super) fn on_sent(&mut self, packet: &SentPacket, is_first: bool) {
        self.sent += packet.size;
        if is_first {
            // The path was empty: acknowledgements from here on are those of a new flight.
            self.anchor = Anchor { sent: self.sent, departed_and_acked_at: Some((packet.now, packet.now)) };
        }
        if packet.sequence != self.first.saturating_add(self.packets.len() as u64) {
            self.packets.clear();
        }
        if self.packets.len() >= MAX_PACKETS {
            self.packets.pop_front();
            self.first += 1;
        }
        if self.packets.is_empty() {
            self.first = packet.sequence;
        }
        self.last_sent = Some(packet.sequence);
        self.packets.push_back(Sent {
            departure: packet.now,
            size: packet.size,
            sent: self.sent,
            anchor: self.anchor,
            acked: self.acked,
            is_app_limited: self.app_limited_until.is_some(),
            is_open: true,
        });
    }

    /// A packet was acknowledged. `None` if it is unknown, lost or acknowledged already, or has no interval.
    pub(super) fn on_acked(&mut self, sequence: u64, now: Timestamp) -> Option<Sample> {
        let p = self.close(sequence)?;
        self.acked += p.size;
        self.anchor = Anchor { sent: p.sent, departed_and_acked_at: Some((p.departure, now)) };
        if self.app_limited_until.is_some_and(|until| sequence > until) {
            self.app_limited_until = None;
        }
        let (departed, acked_at) = p.anchor.departed_and_acked_at?;
        let acked = DataRate::from_size_over(self.acked.saturating_sub(p.acked), now - acked_at)?;
        // Without an interval between departures only acknowledgements count.
        let sent = DataRate::from_size_over(p.sent.saturating_sub(p.anchor.sent), p.departure - departed);
        let bandwidth = sent.map_or(acked, |sent| sent.min(acked));
        let rtt = now - p.departure;
        (rtt > TimeDelta::ZERO).then_some(Sample { bandwidth, rtt, is_app_limited: p.is_app_limited })
    }

    /// A packet was reported lost.
    pub(super) fn on_lost(&mut self, sequence: u64) {
        self.close(sequence);
    }

    fn close(&mut self, sequence: u64) -> Option<Sent> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        let p = self.packets.get_mut(index).filter(|p| p.is_open)?;
        p.is_open = false;
        Some(*p)
    }

    /// Forgets packets before `sequence`.
    pub(super) fn forget_before(&mut self, sequence: u64) {
        while self.first < sequence && self.packets.pop_front().is_some() {
            self.first += 1;
        }
    }

    /// Marks samples of what is in flight, since it is held back.
    pub(super) fn on_app_limited(&mut self) {
        self.app_limited_until = self.last_sent;
    }
    pub(super) fn is_app_limited(&self) -> bool {
        self.app_limited_until.is_some()
    }
    /// The number of the packet sent last.
    pub(super) fn last_sent(&self) -> Option<u64> {
        self.last_sent
    }
    /// All bytes acknowledged.
    pub(super) fn acked(&self) -> DataSize {
        self.acked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> Timestamp = Timestamp::from_millis;

    fn send(s: &mut Sampler, sequence: u64, ms: i64, is_first: bool) {
        s.on_sent(&SentPacket::media(MS(ms), sequence, DataSize::from_bytes(1_000)), is_first);
    }

    #[test]
    fn a_sample_is_the_lower_of_both_rates_since_the_packet_acknowledged_last() {
        let mut s = Sampler::default();
        (0..4).for_each(|k| send(&mut s, k, 10 * k as i64, k == 0));
        // The first flight: 1,000 bytes in the 100 ms since the path was empty.
        let first = s.on_acked(0, MS(100)).expect("a sample");
        assert_eq!((first.bandwidth, first.rtt), (DataRate::from_kbps(80), TimeDelta::from_millis(100)));
        // Sent 2,000 bytes in 20 ms, acknowledged 3,000 in 120 ms.
        s.on_acked(1, MS(110));
        assert_eq!(s.on_acked(2, MS(120)).expect("a sample").bandwidth, DataRate::from_kbps(200));
        // Anchored at packet 2: sent 1,000 bytes from 20 to 220 ms, acknowledged 2,000 from 120 to 170 ms.
        send(&mut s, 4, 220, false);
        s.on_acked(3, MS(165));
        assert_eq!(s.on_acked(4, MS(320)).expect("a sample").bandwidth, DataRate::from_kbps(80));
    }

    #[test]
    fn each_packet_counts_once() {
        let mut s = Sampler::default();
        (7..10).for_each(|k| send(&mut s, k, k as i64, k == 7));
        s.on_lost(7);
        assert_eq!(s.on_acked(7, MS(50)), None, "lost");
        assert!(s.on_acked(8, MS(50)).is_some());
        assert_eq!(s.on_acked(8, MS(60)), None, "acknowledged");
        assert_eq!((s.on_acked(6, MS(60)), s.on_acked(10, MS(60)), s.on_acked(u64::MAX, MS(60))), (None, None, None));
        s.forget_before(10);
        assert_eq!(s.on_acked(9, MS(60)), None, "forgotten");
        assert_eq!(s.acked(), DataSize::from_bytes(1_000));
    }

    #[test]
    fn what_is_held_back_is_marked_until_a_later_packet_is_acknowledged() {
        let mut s = Sampler::default();
        send(&mut s, 0, 0, true);
        s.on_app_limited();
        send(&mut s, 1, 1, false);
        send(&mut s, 2, 2, false);
        assert!(!s.on_acked(0, MS(100)).expect("a sample").is_app_limited);
        assert!(s.is_app_limited());
        assert!(s.on_acked(1, MS(101)).expect("a sample").is_app_limited);
        assert!(!s.is_app_limited());
        send(&mut s, 3, 103, false);
        assert!(!s.on_acked(3, MS(203)).expect("a sample").is_app_limited);
    }

    #[test]
    fn memory_is_bounded_and_gaps_are_no_packets() {
        let mut s = Sampler::default();
        (0..20_000).for_each(|k| send(&mut s, k, 0, k == 0));
        assert_eq!(s.packets.len(), MAX_PACKETS);
        assert_eq!(s.on_acked(9_999, MS(10)), None);
        assert!(s.on_acked(10_000, MS(10)).is_some());
        send(&mut s, u64::MAX, 20, false);
        send(&mut s, 5, 21, false);
        assert!(s.on_acked(5, MS(30)).is_some());
        assert_eq!(s.packets.len(), 1);
    }
}
