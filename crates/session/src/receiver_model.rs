//! Receiving ends of other programs: when they report packets, request lost ones, and request key frames.
//!
//! [`ReceiverModel::Chromium`] follows libwebrtc in Chromium 156. Its sources, by file:
//!
//! - `modules/remote_bitrate_estimator/transport_sequence_number_feedback_generator.cc`: transport-wide feedback goes out by a timer that
//!   runs whether packets arrive or not. The interval is what messages of 68 bytes need at 5 % of the rate that the end itself may *send*,
//!   from 50 to 250 ms: the received rate has no influence. An end that sends nothing stays at the 300 kbit/s at which senders begin
//!   (`kDefaultStartBitrateBps`), hence at 50 ms.
//! - `third_party/webrtc_overrides/timer_based_tick_provider.h` of Chromium: tasks that may be late wait for the next tick of a clock of 64 Hz,
//!   so that 50 ms become 62.5 ms. Of 13,078 intervals in 22 recorded calls of
//!   .06 to 3 Mbit/s, the tenth percentile is 60.7 ms, the median 62.5 and the ninetieth percentile 63.8 (SRTCP headers of captures).
//! - `modules/video_coding/nack_requester.cc`: a gap is requested at once, since reordering is never learnt there, and a packet again when a
//!   round trip has passed, by a timer of 20 ms on the same ticks, up to 100 times.
//! - `modules/rtp_rtcp/source/receive_statistics_impl.cc` and `video/rtp_video_stream_receiver2.cc`: a jump of the sequence numbers by more than
//!   450 (`kMaxPacketAgeToNack`) restarts the source, so that no report counts what an outage of some seconds took. Of the
//!   453 packets of video that a recorded outage took getStats has none lost.
//! - Chromium's processes and threads: round trips by receiver reports are longer than the path. Of 120 in four recorded calls over an empty queue (20 ms
//!   each way, 20 Mbit/s) the least is 0.5 ms longer, the tenth percentile 0.9, the median 1.6 and the ninetieth percentile 3.9 ms (getStats, `roundTripTime`).
//! - `video/video_receive_stream2.h`: a key frame is requested 3 s after the first picture that cannot be decoded (`kMaxWaitForFrame`), and at once
//!   where none ever was (`kMaxWaitForKeyFrame`); again each 200 ms.

use weir_cc::{FeedbackFormat, FeedbackPlan};
use weir_units::{DataRate, DataSize, TimeDelta, Timestamp};

/// Chromium's clock for tasks that may be late: 64 Hz.
const TICK: TimeDelta = TimeDelta::from_micros(15_625);
/// A feedback message by libwebrtc's account, with IP, UDP and SRTP: `kTwccReportSize`.
const FEEDBACK_SIZE: DataSize = DataSize::from_bytes(68);
/// Rate at which libwebrtc's senders begin: `kDefaultStartBitrateBps`.
const OWN_RATE: DataRate = DataRate::from_kbps(300);
/// Interval at which packets requested before are looked at: `NackPeriodicProcessor::kUpdateInterval`.
const NACK_INTERVAL: TimeDelta = TimeDelta::from_millis(20);
/// Most requests for a packet: `kMaxNackRetries`.
const MAX_REQUESTS: u8 = 100;
/// Packets of a jump forward up to which those between are lost: `kMaxPacketAgeToNack`.
const MAX_JUMP: u16 = 450;
/// Time without a decoded picture before a key frame is requested: `kMaxWaitForFrame`.
const PICTURE_PATIENCE: TimeDelta = TimeDelta::from_secs(3);
/// Interval of these requests: `kMaxWaitForKeyFrame`.
const KEY_FRAME_INTERVAL: TimeDelta = TimeDelta::from_millis(200);

/// Time that threads take for a sender report and the report that answers it, the least and the mean beyond it: the percentiles above, as
/// an exponential distribution.
const LEAST_HANDLING: TimeDelta = TimeDelta::from_micros(800);
const MEAN_HANDLING: TimeDelta = TimeDelta::from_micros(1_150);

/// The program whose receiving end an end behaves as.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ReceiverModel {
    /// Weir's own.
    #[default]
    Weir,
    /// Chromium's.
    Chromium,
}

impl ReceiverModel {
    /// All of them, with their names.
    pub const ALL: [(&'static str, Self); 2] = [("weir", Self::Weir), ("chromium", Self::Chromium)];

    /// The model of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, model)| *model)
    }

    /// The per-packet feedback that this end sends to a controller with this plan: Chromium has transport-wide feedback alone.
    pub fn feedback(self, plan: FeedbackPlan) -> FeedbackPlan {
        match self {
            Self::Weir => plan,
            Self::Chromium => FeedbackPlan { format: FeedbackFormat::TransportWide, ..FeedbackPlan::LIBWEBRTC },
        }
    }

    /// The interval of feedback by a timer of its own; `None` if it follows the packets.
    pub(crate) fn feedback_interval(self, plan: &FeedbackPlan) -> Option<TimeDelta> {
        match self {
            Self::Weir => None,
            Self::Chromium => {
                let rate = DataRate::from_bps_f64(OWN_RATE.as_bps_f64() * plan.bandwidth_share);
                let wanted = rate.time_for(FEEDBACK_SIZE).unwrap_or(plan.max_interval);
                Some(on_tick(wanted.min(plan.max_interval).max(plan.min_interval)))
            }
        }
    }

    /// When a packet is requested that may be from `at` on.
    pub(crate) fn request_again_at(self, at: Timestamp) -> Timestamp {
        match self {
            Self::Weir => at,
            Self::Chromium => {
                // The timer's first look at or after this time; a look may be up to a tick late.
                let since = at - Timestamp::ZERO;
                let looks = since.as_nanos().div_euclid(NACK_INTERVAL.as_nanos());
                let late = |n| Timestamp::ZERO + on_tick(NACK_INTERVAL * n);
                (looks - 1..=looks + 1).map(late).find(|t| *t >= at).unwrap_or(at)
            }
        }
    }

    /// Whether a gap counts as loss at once.
    pub(crate) fn requests_at_once(self) -> bool {
        self == Self::Chromium
    }

    /// Most requests for a packet; `None` leaves it to the configuration.
    pub(crate) fn max_requests(self) -> Option<u8> {
        (self == Self::Chromium).then_some(MAX_REQUESTS)
    }

    /// The jump of sequence numbers, in packets, that restarts the statistics of a source; `None` leaves it to RFC 3550.
    pub(crate) fn max_dropout(self) -> Option<u16> {
        (self == Self::Chromium).then_some(MAX_JUMP + 1)
    }

    /// Wait for a key frame's request after the first picture that cannot be decoded.
    pub(crate) fn picture_patience(self) -> TimeDelta {
        match self {
            Self::Weir => TimeDelta::ZERO,
            Self::Chromium => PICTURE_PATIENCE,
        }
    }

    /// How long after its arrival a sender report is handled, for a number drawn from 0 to 1 (exclusive); `None` if at once.
    pub(crate) fn handling(self, drawn: impl FnOnce() -> f64) -> Option<TimeDelta> {
        (self == Self::Chromium).then(|| LEAST_HANDLING + MEAN_HANDLING.mul_f64(-libm::log1p(-drawn())))
    }

    /// Interval of requests for a key frame; `None` leaves it to the round trip.
    pub(crate) fn key_frame_interval(self) -> Option<TimeDelta> {
        (self == Self::Chromium).then_some(KEY_FRAME_INTERVAL)
    }
}

/// The next tick at or after this time.
fn on_tick(time: TimeDelta) -> TimeDelta {
    let nanos = time.as_nanos();
    TICK * (nanos.div_euclid(TICK.as_nanos()) + i64::from(nanos.rem_euclid(TICK.as_nanos()) != 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feedback_comes_at_ticks_whatever_the_rate() {
        let interval = ReceiverModel::Chromium.feedback_interval(&FeedbackPlan::LIBWEBRTC);
        assert_eq!(interval, Some(TimeDelta::from_micros(62_500)));
        assert_eq!(on_tick(TimeDelta::from_millis(100)), TimeDelta::from_micros(109_375));
        assert_eq!(on_tick(TICK), TICK);
        assert_eq!(ReceiverModel::Weir.feedback_interval(&FeedbackPlan::LIBWEBRTC), None);
    }

    #[test]
    fn sender_reports_are_handled_some_time_after_their_arrival() {
        let handling = |drawn: f64| ReceiverModel::Chromium.handling(|| drawn).map(TimeDelta::as_micros);
        assert_eq!([0.0, 0.5, 0.9].map(handling), [Some(800), Some(1_597), Some(3_447)]);
        assert_eq!(ReceiverModel::Weir.handling(|| unreachable!("no number is drawn")), None);
    }

    #[test]
    fn packets_are_requested_again_by_a_timer() {
        // Looks at 20, 40, 60, 80 and 100 ms, on ticks of 15.625 ms.
        let at = |ms: f64| ReceiverModel::Chromium.request_again_at(Timestamp::ZERO + TimeDelta::from_millis_f64(ms));
        let ms = |t: Timestamp| (t - Timestamp::ZERO).as_millis_f64();
        assert_eq!(
            [1.0, 31.25, 31.3, 47.0, 62.6, 94.0].map(|t| ms(at(t))),
            [31.25, 31.25, 46.875, 62.5, 93.75, 109.375]
        );
    }

    #[test]
    fn names_are_found() {
        for (name, model) in ReceiverModel::ALL {
            assert_eq!(ReceiverModel::named(name), Some(model));
        }
        assert_eq!(ReceiverModel::named("firefox"), None);
    }
}
