//! Linked increases (LIA, RFC 6356): the windows of a connection's subflows grow together as fast as one window on the
//! best path would, and none grows faster than it would alone.

use weir_units::{DataSize, TimeDelta};

/// One subflow in congestion avoidance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Subflow {
    /// Its window; the slow start threshold while it recovers, the flight if that is smaller (RFC 6356, section 3).
    pub window: DataSize,
    /// Its smoothed round-trip time, above 0.
    pub rtt: TimeDelta,
}

/// The windows of a connection, and how fast they grow together.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Link {
    /// Sum of the windows, bytes.
    total: f64,
    /// Equation (2).
    alpha: f64,
}

impl Link {
    /// The link between these subflows; `None` without a window or with a round-trip time of zero.
    pub fn new(subflows: &[Subflow]) -> Option<Self> {
        let (mut total, mut best, mut sum) = (0.0, 0.0f64, 0.0);
        for s in subflows {
            let (window, rtt) = (s.window.as_bytes() as f64, s.rtt.as_secs_f64());
            if rtt <= 0.0 {
                return None;
            }
            total += window;
            best = best.max(window / (rtt * rtt));
            sum += window / rtt;
        }
        (sum > 0.0).then(|| Self { total, alpha: total * best / (sum * sum) })
    }
    /// Aggressiveness of the connection: 1 for one subflow (equation 2).
    pub const fn alpha(&self) -> f64 {
        self.alpha
    }
    /// By how many bytes a subflow's `window` grows when `acked` are acknowledged, with segments of `segment`
    /// (equation 1).
    pub fn increase(&self, window: DataSize, acked: DataSize, segment: DataSize) -> f64 {
        self.factor(window) * (acked.as_bytes() as f64 * segment.as_bytes() as f64) / window.as_bytes().max(1) as f64
    }
    /// The same as a factor, 0 to 1, on what the window would grow alone: for windows with increases of their own.
    pub fn factor(&self, window: DataSize) -> f64 {
        (self.alpha * window.as_bytes() as f64 / self.total).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SEGMENT: DataSize = DataSize::from_bytes(1_000);

    fn subflow(window: u64, rtt: i64) -> Subflow {
        Subflow { window: DataSize::from_bytes(window), rtt: TimeDelta::from_millis(rtt) }
    }

    #[test]
    fn one_subflow_grows_as_alone() {
        let link = Link::new(&[subflow(10_000, 50)]).unwrap();
        assert!((link.alpha() - 1.0).abs() < 1e-12);
        // A segment a window: 1000 * 1000 / 10000 a segment acknowledged.
        assert!((link.increase(DataSize::from_bytes(10_000), SEGMENT, SEGMENT) - 100.0).abs() < 1e-9);
    }

    #[test]
    fn two_equal_subflows_grow_together_as_one() {
        let link = Link::new(&[subflow(10_000, 50), subflow(10_000, 50)]).unwrap();
        // 20000 * (10000 / rtt²) / (20000 / rtt)² = 1/2.
        assert!((link.alpha() - 0.5).abs() < 1e-12);
        assert!((link.factor(DataSize::from_bytes(10_000)) - 0.25).abs() < 1e-12);
    }

    /// Equation (2) by hand: windows 10 and 30 segments, round trips 20 and 60 ms.
    #[test]
    fn unequal_round_trips_by_hand() {
        let link = Link::new(&[subflow(10_000, 20), subflow(30_000, 60)]).unwrap();
        // max(10000/0.0004, 30000/0.0036) = 2.5e7; (500000 + 500000)² = 1e12; alpha = 40000 * 2.5e7 / 1e12 = 1.
        assert!((link.alpha() - 1.0).abs() < 1e-9);
        assert!((link.factor(DataSize::from_bytes(10_000)) - 0.25).abs() < 1e-9);
        assert!((link.factor(DataSize::from_bytes(30_000)) - 0.75).abs() < 1e-9);
    }

    #[test]
    fn nothing_to_link_is_no_link() {
        assert_eq!(Link::new(&[]), None);
        assert_eq!(Link::new(&[subflow(0, 50)]), None);
        assert_eq!(Link::new(&[subflow(10_000, 0)]), None);
    }

    proptest! {
        /// The goals of RFC 6356, section 2: never more than alone on a path ("do no harm").
        #[test]
        fn no_subflow_grows_faster_than_alone(
            all in proptest::collection::vec((1u64..1_000_000, 1i64..2_000), 1..6),
        ) {
            let subflows: Vec<_> = all.iter().map(|(w, r)| subflow(*w, *r)).collect();
            let link = Link::new(&subflows).unwrap();
            for s in &subflows {
                let factor = link.factor(s.window);
                prop_assert!(factor > 0.0 && factor <= 1.0, "{factor}");
            }
        }
    }

    /// The throughput at equal loss is that of one flow on the better path (goals 1 and 2): windows where increase and
    /// halving balance on two paths of one bottleneck's loss.
    #[test]
    fn two_subflows_take_what_one_would() {
        // Loss rate p of every packet, on both paths; the fluid model's window changes, a packet at a time.
        let (loss, rtts) = (0.004, [40i64, 40]);
        let mut windows = [20_000.0f64, 60_000.0];
        for step in 0..400_000usize {
            let subflows: Vec<_> = windows.iter().zip(rtts).map(|(w, r)| subflow(*w as u64, r)).collect();
            let link = Link::new(&subflows).unwrap();
            let i = step % 2;
            // Packets are in proportion to windows at equal round trips.
            let packets = windows[i] / 1_000.0 / 40.0;
            let up = link.increase(subflows[i].window, SEGMENT, SEGMENT);
            windows[i] = (windows[i] + packets * (up * (1.0 - loss) - windows[i] / 2.0 * loss)).max(1_000.0);
        }
        let total = (windows[0] + windows[1]) / 1_000.0;
        // One flow alone: sqrt(2 / p) segments.
        let alone = libm::sqrt(2.0 / loss);
        assert!((0.9..1.1).contains(&(total / alone)), "{total} segments, alone {alone}");
    }
}
