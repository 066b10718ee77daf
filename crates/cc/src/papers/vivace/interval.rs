//! Monitor intervals: what was sent at one rate, and what became of it.

use super::learner::Trial;
use crate::cue::{PacketResult, SentPacket};
use std::collections::VecDeque;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Least packets of an interval (the later program's `kMinPacketPerInterval`).
const MIN_PACKETS: u32 = 5;
/// Most intervals that wait for reports; the oldest then counts as one without a result.
const MAX_WAITING: usize = 64;

/// One interval, with sums for the line through the delays of its packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interval {
    pub(super) rate: DataRate,
    pub(super) trial: Trial,
    began: Timestamp,
    ended: Option<Timestamp>,
    first: u64,
    packets: u32,
    bytes: u64,
    resolved: u32,
    pub(super) lost_bytes: u64,
    /// Departure and delay of the first packet received, from which the sums count.
    origin: Option<(Timestamp, TimeDelta)>,
    n: f64,
    x: f64,
    y: f64,
    xx: f64,
    xy: f64,
    yy: f64,
}

impl Interval {
    /// The rate sent, in bit/s, over the time until the next interval.
    pub(super) fn sent_rate(&self) -> f64 {
        let duration = self.span();
        if duration > 0.0 { self.bytes as f64 * 8.0 / duration } else { 0.0 }
    }
    /// Its duration in seconds.
    pub(super) fn span(&self) -> f64 {
        self.ended.map_or(0.0, |e| (e - self.began).as_secs_f64())
    }
    /// The share of the bytes that was lost.
    pub(super) fn loss(&self) -> f64 {
        if self.bytes > 0 { self.lost_bytes as f64 / self.bytes as f64 } else { 0.0 }
    }
    /// Slope of the delay over the time of sending, and the root mean square of what the line leaves, in seconds; `None` with fewer
    /// than three packets.
    pub(super) fn delay_slope(&self) -> Option<(f64, f64)> {
        let var_x = self.n * self.xx - self.x * self.x;
        if self.n < 3.0 || var_x <= 0.0 {
            return None;
        }
        let slope = (self.n * self.xy - self.x * self.y) / var_x;
        let cut = (self.y - slope * self.x) / self.n;
        let rest = self.yy - 2.0 * (slope * self.xy + cut * self.y)
            + slope * slope * self.xx
            + 2.0 * slope * cut * self.x
            + self.n * cut * cut;
        Some((slope, (rest.max(0.0) / self.n).sqrt()))
    }

    fn contains(&self, sequence: u64) -> bool {
        sequence >= self.first && sequence - self.first < u64::from(self.packets)
    }

    fn on_fate(&mut self, p: &PacketResult) {
        self.resolved += 1;
        let Some(arrival) = p.arrival else {
            self.lost_bytes += p.size.as_bytes();
            return;
        };
        // The clocks' difference is the same for all packets.
        let delay = TimeDelta::from_nanos(arrival.as_nanos().saturating_sub(p.departure.as_nanos()));
        let (start, base) = *self.origin.get_or_insert((p.departure, delay));
        let (x, y) = ((p.departure - start).as_secs_f64(), (delay - base).as_secs_f64());
        self.n += 1.0;
        self.x += x;
        self.y += y;
        self.xx += x * x;
        self.xy += x * y;
        self.yy += y * y;
    }
}

/// The current interval, and those whose packets are not all reported.
#[derive(Clone, Debug, Default)]
pub(super) struct Intervals(VecDeque<Interval>);

impl Intervals {
    /// Whether the next interval is to begin.
    pub(super) fn is_over(&self, now: Timestamp, length: TimeDelta) -> bool {
        self.0.back().is_none_or(|i| now - i.began >= length && i.packets >= MIN_PACKETS)
    }

    pub(super) fn begin(&mut self, rate: DataRate, trial: Trial, now: Timestamp) {
        if let Some(last) = self.0.back_mut() {
            last.ended = Some(now);
        }
        self.0.push_back(Interval {
            rate,
            trial,
            began: now,
            ended: None,
            first: 0,
            packets: 0,
            bytes: 0,
            resolved: 0,
            lost_bytes: 0,
            origin: None,
            n: 0.0,
            x: 0.0,
            y: 0.0,
            xx: 0.0,
            xy: 0.0,
            yy: 0.0,
        });
    }

    pub(super) fn on_sent(&mut self, packet: &SentPacket) {
        let Some(last) = self.0.back_mut() else { return };
        if last.packets == 0 {
            last.first = packet.sequence;
        }
        last.packets += 1;
        last.bytes += packet.size.as_bytes();
    }

    /// A packet is reported. One that was reported lost before has had its effect.
    pub(super) fn on_fate(&mut self, p: &PacketResult) {
        if p.was_lost {
            return;
        }
        if let Some(i) = self.0.iter_mut().find(|i| i.contains(p.sequence)) {
            i.on_fate(p);
        }
    }

    /// The next interval in order that is over and reported, or that has waited behind too many others.
    pub(super) fn take_done(&mut self) -> Option<Interval> {
        let first = self.0.front()?;
        let is_done = first.ended.is_some() && first.resolved >= first.packets;
        if is_done || self.0.len() > MAX_WAITING { self.0.pop_front() } else { None }
    }
}
