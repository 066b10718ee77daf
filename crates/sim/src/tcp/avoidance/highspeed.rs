use super::{AckInfo, Congestion, CongestionAvoidance, Window};

/// Up to this window, in segments, it behaves as NewReno (RFC 3649, section 5).
const LOW_WINDOW: f64 = 38.0;
/// The window at the response function's upper end, in segments (RFC 3649, section 5).
const HIGH_WINDOW: f64 = 83_000.0;
/// The decrease at that window (RFC 3649, section 7).
const HIGH_DECREASE: f64 = 0.1;

/// b(w), the share by which congestion reduces a window of `w` segments (RFC 3649, section 7).
pub fn decrease(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 0.5;
    }
    let slope = (HIGH_DECREASE - 0.5) / libm::log(HIGH_WINDOW / LOW_WINDOW);
    // For windows beyond the RFC's range, b(w) would become zero or negative.
    (slope * libm::log(w / LOW_WINDOW) + 0.5).max(0.05)
}

/// a(w), the growth of a window of `w` segments per round trip, in segments (RFC 3649, section 7).
///
/// p(w) is 0.078 / w^1.2, as rounded in that section for High_P = 1e-7; table 12 is computed from the same.
pub fn increase(w: f64) -> f64 {
    if w <= LOW_WINDOW {
        return 1.0;
    }
    let b = decrease(w);
    (0.078 * libm::pow(w, 0.8) * 2.0 * b / (2.0 - b)).max(1.0)
}

/// HighSpeed TCP's congestion avoidance (RFC 3649) with the default parameters of its appendix B.
///
/// The RFC adds a(w) / w per acknowledgement; this adds it per segment acknowledged, since delayed acknowledgements
/// would otherwise halve the growth. Limited slow start (RFC 3742) is left out.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct HighSpeed {
    /// a(w) and the window for which it was computed, in whole segments.
    cached: (u64, f64),
    /// Remainder of growth below a byte, in segments.
    carry: f64,
}

impl CongestionAvoidance for HighSpeed {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        let segments = window.cwnd / window.mss;
        if self.cached.0 != segments {
            self.cached = (segments, increase(segments as f64));
        }
        let mss = window.mss as f64;
        self.carry += self.cached.1 * (ack.acked as f64 / mss) / window.segments();
        let bytes = (self.carry * mss) as u64;
        window.cwnd += bytes;
        self.carry -= bytes as f64 / mss;
    }
    fn on_congestion(&mut self, window: &Window, flight: u64, _why: Congestion) -> u64 {
        self.carry = 0.0;
        let kept = 1.0 - decrease(flight as f64 / window.mss as f64);
        (flight as f64 * kept) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{TimeDelta, Timestamp};

    /// RFC 3649, appendix B: w, a(w), b(w).
    const TABLE_12: [(f64, f64, f64); 14] = [
        (38.0, 1.0, 0.50),
        (118.0, 2.0, 0.44),
        (221.0, 3.0, 0.41),
        (347.0, 4.0, 0.38),
        (495.0, 5.0, 0.37),
        (1_058.0, 8.0, 0.33),
        (2_076.0, 12.0, 0.29),
        (5_036.0, 20.0, 0.25),
        (10_661.0, 30.0, 0.21),
        (18_955.0, 40.0, 0.18),
        (30_975.0, 50.0, 0.15),
        (48_961.0, 60.0, 0.13),
        (79_517.0, 70.0, 0.10),
        (94_717.0, 73.0, 0.09),
    ];

    #[test]
    fn increase_and_decrease_are_those_of_the_table() {
        for (w, a, b) in TABLE_12 {
            // The table's program lists the first window at which a(w) has grown by one more, hence slightly more.
            assert!((increase(w) / a - 1.0).abs() < 0.015, "a({w}) = {}, expected {a}", increase(w));
            assert!((decrease(w) - b).abs() < 0.006, "b({w}) = {}, expected {b}", decrease(w));
        }
        assert_eq!((increase(10.0), decrease(10.0)), (1.0, 0.5));
        assert!(decrease(1e9) > 0.0);
    }

    #[test]
    fn the_response_function_follows() {
        // Table 3: drop rate and average window. A cycle from (1 - b) w to w at a segments per round trip has b w / a
        // round trips, about (1 - b / 2) w segments in each, and one loss.
        for (p, average) in [(1e-4, 263.0), (1e-5, 1_795.0), (1e-6, 12_279.0), (1e-7, 83_981.0)] {
            let (a, b) = (increase(average), decrease(average));
            let top = average / (1.0 - b / 2.0);
            let segments = b * top / a * average;
            assert!((0.9..1.2).contains(&(segments * p)), "p {p}: {}", segments * p);
        }
    }

    #[test]
    fn a_round_trip_adds_a_segments_and_congestion_takes_b() {
        for start in [30u64, 1_058, 10_661] {
            let mut w = Window { cwnd: start * 1_000, ssthresh: 2_000, mss: 1_000 };
            let mut c = HighSpeed::default();
            for _ in 0..start / 2 {
                let ack = AckInfo { acked: 2_000, ..AckInfo::at(Timestamp::ZERO, TimeDelta::from_millis(100)) };
                c.on_ack(&mut w, &ack);
            }
            let grown = w.segments() - start as f64;
            assert!((0.97..1.01).contains(&(grown / increase(start as f64))), "{start}: {grown}");
            let left = c.on_congestion(&w, w.cwnd, Congestion::Loss) as f64 / w.cwnd as f64;
            assert!((left - (1.0 - decrease(w.segments()))).abs() < 1e-3, "{start}: {left}");
        }
    }
}
