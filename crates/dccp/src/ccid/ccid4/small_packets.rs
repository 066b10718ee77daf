//! Changes of TFRC-SP at the sender (RFC 4828, section 3).

use super::Config;
use crate::ccid::ccid3::PacketSize;
use weir_units::{DataSize, TimeDelta, Timestamp};

/// Maximum packets within as many intervals (RFC 5622, section 5).
const BURST: usize = 3;

/// The equation's segment, and the spacing of packets.
#[derive(Clone, Debug)]
pub struct SmallPackets {
    nominal: f64,
    header: f64,
    interval: TimeDelta,
    /// Lateness of a packet that may be made up for.
    slack: TimeDelta,
    next: Timestamp,
    last: [Option<Timestamp>; BURST],
}

impl SmallPackets {
    pub(super) fn new(config: &Config, max_packet_size: DataSize, t_gran: TimeDelta, now: Timestamp) -> Self {
        Self {
            nominal: config.nominal_segment.min(max_packet_size).as_bytes() as f64,
            header: config.header.as_bytes() as f64,
            interval: config.min_interval,
            slack: t_gran.min(config.min_interval),
            next: now,
            last: [None; BURST],
        }
    }
}

impl PacketSize for SmallPackets {
    const COUNTS_LOSSES_OF_SHORT_INTERVALS: bool = true;

    /// The segment size with which the equation yields X for packets of this mean size, headers subtracted.
    fn segment(&self, mean: f64) -> f64 {
        self.nominal * mean / (mean + self.header)
    }

    fn earliest(&self, at: Timestamp) -> Timestamp {
        at.max(self.next)
    }

    fn on_sent(&mut self, now: Timestamp) {
        self.last.rotate_right(1);
        self.last[0] = Some(now);
        let spaced = self.next.max(now - self.slack) + self.interval;
        let oldest = self.last[BURST - 1].map_or(spaced, |t| t + self.interval * BURST as i64);
        self.next = spaced.max(oldest);
    }

    fn max_rate(&self, mean: f64) -> Option<f64> {
        Some(mean * 8.0 / self.interval.as_secs_f64().max(1e-9))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }
    fn small(t_gran: i64) -> SmallPackets {
        SmallPackets::new(&Config::default(), DataSize::from_bytes(1_400), TimeDelta::from_millis(t_gran), at(0))
    }

    #[test]
    fn the_header_is_taken_off() {
        // The path carries 1,400 bytes. Packets of 36 bytes are half header.
        assert_eq!(small(0).segment(36.0), 700.0);
        assert_eq!(small(0).segment(144.0), 1_120.0);
        assert_eq!(small(0).max_rate(160.0), Some(128e3));
    }

    #[test]
    fn packets_are_ten_milliseconds_apart() {
        let mut s = small(0);
        for ms in [0, 10, 27, 37] {
            assert!(s.next <= at(ms));
            s.on_sent(at(ms));
            assert_eq!(s.next, at(ms + 10));
        }
    }

    #[test]
    fn late_ones_are_made_up_for_three_in_thirty() {
        let mut s = small(10);
        s.on_sent(at(0));
        s.on_sent(at(17));
        assert_eq!(s.next, at(20));
        s.on_sent(at(20));
        assert_eq!(s.next, at(30));
        s.on_sent(at(39));
        // Its slack would give 40; 17, 20 and 39 lie within thirty before 47.
        assert_eq!(s.next, at(47));
    }
}
