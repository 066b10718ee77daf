//! The queue between encoder and pacer, which libwebrtc bounds outside its controllers: its pacer sends faster where the
//! queue would otherwise exceed a limit (`PacingController::ProcessPackets`), and its encoder pauses where it does
//! (`CongestionControlHandler::GetUpdate`; both read at johnson-li/webrtc 0db7cd3 and ac0ce66, of 2020).
//!
//! A controller that paces at its bandwidth needs this, since a backlog would never shrink. With libwebrtc's limit of 2 s it
//! stands at a second: so media also makes room for it, as in NADA's rate shaping (RFC 8698, section 4.4).

use crate::cue::QueueState;
use weir_units::{DataRate, DataSize, TimeDelta};

/// Least time in which the queue is to be sent (`ProcessPackets`).
const LEAST: TimeDelta = TimeDelta::from_millis(1);
/// Time in which media makes room for the backlog, and the greatest share of the media rate that it gives up (Weir's own).
const DRAIN: TimeDelta = TimeDelta::from_secs(1);
const MOST_GIVEN_UP: f64 = 0.1;

/// State of the RTP queue, as far as known.
#[derive(Clone, Debug)]
pub(super) struct RtpQueue {
    /// Zero for none.
    limit: TimeDelta,
    queued: DataSize,
    /// Part of it that was queued before the last frame.
    backlog: DataSize,
    oldest_age: TimeDelta,
}

impl RtpQueue {
    pub(super) const fn new(limit: TimeDelta) -> Self {
        Self { limit, queued: DataSize::ZERO, backlog: DataSize::ZERO, oldest_age: TimeDelta::ZERO }
    }
    /// A frame has entered.
    pub(super) fn on_frame(&mut self, state: &QueueState) {
        (self.queued, self.oldest_age) = (state.queued, state.oldest_age);
        self.backlog = state.queued.saturating_sub(state.added);
    }
    /// A packet has left these bytes behind it.
    pub(super) fn on_sent(&mut self, queued: DataSize) {
        self.queued = queued;
        self.backlog = self.backlog.min(queued);
    }
    /// The rate that is left for media at this one.
    pub(super) fn beside_backlog(&self, rate: DataRate) -> DataRate {
        let drain = self.backlog.as_bits() as f64 / DRAIN.as_secs_f64();
        DataRate::from_bps_f64(rate.as_bps_f64() - drain.min(MOST_GIVEN_UP * rate.as_bps_f64()))
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
    fn media_makes_room_for_what_was_queued_before_its_frame() {
        let mut q = RtpQueue::new(TimeDelta::from_secs(2));
        let (added, queued) = (DataSize::from_bytes(4_000), DataSize::from_bytes(10_000));
        q.on_frame(&QueueState { now: Timestamp::ZERO, added, queued, oldest_age: TimeDelta::ZERO });
        // 6,000 bytes within a second; at most a tenth.
        assert_eq!(q.beside_backlog(DataRate::from_kbps(1_000)), DataRate::from_kbps(952));
        assert_eq!(q.beside_backlog(DataRate::from_kbps(100)), DataRate::from_kbps(90));
        q.on_sent(DataSize::from_bytes(5_000));
        assert_eq!(q.beside_backlog(DataRate::from_kbps(1_000)), DataRate::from_kbps(960));
        q.on_sent(DataSize::ZERO);
        assert_eq!(q.beside_backlog(DataRate::from_kbps(1_000)), DataRate::from_kbps(1_000));
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
