//! Trials: a stream or an encoding that was switched on, and goes off again soon.

use super::{Round, Share};
use weir_units::{TimeDelta, Timestamp};

/// Time after a failed trial within which another one that was on before it began has been taken along by its queue and losses.
/// Chosen here: a second's queue, and a controller's way back.
const AFTERMATH: TimeDelta = TimeDelta::from_secs(5);
/// Most times that the hold becomes four times as long.
const MAX_RELAPSES: u8 = 3;

impl Round<'_> {
    /// Switches a stream or an encoding off, and counts a trial that has failed.
    pub(super) fn turn_off(&mut self, i: usize) {
        let before = self.shares[i];
        let relapses = match before.on_since {
            _ if !before.is_on => before.relapses,
            Some(at) if self.is_taken_along(i, at) => before.relapses,
            Some(at) if self.now - at < self.hysteresis.trial => (before.relapses + 1).min(MAX_RELAPSES),
            // One switch a minute is no trouble.
            Some(at) if self.now - at < self.hysteresis.trial * 2 => before.relapses,
            _ => 0,
        };
        let trial = before.on_since.filter(|at| before.is_on && self.now - *at < self.hysteresis.trial);
        let failed = trial.map(|at| (at, self.now)).or(before.failed);
        self.shares[i] = Share { relapses, failed, ..Share::off() };
    }

    /// Whether the trial of another one, which began after this one was on at `at`, is what makes it go off: it fails now, or has just failed.
    fn is_taken_along(&self, i: usize, at: Timestamp) -> bool {
        let is_later = |since: Timestamp| since > at;
        self.shares.iter().enumerate().filter(|(j, _)| *j != i).any(|(_, other)| {
            let on = other.on_since.filter(|_| other.is_on);
            let is_on_trial = on.is_some_and(|since| is_later(since) && self.now - since < self.hysteresis.trial);
            is_on_trial || other.failed.is_some_and(|(since, off)| is_later(since) && self.now - off < AFTERMATH)
        })
    }
}
