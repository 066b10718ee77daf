use super::{AckInfo, Congestion, CongestionAvoidance, NewReno, Window};

/// Growth per segment acknowledged, in segments (Kelly, 2003, section 2).
const A: f64 = 0.01;
/// Share by which congestion reduces the window (Kelly, 2003, section 2).
const B: f64 = 0.125;
/// Up to this window, in segments, it behaves as NewReno (Kelly, 2003, section 2.1: the legacy window).
const LEGACY_WINDOW: u64 = 16;

/// Scalable TCP's congestion avoidance (T. Kelly, "Scalable TCP: Improving Performance in Highspeed Wide Area
/// Networks", 2003): the window grows by a hundredth per round trip and is reduced by an eighth, so the recovery time
/// after a loss does not depend on the window.
///
/// The paper adds 0.01 per acknowledgement; this adds it per segment acknowledged, since delayed acknowledgements would
/// otherwise halve the growth.
#[derive(Clone, Copy, PartialEq, Default, Debug)]
pub struct Scalable {
    legacy: NewReno,
    /// Bytes acknowledged whose growth is below a byte.
    rest: u64,
}

impl CongestionAvoidance for Scalable {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, ack: &AckInfo) {
        if window.cwnd <= LEGACY_WINDOW * window.mss {
            return self.legacy.on_ack(window, ack);
        }
        const PER_BYTE: u64 = (1.0 / A) as u64;
        self.rest += ack.acked;
        window.cwnd += self.rest / PER_BYTE;
        self.rest %= PER_BYTE;
    }
    fn on_congestion(&mut self, window: &Window, flight: u64, why: Congestion) -> u64 {
        self.rest = 0;
        if flight <= LEGACY_WINDOW * window.mss {
            return self.legacy.on_congestion(window, flight, why);
        }
        (flight as f64 * (1.0 - B)) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::{TimeDelta, Timestamp};

    /// Round trips from a loss at this window until it is reached again.
    fn recovery(segments: u64) -> u32 {
        let mut w = Window { cwnd: segments * 1_000, ssthresh: 2_000, mss: 1_000 };
        let mut c = Scalable::default();
        let before = w.cwnd;
        w.cwnd = c.on_congestion(&w, w.cwnd, Congestion::Loss);
        let mut rounds = 0;
        while w.cwnd < before {
            let mut left = w.cwnd;
            while left > 0 {
                let acked = left.min(2_000);
                left -= acked;
                c.on_ack(&mut w, &AckInfo { acked, ..AckInfo::at(Timestamp::ZERO, TimeDelta::from_millis(100)) });
            }
            rounds += 1;
        }
        rounds
    }

    #[test]
    fn recovery_takes_as_long_from_any_window() {
        // log(1 - b) / log(1 + a) = 13.4 round trips (Kelly, 2003, section 2).
        for segments in [100, 1_000, 10_000, 80_000] {
            assert_eq!(recovery(segments), 14, "{segments}");
        }
        // NewReno regains half a window one segment at a time, in the legacy window.
        assert_eq!(recovery(16), 8);
    }
}
