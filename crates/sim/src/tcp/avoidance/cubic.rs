use super::{AckInfo, Congestion, CongestionAvoidance, Window};
use weir_units::{TimeDelta, Timestamp};

/// Multiplicative decrease (RFC 9438, section 4.6).
const BETA: f64 = 0.7;
/// C, in segments a second cubed (RFC 9438, section 5.1).
const C: f64 = 0.4;
/// Additive increase in the Reno-friendly region, 3 (1 - beta) / (1 + beta) (RFC 9438, section 4.3).
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC's congestion avoidance (RFC 9438), with its Reno-friendly region and fast convergence.
///
/// Windows are in segments here. Where the RFC adds (target - cwnd) / cwnd for each acknowledgement, this adds it for
/// each segment acknowledged, as Linux does: otherwise delayed acknowledgements would halve the growth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cubic {
    w_max: f64,
    cwnd_prior: f64,
    /// The present congestion avoidance stage, once its first acknowledgement is there.
    epoch: Option<Epoch>,
    /// The stage begins after a timeout, or after a slow start without loss: at its own plateau (section 4.8).
    at_plateau: bool,
    /// Growth below a byte, in segments.
    carry: f64,
}

#[derive(Clone, Copy, PartialEq, Debug)]
struct Epoch {
    start: Timestamp,
    /// The last acknowledgement, from which a pause in sending is counted.
    last: Timestamp,
    k: f64,
    w_max: f64,
    w_est: f64,
}

impl Default for Cubic {
    fn default() -> Self {
        Self { w_max: 0.0, cwnd_prior: 0.0, epoch: None, at_plateau: true, carry: 0.0 }
    }
}

impl Cubic {
    fn begin(&self, now: Timestamp, cwnd: f64) -> Epoch {
        let (w_max, k) = if self.at_plateau || self.w_max <= cwnd {
            (cwnd, 0.0)
        } else {
            (self.w_max, libm::cbrt((self.w_max - cwnd) / C))
        };
        Epoch { start: now, last: now, k, w_max, w_est: cwnd }
    }
}

impl Epoch {
    /// W_cubic(t) (figure 1), `after` from now.
    fn w_cubic(&self, now: Timestamp, after: TimeDelta) -> f64 {
        let d = (now - self.start + after).as_secs_f64() - self.k;
        C * d * d * d + self.w_max
    }
}

impl CongestionAvoidance for Cubic {
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let cwnd = window.segments() + self.carry;
        if self.at_plateau && self.epoch.is_none() && self.cwnd_prior == 0.0 {
            self.cwnd_prior = cwnd; // Slow start has ended without loss (section 4.10).
        }
        let mut epoch = self.epoch.unwrap_or_else(|| self.begin(ack.now, cwnd));
        epoch.last = ack.now;
        let segments = ack.acked as f64 / window.mss as f64;
        let alpha = if epoch.w_est >= self.cwnd_prior { 1.0 } else { ALPHA };
        epoch.w_est += alpha * segments / cwnd;
        let next = if epoch.w_cubic(ack.now, TimeDelta::ZERO) < epoch.w_est {
            epoch.w_est.max(cwnd)
        } else {
            let target = epoch.w_cubic(ack.now, ack.srtt).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * segments
        };
        self.epoch = Some(epoch);
        let mss = window.mss as f64;
        window.cwnd = ((next * mss) as u64).max(window.cwnd);
        self.carry = next - window.cwnd as f64 / mss;
    }

    fn on_application_limited(&mut self, now: Timestamp) {
        // The time of the stage does not run while the window is not in use (section 4.2).
        if let Some(e) = &mut self.epoch {
            e.start += now.saturating_since(e.last);
            e.last = now;
        }
    }

    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64 {
        let cwnd = window.segments();
        // Fast convergence (section 4.7).
        self.w_max = if cwnd < self.w_max { cwnd * (1.0 + BETA) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.epoch = None;
        self.at_plateau = why == Congestion::Timeout;
        self.carry = 0.0;
        (flight as f64 * BETA) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // The window trails the function by about a round trip, which it is made to look ahead.
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
        assert!((early - (14.0 + 5.0 * ALPHA)).abs() < 0.2, "{early}");
        run(&mut c, &mut w, now, rtt, 6 + 20);
        // 11.3 round trips to reach 20 segments, then 1 segment a round trip, for 31 in all.
        let late = w.segments();
        // (39.7, less what whole segments leave out of a round trip)
        assert!((38.2..39.9).contains(&late), "{late}");
    }

    #[test]
    fn fast_convergence_gives_room() {
        let (mut c, mut w) = after_loss(1_000);
        assert_eq!(c.w_max, 1_000.0);
        w.cwnd = 900 * MSS;
        assert_eq!(c.on_congestion(&w, w.cwnd, Congestion::Loss), 630 * MSS);
        assert!((c.w_max - 765.0).abs() < 1e-9); // 900 * (1 + 0.7) / 2
        w.cwnd = 800 * MSS;
        c.on_congestion(&w, w.cwnd, Congestion::Ecn);
        assert_eq!(c.w_max, 800.0);
    }

    #[test]
    fn a_stage_after_a_timeout_starts_at_its_plateau() {
        let (mut c, mut w) = after_loss(1_000);
        w.ssthresh = c.on_congestion(&w, w.cwnd, Congestion::Timeout);
        w.cwnd = w.ssthresh;
        let start = w.segments();
        run(&mut c, &mut w, Timestamp::ZERO, TimeDelta::from_millis(100), 30);
        // 0.4 * 3^3 = 10.8 segments in 3 s by the cubic function; Reno's part makes at least alpha a round trip, 15.9.
        let grown = w.segments() - start;
        assert!((15.0..17.5).contains(&grown), "{grown}");
    }

    #[test]
    fn a_pause_does_not_count() {
        let rtt = TimeDelta::from_millis(50);
        let (mut c, mut w) = after_loss(1_000);
        let now = run(&mut c, &mut w, Timestamp::ZERO, rtt, 60);
        let (mut d, mut v) = (c, w);
        let much_later = now + TimeDelta::from_secs(60);
        d.on_application_limited(much_later);
        run(&mut c, &mut w, now, rtt, 60);
        run(&mut d, &mut v, much_later, rtt, 60);
        assert!(w.cwnd.abs_diff(v.cwnd) <= MSS, "{w:?} {v:?}");
    }

    #[test]
    fn never_more_than_half_as_much_again_in_a_round_trip() {
        let (mut c, mut w) = after_loss(10);
        run(&mut c, &mut w, Timestamp::ZERO, TimeDelta::from_millis(200), 5);
        let before = w.cwnd;
        // Half a minute later the function is far above.
        run(&mut c, &mut w, Timestamp::from_secs(30), TimeDelta::from_millis(200), 1);
        let factor = w.cwnd as f64 / before as f64;
        // Compounded over the acknowledgements of one window: at most e^(1/2).
        assert!((1.3..1.66).contains(&factor), "{factor}");
    }
}
