use super::{AckInfo, Congestion, CongestionAvoidance, Marks, Window};
use weir_units::{TimeDelta, Timestamp};

/// Weight of a round trip's fraction of marks (tcp_prague.c, `PRAGUE_SHIFT_G`: 1/16).
const GAIN: f64 = 1.0 / 16.0;
/// Round-trip time that shorter ones behave like (`prague_rtt_target`: 25 ms).
const TARGET_RTT: TimeDelta = TimeDelta::from_millis(25);
/// Round trips after slow start before they do so (`DEFAULT_RTT_TRANSITION`: 500).
const TRANSITION_ROUNDS: u32 = 500;
/// Pacing rate over window per round-trip time in slow start, and later.
const PACING_SLOW_START: f64 = 2.0;
const PACING: f64 = 1.0;

/// TCP Prague, the reference sender of L4S (RFC 9330, RFC 9331), as in `net/ipv4/tcp_prague.c` 0.6 of the L4S team
/// (github.com/google/bbr, commit 23cbf7e).
///
/// Marks are counted by accurate ECN. Alpha is a moving average of the fraction of marked bytes, updated each round
/// trip; a mark reduces the window by half of alpha, at most once per round trip, and does not stop its growth. Growth
/// counts unmarked bytes only, a segment per round trip; after 500 round trips, flows with a round trip below 25 ms
/// grow and respond as if it were 25 ms. A loss halves the window. Segments are paced at the window per round-trip
/// time, twice that in slow start.
///
/// Differences: a reduction is applied at once, where the program spreads it over the next acknowledgements; detection
/// of a classic ECN bottleneck, which is off by default there, is left out.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Prague {
    /// 0 to 1; 1 until the first mark has been received.
    alpha: f64,
    saw_mark: bool,
    acked: u64,
    marked: u64,
    /// A round trip ends when this is acknowledged.
    round_end: u64,
    rounds: u32,
    alpha_at: Timestamp,
    cut_at: Timestamp,
    /// No further reduction until data beyond this is acknowledged.
    cut_until: u64,
    /// Remainder of growth below a byte.
    carry: f64,
    /// Bytes of the present acknowledgement that do not count for growth.
    marked_now: u64,
    pacing: Option<f64>,
}

impl Default for Prague {
    fn default() -> Self {
        Self {
            alpha: 1.0,
            saw_mark: false,
            acked: 0,
            marked: 0,
            round_end: 0,
            rounds: 0,
            alpha_at: Timestamp::ZERO,
            cut_at: Timestamp::ZERO,
            cut_until: 0,
            carry: 0.0,
            marked_now: 0,
            pacing: None,
        }
    }
}

impl Prague {
    /// The moving average of the fraction of marked bytes, 0 to 1.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }

    /// Whether it behaves as with a longer round trip.
    fn is_rtt_independent(&self, window: &Window) -> bool {
        window.cwnd >= window.ssthresh && self.rounds >= TRANSITION_ROUNDS
    }

    fn end_round(&mut self, window: &Window, ack: &AckInfo) {
        let waits = self.is_rtt_independent(window) && ack.now.saturating_since(self.alpha_at) < TARGET_RTT;
        if ack.una <= self.round_end || waits {
            return;
        }
        if self.saw_mark {
            let fraction = self.marked as f64 / self.acked.max(1) as f64;
            self.alpha += GAIN * (fraction - self.alpha);
            self.alpha_at = ack.now;
        }
        (self.acked, self.marked) = (0, 0);
        self.round_end = ack.high;
        if window.cwnd >= window.ssthresh {
            self.rounds = self.rounds.saturating_add(1);
        }
    }

    fn pace(&mut self, window: &Window, ack: &AckInfo) {
        let gain = if window.cwnd < window.ssthresh / 2 { PACING_SLOW_START } else { PACING };
        let in_flight = window.cwnd.max(ack.high - ack.una);
        let srtt = ack.srtt.as_secs_f64();
        self.pacing = (srtt > 0.0).then(|| gain * in_flight as f64 / srtt);
    }
}

impl CongestionAvoidance for Prague {
    fn slow_start(&mut self, window: &mut Window, ack: &AckInfo) {
        window.slow_start(ack.acked.saturating_sub(self.marked_now));
    }

    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let (mss, cwnd) = (window.mss as f64, window.cwnd as f64);
        let acked = ack.acked.saturating_sub(self.marked_now) as f64;
        let share = ack.srtt.as_secs_f64() / TARGET_RTT.as_secs_f64();
        let scale = if self.is_rtt_independent(window) && share < 1.0 { share * share } else { 1.0 };
        self.carry += scale * mss * acked / cwnd;
        let whole = self.carry.floor();
        self.carry -= whole;
        window.cwnd += whole as u64;
    }

    fn on_marks(&mut self, window: &mut Window, ack: &AckInfo, marks: &Marks) -> bool {
        self.acked += marks.delivered;
        self.marked += marks.marked;
        self.marked_now = marks.marked;
        self.saw_mark |= marks.marked > 0;
        let is_soon = self.is_rtt_independent(window) && ack.now.saturating_since(self.cut_at) < TARGET_RTT;
        let cuts = marks.marked > 0 && ack.una > self.cut_until && !is_soon;
        if cuts {
            window.cwnd = ((window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64).max(2 * window.mss);
            window.ssthresh = window.cwnd;
            (self.cut_until, self.cut_at) = (ack.high, ack.now);
        }
        self.end_round(window, ack);
        self.pace(window, ack);
        cuts
    }

    fn on_congestion(&mut self, window: &Window, _flight: u64, _why: Congestion) -> u64 {
        window.cwnd / 2
    }

    fn pacing_rate(&self) -> Option<f64> {
        self.pacing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MSS: u64 = 1_000;

    /// `rounds` round trips of `rtt_ms` in which each `every`th segment is marked; returns the windows after them.
    fn run(p: &mut Prague, w: &mut Window, rtt_ms: i64, rounds: u64, every: u64) -> Vec<u64> {
        let rtt = TimeDelta::from_millis(rtt_ms);
        let (mut now, mut una) = (Timestamp::ZERO, p.round_end);
        let mut out = vec![];
        for _ in 0..rounds {
            let n = w.cwnd / MSS;
            for _ in 0..n {
                now += rtt / n as i64;
                una += MSS;
                let ack = AckInfo { acked: MSS, una, high: una + w.cwnd, ..AckInfo::at(now, rtt) };
                p.on_marks(
                    w,
                    &ack,
                    &Marks { delivered: MSS, marked: if (una / MSS).is_multiple_of(every) { MSS } else { 0 } },
                );
                p.on_ack(w, &ack);
            }
            out.push(w.cwnd);
        }
        out
    }

    #[test]
    fn two_marks_a_round_trip_hold_the_window() {
        // In the steady state, the reduction by alpha / 2 of the window equals the growth by a segment, so there are 2
        // marks a round trip (RFC 9331, section 4.3: scalable).
        for start in [30, 300] {
            let mut w = Window { cwnd: start * MSS, ssthresh: 20 * MSS, mss: MSS };
            let mut p = Prague { alpha: 0.02, saw_mark: true, ..Prague::default() };
            let seen = run(&mut p, &mut w, 40, 800, 50);
            let mean = seen[400..].iter().sum::<u64>() / 400;
            assert!(mean.abs_diff(100 * MSS) < 25 * MSS, "{mean} {seen:?}");
        }
    }

    #[test]
    fn short_round_trips_grow_as_25_ms() {
        let mut w = Window { cwnd: 100 * MSS, ssthresh: 50 * MSS, mss: MSS };
        let mut p = Prague { rounds: TRANSITION_ROUNDS, ..Prague::default() };
        // 125 ms of 5 ms each: 5 round trips of 25 ms, and a window a fifth as large as theirs.
        let seen = run(&mut p, &mut w, 5, 25, u64::MAX);
        assert!((seen[24] - 100 * MSS).abs_diff(MSS) < MSS / 20, "{seen:?}");
    }

    #[test]
    fn the_first_mark_halves_and_a_loss_halves() {
        let mut w = Window { cwnd: 100 * MSS, ssthresh: u64::MAX, mss: MSS };
        let mut p = Prague::default();
        let ack = AckInfo { una: MSS, high: 100 * MSS, ..AckInfo::at(Timestamp::from_millis(5), TimeDelta::ZERO) };
        assert!(p.on_marks(&mut w, &ack, &Marks { delivered: MSS, marked: MSS }));
        assert_eq!(w.cwnd, 50 * MSS);
        assert_eq!(p.on_congestion(&w, 90 * MSS, Congestion::Loss), 25 * MSS);
    }
}
