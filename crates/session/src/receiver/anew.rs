//! Sources that begin anew: what of the receiving direction goes on, and what does not.

use super::{MediaReceiver, new_playout};
use crate::config::{EndpointConfig, ReceiveConfig};
use crate::nack::Nacker;
use weir_units::{TimeDelta, Timestamp};

/// Timestamps that differ by more from what the clock says are of a source that has begun anew.
const PLAUSIBLE_SECONDS: u32 = 10;

impl MediaReceiver {
    /// Sequence numbers have jumped from `before` to `sequence`. That is no loss; where the timestamps have jumped too, the
    /// source has begun anew.
    #[cold]
    pub(super) fn on_jump(&mut self, (before, sequence): (u64, u64), rtp_timestamp: u32, now: Timestamp) {
        self.goes_on_at = Some(before.wrapping_add(self.ahead).wrapping_add(1));
        let elapsed =
            now.saturating_since(self.newest.1).as_nanos() as i128 * i128::from(self.clock_rate) / 1_000_000_000;
        let expected = self.newest.0.wrapping_add(elapsed as u32);
        let off = (rtp_timestamp.wrapping_sub(expected) as i32).unsigned_abs();
        if off > self.clock_rate.saturating_mul(PLAUSIBLE_SECONDS) {
            self.playout = new_playout(self.deadline, self.adaptive);
            self.from_fastest = false;
            self.events.clear();
            if let Some(playout) = &mut self.playout {
                // The packet before this one was not believed: what begins here may not be a frame.
                playout.on_padding(sequence - 2);
            }
            if let Some(content) = &mut self.content {
                content.clear();
            }
        }
    }

    /// Another source takes the place of the one so far, after this time of silence. Counters and the controller go on.
    pub(crate) fn begin_anew(&mut self, endpoint: &EndpointConfig, silence: TimeDelta, now: Timestamp) {
        let goes_on_at = self.stats.is_started().then(|| self.stats.highest().wrapping_add(self.ahead).wrapping_add(1));
        let config = ReceiveConfig {
            feedback: self.plan,
            reports: self.reports,
            repair: self.reception,
            nack: self.nack.as_ref().map(Nacker::config),
            resilience: None,
            controller: self.controller.take(),
            playout_deadline: self.deadline,
            adaptive_playout: self.adaptive,
            content: self.content.is_some(),
        };
        let first_departure = self.departure.map_or(self.first_departure, |(_, at)| at + silence);
        let next = Self { counters: self.counters, first_departure, goes_on_at, ..Self::new(config, endpoint, now) };
        let before = core::mem::replace(self, next);
        // The path is the same.
        self.resilience = before.resilience;
        self.follow_resilience();
        if let (Some(nack), Some(old)) = (&mut self.nack, before.nack) {
            nack.counters = old.counters;
        }
        if let (Some(content), Some(mut old)) = (&mut self.content, before.content) {
            old.clear();
            content.counters = old.counters;
        }
    }
}
