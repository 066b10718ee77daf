//! RACK's reordering window (RFC 8985, section 6.2, step 4) and the minimum round-trip time that it follows.

use crate::tcp::scoreboard::DUP_THRESH;
use weir_units::{TimeDelta, Timestamp};

/// Recoveries without a D-SACK after which the window returns to its initial value.
const PERSIST: u32 = 16;
/// The window grows by the minimum round-trip time divided by this.
const STEP: i64 = 4;
/// A sample counts in the minimum for one to two of these. RFC 8985, section 6.2, step 1, asks for a windowed minimum
/// without its length; Linux keeps one for 300 s (tcp_min_rtt_wlen).
const MIN_RTT_INTERVAL: TimeDelta = TimeDelta::from_secs(150);

/// The minimum round-trip time of the last 150 to 300 s (RACK.min_RTT).
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct MinRtt {
    /// When the current interval began, and its minimum and the previous one's.
    began: Timestamp,
    current: Option<TimeDelta>,
    previous: Option<TimeDelta>,
}

impl MinRtt {
    pub(super) fn add(&mut self, now: Timestamp, rtt: TimeDelta) {
        let age = now.saturating_since(self.began);
        if age >= MIN_RTT_INTERVAL {
            self.previous = self.current.filter(|_| age < MIN_RTT_INTERVAL * 2);
            (self.began, self.current) = (now, None);
        }
        self.current = Some(self.current.map_or(rtt, |least| least.min(rtt)));
    }
    pub(super) fn get(&self) -> Option<TimeDelta> {
        self.current.into_iter().chain(self.previous).min()
    }
}

/// Inputs of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conditions {
    pub(super) min_rtt: Option<TimeDelta>,
    pub(super) srtt: Option<TimeDelta>,
    /// Segments selectively acknowledged (RACK.segs_sacked).
    pub(super) sacked: usize,
    /// Whether the sender is in fast recovery or recovers from a timeout.
    pub(super) in_recovery: bool,
}

/// The adaptation of the reordering window.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReorderingWindow {
    /// RACK.reordering_seen.
    pub(super) is_seen: bool,
    /// A D-SACK has been counted in this round trip, which ends here (RACK.dsack_round).
    round: Option<u64>,
    /// RACK.reo_wnd_mult.
    multiplier: u32,
    /// RACK.reo_wnd_persist.
    persist: u32,
}

impl Default for ReorderingWindow {
    fn default() -> Self {
        Self { is_seen: false, round: None, multiplier: 1, persist: PERSIST }
    }
}

impl ReorderingWindow {
    /// An acknowledgement up to `una` was received while data up to `high` had been sent; `ends_recovery` states whether
    /// a fast recovery or the recovery from a timeout ends with it.
    pub(super) fn on_ack(&mut self, una: u64, high: u64, has_dsack: bool, ends_recovery: bool) {
        if self.round.is_some_and(|end| una >= end) {
            self.round = None;
        }
        if self.round.is_none() && has_dsack {
            self.round = Some(high);
            self.multiplier = self.multiplier.saturating_add(1);
            self.persist = PERSIST;
        } else if ends_recovery {
            self.persist = self.persist.saturating_sub(1);
            if self.persist == 0 {
                self.multiplier = 1;
            }
        }
    }

    /// The window (RACK_update_reo_wnd).
    pub(super) fn get(&self, c: &Conditions) -> TimeDelta {
        if !self.is_seen && (c.in_recovery || c.sacked >= DUP_THRESH) {
            return TimeDelta::ZERO;
        }
        let (Some(min_rtt), Some(srtt)) = (c.min_rtt, c.srtt) else { return TimeDelta::ZERO };
        // More than a few multiples exceed SRTT in any case.
        (min_rtt * i64::from(self.multiplier.min(1_000)) / STEP).min(srtt)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(i64) -> TimeDelta = TimeDelta::from_millis;

    fn idle() -> Conditions {
        Conditions { min_rtt: Some(MS(100)), srtt: Some(MS(140)), sacked: 1, in_recovery: false }
    }

    #[test]
    fn it_starts_at_a_quarter_of_the_minimum_and_is_none_when_losses_are_plain() {
        let mut w = ReorderingWindow::default();
        assert_eq!(w.get(&idle()), MS(25));
        assert_eq!(w.get(&Conditions { sacked: 3, ..idle() }), TimeDelta::ZERO);
        assert_eq!(w.get(&Conditions { in_recovery: true, ..idle() }), TimeDelta::ZERO);
        assert_eq!(w.get(&Conditions { srtt: None, ..idle() }), TimeDelta::ZERO);
        w.is_seen = true;
        assert_eq!(w.get(&Conditions { sacked: 3, in_recovery: true, ..idle() }), MS(25));
    }

    #[test]
    fn it_grows_once_a_round_trip_with_dsack_and_returns_after_16_recoveries() {
        let mut w = ReorderingWindow::default();
        w.on_ack(10, 20, true, false);
        assert_eq!(w.get(&idle()), MS(50));
        // The same round trip, which ends at 20.
        w.on_ack(19, 30, true, false);
        assert_eq!(w.get(&idle()), MS(50));
        w.on_ack(20, 30, true, false);
        w.on_ack(30, 40, true, false);
        w.on_ack(40, 50, true, false);
        w.on_ack(50, 60, true, false);
        // (5 + 1) * 25 ms is above SRTT.
        assert_eq!(w.get(&idle()), MS(140));
        for _ in 0..15 {
            w.on_ack(60, 70, false, true);
        }
        assert_eq!(w.get(&idle()), MS(140));
        // One more D-SACK begins the count again.
        w.on_ack(70, 80, true, true);
        for _ in 0..15 {
            w.on_ack(80, 90, false, true);
        }
        assert_eq!(w.get(&idle()), MS(140));
        w.on_ack(80, 90, false, true);
        assert_eq!(w.get(&idle()), MS(25));
    }

    #[test]
    fn an_old_minimum_expires() {
        let mut m = MinRtt::default();
        assert_eq!(m.get(), None);
        m.add(Timestamp::from_secs(1), MS(50));
        m.add(Timestamp::from_secs(140), MS(80));
        m.add(Timestamp::from_secs(160), MS(90));
        assert_eq!(m.get(), Some(MS(50)));
        m.add(Timestamp::from_secs(310), MS(95));
        assert_eq!(m.get(), Some(MS(90)));
        m.add(Timestamp::from_secs(700), MS(99));
        assert_eq!(m.get(), Some(MS(99)));
    }
}
