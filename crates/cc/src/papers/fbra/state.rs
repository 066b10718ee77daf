//! The state machine: sub-algorithms 1a to 1d, line by line.

use super::config::Config;
use super::interval::Losses;

/// The states (section 3, figure 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Down,
    Stay,
    Probe,
    Up,
}

/// Whether to undershoot, and how (section 4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Undershoot {
    No,
    /// Undershoot without disabling rate control.
    KeepControl,
    /// Undershoot and disable rate control for a reporting interval.
    Disable,
}

/// A report's signs, as the sub-algorithms use them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Signs {
    pub(super) losses: Losses,
    /// Correlated_highOWD, 1 if unknown.
    pub(super) high: f64,
    /// Correlated_lowOWD, 1 if unknown.
    pub(super) low: f64,
    /// Whether STAY may lead to PROBE: the rate is well below the recent highest or has been stable.
    pub(super) may_probe: bool,
}

/// The next state and actions. FEC starts from STAY to PROBE, is reduced from PROBE to PROBE, and is off in every other
/// state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Step {
    pub(super) next: State,
    pub(super) undershoot: Undershoot,
}

impl State {
    /// Runs the sub-algorithm of this state. `previous` is the state at the report before.
    pub(super) fn step(self, previous: Self, signs: &Signs, config: &Config) -> Step {
        let (next, undershoot) = match self {
            Self::Down => down(previous, signs, config),
            Self::Stay => stay(previous, signs, config),
            Self::Probe => probe(signs, config),
            Self::Up => up(signs, config),
        };
        Step { next, undershoot }
    }

    /// For plots: DOWN 0, STAY 1, PROBE 2, UP 3.
    pub(super) fn number(self) -> f64 {
        match self {
            Self::Down => 0.0,
            Self::Stay => 1.0,
            Self::Probe => 2.0,
            Self::Up => 3.0,
        }
    }
}

/// Sub-algorithm 1a. By the letter of lines 2 to 5, congestion in two consecutive reports leads to STAY without a
/// further cut; any discard counts, but only recent losses.
fn down(previous: State, s: &Signs, c: &Config) -> (State, Undershoot) {
    if s.losses.recent_lost || s.losses.any_discarded {
        if previous == State::Down {
            (State::Stay, Undershoot::No)
        } else if s.losses.any_discarded && !s.losses.any_lost {
            (State::Down, Undershoot::KeepControl)
        } else {
            (State::Down, Undershoot::Disable)
        }
    } else if s.high > c.alpha_undershoot {
        (State::Down, Undershoot::Disable)
    } else {
        (State::Stay, Undershoot::No)
    }
}

/// Sub-algorithm 1b. By its letter, losses that are not recent keep STAY regardless of discards, and stale discards do
/// not prevent PROBE.
fn stay(previous: State, s: &Signs, c: &Config) -> (State, Undershoot) {
    if s.losses.any_lost {
        if s.losses.recent_lost { (State::Down, Undershoot::Disable) } else { (State::Stay, Undershoot::No) }
    } else if s.losses.recent_discarded {
        (State::Down, Undershoot::Disable)
    } else if s.high > c.alpha_stay {
        if previous == State::Stay { (State::Down, Undershoot::Disable) } else { (State::Stay, Undershoot::No) }
    } else {
        (if s.may_probe { State::Probe } else { State::Stay }, Undershoot::No)
    }
}

/// Sub-algorithm 1c.
fn probe(s: &Signs, c: &Config) -> (State, Undershoot) {
    if s.losses.recent_lost || s.losses.recent_discarded {
        (State::Down, Undershoot::Disable)
    } else if s.losses.any_lost || s.losses.any_discarded {
        (State::Stay, Undershoot::No)
    } else if s.high > c.alpha_down_probe {
        (State::Down, Undershoot::Disable)
    } else if s.high > c.alpha_stay {
        (State::Stay, Undershoot::No)
    } else if s.low > c.beta {
        (State::Probe, Undershoot::No)
    } else {
        (State::Up, Undershoot::No)
    }
}

/// Sub-algorithm 1d. Any discard counts, but only recent losses.
fn up(s: &Signs, c: &Config) -> (State, Undershoot) {
    if s.losses.recent_lost || s.losses.any_discarded || s.high > c.alpha_down_up {
        (State::Down, Undershoot::Disable)
    } else {
        (State::Stay, Undershoot::No)
    }
}

#[cfg(test)]
mod tests {
    use super::State::{Down, Probe, Stay, Up};
    use super::Undershoot::{Disable, KeepControl, No};
    use super::*;

    /// Losses and discards: l or d if recent, s or t if stale.
    fn signs(losses: &str, high: f64, low: f64) -> Signs {
        let has = |c| losses.contains(c);
        let losses = Losses {
            any_lost: has('l') || has('s'),
            recent_lost: has('l'),
            any_discarded: has('d') || has('t'),
            recent_discarded: has('d'),
        };
        Signs { losses, high, low, may_probe: true }
    }
    #[track_caller]
    fn check(
        state: State,
        previous: State,
        losses: &str,
        (high, low): (f64, f64),
        next: State,
        undershoot: Undershoot,
    ) {
        let got = state.step(previous, &signs(losses, high, low), &Config::default());
        assert_eq!(got, Step { next, undershoot }, "{state:?} after {previous:?}: {losses:?}, {high}, {low}");
    }

    #[test]
    fn down_is_1a() {
        for p in [Stay, Probe, Up] {
            check(Down, p, "l", (1.0, 1.0), Down, Disable);
            check(Down, p, "d", (1.0, 1.0), Down, KeepControl);
            check(Down, p, "t", (1.0, 1.0), Down, KeepControl);
            check(Down, p, "sd", (1.0, 1.0), Down, Disable);
            check(Down, p, "ld", (1.0, 1.0), Down, Disable);
            check(Down, p, "", (2.0, 9.0), Stay, No);
            check(Down, p, "", (2.001, 9.0), Down, Disable);
            check(Down, p, "s", (1.0, 1.0), Stay, No);
            check(Down, p, "s", (2.001, 1.0), Down, Disable);
        }
        // Lines 3 and 4.
        for losses in ["l", "d", "t", "ls", "sd"] {
            check(Down, Down, losses, (3.0, 3.0), Stay, No);
        }
        check(Down, Down, "", (2.001, 9.0), Down, Disable);
        check(Down, Down, "", (1.0, 1.0), Stay, No);
    }

    #[test]
    fn stay_is_1b() {
        for p in [Down, Stay, Probe, Up] {
            check(Stay, p, "l", (1.0, 1.0), Down, Disable);
            check(Stay, p, "s", (9.0, 9.0), Stay, No);
            check(Stay, p, "sd", (9.0, 9.0), Stay, No);
            check(Stay, p, "d", (1.0, 1.0), Down, Disable);
            check(Stay, p, "t", (1.1, 9.0), Probe, No);
            check(Stay, p, "", (1.1, 9.0), Probe, No);
        }
        check(Stay, Stay, "", (1.101, 1.0), Down, Disable);
        check(Stay, Stay, "t", (1.101, 1.0), Down, Disable);
        for p in [Down, Probe, Up] {
            check(Stay, p, "", (1.101, 1.0), Stay, No);
        }
        let near_highest = Signs { may_probe: false, ..signs("", 1.0, 1.0) };
        assert_eq!(Stay.step(Up, &near_highest, &Config::default()), Step { next: Stay, undershoot: No });
    }

    #[test]
    fn probe_is_1c() {
        for p in [Stay, Probe] {
            for losses in ["l", "d", "ld", "st d"] {
                check(Probe, p, losses, (1.0, 1.0), Down, Disable);
            }
            for losses in ["s", "t", "st"] {
                check(Probe, p, losses, (9.0, 9.0), Stay, No);
            }
            check(Probe, p, "", (1.601, 1.0), Down, Disable);
            check(Probe, p, "", (1.6, 1.0), Stay, No);
            check(Probe, p, "", (1.101, 1.0), Stay, No);
            check(Probe, p, "", (1.1, 1.201), Probe, No);
            check(Probe, p, "", (1.1, 1.2), Up, No);
        }
    }

    #[test]
    fn up_is_1d() {
        for losses in ["l", "d", "t"] {
            check(Up, Probe, losses, (1.0, 1.0), Down, Disable);
        }
        check(Up, Probe, "s", (1.4, 9.0), Stay, No);
        check(Up, Probe, "", (1.4, 9.0), Stay, No);
        check(Up, Probe, "", (1.401, 1.0), Down, Disable);
    }
}
