//! Recovery: what bounds the flight for a round trip or more after a loss (libwebrtc's `UpdateRecoveryState` and
//! `CalculateRecoveryWindow`).

use weir_units::DataSize;

/// The window keeps at least this where losses exceed it (`kMaxSegmentSize`).
const SEGMENT: DataSize = DataSize::from_bytes(1_460);

/// How much may be sent for what is acknowledged (`RecoveryState`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Recovery {
    /// As much as the window allows.
    Off,
    /// As many bytes as are acknowledged.
    Conservation,
    /// Half as much again.
    MediumGrowth,
    /// Twice as much, as in slow start.
    Growth,
}

impl Recovery {
    /// By the number of `startup_recovery`.
    pub(super) fn from_number(n: u32) -> Self {
        match n {
            0 => Self::Off,
            1 => Self::Conservation,
            2 => Self::MediumGrowth,
            _ => Self::Growth,
        }
    }
}

/// The state of recovery.
#[derive(Clone, Copy, Debug)]
pub(super) struct LossRecovery {
    state: Recovery,
    /// An acknowledgement of a later packet, without losses, ends it; `None` before the first loss.
    ends_after: Option<u64>,
    /// Zero until it is set by the first feedback in recovery.
    window: DataSize,
}

impl LossRecovery {
    pub(super) const fn new() -> Self {
        Self { state: Recovery::Off, ends_after: None, window: DataSize::ZERO }
    }
    pub(super) fn is_on(&self) -> bool {
        self.state != Recovery::Off
    }
    pub(super) fn has_lost(&self) -> bool {
        self.ends_after.is_some()
    }
    /// The bound on the flight, if there is one.
    pub(super) fn window(&self) -> Option<DataSize> {
        self.is_on().then_some(self.window)
    }

    /// Feedback with acknowledgements up to `acked`. Returns whether recovery begins; the round trip then begins again,
    /// so that conservation lasts for a whole one.
    pub(super) fn update(
        &mut self,
        acked: u64,
        last_sent: Option<u64>,
        has_losses: bool,
        round_start: bool,
        first: Recovery,
    ) -> bool {
        if has_losses {
            self.ends_after = last_sent;
        }
        if self.state == Recovery::Off {
            if has_losses {
                self.state = first;
                self.window = DataSize::ZERO;
            }
            return has_losses;
        }
        if round_start {
            self.state = Recovery::Growth;
        }
        if !has_losses && self.ends_after.is_none_or(|end| acked > end) {
            self.state = Recovery::Off;
        }
        false
    }

    /// Sets the window by what this feedback acknowledged and lost, and what is in flight after it.
    pub(super) fn set_window(&mut self, acked: DataSize, lost: DataSize, in_flight: DataSize, least: DataSize) {
        if self.state == Recovery::Off {
            return;
        }
        let allowed = in_flight + acked;
        if self.window.is_zero() {
            self.window = allowed.max(least);
            return;
        }
        self.window = self.window.checked_sub(lost).unwrap_or(SEGMENT);
        match self.state {
            Recovery::Growth => self.window += acked,
            Recovery::MediumGrowth => self.window += DataSize::from_bytes(acked.as_bytes() / 2),
            Recovery::Off | Recovery::Conservation => {}
        }
        self.window = self.window.max(allowed).max(least);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const B: fn(u64) -> DataSize = DataSize::from_bytes;

    #[test]
    fn conservation_lasts_a_round_trip_and_growth_until_a_round_trip_without_loss() {
        let mut r = LossRecovery::new();
        assert!(!r.update(10, Some(20), false, true, Recovery::Conservation));
        assert_eq!((r.window(), r.has_lost()), (None, false));
        assert!(r.update(12, Some(30), true, false, Recovery::Conservation), "it begins");
        r.set_window(B(3_000), B(1_000), B(20_000), B(5_840));
        assert_eq!(r.window(), Some(B(23_000)));
        // In conservation only losses are subtracted, and what was acknowledged may be sent again.
        assert!(!r.update(20, Some(35), false, false, Recovery::Conservation));
        r.set_window(B(2_000), B(500), B(18_000), B(5_840));
        assert_eq!(r.window(), Some(B(22_500)));
        assert!(!r.update(30, Some(40), false, true, Recovery::Conservation));
        assert_eq!(r.state, Recovery::Growth);
        r.set_window(B(2_000), B(0), B(18_000), B(5_840));
        assert_eq!(r.window(), Some(B(24_500)));
        r.update(31, Some(41), false, false, Recovery::Conservation);
        assert_eq!((r.window(), r.has_lost()), (None, true));
    }

    #[test]
    fn further_losses_prolong_it_and_never_close_the_window() {
        let mut r = LossRecovery::new();
        r.update(1, Some(10), true, false, Recovery::from_number(2));
        r.set_window(B(0), B(9_000), B(0), B(5_840));
        assert_eq!(r.window(), Some(B(5_840)));
        r.set_window(B(1_000), B(u64::MAX), B(0), B(1_000));
        assert_eq!(r.window(), Some(B(1_460 + 500)));
        r.set_window(B(u64::MAX), B(0), B(u64::MAX), B(1_000));
        assert_eq!(r.window(), Some(B(u64::MAX)));
        r.update(15, Some(50), true, false, Recovery::Conservation);
        r.update(40, Some(60), false, false, Recovery::Conservation);
        assert!(r.is_on(), "lost until 50");
        assert_eq!(Recovery::from_number(0), Recovery::Off);
    }
}
