use super::{AckInfo, Congestion, CongestionAvoidance, Window};
use weir_units::TimeDelta;

/// With fewer of its own segments in the queue the window grows (Brakmo and Peterson, 1995; ns-2's default).
const ALPHA: f64 = 1.0;
/// With more it is reduced (ns-2's default).
const BETA: f64 = 3.0;
/// With more slow start ends (ns-2's default).
const GAMMA: f64 = 1.0;

/// TCP Vegas (Brakmo and Peterson, "TCP Vegas: End to End Congestion Avoidance on a Global Internet", IEEE JSAC, 1995).
///
/// Once per round trip it compares what it has sent in the last one with what the minimum round-trip time so far, the
/// base RTT, would allow. The difference, times the base RTT, is the amount that it keeps in queues: below alpha the
/// window grows by a segment, above beta it is reduced by one. Slow start doubles every other round trip and ends, with
/// the window reduced by an eighth, when the difference exceeds gamma. A loss detected by fast retransmit reduces the
/// window by a quarter, as in the paper; ECN and a timeout halve it.
///
/// The mean of a window's round-trip times is used, as in ns-2 (the paper uses a single segment's); but the minimum, as
/// in Linux, if acknowledgements were delayed: the last segment of an odd number waits most of a round trip for the
/// next one, which is not queueing. Both the actual amount and the window are taken as what was sent, so an
/// application-limited sender is not seen as congested.
///
/// Left out: retransmission on the first or second duplicate acknowledgement by a fine-grained clock, since losses are
/// detected by SACK and limited transmit; and the spacing of segments in slow start.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Vegas {
    base_rtt: TimeDelta,
    rtt_sum: TimeDelta,
    rtt_count: u32,
    rtt_least: TimeDelta,
    /// Whether an acknowledgement in this round trip has acknowledged more than one segment.
    delayed: bool,
    /// The round trip ends when data beyond this is acknowledged; `None` before the first.
    round: Option<u64>,
    /// In slow start: whether the window grows in this round trip.
    doubles: bool,
}

impl Default for Vegas {
    fn default() -> Self {
        Self {
            base_rtt: TimeDelta::MAX,
            rtt_sum: TimeDelta::ZERO,
            rtt_count: 0,
            rtt_least: TimeDelta::MAX,
            delayed: false,
            round: None,
            // The first round trip only measures; the second is compared with it and may grow.
            doubles: true,
        }
    }
}

impl Vegas {
    fn begin_round(&mut self, high: u64) {
        self.round = Some(high);
        (self.rtt_sum, self.rtt_count) = (TimeDelta::ZERO, 0);
        (self.rtt_least, self.delayed) = (TimeDelta::MAX, false);
    }

    /// The mean round-trip time was `rtt` while `sent` bytes were sent.
    fn adjust(&mut self, window: &mut Window, rtt: TimeDelta, sent: u64, ack: &AckInfo) {
        let mss = window.mss;
        let ahead = 1.0 - self.base_rtt.as_secs_f64() / rtt.as_secs_f64();
        let queued = sent as f64 / mss as f64 * ahead;
        if window.cwnd < window.ssthresh {
            self.doubles = !self.doubles;
            if queued > GAMMA {
                window.cwnd = (window.cwnd - window.cwnd / 8).max(2 * mss);
                window.ssthresh = 2 * mss;
            }
        } else if queued > BETA {
            window.cwnd = (window.cwnd - mss.min(window.cwnd)).max(2 * mss);
            // A reduction does not return to slow start.
            window.ssthresh = window.ssthresh.min(window.cwnd);
        } else if queued < ALPHA && ack.was_limited {
            window.cwnd += mss;
        }
    }
}

impl CongestionAvoidance for Vegas {
    fn measure(&mut self, window: &mut Window, ack: &AckInfo) {
        if let Some(rtt) = ack.rtt.filter(|&r| r > TimeDelta::ZERO) {
            self.base_rtt = self.base_rtt.min(rtt);
            self.rtt_sum += rtt;
            self.rtt_count += 1;
            self.rtt_least = self.rtt_least.min(rtt);
            self.delayed |= ack.acked > window.mss;
        }
        match self.round {
            Some(end) if ack.una <= end => {}
            Some(end) => {
                if self.rtt_count > 0 {
                    let mean = self.rtt_sum / i64::from(self.rtt_count);
                    let rtt = if self.delayed { self.rtt_least } else { mean };
                    self.adjust(window, rtt, ack.high - end, ack);
                }
                self.begin_round(ack.high);
            }
            None => self.begin_round(ack.high),
        }
    }
    fn slow_start(&mut self, window: &mut Window, ack: &AckInfo) {
        if self.doubles {
            window.slow_start(ack.acked);
        }
    }
    fn on_ack(&mut self, _window: &mut Window, _ack: &AckInfo) {}
    fn on_congestion(&mut self, _window: &Window, flight: u64, why: Congestion) -> u64 {
        self.round = None;
        self.doubles = true;
        match why {
            Congestion::Loss => flight - flight / 4,
            Congestion::Ecn | Congestion::Timeout => flight / 2,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Timestamp;

    const MSS: u64 = 1_000;

    /// A flow alone on a path that holds `pipe` segments in its base RTT of 100 ms: the window of each round trip.
    fn rounds(window: &mut Window, pipe: f64, n: usize) -> Vec<u64> {
        let mut v = Vegas::default();
        let (mut una, mut out) = (0, vec![]);
        // The path's minimum round-trip time is already known.
        v.base_rtt = TimeDelta::from_millis(100);
        v.begin_round(0);
        for _ in 0..n {
            let w = window.cwnd;
            let rtt = TimeDelta::from_secs_f64(0.1 * (w as f64 / MSS as f64 / pipe).max(1.0));
            out.push(w / MSS);
            for k in 1..=w / MSS {
                // Segments released by an acknowledgement are sent after it, so one window is outstanding beyond the
                // start of the round.
                let ack = AckInfo {
                    acked: MSS,
                    una: una + k * MSS,
                    high: una + w + (k - 1) * MSS,
                    was_limited: true,
                    ..AckInfo::at(Timestamp::ZERO, rtt)
                };
                v.measure(window, &ack);
                if window.cwnd < window.ssthresh {
                    v.slow_start(window, &ack);
                } else {
                    v.on_ack(window, &ack);
                }
            }
            una += w;
        }
        out
    }

    #[test]
    fn slow_start_doubles_every_other_round_trip_and_ends_early() {
        let mut w = Window { cwnd: 2 * MSS, ssthresh: u64::MAX, mss: MSS };
        let seen = rounds(&mut w, 40.0, 16);
        let grown: Vec<_> = seen.windows(2).filter(|p| p[1] > p[0]).map(|p| (p[0], p[1])).collect();
        // Doubles at most every second round trip, with at most one overshoot above the pipe.
        for pair in seen.windows(3).filter(|p| p[2] < 40) {
            assert!(pair[2] <= 2 * pair[0] + 1, "{seen:?}");
        }
        assert!(grown.len() >= 4, "{seen:?}");
        assert!(seen.iter().all(|&c| c <= 80), "{seen:?}");
        assert_eq!(w.ssthresh, 2 * MSS);
    }

    #[test]
    fn the_queue_settles_between_alpha_and_beta() {
        for start in [30, 60] {
            let mut w = Window { cwnd: start * MSS, ssthresh: 2 * MSS, mss: MSS };
            let seen = rounds(&mut w, 40.0, 60);
            // One segment per round trip, towards the pipe plus 1 to 3 segments.
            assert!(seen.windows(2).all(|p| p[0].abs_diff(p[1]) <= 1), "{seen:?}");
            let last = seen[seen.len() - 20..].iter().map(|&c| c as i64 - 40).collect::<Vec<_>>();
            assert!(last.iter().all(|q| (1..=3).contains(q)), "from {start}: {seen:?}");
        }
    }

    #[test]
    fn a_loss_takes_a_quarter_and_a_timeout_half() {
        let w = Window { cwnd: 40 * MSS, ssthresh: 2 * MSS, mss: MSS };
        assert_eq!(Vegas::default().on_congestion(&w, 40 * MSS, Congestion::Loss), 30 * MSS);
        assert_eq!(Vegas::default().on_congestion(&w, 40 * MSS, Congestion::Timeout), 20 * MSS);
    }
}
