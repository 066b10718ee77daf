//! The queue between encoder and pacer, which libwebrtc bounds outside its controllers: its pacer sends faster where the
//! queue would otherwise exceed a limit (`PacingController::ProcessPackets`), and its encoder pauses where it does
//! (`CongestionControlHandler::GetUpdate`; both read at johnson-li/webrtc 0db7cd3 and ac0ce66, of 2020).
//!
//! A controller that paces at its bandwidth needs this, since a backlog would never shrink.

use crate::cue::QueueState;
use weir_units::{DataRate, DataSize, TimeDelta};

/// Least time in which the queue is to be sent (`ProcessPackets`).
const LEAST: TimeDelta = TimeDelta::from_millis(1);

/// State of the RTP queue, as far as known.
#[derive(Clone, Debug)]
pub(super) struct RtpQueue {
    /// Zero for none.
    limit: TimeDelta,
    queued: DataSize,
    oldest_age: TimeDelta,
}

impl RtpQueue {
    pub(super) const fn new(limit: TimeDelta) -> Self {
        Self { limit, queued: DataSize::ZERO, oldest_age: TimeDelta::ZERO }
    }
    /// A frame has entered.
    pub(super) fn on_frame(&mut self, state: &QueueState) {
        (self.queued, self.oldest_age) = (state.queued, state.oldest_age);
    }
    /// A packet has left these bytes behind it.
    pub(super) fn on_sent(&mut self, queued: DataSize) {
        self.queued = queued;
    }
    fn is_bounded(&self) -> bool {
        self.limit > TimeDelta::ZERO && !self.queued.is_zero()
    }
    /// The rate at which the average packet leaves within the limit; zero if nothing is queued. Ages are taken to rise
    /// evenly up to the oldest, so that the average is half of it.
    pub(super) fn drain_rate(&self) -> DataRate {
        if !self.is_bounded() {
            return DataRate::ZERO;
        }
        let left = (self.limit - (self.oldest_age / 2).max(TimeDelta::ZERO)).max(LEAST);
        DataRate::from_size_over(self.queued, left).unwrap_or(DataRate::ZERO)
    }
    /// Whether the queue takes longer than the limit at this rate.
    pub(super) fn exceeds_limit(&self, rate: DataRate) -> bool {
        self.is_bounded() && rate.time_for(self.queued).is_none_or(|time| time > self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Timestamp;

    fn queue(limit_ms: i64, bytes: u64, age_ms: i64) -> RtpQueue {
        let mut q = RtpQueue::new(TimeDelta::from_millis(limit_ms));
        let queued = DataSize::from_bytes(bytes);
        let oldest_age = TimeDelta::from_millis(age_ms);
        q.on_frame(&QueueState { now: Timestamp::ZERO, added: queued, queued, oldest_age });
        q
    }

    #[test]
    fn the_average_packet_leaves_within_the_limit() {
        assert_eq!(queue(2_000, 150_000, 0).drain_rate(), DataRate::from_kbps(600));
        assert_eq!(queue(2_000, 150_000, 2_000).drain_rate(), DataRate::from_kbps(1_200));
        assert_eq!(queue(2_000, 150, 60_000).drain_rate(), DataRate::from_kbps(1_200), "within a millisecond");
        assert_eq!(queue(0, 150_000, 0).drain_rate(), DataRate::ZERO, "off");
        assert_eq!(queue(2_000, 150, i64::MIN).drain_rate(), DataRate::from_bps(600));
    }

    #[test]
    fn the_limit_is_a_time_at_the_pacing_rate() {
        let mut q = queue(2_000, 150_000, 0);
        assert!(!q.exceeds_limit(DataRate::from_kbps(600)));
        assert!(q.exceeds_limit(DataRate::from_kbps(599)) && q.exceeds_limit(DataRate::ZERO));
        q.on_sent(DataSize::ZERO);
        assert!(!q.exceeds_limit(DataRate::ZERO));
        assert!(!queue(0, 150_000, 0).exceeds_limit(DataRate::from_bps(1)), "off");
    }
}
