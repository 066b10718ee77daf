//! Groups packets into frames by their RTP timestamps, for receivers that observe frame arrivals.

use crate::cue::ReceivedPacket;
use weir_units::{TimeDelta, Timestamp};

/// A frame this much earlier or later than its timestamp implies shows that the sender's clock has changed.
const CLOCK_JUMP: TimeDelta = TimeDelta::from_secs(5);
/// Consecutive packets of older frames from which the sender's clock has gone back.
const MAX_REORDERED: u32 = 3;
/// Upper bound of a packet's size; larger ones are forged.
const MAX_PACKET: u64 = 1 << 16;
/// Longer gaps in the sequence numbers count as this many packets.
const MAX_GAP: u64 = 10_000;
/// Upper bound of the bytes counted for a frame.
const MAX_FRAME: u64 = 1 << 22;

/// A complete frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame {
    /// RTP timestamp as it stands in the packets.
    pub(crate) rtp_timestamp: u32,
    /// Arrival of the last packet.
    pub(crate) arrival: Timestamp,
    /// Bytes.
    pub(crate) size: u64,
}

/// A complete frame relative to the one before.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Step {
    /// The frame.
    pub(crate) frame: Frame,
    /// Bytes of the frame before.
    pub(crate) previous_size: u64,
    /// T(i) - T(i-1), by the RTP timestamps.
    pub(crate) departure: TimeDelta,
    /// t(i) - t(i-1), from last packet to last packet.
    pub(crate) arrival: TimeDelta,
    /// Packets received after the frame before, and packets missing among them.
    pub(crate) packets: u32,
    pub(crate) missing: u32,
}

impl Step {
    /// d(i): how much longer this frame took to arrive than the one before.
    pub(crate) fn delay(&self) -> TimeDelta {
        self.arrival - self.departure
    }
}

/// The result of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Framed {
    /// The frame is incomplete, or the packet was reordered.
    Nothing,
    /// A frame is complete.
    Step(Step),
    /// The packet does not fit the sequence; filters must restart.
    Restart,
}

/// Groups packets into frames. A frame is complete with its marker bit or the first packet of a later one.
#[derive(Clone, Debug)]
pub(crate) struct Frames {
    clock_rate: f64,
    /// Cache of the last conversion from ticks to time, since frames are evenly spaced.
    step: (i32, TimeDelta),
    open: Option<Frame>,
    last: Option<Frame>,
    sequence: Option<u64>,
    packets: u32,
    missing: u32,
    reordered: u32,
}

impl Frames {
    /// For an RTP clock of this rate in ticks a second.
    pub(crate) fn new(clock_rate: f64) -> Self {
        Self {
            clock_rate,
            step: (0, TimeDelta::ZERO),
            open: None,
            last: None,
            sequence: None,
            packets: 0,
            missing: 0,
            reordered: 0,
        }
    }

    /// Takes a packet; call it in order of arrival.
    pub(crate) fn on_packet(&mut self, packet: &ReceivedPacket) -> Framed {
        let size = packet.size.as_bytes().min(MAX_PACKET);
        let gap = self.sequence.map_or(0, |s| packet.sequence.saturating_sub(s).saturating_sub(1));
        let fresh = Frame { rtp_timestamp: packet.rtp_timestamp, arrival: packet.now, size };
        let newest = self.open.or(self.last);
        let since = newest.map_or(0, |f| packet.rtp_timestamp.wrapping_sub(f.rtp_timestamp) as i32);
        if since < 0 || (since == 0 && self.open.is_none() && newest.is_some()) {
            self.reordered += u32::from(since < 0);
            if self.reordered <= MAX_REORDERED {
                return Framed::Nothing;
            }
            return self.restart(fresh, packet);
        }
        let passed = newest.map_or(TimeDelta::ZERO, |f| packet.now - f.arrival);
        if (passed - self.time(since)).abs() > CLOCK_JUMP {
            return self.restart(fresh, packet);
        }
        self.reordered = 0;
        self.sequence = Some(packet.sequence);
        let mut whole = Framed::Nothing;
        match &mut self.open {
            Some(frame) if since == 0 => {
                frame.arrival = packet.now;
                frame.size = (frame.size + size).min(MAX_FRAME);
            }
            // The marker of the frame before is lost: drop that frame if this one is already complete.
            open if packet.marker => *open = Some(fresh),
            _ => {
                whole = self.close();
                self.open = Some(fresh);
            }
        }
        // A gap counts towards the frame after it, and so do dropped packets.
        self.packets = self.packets.saturating_add(1);
        self.missing = self.missing.saturating_add(gap.min(MAX_GAP) as u32);
        if packet.marker {
            whole = self.close();
        }
        whole
    }

    fn restart(&mut self, fresh: Frame, packet: &ReceivedPacket) -> Framed {
        *self = Self { open: Some(fresh), sequence: Some(packet.sequence), packets: 1, ..Self::new(self.clock_rate) };
        Framed::Restart
    }

    fn time(&mut self, ticks: i32) -> TimeDelta {
        if ticks != self.step.0 {
            self.step = (ticks, TimeDelta::from_secs_f64(f64::from(ticks) / self.clock_rate));
        }
        self.step.1
    }

    fn close(&mut self) -> Framed {
        let Some(frame) = self.open.take() else { return Framed::Nothing };
        let Some(before) = self.last.replace(frame) else {
            (self.packets, self.missing) = (0, 0);
            return Framed::Nothing;
        };
        Framed::Step(Step {
            frame,
            previous_size: before.size,
            departure: self.time(frame.rtp_timestamp.wrapping_sub(before.rtp_timestamp) as i32),
            arrival: frame.arrival - before.arrival,
            packets: core::mem::take(&mut self.packets),
            missing: core::mem::take(&mut self.missing),
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use weir_units::{DataSize, Ecn};

    /// A packet of a video stream at 90 kHz whose frame was captured at `sent_ms`.
    pub(crate) fn packet(sequence: u64, sent_ms: f64, arrival_ms: f64, size: u64, marker: bool) -> ReceivedPacket {
        ReceivedPacket {
            now: Timestamp::from_secs_f64(arrival_ms * 1e-3),
            departure: None,
            size: DataSize::from_bytes(size),
            payload: DataSize::from_bytes(size),
            sequence,
            rtp_timestamp: (sent_ms * 90.0) as u64 as u32,
            marker,
            ecn: Ecn::NotEct,
        }
    }

    fn steps(packets: &[(u64, f64, f64, bool)]) -> Vec<(f64, f64, u64, u32)> {
        let mut frames = Frames::new(90_000.0);
        let mut all = Vec::new();
        for &(sequence, sent, arrival, marker) in packets {
            if let Framed::Step(s) = frames.on_packet(&packet(sequence, sent, arrival, 1_000, marker)) {
                all.push((s.departure.as_millis_f64(), s.arrival.as_millis_f64(), s.frame.size, s.missing));
            }
        }
        all
    }

    #[test]
    fn frames_end_with_the_marker_or_the_next_timestamp() {
        let packets = [
            (0, 0.0, 100.0, false),
            (1, 0.0, 110.0, true),
            (2, 40.0, 150.0, true),
            // The marker of the third frame is lost, and the whole fourth frame.
            (3, 80.0, 190.0, false),
            (6, 160.0, 270.0, true),
            (7, 200.0, 311.0, true),
        ];
        let expected = [(40.0, 40.0, 1_000, 0), (120.0, 120.0, 1_000, 2), (40.0, 41.0, 1_000, 0)];
        assert_eq!(steps(&packets), expected);
        // Without markers each frame is complete when the next begins.
        let packets: Vec<_> = (0..8).map(|k| (k, 20.0 * (k / 2) as f64, 10.0 * k as f64, false)).collect();
        assert_eq!(steps(&packets), [(20.0, 20.0, 2_000, 0); 2]);
    }

    #[test]
    fn old_packets_do_not_count_and_another_clock_restarts() {
        let mut frames = Frames::new(90_000.0);
        let mut take =
            |sequence, sent: f64, arrival: f64| frames.on_packet(&packet(sequence, sent, arrival, 1_000, true));
        assert_eq!(take(0, 1_000.0, 50.0), Framed::Nothing);
        assert!(matches!(take(1, 1_040.0, 90.0), Framed::Step(_)));
        assert_eq!(take(0, 1_000.0, 91.0), Framed::Nothing);
        assert_eq!(take(1, 1_040.0, 92.0), Framed::Nothing);
        assert!(matches!(take(2, 1_080.0, 130.0), Framed::Step(_)));
        assert_eq!(take(3, 20_000.0, 140.0), Framed::Restart);
        (4..7).for_each(|k| assert_eq!(take(k, 10.0 * k as f64, 150.0), Framed::Nothing));
        assert_eq!(take(7, 70.0, 150.0), Framed::Restart);
    }

    #[test]
    fn timestamps_wrap() {
        let mut frames = Frames::new(90_000.0);
        let wrap = f64::from(u32::MAX) / 90.0;
        frames.on_packet(&packet(0, wrap - 20.0, 50.0, 1_000, true));
        let Framed::Step(s) = frames.on_packet(&packet(1, wrap + 20.0, 90.0, 1_000, true)) else {
            panic!("a frame");
        };
        assert!((39.9..=40.1).contains(&s.departure.as_millis_f64()), "{s:?}");
        assert!(s.delay().abs() < TimeDelta::from_micros(100));
    }
}
