use super::{AckInfo, Congestion, CongestionAvoidance, Window};

/// NewReno's congestion avoidance (RFC 5681, section 3.1): one segment per round trip, by counting bytes; halved on
/// congestion.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct NewReno {
    /// Bytes acknowledged since the window last grew.
    acked: u64,
}

impl CongestionAvoidance for NewReno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        self.acked += ack.acked;
        if self.acked >= window.cwnd {
            self.acked -= window.cwnd;
            window.cwnd += window.mss;
        }
    }
    fn on_congestion(&mut self, _window: &Window, flight: u64, _why: Congestion) -> u64 {
        self.acked = 0;
        flight / 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{TimeDelta, Timestamp};

    #[test]
    fn grows_by_a_segment_a_round_trip_and_halves() {
        let mut w = Window { cwnd: 10_000, ssthresh: 5_000, mss: 1_000 };
        let mut a = NewReno::default();
        for round in 0..20 {
            // One window, acknowledged two segments at a time.
            let mut left = w.cwnd;
            while left > 0 {
                let acked = left.min(2_000);
                left -= acked;
                a.on_ack(&mut w, &AckInfo { acked, ..AckInfo::at(Timestamp::ZERO, TimeDelta::ZERO) });
            }
            assert_eq!(w.cwnd, 11_000 + round * 1_000);
        }
        assert_eq!(a.on_congestion(&w, 30_000, Congestion::Loss), 15_000);
    }
}
