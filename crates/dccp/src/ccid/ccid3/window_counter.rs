//! CCVal at the sender: quarters of round trips (RFC 4342, section 8.1).

use weir_units::{TimeDelta, Timestamp};

/// WCTRMAX.
pub(super) const MODULUS: u8 = 16;
/// Maximum difference between consecutive data packets.
const MAX_STEP: u8 = 5;

/// The window counter.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowCounter {
    /// last_WC and last_WC_time; no time before the first packet.
    last: u8,
    since: Option<Timestamp>,
    /// The counter of the last data packet.
    sent: u8,
}

impl WindowCounter {
    /// The counter of a data packet sent now.
    pub(super) fn get(&self, now: Timestamp, rtt: TimeDelta) -> u8 {
        let Some(since) = self.since else { return 0 };
        let quarters = (now.saturating_since(since).as_nanos()) / (rtt.as_nanos() / 4).max(1);
        let step = quarters.clamp(0, i64::from(MAX_STEP)) as u8;
        let already = distance(self.sent, self.last);
        (self.last + step.min(MAX_STEP.saturating_sub(already))) % MODULUS
    }

    /// A data packet is sent now.
    pub(super) fn on_sent(&mut self, now: Timestamp, rtt: TimeDelta) -> u8 {
        let value = self.get(now, rtt);
        if value != self.last || self.since.is_none() {
            self.since = Some(now);
        }
        (self.last, self.sent) = (value, value);
        value
    }

    /// A packet with this counter was acknowledged: packets from now on are a round trip later.
    pub(super) fn on_acknowledged(&mut self, counter: u8, now: Timestamp) {
        // Counters that were not sent yet cannot be acknowledged.
        if distance(counter, self.last) < 4 && distance(counter, self.sent) < 4 {
            self.last = (counter + 4) % MODULUS;
            self.since = Some(now);
        }
    }
}

/// D for which `from` + D = `to` in the circle.
pub(super) fn distance(from: u8, to: u8) -> u8 {
    (to + MODULUS - from % MODULUS) % MODULUS
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn a_quarter_of_a_round_trip_is_one() {
        let mut c = WindowCounter::default();
        // The counter's time is that of the first packet with it, so 24 and 49 ms are still less than a quarter later.
        let sent = [1_000, 1_024, 1_025, 1_049, 1_060, 1_085, 1_110].map(|ms| c.on_sent(at(ms), RTT));
        assert_eq!(sent, [0, 0, 1, 1, 2, 3, 4]);
        assert_eq!(c.get(at(1_185), RTT), 7);
    }

    #[test]
    fn a_pause_counts_as_five_and_the_circle_closes() {
        let mut c = WindowCounter::default();
        let sent: Vec<u8> = (0..8).map(|n| c.on_sent(at(400 * n), RTT)).collect();
        assert_eq!(sent, [0, 5, 10, 15, 4, 9, 14, 3]);
    }

    #[test]
    fn an_acknowledged_packet_is_a_round_trip_ago() {
        let mut c = WindowCounter::default();
        c.on_sent(at(0), RTT);
        c.on_acknowledged(0, at(20));
        assert_eq!(c.get(at(20), RTT), 4);
        assert_eq!(c.on_sent(at(45), RTT), 5);
        // Nothing to do: packets are already four ahead.
        c.on_acknowledged(1, at(46));
        assert_eq!(c.get(at(46), RTT), 5);
    }

    #[test]
    fn neighbours_never_differ_by_more_than_five() {
        let mut c = WindowCounter::default();
        c.on_sent(at(0), RTT);
        c.on_acknowledged(0, at(20));
        assert_eq!(c.on_sent(at(10_000), RTT), 5);
        c.on_acknowledged(5, at(10_010));
        c.on_acknowledged(9, at(10_020));
        assert_eq!(c.on_sent(at(20_000), RTT), 10);
    }
}
