//! Statistics of a reporting interval: losses and discards by position (section 4.1), sending rate and goodput.

use crate::cue::{Fate, IntervalPacket};
use weir_units::{TimeDelta, Timestamp};

/// Losses and discards of an interval. Recent ones lie in its last part; the others may be ignored as transient.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) struct Losses {
    pub(super) any_lost: bool,
    pub(super) recent_lost: bool,
    pub(super) any_discarded: bool,
    pub(super) recent_discarded: bool,
}

impl Losses {
    /// Counts them. The last `recent_share` of the packets, by their number in the run lengths, is recent.
    pub(super) fn of(packets: &[IntervalPacket], recent_share: f64) -> Self {
        let stale = (packets.len() as f64 * (1.0 - recent_share)).max(0.0);
        let mut l = Self::default();
        for (k, p) in packets.iter().enumerate() {
            let recent = (k + 1) as f64 > stale;
            match p.fate {
                Fate::Received => {}
                Fate::Lost => (l.any_lost, l.recent_lost) = (true, l.recent_lost | recent),
                Fate::Discarded => (l.any_discarded, l.recent_discarded) = (true, l.recent_discarded | recent),
            }
        }
        l
    }
}

/// Rates of media over an interval, in bit/s.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct Rates {
    pub(super) sending: f64,
    /// Of packets neither lost nor discarded; packets recovered by repair do not count.
    pub(super) goodput: f64,
}

/// Last departure of the previous interval, from which to measure.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RateMeter {
    last: Option<Timestamp>,
}

impl RateMeter {
    /// The rates between the last departure of the previous interval and that of this one; in the first interval the
    /// first packet only starts the clock. `None` if no time has passed.
    pub(super) fn measure(&mut self, packets: &[IntervalPacket]) -> Option<Rates> {
        let end = packets.last()?.departure;
        let (start, counted) = match self.last {
            Some(last) => (last, packets),
            None => (packets[0].departure, &packets[1..]),
        };
        let time = end - start;
        if time <= TimeDelta::ZERO {
            return None;
        }
        self.last = Some(end);
        let (mut sent, mut received) = (0.0, 0.0);
        for p in counted {
            let bits = p.size.as_bits() as f64;
            sent += bits;
            if p.fate == Fate::Received {
                received += bits;
            }
        }
        let ns = time.as_nanos() as f64;
        Some(Rates { sending: sent * 1e9 / ns, goodput: received * 1e9 / ns })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::DataSize;

    fn packets(from_ms: i64, fates: &str) -> Vec<IntervalPacket> {
        let packet = |(k, c)| IntervalPacket {
            sequence: k as u64,
            departure: Timestamp::from_millis(from_ms + 10 * k as i64),
            size: DataSize::from_bytes(500),
            fate: match c {
                'r' => Fate::Received,
                'l' => Fate::Lost,
                _ => Fate::Discarded,
            },
            repaired: false,
        };
        fates.chars().enumerate().map(packet).collect()
    }

    #[test]
    fn the_position_separates_recent_from_stale() {
        let l = |fates: &str| {
            let l = Losses::of(&packets(0, fates), 0.5);
            (l.any_lost, l.recent_lost, l.any_discarded, l.recent_discarded)
        };
        assert_eq!(l(""), (false, false, false, false));
        assert_eq!(l("rrrr"), (false, false, false, false));
        // Both sides of the middle, for even and odd numbers of packets.
        assert_eq!(l("rlrr"), (true, false, false, false));
        assert_eq!(l("rrlr"), (true, true, false, false));
        assert_eq!(l("rdrr"), (false, false, true, false));
        assert_eq!(l("rrdr"), (false, false, true, true));
        assert_eq!(l("lr"), (true, false, false, false));
        assert_eq!(l("rrlrr"), (true, true, false, false));
        assert_eq!(l("rlrrr"), (true, false, false, false));
        assert_eq!(l("ldld"), (true, true, true, true));
        assert_eq!(l("l"), (true, true, false, false));
        let share = |share| Losses::of(&packets(0, "rrlr"), share).recent_lost;
        assert_eq!((share(0.0), share(0.25), share(0.26), share(1.0)), (false, false, true, true));
    }

    #[test]
    fn rates_are_over_departures() {
        let mut m = RateMeter::default();
        // 500 bytes every 10 ms: 400 kbit/s; the very first packet only starts the clock.
        assert_eq!(m.measure(&packets(0, "lrrl")), Some(Rates { sending: 400e3, goodput: 8e12 / 3e7 }));
        // Afterwards each packet counts with the time before it.
        assert_eq!(m.measure(&packets(40, "rdrl")), Some(Rates { sending: 400e3, goodput: 200e3 }));
        assert_eq!(m.measure(&packets(110, "r")), Some(Rates { sending: 100e3, goodput: 100e3 }));
        assert_eq!((m.measure(&[]), m.measure(&packets(110, "r"))), (None, None));
        assert_eq!(RateMeter::default().measure(&packets(0, "r")), None);
    }
}
