use super::Config;
use crate::ccid::Permission;
use weir_units::{TimeDelta, Timestamp};

/// Bounds bursts: a bucket of `max_burst` packets that fills at `burst_gain` windows in a round trip.
#[derive(Clone, Copy, Debug)]
pub(super) struct Burst {
    max: u32,
    gain: f64,
    /// When the bucket will be full.
    full_at: Timestamp,
}

impl Burst {
    pub(super) fn new(config: &Config, now: Timestamp) -> Self {
        Self { max: config.max_burst, gain: config.burst_gain, full_at: now }
    }
    /// Time between packets at the rate of filling.
    fn interval(&self, cwnd: u32, rtt: Option<TimeDelta>) -> Option<TimeDelta> {
        rtt.filter(|_| self.max > 0).map(|r| r.mul_f64(1.0 / (f64::from(cwnd.max(1)) * self.gain)))
    }
    pub(super) fn permission(&self, now: Timestamp, cwnd: u32, rtt: Option<TimeDelta>) -> Permission {
        let Some(interval) = self.interval(cwnd, rtt) else { return Permission::Now };
        let at = self.full_at - interval * i64::from(self.max - 1);
        if at <= now { Permission::Now } else { Permission::At(at) }
    }
    pub(super) fn on_sent(&mut self, now: Timestamp, cwnd: u32, rtt: Option<TimeDelta>) {
        if let Some(interval) = self.interval(cwnd, rtt) {
            // At most one round trip, in case the window has shrunk or the round-trip time grown.
            let most = interval * i64::from(self.max);
            self.full_at = (self.full_at.max(now) + interval).min(now + most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lets_a_burst_through_and_then_twice_the_window() {
        let rtt = Some(TimeDelta::from_millis(100));
        let mut b = Burst::new(&Config::default(), Timestamp::ZERO);
        let sent_at = |b: &mut Burst, now| {
            let mut n = 0;
            while b.permission(now, 50, rtt) == Permission::Now {
                b.on_sent(now, 50, rtt);
                n += 1;
            }
            n
        };
        assert_eq!(sent_at(&mut b, Timestamp::ZERO), 10);
        // 50 packets in 100 ms, twice as fast: one a millisecond.
        assert_eq!(b.permission(Timestamp::ZERO, 50, rtt), Permission::At(Timestamp::from_millis(1)));
        assert_eq!(sent_at(&mut b, Timestamp::from_millis(1)), 1);
        assert_eq!(sent_at(&mut b, Timestamp::from_millis(6)), 5);
        assert_eq!(sent_at(&mut b, Timestamp::from_secs(6)), 10);
        assert_eq!(b.permission(Timestamp::from_secs(6), 50, None), Permission::Now, "nothing to go by");
        b.max = 0;
        assert_eq!(b.permission(Timestamp::from_secs(6), 50, rtt), Permission::Now, "no bound");
    }
}
