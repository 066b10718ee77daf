//! Send times of packets (RFC 5348, sections 4.6 and 8.3).

use weir_units::{DataSize, TimeDelta, Timestamp};

/// Maximum wait of a packet at any rate: t_mbi has its own bound.
const LONGEST: f64 = 1e6;

/// The nominal send time of the next packet. Rates in bits per second.
#[derive(Clone, Copy, Debug)]
pub(in crate::ccid) struct Schedule {
    next: Timestamp,
}

impl Schedule {
    pub(in crate::ccid) fn new(now: Timestamp) -> Self {
        Self { next: now }
    }

    /// The nominal send time.
    pub(in crate::ccid) fn next(&self) -> Timestamp {
        self.next
    }

    /// A packet is sent. Unused send times of the last `credit` count.
    pub(in crate::ccid) fn on_sent(&mut self, now: Timestamp, size: DataSize, rate: f64, credit: TimeDelta) {
        let interval = (size.as_bits() as f64 / rate.max(1e-3)).min(LONGEST);
        self.next = self.next.max(now - credit) + TimeDelta::from_secs_f64(interval);
    }

    /// The rate changes: the remaining wait is scaled to the new one.
    pub(in crate::ccid) fn on_rate(&mut self, now: Timestamp, before: f64, after: f64) {
        if self.next > now {
            self.next = now + (self.next - now).mul_f64((before / after.max(1e-3)).min(LONGEST));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: DataSize = DataSize::from_bytes(1_000);
    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millis(ms)
    }

    #[test]
    fn late_packets_catch_up_and_idle_time_counts_for_one_round_trip() {
        // 1,000 bytes every 10 ms.
        let rtt = TimeDelta::from_millis(50);
        let mut s = Schedule::new(at(0));
        s.on_sent(at(0), SIZE, 800e3, rtt);
        assert_eq!(s.next(), at(10));
        s.on_sent(at(17), SIZE, 800e3, rtt);
        assert_eq!(s.next(), at(20), "the 7 ms are made up for");
        s.on_sent(at(1_000), SIZE, 800e3, rtt);
        assert_eq!(s.next(), at(960), "five more may go at once");
    }

    #[test]
    fn a_new_rate_holds_for_the_wait_under_way() {
        let mut s = Schedule::new(at(0));
        s.on_sent(at(0), SIZE, 8e3, TimeDelta::ZERO);
        assert_eq!(s.next(), at(1_000));
        s.on_rate(at(200), 8e3, 32e3);
        assert_eq!(s.next(), at(400));
        s.on_rate(at(500), 32e3, 8e3);
        assert_eq!(s.next(), at(400), "it is over");
    }
}
