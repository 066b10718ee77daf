//! Restarted sources: which state of an incoming stream is kept, and which is reset.

use super::path::ReceivePath;
use super::stream::{IncomingStream, Shared};
use crate::received_packet::Jump;
use weir_units::Timestamp;

/// Timestamps that differ by more than this from the clock's prediction indicate a restarted source.
const PLAUSIBLE_SECONDS: u32 = 10;

impl IncomingStream {
    /// Sequence numbers have jumped. This is not loss; if the timestamps have jumped too, the source has restarted.
    #[cold]
    pub(super) fn on_jump(&mut self, Jump { before, sequence }: Jump, rtp_timestamp: u32, now: Timestamp) {
        self.resume_at = Some(before.wrapping_add(self.ahead).wrapping_add(1));
        let clock_rate = self.identity.clock_rate;
        let elapsed = now.saturating_since(self.newest.1).as_nanos() as i128 * i128::from(clock_rate) / 1_000_000_000;
        let expected = self.newest.0.wrapping_add(elapsed as u32);
        let off = (rtp_timestamp.wrapping_sub(expected) as i32).unsigned_abs();
        if off > clock_rate.saturating_mul(PLAUSIBLE_SECONDS) {
            self.restart_playout();
            self.events.clear();
            if let Some(playout) = &mut self.playout {
                // The packet before this one was not accepted: this may not be the beginning of a frame.
                playout.on_padding(sequence - 2);
            }
            if let Some(content) = &mut self.content {
                content.clear();
            }
        }
    }

    /// Another source replaces the current one. Counters continue.
    pub(crate) fn restart(&mut self, path: &ReceivePath, shared: Shared<'_>, now: Timestamp) {
        let resume_at = self.stats.is_started().then(|| self.stats.highest().wrapping_add(self.ahead).wrapping_add(1));
        let next = Self::new(self.id, self.config(), path, shared, now);
        let next = Self { counters: self.counters, resume_at, is_single: self.is_single, ..next };
        let before = core::mem::replace(self, next);
        // The path is unchanged, and so is the source of picture feedback.
        self.resilience = before.resilience;
        self.follow_resilience();
        self.picture = before.picture;
        self.picture.reset();
        if let (Some(nack), Some(old)) = (&mut self.nack, before.nack) {
            nack.counters = old.counters;
        }
        if let (Some(content), Some(mut old)) = (&mut self.content, before.content) {
            old.clear();
            content.counters = old.counters;
        }
    }
}
