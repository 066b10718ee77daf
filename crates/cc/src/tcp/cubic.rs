//! CUBIC's congestion window (RFC 9438), in segments, for senders that count bytes or packets.
//!
//! [`Cubic`] computes windows in segments, as real numbers; the caller rounds them to its own unit and keeps the
//! fraction. RFC 9438 is followed where RFC 8312 differs: K follows from the window at the start of the stage, not from
//! beta; the target lies between one and one and a half windows; W_est grows by segments acknowledged, not by time, and
//! by a whole segment per round trip once it has reached the window before the reduction; a timeout reduces the
//! threshold by beta.
//!
//! Section 4.4 adds (target - cwnd) / cwnd per acknowledgement. This adds it per segment acknowledged, as Linux does:
//! otherwise delayed acknowledgements and DCCP's Ack Ratio would slow the growth. HyStart (section 4.10) is left out.

use weir_units::{TimeDelta, Timestamp};

crate::tunables! {
    /// Configuration of CUBIC's window.
    pub struct Config {
        /// beta: multiplicative decrease factor (RFC 9438, section 4.6: 0.7).
        beta: f64 = 0.7, 0.3 => 0.95;
        /// C, in segments per second cubed (RFC 9438, section 5.1: 0.4).
        c: f64 = 0.4, 0.01 => 10.0;
        /// Whether fast convergence is on: a window that did not reach its last maximum releases more (RFC 9438,
        /// section 4.7).
        fast_convergence: bool = true, 0 => 1;
    }
}

/// Newly acknowledged segments.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Acked {
    /// When the acknowledgement arrived.
    pub now: Timestamp,
    /// Number of segments.
    pub segments: f64,
    /// Smoothed round-trip time.
    pub srtt: TimeDelta,
}

/// The state of CUBIC's congestion avoidance.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Cubic {
    config: Config,
    /// alpha of the Reno-friendly region, 3 (1 - beta) / (1 + beta) (section 4.3).
    alpha: f64,
    w_max: f64,
    cwnd_prior: f64,
    /// The current stage, once its first acknowledgement has arrived.
    stage: Option<Stage>,
    /// Whether the stage follows a timeout or a slow start without congestion and so begins at its plateau (section
    /// 4.8).
    at_plateau: bool,
}

/// A congestion avoidance stage.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Stage {
    start: Timestamp,
    /// Time of the last acknowledgement, to measure pauses in sending.
    last: Timestamp,
    k: f64,
    /// W_max, the window at which the cubic function is flat.
    plateau: f64,
    w_est: f64,
}

impl Cubic {
    /// The state of a new connection, in slow start.
    pub fn new(config: Config) -> Self {
        Self {
            config,
            alpha: 3.0 * (1.0 - config.beta) / (1.0 + config.beta),
            w_max: 0.0,
            cwnd_prior: 0.0,
            stage: None,
            at_plateau: true,
        }
    }

    /// beta: the factor by which congestion reduces the window.
    pub fn beta(&self) -> f64 {
        self.config.beta
    }

    /// The window in segments after an acknowledgement in congestion avoidance, at least the window before it, `cwnd`.
    /// Call it only while the window limits the sender.
    pub fn on_ack(&mut self, cwnd: f64, ack: &Acked) -> f64 {
        if self.stage.is_none() && self.cwnd_prior == 0.0 {
            self.cwnd_prior = cwnd; // Slow start has ended without congestion (section 4.10).
        }
        let mut stage = self.stage.unwrap_or_else(|| self.begin(ack.now, cwnd));
        stage.last = ack.now;
        let alpha = if stage.w_est >= self.cwnd_prior { 1.0 } else { self.alpha };
        stage.w_est += alpha * ack.segments / cwnd;
        let next = if self.w_cubic(&stage, ack.now, TimeDelta::ZERO) < stage.w_est {
            stage.w_est.max(cwnd)
        } else {
            let target = self.w_cubic(&stage, ack.now, ack.srtt).clamp(cwnd, 1.5 * cwnd);
            cwnd + (target - cwnd) / cwnd * ack.segments
        };
        self.stage = Some(stage);
        next
    }

    /// Congestion at this window, in segments, ends the stage. The caller reduces its own window by [`Self::beta`].
    pub fn on_congestion(&mut self, cwnd: f64, is_timeout: bool) {
        let yields = self.config.fast_convergence && cwnd < self.w_max;
        self.w_max = if yields { cwnd * (1.0 + self.config.beta) / 2.0 } else { cwnd };
        self.cwnd_prior = cwnd;
        self.stage = None;
        self.at_plateau = is_timeout;
    }

    /// The sender was application-limited: the stage's clock is stopped meanwhile (section 4.2).
    pub fn on_application_limited(&mut self, now: Timestamp) {
        if let Some(s) = &mut self.stage {
            s.start += now.saturating_since(s.last);
            s.last = now;
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

    /// W_cubic (figure 1) at `now + after`.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Acknowledges window after window, one segment at a time, for `rounds` round trips of `rtt`; returns the window
    /// and the time.
    fn run(c: &mut Cubic, mut cwnd: f64, from: Timestamp, rtt: TimeDelta, rounds: u32) -> (f64, Timestamp) {
        let mut now = from;
        for _ in 0..rounds {
            let acks = (cwnd as i64).max(1);
            for _ in 0..acks {
                now += rtt / acks;
                cwnd = c.on_ack(cwnd, &Acked { now, segments: 1.0, srtt: rtt });
            }
        }
        (cwnd, now)
    }
    fn after_loss(cwnd: f64) -> Cubic {
        let mut c = Cubic::default();
        c.on_congestion(cwnd, false);
        c
    }

    #[test]
    fn the_window_follows_the_cubic_function() {
        let rtt = TimeDelta::from_millis(50);
        let (mut c, mut w, mut now) = (after_loss(1_000.0), 700.0, Timestamp::ZERO);
        // K = cbrt(1000 * 0.3 / 0.4) = 9.0856 s.
        let k = libm::cbrt(300.0 / 0.4);
        for step in 1..=14 {
            (w, now) = run(&mut c, w, now, rtt, 20);
            // The window trails the function by about a round trip, which the function's look-ahead of a round trip
            // makes up for.
            let t = now.as_secs_f64();
            let want = 0.4 * (t - k) * (t - k) * (t - k) + 1_000.0;
            assert!((w - want).abs() < 0.006 * want, "{step}: {w} at {t} s, expected {want}");
        }
        assert!((1_040.0..1_080.0).contains(&w), "the convex region is reached: {w}");
    }

    #[test]
    fn short_round_trips_follow_reno() {
        // At 10 ms and 20 segments the cubic function is far below Reno's pace: W_est grows by alpha, 0.529, a round trip until it
        // reaches the window before the loss, after 11.3 round trips, then by 1.
        let rtt = TimeDelta::from_millis(10);
        let mut c = after_loss(20.0);
        let (early, now) = run(&mut c, 14.0, Timestamp::ZERO, rtt, 5);
        assert!((early - (14.0 + 5.0 * 0.9 / 1.7)).abs() < 0.2, "{early}");
        let (late, _) = run(&mut c, early, now, rtt, 6 + 20);
        // 20 + (31 - 11.3) = 39.7, less the fractions of a segment lost in each round trip.
        assert!((38.2..39.9).contains(&late), "{late}");
    }

    #[test]
    fn fast_convergence_gives_room() {
        let mut c = after_loss(1_000.0);
        assert_eq!(c.w_max, 1_000.0);
        c.on_congestion(900.0, false);
        assert!((c.w_max - 765.0).abs() < 1e-9, "900 * (1 + 0.7) / 2: {}", c.w_max);
        c.on_congestion(800.0, false);
        assert_eq!(c.w_max, 800.0);
        let mut without = Cubic::new(Config { fast_convergence: false, ..Config::default() });
        without.on_congestion(1_000.0, false);
        without.on_congestion(900.0, false);
        assert_eq!(without.w_max, 900.0);
    }

    #[test]
    fn a_stage_after_a_timeout_starts_at_its_plateau() {
        let mut c = after_loss(1_000.0);
        c.on_congestion(1_000.0, true);
        // 0.4 * 3^3 = 10.8 segments in 3 s by the cubic function; the Reno-friendly region gives at least alpha per
        // round trip, 15.9.
        let (w, _) = run(&mut c, 700.0, Timestamp::ZERO, TimeDelta::from_millis(100), 30);
        assert!((715.0..717.5).contains(&w), "{w}");
    }

    #[test]
    fn a_pause_does_not_count() {
        let rtt = TimeDelta::from_millis(50);
        let mut c = after_loss(1_000.0);
        let (w, now) = run(&mut c, 700.0, Timestamp::ZERO, rtt, 60);
        let mut paused = c;
        let later = now + TimeDelta::from_secs(60);
        paused.on_application_limited(later);
        let (at_once, _) = run(&mut c, w, now, rtt, 60);
        let (after, _) = run(&mut paused, w, later, rtt, 60);
        assert!((at_once - after).abs() < 1e-6 && at_once > w, "{at_once} {after}");
    }

    #[test]
    fn never_more_than_half_as_much_again_in_a_round_trip() {
        let rtt = TimeDelta::from_millis(200);
        let mut c = after_loss(10.0);
        let (w, _) = run(&mut c, 7.0, Timestamp::ZERO, rtt, 5);
        // Half a minute later the function is far above: at most e^(1/2), compounded over the acknowledgements of one
        // window.
        let (grown, _) = run(&mut c, w, Timestamp::from_secs(30), rtt, 1);
        assert!((1.3..1.66).contains(&(grown / w)), "{w} {grown}");
    }
}
