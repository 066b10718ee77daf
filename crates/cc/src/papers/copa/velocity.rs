//! v: how far a step goes (section 2.1, step 4).

use weir_units::{TimeDelta, Timestamp};

/// Round trips in one direction after which v doubles.
const SAME: u32 = 3;
/// Most v, so that it stays finite.
const MAX: f64 = 1e6;

#[derive(Clone, Copy, Debug)]
pub(super) struct Velocity {
    v: f64,
    is_up: bool,
    /// Round trips in this direction.
    same: u32,
    /// The window when the round trip began.
    recorded: Option<(f64, Timestamp)>,
}

impl Default for Velocity {
    fn default() -> Self {
        Self { v: 1.0, is_up: true, same: 0, recorded: None }
    }
}

impl Velocity {
    pub(super) fn get(&self) -> f64 {
        self.v
    }

    /// v for a step up or down, from a window at `now`.
    pub(super) fn on_packet(&mut self, is_up: bool, window: f64, now: Timestamp, rtt: TimeDelta) -> f64 {
        match self.recorded {
            None => self.recorded = Some((window, now)),
            Some((before, since)) if now - since >= rtt => {
                let was_up = window > before;
                if was_up == self.is_up {
                    self.same = self.same.saturating_add(1);
                    if self.same >= SAME {
                        self.v = (2.0 * self.v).min(MAX);
                    }
                } else {
                    (self.v, self.same, self.is_up) = (1.0, 0, was_up);
                }
                self.recorded = Some((window, now));
            }
            Some(_) => {}
        }
        if is_up != self.is_up && self.v > 1.0 {
            (self.v, self.same, self.is_up) = (1.0, 0, is_up);
            self.recorded = Some((window, now));
        }
        self.v
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTT: TimeDelta = TimeDelta::from_millis(100);

    #[test]
    fn it_doubles_from_the_third_round_trip_in_one_direction_on() {
        let mut v = Velocity::default();
        let ups: Vec<_> = (0..7)
            .map(|k| v.on_packet(true, 10.0 + f64::from(k), Timestamp::from_millis(100 * i64::from(k)), RTT))
            .collect();
        assert_eq!(ups, [1.0, 1.0, 1.0, 2.0, 4.0, 8.0, 16.0]);
    }

    #[test]
    fn a_step_against_the_direction_begins_again() {
        let mut v = Velocity::default();
        for k in 0..6 {
            v.on_packet(true, 10.0 + f64::from(k), Timestamp::from_millis(100 * i64::from(k)), RTT);
        }
        assert_eq!(v.on_packet(false, 15.5, Timestamp::from_millis(520), RTT), 1.0);
        assert_eq!(v.on_packet(false, 15.0, Timestamp::from_millis(530), RTT), 1.0);
    }
}
