//! Throughput of a TCP flow by loss event rate, and the inverse.
//!
//! The full equation is that of RFC 5348, section 3.1 (Padhye et al., 1998, slightly simplified); it is also printed in
//! RFC 8083, section 4.3, and as equation 2 of DP-FEC (Matsuzono et al., 2012). The simplified one, without the
//! retransmission timeout, is Mathis et al., 1997, as printed in RFC 8083.

use weir_units::{DataRate, DataSize, TimeDelta};

/// Lower bound of [`TcpFlow::loss_event_rate`]: one event in 10^12 packets.
pub const MIN_LOSS_EVENT_RATE: f64 = 1e-12;
/// Number of bisections. The bracket starts at most 1 wide, so the remainder is below the resolution of `f64`.
const BISECTIONS: u32 = 100;

/// The throughput equation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Equation {
    /// Without retransmission timeouts: s / (R * sqrt(2bp/3)) (RFC 8083, section 4.3, after Mathis et al.).
    Simplified,
    /// With retransmission timeouts: s / (R * sqrt(2bp/3) + t_RTO * 3 * sqrt(3bp/8) * p * (1 + 32p^2)) (RFC 5348,
    /// section 3.1).
    Full,
}

/// A notional long-lived TCP Reno flow.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TcpFlow {
    /// s: segment size in bytes, without transport and IP headers.
    pub segment: DataSize,
    /// R: round-trip time.
    pub rtt: TimeDelta,
    /// t_RTO: retransmission timeout, used by the full equation only.
    pub rto: TimeDelta,
    /// b: packets per acknowledgement; above 0.
    pub packets_per_ack: f64,
}

impl TcpFlow {
    /// A flow as recommended by RFC 5348, section 3.1: t_RTO = 4 R and b = 1.
    pub fn new(segment: DataSize, rtt: TimeDelta) -> Self {
        Self { segment, rtt, rto: rtt * 4, packets_per_ack: 1.0 }
    }

    /// The flow's mean rate at a loss event rate `p` in events per packet, limited to 1. `None` if the flow is
    /// unbounded: `p` or the round-trip time is not above zero.
    pub fn throughput(&self, equation: Equation, p: f64) -> Option<DataRate> {
        let seconds = self.seconds_per_segment(equation, p)?;
        Some(DataRate::from_bps_f64(self.segment.as_bits() as f64 / seconds))
    }

    /// As [`Self::throughput`], in segments per second.
    pub fn segments_per_second(&self, equation: Equation, p: f64) -> Option<f64> {
        self.seconds_per_segment(equation, p).map(f64::recip)
    }

    /// The equation's denominator, if there is one; above zero.
    fn seconds_per_segment(&self, equation: Equation, p: f64) -> Option<f64> {
        let seconds = self.denominator(equation, p.min(1.0));
        (p > 0.0 && self.rtt > TimeDelta::ZERO && seconds > 0.0).then_some(seconds)
    }

    fn denominator(&self, equation: Equation, p: f64) -> f64 {
        let b = self.packets_per_ack;
        let congestion_avoidance = self.rtt.as_secs_f64() * libm::sqrt(2.0 * b * p / 3.0);
        match equation {
            Equation::Simplified => congestion_avoidance,
            Equation::Full => {
                let timeouts = 3.0 * libm::sqrt(3.0 * b * p / 8.0) * p * (1.0 + 32.0 * p * p);
                congestion_avoidance + self.rto.as_secs_f64() * timeouts
            }
        }
    }

    /// The loss event rate at which the flow's mean rate is `rate`, limited to [`MIN_LOSS_EVENT_RATE`] for higher
    /// rates, and to 1 for rates below those with an event in each packet. 1 if the round-trip time is not above zero.
    pub fn loss_event_rate(&self, equation: Equation, rate: DataRate) -> f64 {
        if self.rtt <= TimeDelta::ZERO || rate == DataRate::ZERO {
            return 1.0;
        }
        self.invert(equation, self.segment.as_bits() as f64 / rate.as_bps_f64())
    }

    /// The loss event rate at which a segment takes `seconds`.
    fn invert(&self, equation: Equation, seconds: f64) -> f64 {
        let root = seconds / self.rtt.as_secs_f64();
        let simplified = (1.5 / self.packets_per_ack * root * root).clamp(MIN_LOSS_EVENT_RATE, 1.0);
        if equation == Equation::Simplified {
            return simplified;
        }
        // Timeouts only reduce the rate, so the full equation's solution is at or below the simplified one's.
        let (mut low, mut high) = (0.0, simplified);
        if self.denominator(equation, high) <= seconds {
            return high;
        }
        for _ in 0..BISECTIONS {
            let middle = 0.5 * (low + high);
            if self.denominator(equation, middle) < seconds {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.max(MIN_LOSS_EVENT_RATE)
    }

    /// Length in packets of the loss interval before the first loss event: the one for which the full equation gives
    /// the greatest rate received so far, with at least half a packet per round-trip time (RFC 5348, section 6.3.1).
    pub fn first_loss_interval(&self, max_receive_rate: DataRate) -> f64 {
        let seconds = self.segment.as_bits() as f64 / max_receive_rate.as_bps_f64();
        let slowest = 2.0 * self.rtt.as_secs_f64();
        if slowest <= 0.0 {
            return 1.0;
        }
        // If both size and rate are zero: `max` ignores the NaN.
        1.0 / self.invert(Equation::Full, seconds.min(slowest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEGMENT: DataSize = DataSize::from_bytes(1_000);
    const RTT: TimeDelta = TimeDelta::from_millis(100);

    fn flow() -> TcpFlow {
        TcpFlow::new(SEGMENT, RTT)
    }
    fn bps(equation: Equation, p: f64) -> f64 {
        flow().throughput(equation, p).expect("bounded").as_bps_f64()
    }
    #[track_caller]
    fn near(value: f64, expected: f64, tolerance: f64) {
        assert!((value - expected).abs() <= tolerance * expected.abs(), "{value} is not {expected}");
    }

    #[test]
    fn values_computed_by_hand() {
        // sqrt(0.02 / 3) = 0.08164966; 1000 / 0.008164966 = 122,474.49 bytes per second.
        near(bps(Equation::Simplified, 0.01), 979_795.9, 1e-6);
        // And 12 * sqrt(0.00375) * 0.01 * 1.0032 = 0.00737198: 1000 / 0.008902164 = 112,332.2 bytes per second.
        near(bps(Equation::Full, 0.01), 898_657.5, 1e-5);
        // p = 1: sqrt(2/3) + 12 * sqrt(3/8) * 33 = 0.8164966 + 242.49949; 1000 / 24.331599 = 41.09882.
        near(bps(Equation::Full, 1.0), 328.79, 2e-3);
        near(flow().segments_per_second(Equation::Full, 1.0).expect("bounded"), 0.041_098_8, 1e-5);
        // p = 0.0001: sqrt(1 / 15,000) = 0.008164966; 1000 / 0.0008164966 bytes per second; timeouts take 0.9 % of it.
        near(bps(Equation::Simplified, 1e-4), 9_797_959.0, 1e-6);
        near(bps(Equation::Full, 1e-4) / bps(Equation::Simplified, 1e-4), 1.0 / 1.000_9, 1e-6);
    }

    #[test]
    fn the_parameters_scale_as_printed() {
        let p = 0.02;
        let near_rate = |f: TcpFlow, e, factor| {
            near(f.throughput(e, p).expect("bounded").as_bps_f64(), bps(e, p) * factor, 1e-4);
        };
        for e in [Equation::Simplified, Equation::Full] {
            near_rate(TcpFlow::new(SEGMENT * 2, RTT), e, 2.0);
            near_rate(TcpFlow::new(SEGMENT, RTT * 2), e, 0.5);
            near_rate(TcpFlow { packets_per_ack: 4.0, ..flow() }, e, 0.5);
        }
        // Without a timeout the full equation is the simplified one.
        let never = TcpFlow { rto: TimeDelta::ZERO, ..flow() };
        assert_eq!(never.throughput(Equation::Full, p), flow().throughput(Equation::Simplified, p));
    }

    #[test]
    fn without_loss_or_delay_nothing_bounds_it() {
        for e in [Equation::Simplified, Equation::Full] {
            for p in [0.0, -0.1, f64::NAN] {
                assert_eq!(flow().throughput(e, p), None);
            }
            for rtt in [TimeDelta::ZERO, TimeDelta::from_millis(-1)] {
                assert_eq!(TcpFlow::new(SEGMENT, rtt).throughput(e, 0.1), None);
                assert_eq!(TcpFlow::new(SEGMENT, rtt).loss_event_rate(e, DataRate::from_kbps(100)), 1.0);
            }
            assert_eq!(flow().throughput(e, 7.0), flow().throughput(e, 1.0));
            assert!(flow().throughput(e, f64::MIN_POSITIVE).is_some());
            assert_eq!(TcpFlow::new(DataSize::ZERO, RTT).throughput(e, 0.1), Some(DataRate::ZERO));
        }
    }

    #[test]
    fn the_inverse_gives_the_loss_back() {
        for e in [Equation::Simplified, Equation::Full] {
            for p in [1e-9, 1e-6, 1e-4, 0.003, 0.05, 0.2, 0.7, 1.0] {
                let back = flow().loss_event_rate(e, flow().throughput(e, p).expect("bounded"));
                // A rate is in whole bit/s.
                near(back, p, 2e-3);
            }
        }
        near(flow().loss_event_rate(Equation::Full, DataRate::from_bps(898_657)), 0.01, 1e-5);
        near(flow().loss_event_rate(Equation::Simplified, DataRate::from_bps(979_796)), 0.01, 1e-5);
    }

    #[test]
    fn the_inverse_stays_in_its_range() {
        for e in [Equation::Simplified, Equation::Full] {
            assert_eq!(flow().loss_event_rate(e, DataRate::ZERO), 1.0);
            assert_eq!(flow().loss_event_rate(e, DataRate::from_bps(100)), 1.0);
            assert_eq!(flow().loss_event_rate(e, DataRate::from_bps(u64::MAX)), MIN_LOSS_EVENT_RATE);
            let empty = TcpFlow::new(DataSize::ZERO, RTT);
            assert_eq!(empty.loss_event_rate(e, DataRate::from_bps(1)), MIN_LOSS_EVENT_RATE);
        }
    }

    #[test]
    fn the_first_loss_interval_is_that_of_the_greatest_rate() {
        near(flow().first_loss_interval(DataRate::from_bps(898_657)), 100.0, 1e-4);
        // Nothing received: 5 packets per second, 0.5 a round trip. sqrt(2p/3) + 12 sqrt(3p/8) p (1 + 32 p^2) = 2.
        let none = flow().first_loss_interval(DataRate::ZERO);
        near(flow().segments_per_second(Equation::Full, 1.0 / none).expect("bounded"), 5.0, 1e-6);
        assert_eq!(none, flow().first_loss_interval(DataRate::from_kbps(39)));
        assert!(none < flow().first_loss_interval(DataRate::from_kbps(41)));
        assert_eq!(TcpFlow::new(SEGMENT, TimeDelta::ZERO).first_loss_interval(DataRate::from_kbps(100)), 1.0);
        let empty = TcpFlow::new(DataSize::ZERO, RTT).first_loss_interval(DataRate::ZERO);
        assert_eq!(empty, none, "neither size nor rate known");
    }
}
