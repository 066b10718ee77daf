//! One-way delay without what is no queue: the skew and the steps of the other end's clock, and a path that has become longer.
//!
//! It stands before the base delay of each controller that has one over a long time. Without it such a base takes minutes to follow, and a
//! receiver's clock that is 100 ppm fast, one that is set, or a longer route look like a queue that never drains.

use super::clock_offset::ClockOffset;
use super::longer_path::LongerPath;
use crate::cue::{PacketResult, TransportFeedback};
use weir_units::{TimeDelta, Timestamp};

/// Corrects one-way delays. Only differences between delays mean anything.
#[derive(Clone, Debug, Default)]
pub(crate) struct DelayCorrection {
    clock: ClockOffset,
    path: LongerPath,
    /// The last delay passed to [`Self::correct`], as it was.
    newest: Option<TimeDelta>,
    is_off: bool,
}

impl DelayCorrection {
    /// A correction, or one that leaves delays as they are.
    pub(crate) fn new(is_on: bool) -> Self {
        Self { is_off: !is_on, ..Self::default() }
    }

    /// Takes feedback, before its packets' delays.
    pub(crate) fn on_feedback(&mut self, feedback: &TransportFeedback<'_>) {
        let newest = feedback.packets.iter().rfind(|p| p.arrival.is_some());
        if let Some((departure, arrival)) = newest.and_then(|p| Some((p.departure, p.arrival?))) {
            self.clock.on_feedback(feedback.now, departure, arrival);
        }
    }

    /// Takes a round-trip time at an end that receives the media and no feedback.
    pub(crate) fn on_round_trip(&mut self, rtt: TimeDelta, now: Timestamp) {
        if let Some(media) = self.newest {
            self.clock.on_round_trip(now, rtt, media);
        }
    }

    /// The delay of a packet of the feedback; `None` if it was lost.
    pub(crate) fn of(&mut self, packet: &PacketResult) -> Option<TimeDelta> {
        let Some(arrival) = packet.arrival else {
            self.path.on_lost(1);
            return None;
        };
        let delay = arrival.as_nanos().saturating_sub(packet.departure.as_nanos());
        Some(self.correct(TimeDelta::from_nanos(delay), packet.departure - Timestamp::ZERO))
    }

    /// A delay measured at `at`, by a clock that does not go back.
    pub(crate) fn correct(&mut self, delay: TimeDelta, at: TimeDelta) -> TimeDelta {
        if self.is_off {
            return delay;
        }
        self.newest = Some(delay);
        let ahead = self.clock.ahead_ns();
        self.path.correct(TimeDelta::from_nanos(delay.as_nanos().saturating_sub(ahead)), delay, at)
    }

    /// Packets have been lost.
    pub(crate) fn on_lost(&mut self, packets: u32) {
        self.path.on_lost(packets);
    }
}
