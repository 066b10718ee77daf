//! HyStart++ (RFC 9406): slow start ends when the round-trip time rises.

use super::avoidance::{AckInfo, Window};
use weir_units::TimeDelta;

/// Bounds of the rise that counts (section 4.3): 4 to 16 ms, an eighth of the minimum between.
const MIN_RTT_THRESH: TimeDelta = TimeDelta::from_millis(4);
const MAX_RTT_THRESH: TimeDelta = TimeDelta::from_millis(16);
const MIN_RTT_DIVISOR: i64 = 8;
/// Samples of a round trip before it is judged.
const N_RTT_SAMPLE: u32 = 8;
/// Growth in conservative slow start is divided by this, and it lasts this many round trips.
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// Segments that an acknowledgement may add without pacing; with pacing there is no bound.
const L: u64 = 8;

/// The state of a slow start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct HyStart {
    /// The round trip ends when this is acknowledged.
    window_end: u64,
    last: TimeDelta,
    current: TimeDelta,
    samples: u32,
    /// In conservative slow start: the minimum of the round trip in which it began, and the round trips left.
    conservative: Option<(TimeDelta, u32)>,
}

impl Default for HyStart {
    fn default() -> Self {
        Self { window_end: 0, last: TimeDelta::MAX, current: TimeDelta::MAX, samples: 0, conservative: None }
    }
}

impl HyStart {
    /// Grows the window by an acknowledgement, and ends slow start by setting the threshold.
    pub(super) fn on_ack(&mut self, window: &mut Window, ack: &AckInfo, paces: bool) {
        let most = if paces { u64::MAX } else { L * window.mss };
        let divisor = if self.conservative.is_some() { CSS_GROWTH_DIVISOR } else { 1 };
        let grown = window.cwnd.saturating_add(ack.acked.min(most) / divisor);
        window.cwnd = grown.min(window.ssthresh.max(window.cwnd));
        if let Some(rtt) = ack.rtt {
            self.current = self.current.min(rtt);
            self.samples += 1;
        }
        if self.samples >= N_RTT_SAMPLE && self.current < TimeDelta::MAX {
            match self.conservative {
                None if self.last < TimeDelta::MAX => {
                    let rise = (self.last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESH, MAX_RTT_THRESH);
                    if self.current >= self.last + rise {
                        self.conservative = Some((self.current, CSS_ROUNDS));
                    }
                }
                Some((baseline, _)) if self.current < baseline => self.conservative = None,
                _ => {}
            }
        }
        if ack.una > self.window_end {
            self.window_end = ack.high;
            (self.last, self.current, self.samples) = (self.current, TimeDelta::MAX, 0);
            if let Some((_, rounds)) = &mut self.conservative {
                *rounds -= 1;
                if *rounds == 0 {
                    window.ssthresh = window.cwnd;
                    // A slow start after a timeout begins from nothing known.
                    *self = Self { window_end: self.window_end, ..Self::default() };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Timestamp;

    const MSS: u64 = 1_000;

    /// A round trip of `window` in which each acknowledgement takes `rtt_ms`.
    fn round(h: &mut HyStart, w: &mut Window, una: &mut u64, rtt_ms: i64) {
        let n = w.cwnd / MSS;
        for _ in 0..n {
            *una += MSS;
            let ack = AckInfo {
                acked: MSS,
                una: *una,
                high: *una + w.cwnd - MSS,
                ..AckInfo::at(Timestamp::ZERO, TimeDelta::from_millis(rtt_ms))
            };
            h.on_ack(w, &ack, false);
        }
    }

    #[test]
    fn a_rise_slows_growth_and_five_round_trips_end_it() {
        let (mut h, mut una) = (HyStart::default(), 0);
        let mut w = Window { cwnd: 10 * MSS, ssthresh: u64::MAX, mss: MSS };
        round(&mut h, &mut w, &mut una, 40);
        round(&mut h, &mut w, &mut una, 40);
        assert_eq!((w.cwnd, h.conservative), (40 * MSS, None));
        // An eighth of 40 ms.
        round(&mut h, &mut w, &mut una, 45);
        assert!(h.conservative.is_some() && w.cwnd < 60 * MSS, "{h:?} {w:?}");
        for _ in 0..6 {
            round(&mut h, &mut w, &mut una, 45);
        }
        assert_eq!(w.ssthresh, w.ssthresh.min(w.cwnd), "{w:?}");
        assert!(w.ssthresh < u64::MAX);
    }

    #[test]
    fn a_rise_that_goes_away_resumes_slow_start() {
        let (mut h, mut una) = (HyStart::default(), 0);
        let mut w = Window { cwnd: 20 * MSS, ssthresh: u64::MAX, mss: MSS };
        for rtt in [40, 40, 50, 42] {
            round(&mut h, &mut w, &mut una, rtt);
        }
        assert_eq!((h.conservative, w.ssthresh), (None, u64::MAX));
    }
}
