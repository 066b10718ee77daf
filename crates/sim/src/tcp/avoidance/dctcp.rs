use super::{AckInfo, Congestion, CongestionAvoidance, Marks, NewReno, Window};

/// g: weight of a window's fraction of marks (RFC 8257, section 4.2: 1/16).
const GAIN: f64 = 1.0 / 16.0;

/// DCTCP (RFC 8257): the window is reduced by half of alpha, a moving average of the fraction of marked bytes, at most
/// once per window. Growth, and the response to losses, are NewReno's.
///
/// Made for data centres; on paths shared with classic flows it takes more than its share (section 6).
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Dctcp {
    reno: NewReno,
    /// DCTCP.Alpha, 0 to 1. It begins at 1 (section 4.1), so that the first mark halves the window.
    alpha: f64,
    acked: u64,
    marked: u64,
    /// The observation window ends when this is acknowledged.
    window_end: u64,
    /// No further reduction until data beyond this is acknowledged.
    cut_until: u64,
}

impl Default for Dctcp {
    fn default() -> Self {
        Self { reno: NewReno::default(), alpha: 1.0, acked: 0, marked: 0, window_end: 0, cut_until: 0 }
    }
}

impl Dctcp {
    /// DCTCP.Alpha, 0 to 1.
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }
}

impl CongestionAvoidance for Dctcp {
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        self.reno.on_ack(window, ack);
    }

    fn on_marks(&mut self, window: &mut Window, ack: &AckInfo, marks: &Marks) -> bool {
        self.acked += marks.delivered;
        self.marked += marks.marked;
        if ack.una > self.window_end {
            let fraction = self.marked as f64 / self.acked.max(1) as f64;
            self.alpha += GAIN * (fraction - self.alpha);
            (self.acked, self.marked) = (0, 0);
            self.window_end = ack.high;
        }
        if marks.marked == 0 || ack.una <= self.cut_until {
            return false;
        }
        window.cwnd = ((window.cwnd as f64 * (1.0 - self.alpha / 2.0)) as u64).max(2 * window.mss);
        window.ssthresh = window.cwnd;
        self.cut_until = ack.high;
        true
    }

    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64 {
        self.reno.on_congestion(window, flight, why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{TimeDelta, Timestamp};

    const MSS: u64 = 1_000;

    /// Windows of 100 segments of which `marked` carry marks; returns alpha and the window after each.
    fn windows(d: &mut Dctcp, marked: u64, n: usize) -> Vec<(f64, u64)> {
        let mut w = Window { cwnd: 100 * MSS, ssthresh: 50 * MSS, mss: MSS };
        let mut una = d.window_end;
        let mut out = vec![];
        for _ in 0..n {
            w.cwnd = 100 * MSS;
            for k in 0..100 {
                una += MSS;
                let ack =
                    AckInfo { una, high: una + 100 * MSS, ..AckInfo::at(Timestamp::ZERO, TimeDelta::from_millis(10)) };
                d.on_marks(&mut w, &ack, &Marks { delivered: MSS, marked: if k < marked { MSS } else { 0 } });
            }
            out.push((d.alpha(), w.cwnd));
        }
        out
    }

    #[test]
    fn alpha_follows_the_fraction_and_a_window_is_cut_once() {
        let mut d = Dctcp::default();
        let seen = windows(&mut d, 20, 100);
        let alpha = seen[99].0;
        assert!((alpha - 0.2).abs() < 0.01, "{alpha}");
        assert!(seen[90..].iter().all(|s| s.1.abs_diff(90 * MSS) <= MSS), "{seen:?}");
        // Alpha loses a sixteenth a window without marks.
        let seen = windows(&mut d, 0, 17);
        assert!((seen[16].0 / alpha - (15.0f64 / 16.0).powi(17)).abs() < 0.05, "{:?}", seen[16]);
    }

    #[test]
    fn the_first_mark_halves() {
        let mut d = Dctcp::default();
        let mut w = Window { cwnd: 80 * MSS, ssthresh: u64::MAX, mss: MSS };
        let ack = AckInfo { una: MSS, high: 80 * MSS, ..AckInfo::at(Timestamp::ZERO, TimeDelta::ZERO) };
        assert!(d.on_marks(&mut w, &ack, &Marks { delivered: MSS, marked: MSS }));
        assert_eq!((w.cwnd, w.ssthresh), (40 * MSS, 40 * MSS));
        assert!(!d.on_marks(&mut w, &AckInfo { una: 2 * MSS, ..ack }, &Marks { delivered: MSS, marked: MSS }));
    }
}
