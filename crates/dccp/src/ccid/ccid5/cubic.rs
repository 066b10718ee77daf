use crate::ccid::ccid2::{Acked, Avoidance, Congestion};
use weir_cc::tcp;
use weir_units::Timestamp;

/// CUBIC's congestion avoidance ([`tcp::Cubic`]), with its window in packets.
///
/// The threshold is computed from the window, not from the data in flight, which RFC 9438, section 4.6, allows if an
/// unused window does not grow.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Cubic {
    cubic: tcp::Cubic,
    /// The window's part below a packet.
    fraction: f64,
}

impl Cubic {
    /// A new connection's.
    pub fn new(config: tcp::CubicConfig) -> Self {
        Self { cubic: tcp::Cubic::new(config), fraction: 0.0 }
    }
}

impl Avoidance for Cubic {
    fn grow(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        let acked = tcp::Acked { now: acked.now, segments: f64::from(acked.packets), srtt: acked.srtt };
        let next = self.cubic.on_ack(f64::from(cwnd) + self.fraction, &acked);
        let whole = next as u32;
        self.fraction = next - f64::from(whole);
        whole
    }

    fn on_congestion(&mut self, cwnd: u32, why: Congestion) -> u32 {
        let cwnd = f64::from(cwnd);
        self.cubic.on_congestion(cwnd, why == Congestion::Timeout);
        self.fraction = 0.0;
        (cwnd * self.cubic.beta()) as u32
    }

    fn on_application_limited(&mut self, now: Timestamp) {
        self.cubic.on_application_limited(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::TimeDelta;

    /// Windows acknowledged in sequence, two packets at a time, for `rounds` round trips; returns the window and the
    /// time.
    fn run(c: &mut Cubic, mut cwnd: u32, from: Timestamp, rtt: TimeDelta, rounds: u32) -> (u32, Timestamp) {
        let mut now = from;
        for _ in 0..rounds {
            let acks = cwnd.div_ceil(2).max(1);
            for _ in 0..acks {
                now += rtt / i64::from(acks);
                cwnd = c.grow(cwnd, &Acked { now, packets: 2, srtt: rtt });
            }
        }
        (cwnd, now)
    }
    fn after_loss(cwnd: u32) -> (Cubic, u32) {
        let mut c = Cubic::default();
        let left = c.on_congestion(cwnd, Congestion::Loss);
        (c, left)
    }

    #[test]
    fn the_window_follows_the_cubic_function() {
        let rtt = TimeDelta::from_millis(50);
        let (mut c, mut w) = after_loss(1_000);
        assert_eq!(w, 700);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.0856 s.
        let k = libm::cbrt(300.0 / 0.4);
        let mut now = Timestamp::ZERO;
        for step in 1..=14 {
            (w, now) = run(&mut c, w, now, rtt, 20);
            let t = now.as_secs_f64();
            let want = 0.4 * (t - k) * (t - k) * (t - k) + 1_000.0;
            assert!((f64::from(w) - want).abs() < 0.007 * want, "{step}: {w} at {t} s, expected {want}");
        }
        assert!(w > 1_040, "the convex region is reached: {w}");
    }

    #[test]
    fn short_round_trips_follow_reno() {
        let rtt = TimeDelta::from_millis(10);
        let (mut c, w) = after_loss(20);
        // W_est grows by alpha, 0.529, per round trip from 14; the previous 20 are reached after 11.3, then it grows by
        // 1.
        let (early, now) = run(&mut c, w, Timestamp::ZERO, rtt, 5);
        assert!((16..=17).contains(&early), "{early}");
        let (late, _) = run(&mut c, early, now, rtt, 26);
        assert!((38..=40).contains(&late), "{late}");
    }

    #[test]
    fn a_stage_after_a_timeout_starts_at_its_plateau() {
        let (mut c, _) = after_loss(1_000);
        let w = c.on_congestion(1_000, Congestion::Timeout);
        assert_eq!(w, 700);
        // 0.4 * 3^3 = 10.8 packets in 3 s by the function; Reno's part makes at least alpha in each of 30 round trips,
        // 15.9.
        let (grown, _) = run(&mut c, w, Timestamp::ZERO, TimeDelta::from_millis(100), 30);
        assert!((715..=717).contains(&grown), "{grown}");
    }
}
