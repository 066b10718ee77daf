//! Congestion events at most once a round trip, and the loss event rate (RFC 8298, sections 4.1.2.1 and 4.1.2.4).

use weir_units::{TimeDelta, Timestamp};

/// Weight of the latest round trip in the loss event rate (the RFC leaves the filter open; C++: 0.01).
const EVENT_RATE_WEIGHT: f64 = 0.01;

/// The congestion seen in a round trip.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Congestion {
    Loss,
    Ecn,
}

/// Passes one congestion event per smoothed round-trip time, and tracks the share of round trips with a loss.
#[derive(Clone, Debug)]
pub(super) struct EventGate {
    last: Option<Timestamp>,
    round_trip_since: Timestamp,
    had_loss: bool,
    loss_event_rate: f64,
}

impl EventGate {
    pub(super) fn new(now: Timestamp) -> Self {
        Self { last: None, round_trip_since: now, had_loss: false, loss_event_rate: 0.0 }
    }

    /// loss_event_rate: share of round trips with a loss event.
    pub(super) fn loss_event_rate(&self) -> f64 {
        self.loss_event_rate
    }

    /// The event to react to now, if any; a loss takes precedence over a mark.
    pub(super) fn admit(&mut self, lost: bool, marked: bool, now: Timestamp, srtt: TimeDelta) -> Option<Congestion> {
        if now - self.round_trip_since >= srtt {
            let event = f64::from(u8::from(self.had_loss));
            self.loss_event_rate += EVENT_RATE_WEIGHT * (event - self.loss_event_rate);
            (self.had_loss, self.round_trip_since) = (false, now);
        }
        if !(lost || marked) || self.last.is_some_and(|t| now - t < srtt) {
            return None;
        }
        self.last = Some(now);
        self.had_loss |= lost;
        Some(if lost { Congestion::Loss } else { Congestion::Ecn })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(n: i64) -> TimeDelta {
        TimeDelta::from_millis(n)
    }
    const fn at(n: i64) -> Timestamp {
        Timestamp::from_millis(n)
    }

    #[test]
    fn events_come_once_a_round_trip() {
        let mut g = EventGate::new(at(0));
        assert_eq!(g.admit(true, true, at(10), ms(100)), Some(Congestion::Loss));
        assert_eq!(g.admit(true, false, at(109), ms(100)), None);
        assert_eq!(g.admit(false, true, at(110), ms(100)), Some(Congestion::Ecn));
        assert_eq!(g.admit(false, false, at(400), ms(100)), None);
    }

    #[test]
    fn the_loss_event_rate_weighs_each_round_trip_by_a_hundredth() {
        let mut g = EventGate::new(at(0));
        g.admit(true, false, at(10), ms(100));
        g.admit(false, false, at(100), ms(100));
        assert!((g.loss_event_rate() - 0.01).abs() < 1e-12);
        g.admit(false, false, at(150), ms(100));
        g.admit(false, true, at(200), ms(100));
        assert!((g.loss_event_rate() - 0.0099).abs() < 1e-12, "a mark is no loss");
    }
}
