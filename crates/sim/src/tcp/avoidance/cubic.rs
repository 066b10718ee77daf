use super::{AckInfo, Congestion, CongestionAvoidance, Window};
use weir_cc::tcp::{self, Acked};
use weir_units::Timestamp;

/// CUBIC's congestion avoidance ([`tcp::Cubic`]), with its window in bytes.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Cubic {
    cubic: tcp::Cubic,
    /// Remainder of growth below a byte, in segments.
    carry: f64,
}

impl CongestionAvoidance for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let mss = window.mss as f64;
        let acked = Acked { now: ack.now, segments: ack.acked as f64 / mss, srtt: ack.srtt };
        let next = self.cubic.on_ack(window.segments() + self.carry, &acked);
        window.cwnd = ((next * mss) as u64).max(window.cwnd);
        self.carry = next - window.cwnd as f64 / mss;
    }

    fn on_application_limited(&mut self, now: Timestamp) {
        self.cubic.on_application_limited(now);
    }

    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64 {
        self.cubic.on_congestion(window.segments(), why == Congestion::Timeout);
        self.carry = 0.0;
        (flight as f64 * self.cubic.beta()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::TimeDelta;

    const MSS: u64 = 1_000;

    /// Acknowledges window after window, one segment at a time, for `rounds` round trips of `rtt`.
    fn run(c: &mut Cubic, w: &mut Window, from: Timestamp, rtt: TimeDelta, rounds: u32) -> Timestamp {
        let mut now = from;
        for _ in 0..rounds {
            let n = (w.cwnd / MSS).max(1);
            for _ in 0..n {
                now += rtt / n as i64;
                c.on_ack(w, &AckInfo { acked: MSS, ..AckInfo::at(now, rtt) });
            }
        }
        now
    }
    fn after_loss(segments: u64) -> (Cubic, Window) {
        let mut c = Cubic::default();
        let mut w = Window { cwnd: segments * MSS, ssthresh: u64::MAX, mss: MSS };
        w.ssthresh = c.on_congestion(&w, w.cwnd, Congestion::Loss);
        w.cwnd = w.ssthresh;
        (c, w)
    }

    #[test]
    fn the_window_follows_the_cubic_function() {
        let rtt = TimeDelta::from_millis(50);
        let (mut c, mut w) = after_loss(1_000);
        assert_eq!(w.cwnd, 700 * MSS);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.0856 s.
        let k = libm::cbrt(300.0 / 0.4);
        let mut now = Timestamp::ZERO;
        for step in 1..=14 {
            now = run(&mut c, &mut w, now, rtt, 20);
            // The window trails the function by about a round trip, which the function's look-ahead of a round trip
            // makes up for.
            let t = now.as_secs_f64();
            let want = 0.4 * (t - k) * (t - k) * (t - k) + 1_000.0;
            let got = w.segments();
            assert!((got - want).abs() < 0.006 * want, "{step}: {got} at {t} s, expected {want}");
        }
        assert!(w.segments() > 1_040.0, "the convex region is reached: {}", w.segments());
    }

    #[test]
    fn short_round_trips_follow_reno() {
        // At 10 ms and 20 segments the cubic function is far below Reno's pace: W_est grows by alpha a round trip
        // until it reaches the window before the loss, then by 1.
        let rtt = TimeDelta::from_millis(10);
        let (mut c, mut w) = after_loss(20);
        let now = run(&mut c, &mut w, Timestamp::ZERO, rtt, 5);
        let early = w.segments();
        assert!((early - (14.0 + 5.0 * 0.9 / 1.7)).abs() < 0.2, "{early}");
        run(&mut c, &mut w, now, rtt, 6 + 20);
        // 11.3 round trips to reach 20 segments, then 1 segment per round trip, for 31 in total.
        let late = w.segments();
        // (39.7, less the fractions of segments lost in each round trip)
        assert!((38.2..39.9).contains(&late), "{late}");
    }

    #[test]
    fn a_stage_after_a_timeout_starts_at_its_plateau() {
        let (mut c, mut w) = after_loss(1_000);
        w.ssthresh = c.on_congestion(&w, w.cwnd, Congestion::Timeout);
        w.cwnd = w.ssthresh;
        let start = w.segments();
        run(&mut c, &mut w, Timestamp::ZERO, TimeDelta::from_millis(100), 30);
        // 0.4 * 3^3 = 10.8 segments in 3 s by the cubic function; the Reno-friendly region gives at least alpha per
        // round trip, 15.9.
        let grown = w.segments() - start;
        assert!((15.0..17.5).contains(&grown), "{grown}");
    }
}
