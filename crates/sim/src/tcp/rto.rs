//! The retransmission timer's length (RFC 6298).

use weir_units::TimeDelta;

/// First RTO, before any sample (section 2.1).
pub(crate) const INITIAL_RTO: TimeDelta = TimeDelta::from_secs(1);
/// RTO after a SYN had to be repeated, until there is a sample (section 5.7).
const RTO_AFTER_LOST_SYN: TimeDelta = TimeDelta::from_secs(3);
/// Upper bound of the RTO: at least 60 s (section 2.5).
const MAX_RTO: TimeDelta = TimeDelta::from_secs(60);
/// Clock granularity G (section 2): that of a kernel with a millisecond clock.
const GRANULARITY: TimeDelta = TimeDelta::from_millis(1);

/// Smoothed round-trip time, its variation, and the timeout that follows from them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rto {
    srtt: Option<TimeDelta>,
    rttvar: TimeDelta,
    rto: TimeDelta,
    min: TimeDelta,
    /// Number of expirations since the last sample.
    backoffs: u32,
}

impl Rto {
    pub(crate) fn new(min: TimeDelta) -> Self {
        Self { srtt: None, rttvar: TimeDelta::ZERO, rto: INITIAL_RTO.max(min), min, backoffs: 0 }
    }

    /// A round-trip time sample of a segment sent once, or whose acknowledgement shows which copy it answers
    /// (section 3).
    pub(crate) fn on_sample(&mut self, rtt: TimeDelta) {
        match self.srtt {
            None => {
                self.srtt = Some(rtt);
                self.rttvar = rtt / 2;
            }
            Some(srtt) => {
                // alpha = 1/8, beta = 1/4 (section 2.3).
                self.rttvar = (self.rttvar * 3 + (srtt - rtt).abs()) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
        let srtt = self.srtt.unwrap_or(rtt);
        self.rto = (srtt + (self.rttvar * 4).max(GRANULARITY)).max(self.min).min(MAX_RTO);
        self.backoffs = 0;
    }

    /// The timer has expired (section 5.5).
    pub(crate) fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(MAX_RTO);
        self.backoffs = self.backoffs.saturating_add(1);
    }

    /// The handshake has completed with a repeated SYN (section 5.7).
    pub(crate) fn after_lost_syn(&mut self) {
        if self.srtt.is_none() {
            self.rto = RTO_AFTER_LOST_SYN.max(self.min);
        }
        self.backoffs = 0;
    }

    pub(crate) fn rto(&self) -> TimeDelta {
        self.rto
    }
    pub(crate) fn srtt(&self) -> Option<TimeDelta> {
        self.srtt
    }
    pub(crate) fn backoffs(&self) -> u32 {
        self.backoffs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    #[test]
    fn follows_the_equations() {
        let mut r = Rto::new(TimeDelta::ZERO);
        assert_eq!(r.rto(), MS(1_000));
        r.on_sample(MS(100)); // SRTT 100, RTTVAR 50
        assert_eq!(r.rto(), MS(300));
        r.on_sample(MS(180)); // RTTVAR 3/4 * 50 + 1/4 * 80 = 57.5, SRTT 7/8 * 100 + 180/8 = 110
        assert_eq!((r.srtt(), r.rto()), (Some(MS(110)), MS(340)));
    }

    #[test]
    fn keeps_its_bounds_and_backs_off() {
        let mut r = Rto::new(MS(1_000));
        r.on_sample(MS(10));
        assert_eq!(r.rto(), MS(1_000));
        for k in 1..=10 {
            r.back_off();
            assert_eq!(r.rto(), MS((1_000i64 << k).min(60_000)));
        }
        assert_eq!(r.backoffs(), 10);
        r.on_sample(MS(10));
        assert_eq!((r.rto(), r.backoffs()), (MS(1_000), 0));
    }

    #[test]
    fn a_steady_path_leaves_the_granularity() {
        let mut r = Rto::new(TimeDelta::ZERO);
        for _ in 0..100 {
            r.on_sample(MS(100));
        }
        assert_eq!(r.rto(), MS(101));
    }
}
