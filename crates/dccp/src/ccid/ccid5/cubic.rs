use crate::ccid::ccid2::{Acked, Avoidance, Congestion};
use weir_units::{TimeDelta, Timestamp};

weir_cc::tunables! {
    /// Configuration of CUBIC's window.
    pub struct Config {
        /// beta: what congestion leaves of the window (RFC 9438, section 4.6: 0.7).
        beta: f64 = 0.7, 0.3 => 0.95;
        /// C, in packets a second cubed (RFC 9438, section 5.1: 0.4).
        c: f64 = 0.4, 0.01 => 10.0;
        /// Whether a window that did not reach its last maximum makes room for others (RFC 9438, section 4.7).
        fast_convergence: bool = true, 0 => 1;
    }
}

/// CUBIC's congestion avoidance, in packets (RFC 9438).
///
/// RFC 8312 differed, and RFC 9438 is followed: K is reckoned from the window that there is, not from beta; the target lies between one and
/// one and a half windows; W_est grows by packets acknowledged, not by time, and by a whole packet a round trip once it has reached the
/// window before the reduction; the threshold after a timeout is beta's. HyStart is left out: slow start is CCID 2's.
///
/// The threshold is taken of the window, not of what is in flight, which section 4.6 allows where a window that is not used does not grow.
/// Where section 4.4 adds (target - cwnd) / cwnd for each acknowledgement, this adds it for each packet acknowledged, as
/// Linux does: otherwise Ack Ratio would divide the growth.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cubic {
    config: Config,
    /// alpha of the Reno-friendly region, 3 (1 - beta) / (1 + beta) (section 4.3).
    alpha: f64,
    w_max: f64,
    cwnd_prior: f64,
    /// The present stage, once its first acknowledgement is there.
    stage: Option<Stage>,
    /// It begins after a timeout, or after a slow start without congestion: at its own plateau (section 4.8).
    at_plateau: bool,
    /// The window's part below a packet.
    fraction: f64,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stage {
    start: Timestamp,
    /// The last acknowledgement, from which a pause is counted.
    last: Timestamp,
    k: f64,
    /// Where the function is flat.
    plateau: f64,
    w_est: f64,
}

impl Cubic {
    /// A new connection's.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            alpha: 3.0 * (1.0 - config.beta) / (1.0 + config.beta),
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: None,
            at_plateau: true,
            fraction: 0.0,
        }
    }
    fn begin(&self, now: Timestamp, cwnd: f64) -> Stage {
        let (plateau, k) = if self.at_plateau || self.w_max <= cwnd {
            (cwnd, 0.0)
        } else {
            (self.w_max, libm::cbrt((self.w_max - cwnd) / self.config.c))
        };
        Stage { start: now, last: now, k, plateau, w_est: cwnd }
    }
    /// W_cubic (figure 1), `after` from now.
    fn w_cubic(&self, stage: &Stage, now: Timestamp, after: TimeDelta) -> f64 {
        let d = (now - stage.start + after).as_secs_f64() - stage.k;
        self.config.c * d * d * d + stage.plateau
    }
}

impl Default for Cubic {
    fn default() -> Self {
        Self::new(Config::default())
    }
}

impl Avoidance for Cubic {
    fn grow(&mut self, cwnd: u32, acked: &Acked) -> u32 {
        let w = f64::from(cwnd) + self.fraction;
        if self.stage.is_none() && self.cwnd_prior == 0.0 {
            self.cwnd_prior = w; // Slow start has ended without congestion (section 4.10).
        }
        let mut stage = self.stage.unwrap_or_else(|| self.begin(acked.now, w));
        stage.last = acked.now;
        let packets = f64::from(acked.packets);
        let alpha = if stage.w_est >= self.cwnd_prior { 1.0 } else { self.alpha };
        stage.w_est += alpha * packets / w;
        let next = if self.w_cubic(&stage, acked.now, TimeDelta::ZERO) < stage.w_est {
            stage.w_est.max(w)
        } else {
            let target = self.w_cubic(&stage, acked.now, acked.srtt).clamp(w, 1.5 * w);
            w + (target - w) / w * packets
        };
        self.stage = Some(stage);
        let whole = next as u32;
        self.fraction = next - f64::from(whole);
        whole
    }

    fn on_congestion(&mut self, cwnd: u32, why: Congestion) -> u32 {
        let w = f64::from(cwnd);
        let yields = self.config.fast_convergence && w < self.w_max;
        self.w_max = if yields { w * (1.0 + self.config.beta) / 2.0 } else { w };
        self.cwnd_prior = w;
        self.stage = None;
        self.at_plateau = why == Congestion::Timeout;
        self.fraction = 0.0;
        (w * self.config.beta) as u32
    }

    fn on_application_limited(&mut self, now: Timestamp) {
        // The time of the stage does not run while the window is not in use (section 4.2).
        if let Some(s) = &mut self.stage {
            s.start += now.saturating_since(s.last);
            s.last = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Windows acknowledged one after the other, two packets at a time, for `rounds` round trips; gives the window and the time.
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
        // W_est grows by alpha, 0.529, a round trip from 14; the 20 of before are reached after 11.3, then it grows by 1.
        let (early, now) = run(&mut c, w, Timestamp::ZERO, rtt, 5);
        assert!((16..=17).contains(&early), "{early}");
        let (late, _) = run(&mut c, early, now, rtt, 26);
        assert!((38..=40).contains(&late), "{late}");
    }

    #[test]
    fn fast_convergence_gives_room() {
        let (mut c, _) = after_loss(1_000);
        assert_eq!(c.w_max, 1_000.0);
        assert_eq!(c.on_congestion(900, Congestion::Mark), 630);
        assert!((c.w_max - 765.0).abs() < 1e-9, "900 * (1 + 0.7) / 2: {}", c.w_max);
        c.on_congestion(800, Congestion::Loss);
        assert_eq!(c.w_max, 800.0);
        let mut without = Cubic::new(Config { fast_convergence: false, ..Config::default() });
        without.on_congestion(1_000, Congestion::Loss);
        without.on_congestion(900, Congestion::Loss);
        assert_eq!(without.w_max, 900.0);
    }

    #[test]
    fn a_stage_after_a_timeout_starts_at_its_plateau() {
        let (mut c, _) = after_loss(1_000);
        let w = c.on_congestion(1_000, Congestion::Timeout);
        assert_eq!(w, 700);
        // 0.4 * 3^3 = 10.8 packets in 3 s by the function; Reno's part makes at least alpha in each of 30 round trips, 15.9.
        let (grown, _) = run(&mut c, w, Timestamp::ZERO, TimeDelta::from_millis(100), 30);
        assert!((715..=717).contains(&grown), "{grown}");
    }

    #[test]
    fn a_pause_does_not_count() {
        let rtt = TimeDelta::from_millis(50);
        let (mut c, w) = after_loss(1_000);
        let (w, now) = run(&mut c, w, Timestamp::ZERO, rtt, 60);
        let mut paused = c;
        let later = now + TimeDelta::from_secs(60);
        paused.on_application_limited(later);
        let (at_once, _) = run(&mut c, w, now, rtt, 60);
        let (after, _) = run(&mut paused, w, later, rtt, 60);
        assert!(at_once.abs_diff(after) <= 1, "{at_once} {after}");
    }

    #[test]
    fn never_more_than_half_as_much_again_in_a_round_trip() {
        let rtt = TimeDelta::from_millis(200);
        let (mut c, w) = after_loss(10);
        let (w, _) = run(&mut c, w, Timestamp::ZERO, rtt, 5);
        // Half a minute later the function is far above: compounded over a window at most e^(1/2), and a packet.
        let (grown, _) = run(&mut c, w, Timestamp::from_secs(30), rtt, 1);
        let factor = f64::from(grown) / f64::from(w);
        assert!((1.3..1.66 + 1.0 / f64::from(w)).contains(&factor), "{factor}");
    }
}
