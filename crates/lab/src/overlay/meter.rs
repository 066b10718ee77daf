//! Delays of the packets that a node receives, and when it was last without a parent.

use super::source::{FRAMES, frame_time};
use weir_units::{TimeDelta, Timestamp};

/// A packet that has not arrived.
const MISSING: u16 = u16::MAX;

/// Delays of a node's packets, and when it lacked a parent last.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    first_sequence: u16,
    packets_a_frame: u64,
    /// Delay of each packet of the stream since it was sent, in ms, rounded down; at most a minute.
    delays: Vec<u16>,
    /// When the node last lacked a parent, or had one that lacked the tree.
    unconnected: Option<Timestamp>,
    connected: bool,
    /// From when on it is counted how often and how long that was, and the sum.
    counted_from: Timestamp,
    breaks: u64,
    broken: TimeDelta,
    since: Option<Timestamp>,
}

impl Meter {
    pub(super) fn new(first_sequence: u16, packets_a_frame: u32, packets: usize, counted_from: Timestamp) -> Self {
        let packets_a_frame = u64::from(packets_a_frame);
        Self {
            first_sequence,
            packets_a_frame,
            delays: vec![MISSING; packets],
            unconnected: None,
            connected: false,
            counted_from,
            breaks: 0,
            broken: TimeDelta::ZERO,
            since: None,
        }
    }

    /// When a packet was sent.
    pub(super) fn sent(&self, packet: usize) -> Timestamp {
        Timestamp::ZERO + frame_time(packet as u64 / self.packets_a_frame)
    }

    /// A packet has arrived for the first time.
    pub(super) fn on_packet(&mut self, sequence: u16, now: Timestamp) {
        // The stream's position determines the cycle of the 16-bit numbers.
        let frames = i128::from(now.as_nanos()) * i128::from(FRAMES) / 1_000_000_000;
        let newest = (frames as u64 + 1) * self.packets_a_frame;
        let place = sequence.wrapping_sub(self.first_sequence);
        let back = (newest as u16).wrapping_sub(place) as i16;
        let packet = newest.saturating_add_signed(-i64::from(back)) as usize;
        let delay = now.saturating_since(self.sent(packet)).as_millis().clamp(0, i64::from(MISSING) - 1);
        if let Some(d) = self.delays.get_mut(packet) {
            *d = (*d).min(delay as u16);
        }
    }

    pub(super) fn on_connection(&mut self, connected: bool, now: Timestamp) {
        if !connected || !self.connected {
            self.unconnected = Some(now);
        }
        if now >= self.counted_from {
            match (self.since, connected) {
                (None, false) => {
                    self.breaks += 1;
                    self.since = Some(now);
                }
                (Some(since), true) => {
                    self.broken += now.saturating_since(since);
                    self.since = None;
                }
                _ => {}
            }
        }
        self.connected = connected;
    }

    /// How often the node lacked a parent, and how long in all until `end`, since it is counted.
    pub(super) fn breaks(&self, end: Timestamp) -> (u64, TimeDelta) {
        let open = self.since.map_or(TimeDelta::ZERO, |since| end.saturating_since(since));
        (self.breaks, self.broken + open)
    }

    /// When the node last lacked a parent; `None` if it does now.
    pub(super) fn connected_since(&self) -> Option<Timestamp> {
        self.unconnected.filter(|_| self.connected)
    }

    /// Packets sent from one time on and before another: the number of each, and its delay if it has arrived.
    pub(super) fn packets(&self, from: Timestamp, to: Timestamp) -> impl Iterator<Item = (usize, Option<TimeDelta>)> {
        let all = self.delays.iter().enumerate();
        all.skip_while(move |(k, _)| self.sent(*k) < from)
            .take_while(move |(k, _)| self.sent(*k) < to)
            .map(|(k, d)| (k, (*d != MISSING).then(|| TimeDelta::from_millis(i64::from(*d)))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_without_a_parent_add_up() {
        let (mut meter, at) = (Meter::new(0, 1, 10, Timestamp::from_millis(100)), Timestamp::from_millis);
        for (ms, connected) in
            [(0, false), (50, true), (120, true), (200, false), (250, false), (500, true), (900, false)]
        {
            meter.on_connection(connected, at(ms));
        }
        assert_eq!(meter.breaks(at(1_000)), (2, TimeDelta::from_millis(400)));
        assert_eq!(meter.connected_since(), None);
    }

    #[test]
    fn packets_are_found_across_the_wrap_of_their_numbers() {
        let mut meter = Meter::new(65_534, 2, 70_000, Timestamp::ZERO);
        meter.on_packet(65_534, Timestamp::from_millis(40));
        meter.on_packet(1, Timestamp::from_millis(40));
        // Packet 65,539, of frame 32,769, in the next cycle.
        meter.on_packet(1, Timestamp::from_millis(1_092_400));
        let all: Vec<_> =
            meter.packets(Timestamp::ZERO, Timestamp::from_secs(2_000)).filter(|p| p.1.is_some()).collect();
        let ms = |ms| Some(TimeDelta::from_millis(ms));
        assert_eq!(all, [(0, ms(40)), (3, ms(6)), (65_539, ms(100))]);
        let between = meter.packets(Timestamp::from_millis(30), Timestamp::from_millis(70));
        assert_eq!(between.map(|p| p.0).collect::<Vec<_>>(), [2, 3, 4, 5]);
    }
}
