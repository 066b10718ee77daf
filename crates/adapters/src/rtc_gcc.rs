//! `rtc-gcc`: the estimator of `rtc-interceptor` 0.21.1 (`Gcc`) as a controller, for comparisons.
//!
//! It runs unchanged: packets and their reports in, a target out. As its pacer does, packets leave at the target.
//!
//! It lets queues grow longer than libwebrtc's: its overuse threshold (12.5 ms at first) is held against the delay's growth
//! from one group of packets to the next, where libwebrtc compares that growth times up to 60 groups.

use rtc_interceptor::{BandwidthEstimator, Gcc, PacketReport};
use rtc_rtcp::transport_feedbacks::cc_feedback_report::Ecn;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use weir_cc::cue::SentPacket;
use weir_cc::tunable::SetupError;
use weir_cc::{
    Algorithm, Controller, Cue, FeedbackFormat, FeedbackPlan, Limits, NoReceiver, Pair, Setup, Spec, Start, Target,
};
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The name in registries.
pub const NAME: &str = "rtc-gcc";
/// Interval of its feedback (`DEFAULT_INTERVAL` of its `twcc::receiver`).
const INTERVAL: TimeDelta = TimeDelta::from_millis(100);

/// The estimator of `rtc-interceptor`, under Weir's interface.
pub struct RtcGcc {
    inner: Gcc,
    limits: Limits,
    reports: Vec<PacketReport>,
}

impl RtcGcc {
    /// An estimator at the start rate. Its own bounds are the first limits; later ones bound its target.
    pub fn new(start: &Start) -> Self {
        let Limits { floor, ceiling } = start.limits;
        let (floor, ceiling) = (floor.as_bps_f64(), ceiling.max(floor).as_bps_f64());
        Self { inner: Gcc::new(start.rate.as_bps_f64(), floor, ceiling), limits: start.limits, reports: Vec::new() }
    }
}

/// A time as an `Instant`. Only differences count, so that the zero, which has to be read from the clock, changes nothing.
#[expect(clippy::disallowed_methods, reason = "an Instant has no other origin")]
fn instant(t: Timestamp) -> Instant {
    static ZERO: OnceLock<Instant> = OnceLock::new();
    *ZERO.get_or_init(Instant::now) + Duration::from_nanos(u64::try_from(t.as_nanos()).unwrap_or(0))
}

impl Controller for RtcGcc {
    fn on_packet_sent(&mut self, _: &SentPacket) {}

    fn on_cue(&mut self, cue: &Cue<'_>) {
        let Cue::TransportFeedback(feedback) = cue else { return };
        self.reports.clear();
        // Its own history reports each packet once.
        for p in feedback.packets.iter().filter(|p| !p.was_lost) {
            let nanos = |t: i64| Duration::from_nanos(u64::try_from(t).unwrap_or(0));
            self.reports.push(PacketReport {
                ssrc: 0,
                id: p.sequence,
                rtp_sequence_number: p.sequence as u16,
                is_twcc: true,
                twcc_sequence_number: p.sequence as u16,
                size: usize::try_from(p.size.as_bytes()).unwrap_or(usize::MAX),
                arrived: p.arrival.is_some(),
                departure: instant(p.departure),
                arrival: p.arrival.map(|a| nanos(a.as_nanos())),
                ecn: Ecn::NotEct,
            });
        }
        self.inner.on_reports(instant(feedback.now), &self.reports);
    }

    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }

    fn target(&self) -> Target {
        let rate = self.limits.clamp(DataRate::from_bps_f64(self.inner.target_bitrate()));
        Target::paced(rate, rate)
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("delay_based_bps", self.inner.delay_based_bitrate());
        out("loss_based_bps", self.inner.loss_based_bitrate());
    }
}

impl Algorithm for RtcGcc {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let feedback = FeedbackPlan {
            format: FeedbackFormat::TransportWide,
            min_interval: INTERVAL,
            max_interval: INTERVAL,
            bandwidth_share: 1.0,
        };
        vec![Spec {
            feedback: Some(feedback),
            ..Spec::new(NAME, "the estimator of webrtc-rs, unchanged", "rtc-interceptor 0.21.1, Gcc")
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        if let Some((param, _)) = setup.params.first() {
            return Err(SetupError::UnknownParam { controller: name.into(), name: param.clone(), known: Vec::new() });
        }
        Ok(Pair::alone(Self::new(&setup.start())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_cc::cue::{PacketResult, TransportFeedback};
    use weir_units::{DataSize, Ecn as WeirEcn, RemoteTimestamp};

    const START: Start = Start {
        limits: Limits { floor: DataRate::from_kbps(50), ceiling: DataRate::from_mbps(5) },
        rate: DataRate::from_kbps(300),
        now: Timestamp::ZERO,
    };

    /// Target after 10 s of feedback on a packet every 10 ms; the n-th has this delay in ms, or was lost.
    fn after(delay_ms: impl Fn(i64) -> Option<i64>) -> DataRate {
        let mut c = RtcGcc::new(&START);
        for message in 0..100 {
            let packet = |n: i64| PacketResult {
                sequence: n as u64,
                departure: Timestamp::from_millis(10 * n),
                arrival: delay_ms(n).map(|d| RemoteTimestamp::from_millis(10 * n + d)),
                size: DataSize::from_bytes(1_000),
                ecn: WeirEcn::NotEct,
                probe: 0,
                was_lost: false,
            };
            let packets: Vec<PacketResult> = (10 * message..10 * message + 10).map(packet).collect();
            let now = Timestamp::from_millis(100 * (message + 1) + 50);
            let (bytes_in_flight, rtt) = (DataSize::ZERO, None);
            c.on_cue(&Cue::TransportFeedback(TransportFeedback { now, packets: &packets, bytes_in_flight, rtt }));
        }
        c.target().media_rate
    }

    #[test]
    fn grows_on_a_short_queue_and_falls_on_loss() {
        let steady = after(|_| Some(20));
        assert!(steady > DataRate::from_kbps(600), "{steady:?}");
        assert!(after(|n| (n % 3 > 0).then_some(20)) < DataRate::from_kbps(200));
        assert_eq!(after(|n| Some(20 + n % 7)), after(|n| Some(20 + n % 7)), "the clock's time changes nothing");
        // Its threshold of 12.5 ms is held against the growth from one group to the next (libwebrtc multiplies by up to 60
        // groups), so that half a second of queue in a second goes unnoticed.
        assert_eq!(after(|n| Some(20 + 5 * n)), steady);
    }

    #[test]
    fn has_no_parameters_and_obeys_bounds() {
        let setup = Setup {
            limits: START.limits,
            start_rate: START.rate,
            now: Timestamp::ZERO,
            seed: 1,
            params: vec![("gain".into(), 1.0)],
        };
        assert!(RtcGcc::make(NAME, &setup).is_err());
        let mut c = RtcGcc::make(NAME, &Setup { params: vec![], ..setup }).expect("no parameters").sender;
        let kbps = DataRate::from_kbps;
        c.on_limits(Limits { floor: kbps(50), ceiling: kbps(100) }, Timestamp::ZERO);
        assert_eq!(c.target().media_rate, kbps(100));
    }
}
