//! Acknowledged rate over a window of packets (libwebrtc, as of 2025: `RobustThroughputEstimator`, its default since
//! August 2023).
//!
//! The lower of the rates at which the window's packets were sent and received, so that a burst that empties a queue
//! does not count as capacity. The largest gap between arrivals is replaced by the second largest, so that a pause does
//! not count as a low rate.

use std::collections::VecDeque;
use weir_units::{DataRate, DataSize, RemoteTimestamp, TimeDelta, Timestamp};

/// The window has at least this many packets (`window_packets`) ...
const WINDOW_PACKETS: usize = 20;
/// ... and at least this duration (`min_window_duration`) ...
const MIN_WINDOW: TimeDelta = TimeDelta::from_secs(1);
/// ... but at most this many packets and this duration (`max_window_packets`, `max_window_duration`).
const MAX_PACKETS: usize = 500;
const MAX_WINDOW: TimeDelta = TimeDelta::from_secs(5);
/// Packets required for a rate (`required_packets`).
const REQUIRED_PACKETS: usize = 10;
/// Arrivals that go back by more than this are from a clock that was set: the window starts again
/// (`kMaxReorderingTime`).
const MAX_REORDERING: TimeDelta = TimeDelta::from_secs(1);
/// Durations count as at least this.
const MIN_DURATION: TimeDelta = TimeDelta::from_millis(1);

#[derive(Clone, Copy, Debug)]
struct Packet {
    departure: Timestamp,
    arrival: RemoteTimestamp,
    size: DataSize,
}

/// The packets of the window in the order of arrival, and what a rate needs of them.
#[derive(Clone, Debug, Default)]
pub(super) struct RobustThroughput {
    window: VecDeque<Packet>,
    size: DataSize,
    /// Packets in the window that were sent before the one in front of them.
    reordered: usize,
    /// Latest departure of the packets that left the window: earlier ones in it were reordered, and say nothing about
    /// the sending rate.
    discarded_departure: Option<Timestamp>,
    rate: Option<DataRate>,
    /// Whether packets have come since `rate` was computed.
    is_stale: bool,
    gaps: LargestGaps,
}

/// The two largest gaps between arrivals that differ, and how often each occurs; zero for none.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
struct LargestGaps {
    largest: (TimeDelta, u32),
    second: (TimeDelta, u32),
}

impl LargestGaps {
    #[inline]
    fn add(&mut self, gap: TimeDelta) {
        // Most are not among them: one comparison decides.
        if gap < self.second.0 || gap == TimeDelta::ZERO {
            return;
        }
        if gap == self.largest.0 {
            self.largest.1 += 1;
        } else if gap > self.largest.0 {
            (self.second, self.largest) = (self.largest, (gap, 1));
        } else if gap == self.second.0 {
            self.second.1 += 1;
        } else {
            self.second = (gap, 1);
        }
    }
    /// Removes a gap that was added.
    #[inline]
    fn remove(&mut self, gap: TimeDelta) {
        if gap == self.largest.0 {
            self.largest.1 = self.largest.1.saturating_sub(1);
        } else if gap == self.second.0 {
            self.second.1 = self.second.1.saturating_sub(1);
        }
    }
    /// Whether gaps have been removed so that the window has to be searched for the two largest.
    fn is_incomplete(&self) -> bool {
        self.largest.0 > TimeDelta::ZERO
            && (self.largest.1 == 0 || self.largest.1 == 1 && self.second.0 > TimeDelta::ZERO && self.second.1 == 0)
    }
    /// The two largest; they may be equal.
    fn two(&self) -> (TimeDelta, TimeDelta) {
        (self.largest.0, if self.largest.1 > 1 { self.largest.0 } else { self.second.0 })
    }
}

impl RobustThroughput {
    /// Takes a packet, in the order of arrival within a feedback message.
    pub(super) fn on_packet(&mut self, departure: Timestamp, arrival: RemoteTimestamp, size: DataSize) {
        self.is_stale = true;
        if let Some(last) = self.window.back() {
            let gap = arrival - last.arrival;
            if gap < -MAX_REORDERING {
                self.restart();
            } else if gap.is_negative() {
                return self.insert(Packet { departure, arrival, size });
            } else {
                self.gaps.add(gap);
                self.reordered += usize::from(departure < last.departure);
            }
        }
        self.size += size;
        // Made where it is kept: a copy would wait for its fields.
        self.window.push_back(Packet { departure, arrival, size });
    }

    fn restart(&mut self) {
        self.window.clear();
        self.gaps = LargestGaps::default();
        (self.size, self.reordered, self.discarded_departure) = (DataSize::ZERO, 0, None);
    }

    /// Inserts a packet that arrived before the last one.
    #[cold]
    fn insert(&mut self, packet: Packet) {
        let later = self.window.iter().rev().take_while(|p| p.arrival > packet.arrival).count();
        self.window.insert(self.window.len() - later, packet);
        self.size += packet.size;
        let in_order = self.window.iter().zip(self.window.iter().skip(1));
        self.reordered = in_order.filter(|(a, b)| b.departure < a.departure).count();
        self.find_gaps();
    }

    /// Removes what is outside the window. What was outside before the last packet still is: once a message is enough.
    fn expire(&mut self) {
        let Some(last) = self.window.back().map(|p| p.arrival) else { return };
        let mut kept = self.window.len();
        let mut gone: Option<Packet> = None;
        let mut latest = Timestamp::from_nanos(i64::MIN);
        let (front, back) = self.window.as_slices();
        for p in front.iter().chain(back) {
            if let Some(gone) = gone {
                self.reordered -= usize::from(p.departure < gone.departure);
                self.gaps.remove(p.arrival - gone.arrival);
            }
            let duration = last - p.arrival;
            // The usual ones first: one comparison decides for what stays, two for what goes.
            let stays = if duration > MIN_WINDOW {
                kept <= WINDOW_PACKETS && duration <= MAX_WINDOW
            } else {
                kept <= MAX_PACKETS
            };
            if stays {
                break;
            }
            kept -= 1;
            self.size = self.size.saturating_sub(p.size);
            latest = latest.max(p.departure);
            gone = Some(*p);
        }
        if gone.is_some() {
            self.discarded_departure = self.discarded_departure.max(Some(latest));
            self.window.drain(..self.window.len() - kept);
        }
    }

    /// Computes [`Self::rate`] for the packets so far; call it after each feedback message.
    pub(super) fn update(&mut self) {
        if std::mem::take(&mut self.is_stale) {
            self.expire();
            self.rate = self.measure();
        }
    }

    /// The rate at the last update; `None` with too few packets.
    pub(super) fn rate(&self) -> Option<DataRate> {
        self.rate
    }

    fn measure(&mut self) -> Option<DataRate> {
        if self.window.len() < REQUIRED_PACKETS {
            return None;
        }
        let (first, last) = (*self.window.front()?, *self.window.back()?);
        if self.gaps.is_incomplete() {
            self.find_gaps();
        }
        let (largest, second) = self.gaps.two();
        // The interval excludes the transmission of the first packet received, and of the last sent.
        let duration = last.arrival - first.arrival - largest + second;
        let received = DataRate::from_size_over(self.size.saturating_sub(first.size), duration.max(MIN_DURATION))?;
        Some(self.sent().rate().map_or(received, |r| r.min(received)))
    }

    /// Finds the largest gaps in the whole window.
    fn find_gaps(&mut self) {
        self.gaps = LargestGaps::default();
        let in_order = self.window.iter().zip(self.window.iter().skip(1));
        in_order.for_each(|(a, b)| self.gaps.add(b.arrival - a.arrival));
    }

    /// The window's packets by departure.
    fn sent(&self) -> Sent {
        let is_late = |p: &Packet| self.discarded_departure.is_some_and(|t| p.departure < t);
        match (self.window.front(), self.window.back()) {
            (Some(first), Some(last)) if self.reordered == 0 && !is_late(first) => {
                // In order; of packets sent at the same time as the last the first counts.
                let last = self.window.iter().rev().take_while(|p| p.departure == last.departure).last();
                Sent {
                    count: self.window.len(),
                    size: self.size,
                    first: Some(first.departure),
                    last: last.map(|p| (p.departure, p.size)),
                }
            }
            _ => {
                let mut sent = Sent::default();
                self.window.iter().filter(|p| !is_late(p)).for_each(|p| sent.add(p));
                sent
            }
        }
    }
}

/// The window's packets by departure.
#[derive(PartialEq, Debug, Default)]
struct Sent {
    count: usize,
    size: DataSize,
    first: Option<Timestamp>,
    last: Option<(Timestamp, DataSize)>,
}

impl Sent {
    fn add(&mut self, p: &Packet) {
        self.count += 1;
        self.size += p.size;
        self.first = Some(self.first.map_or(p.departure, |t| t.min(p.departure)));
        if self.last.is_none_or(|(t, _)| p.departure > t) {
            self.last = Some((p.departure, p.size));
        }
    }
    fn rate(&self) -> Option<DataRate> {
        let ((last, size), first) = (self.last?, self.first?);
        if self.count < REQUIRED_PACKETS {
            return None;
        }
        DataRate::from_size_over(self.size.saturating_sub(size), (last - first).max(MIN_DURATION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    /// Packets of 1,250 bytes: sent and received at these times in ms.
    fn rate(packets: impl IntoIterator<Item = (i64, i64)>) -> Option<f64> {
        let mut e = RobustThroughput::default();
        for (sent, arrived) in packets {
            e.on_packet(at(sent), RemoteTimestamp::from_millis(arrived), DataSize::from_bytes(1_250));
        }
        e.update();
        e.rate().map(DataRate::as_kbps_f64)
    }

    #[test]
    fn ten_packets_give_the_first_rate() {
        assert_eq!(rate((0..9).map(|i| (i * 10, i * 10))), None);
        assert_eq!(rate((0..10).map(|i| (i * 10, i * 10))), Some(1_000.0), "nine packets in 90 ms");
    }

    #[test]
    fn the_lower_of_the_rates_sent_and_received_counts() {
        assert_eq!(rate((0..20).map(|i| (i * 10, i * 20))), Some(500.0));
        assert_eq!(rate((0..20).map(|i| (i * 20, i * 10))), Some(500.0), "a queue that empties");
    }

    #[test]
    fn a_pause_is_left_out_of_the_arrivals() {
        // Twenty packets 10 ms apart with a pause of 500 ms in the path.
        assert_eq!(rate((0..20).map(|i| (i * 10, i * 10 + if i < 10 { 0 } else { 500 }))), Some(1_000.0));
    }

    #[test]
    fn a_fall_is_seen_within_its_window() {
        // 50 Mbit/s for ten seconds, then 2 Mbit/s: after a second nothing of the past is left.
        let fast = (0..1_000).map(|i| (i * 10, i * 10));
        let mut e = RobustThroughput::default();
        for (sent, arrived) in fast {
            e.on_packet(at(sent), RemoteTimestamp::from_millis(arrived), DataSize::from_bytes(62_500));
        }
        e.update();
        assert_eq!(e.rate(), Some(DataRate::from_mbps(50)));
        for i in 0..=100 {
            e.on_packet(
                at(10_000 + i * 10),
                RemoteTimestamp::from_millis(10_000 + i * 10),
                DataSize::from_bytes(2_500),
            );
        }
        e.update();
        assert_eq!(e.rate(), Some(DataRate::from_mbps(2)));
    }

    #[test]
    fn the_window_is_bounded_and_starts_again_with_a_new_clock() {
        let mut e = RobustThroughput::default();
        (0..2_000).for_each(|i| e.on_packet(at(i), RemoteTimestamp::from_micros(i * 100), DataSize::from_bytes(100)));
        e.update();
        assert_eq!(e.window.len(), MAX_PACKETS);
        e.on_packet(at(2_000), RemoteTimestamp::from_millis(-5_000), DataSize::from_bytes(100));
        assert_eq!(e.window.len(), 1);
        e.update();
        assert_eq!(e.rate(), None);
        e.on_packet(at(2_500), RemoteTimestamp::from_millis(9_000), DataSize::from_bytes(100));
        e.update();
        assert_eq!(e.window.len(), 1, "the other is 14 s old");
    }

    #[test]
    fn reordered_packets_are_sorted_by_arrival() {
        let ordered = rate((0..20).map(|i| (i * 10, i * 10)));
        let swapped = rate((0..20).map(|i| i ^ 1).map(|i| (i * 10, i * 10)));
        assert_eq!(ordered, swapped);
    }

    proptest! {
        /// Running sums and the gaps kept agree with a scan of the window, in any order of packets.
        #[test]
        fn sums_are_those_of_the_window(packets in prop::collection::vec((0i64..60, -40i64..60, 0u64..2_000, any::<bool>()), 1..300)) {
            let (mut e, mut often) = (RobustThroughput::default(), RobustThroughput::default());
            let mut now = 0;
            for (step, shift, size, ends_message) in packets {
                now += step;
                for e in [&mut e, &mut often] {
                    e.on_packet(at(now + shift), RemoteTimestamp::from_millis(now - shift / 2), DataSize::from_bytes(size));
                }
                often.update();
                if !ends_message {
                    continue;
                }
                e.update();
                // How packets are divided among messages does not matter.
                prop_assert_eq!((e.rate(), e.window.len()), (often.rate(), often.window.len()));
                prop_assert_eq!(e.discarded_departure, often.discarded_departure);
                let arrivals: Vec<_> = e.window.iter().map(|p| p.arrival).collect();
                prop_assert!(arrivals.is_sorted());
                let mut gaps: Vec<_> = arrivals.windows(2).map(|w| w[1] - w[0]).chain([TimeDelta::ZERO; 2]).collect();
                gaps.sort_unstable_by(|a, b| b.cmp(a));
                if e.gaps.is_incomplete() {
                    e.find_gaps();
                }
                prop_assert_eq!(e.gaps.two(), (gaps[0], gaps[1]));
                let late = |p: &Packet| e.discarded_departure.is_some_and(|t| p.departure < t);
                let mut sent = Sent::default();
                e.window.iter().filter(|p| !late(p)).for_each(|p| sent.add(p));
                prop_assert_eq!(e.sent(), sent);
                prop_assert_eq!(e.size, e.window.iter().fold(DataSize::ZERO, |sum, p| sum + p.size));
            }
        }
    }
}
