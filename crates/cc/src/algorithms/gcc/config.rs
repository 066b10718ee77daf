//! Parameters of the controller, and the constants derived from them for its stages.

use super::aimd::AimdConfig;
use super::alr::AlrConfig;
use super::detector::DetectorConfig;
use super::loss::LossConfig;
use super::probe::ProbeConfig;
use crate::tunable::{ParamInfo, SetupError};
use weir_units::{DataRate, DataSize, TimeDelta};

crate::tunables! {
    /// Configuration of sender-side GCC. Defaults without another source are those of libwebrtc's `goog_cc` as of 2025
    /// (its main branch in summer 2025, without field trials).
    pub struct Config {
        /// Packets sent within this time form a group (draft-ietf-rmcat-gcc-02, section 5.2).
        group_length: TimeDelta = 5.0, 0.0 => 100.0;
        /// Groups over which the trendline is fitted.
        trendline_window: u32 = 20.0, 10.0 => 200.0;
        /// Smoothing factor of the accumulated delay before the fit.
        trendline_smoothing: f64 = 0.9, 0.0 => 0.999;
        /// Gain of the slope before it is compared with the threshold.
        trendline_gain: f64 = 4.0, 0.1 => 100.0;
        /// Initial adaptive threshold in ms (draft-ietf-rmcat-gcc-02, section 5.4).
        threshold: f64 = 12.5, 6.0 => 600.0;
        /// Speed at which the threshold rises, per ms. The draft (section 5.4) recommends 0.01; libwebrtc is followed.
        threshold_up: f64 = 0.0087, 0.0 => 0.1;
        /// Speed at which the threshold falls, per ms. The draft (section 5.4) recommends 0.00018, and that it be lower
        /// than the rising speed; libwebrtc is followed, where it is higher.
        threshold_down: f64 = 0.039, 0.0 => 0.1;
        /// Duration that overuse must exceed (draft-ietf-rmcat-gcc-02, section 5.4).
        overuse_time: TimeDelta = 10.0, 0.0 => 1_000.0;
        /// Share of the acknowledged rate kept on overuse (draft-ietf-rmcat-gcc-02, section 5.5).
        beta: f64 = 0.85, 0.5 => 0.99;
        /// Multiplicative increase per second away from the link's capacity (draft-ietf-rmcat-gcc-02, section 5.5).
        increase: f64 = 0.08, 0.0 => 1.0;
        /// Subtracted from the rate after a reduction for overuse (draft-ietf-rmcat-gcc-02, section 5.5: 0).
        decrease_offset: DataRate = 5.0, 0.0 => 1_000.0;
        /// Whether the acknowledged rate is the lower of the rates sent and received over about a second
        /// (`RobustThroughputEstimator`, libwebrtc's default since August 2023), rather than a Bayesian filter over
        /// windows of arrivals (libwebrtc before). The filter can hold a rate for long after a large fall.
        robust_throughput: bool = 1.0, 0.0 => 1.0;
        /// Window of the first sample of the Bayesian filter.
        acked_first_window: TimeDelta = 500.0, 50.0 => 5_000.0;
        /// Window of each further sample of the Bayesian filter.
        acked_window: TimeDelta = 150.0, 50.0 => 5_000.0;
        /// Loss share up to which the rate grows (draft-ietf-rmcat-gcc-02, section 6); 1 ignores loss.
        loss_low: f64 = 0.02, 0.0 => 1.0;
        /// Loss share above which the rate falls (draft-ietf-rmcat-gcc-02, section 6).
        loss_high: f64 = 0.1, 0.0 => 1.0;
        /// Whether losses are judged by libwebrtc's maximum-likelihood controller (`LossBasedBweV2`, its default
        /// since December 2022) instead of the rule of draft-ietf-rmcat-gcc-02, section 6, which published comparisons
        /// measured.
        loss_v2: bool = 1.0, 0.0 => 1.0;
        /// Round-trip time above which the rate is lowered.
        silence_limit: TimeDelta = 3_000.0, 100.0 => 60_000.0;
        /// Interval between reductions while the round-trip time is above the limit.
        silence_interval: TimeDelta = 1_000.0, 10.0 => 60_000.0;
        /// Share of the rate kept by each reduction.
        silence_factor: f64 = 0.8, 0.1 => 1.0;
        /// Share of the target below which the sender is application-limited. This and the next two are settings for screens that are on
        /// by default in all calls (libwebrtc since 2018: `AlrExperimentSettings::CreateFromFieldTrial`); the detector's own are 0.65, 0.8 and 0.5.
        alr_usage: f64 = 0.8, 0.1 => 1.0;
        /// Share of the unspent budget at which the application-limited region starts.
        alr_start: f64 = 0.4, 0.0 => 1.0;
        /// Share of the unspent budget at which the region ends.
        alr_stop: f64 = -0.6, -1.0 => 1.0;
        /// Whether the delay-based estimate is held in the application-limited region.
        alr_hold: bool = 0.0, 0.0 => 1.0;
        /// Whether to probe at the start.
        probe_initial: bool = 1.0, 0.0 => 1.0;
        /// First initial probe, as a multiple of the start rate.
        probe_first: f64 = 3.0, 1.0 => 20.0;
        /// Second initial probe, as a multiple of the start rate.
        probe_second: f64 = 6.0, 1.0 => 20.0;
        /// A further probe, as a multiple of the previous result.
        probe_further: f64 = 2.0, 1.0 => 20.0;
        /// Share of the probed rate that a result must exceed for a further probe.
        probe_threshold: f64 = 0.7, 0.1 => 2.0;
        /// Whether to probe periodically in the application-limited region.
        probe_in_alr: bool = 1.0, 0.0 => 1.0;
        /// Interval of periodic probes.
        probe_alr_interval: TimeDelta = 5_000.0, 100.0 => 600_000.0;
        /// Rate of periodic probes as a multiple of the estimate.
        probe_alr: f64 = 2.0, 1.0 => 20.0;
        /// Whether to probe after a large drop has passed outside the application-limited region too.
        probe_recovery: bool = 0.0, 0.0 => 1.0;
        /// Least number of packets in a cluster.
        probe_packets: u32 = 5.0, 2.0 => 100.0;
        /// Least duration of a cluster.
        probe_duration: TimeDelta = 15.0, 1.0 => 200.0;
        /// Time allowed for queues beyond the least round-trip time in the congestion window, above which the encoder's
        /// rate is reduced to as little as a quarter (every second frame is dropped, and half of the rate asked for the
        /// others); 0 for no window. libwebrtc's 350 ms leave the target alone, so that its target is that of 0.
        congestion_window: TimeDelta = 0.0, 0.0 => 10_000.0;
        /// Whether the rate is controlled by the round-trip time of each receiver report, rather than the mean of 32 by per-packet feedback
        /// (libwebrtc's `packet_feedback_only`, which its own comparisons set). By reports, which come once a second, decreases follow
        /// each feedback message after a fall, until a report has the longer time.
        report_rtt: bool = 0.0, 0.0 => 1.0;
        /// Unit of departure times, which are rounded down to it; 0 takes them as they are. Packets of a frame that leave within a unit are a group
        /// in whatever order they arrive.
        departure_tick: TimeDelta = 0.0, 0.0 => 100.0;
        /// Bytes of headers below RTP in each packet that the estimate counts: UDP and IPv4. The target then covers them,
        /// and 20 bytes of RTP header and extensions, beside the payload; 0 counts RTP packets, and the target is that of
        /// the payload (libwebrtc until 2021).
        overhead: DataSize = 28.0, 0.0 => 1_000.0;
        /// Pacing rate as a multiple of the target (libwebrtc's video streams since 2020: 1.1; audio alone, and before:
        /// 2.5).
        pacing_factor: f64 = 1.1, 1.0 => 100.0;
        /// The same until the first feedback; 0 for no other. libwebrtc's controller alone has 2.5 until then
        /// (`GoogCcNetworkController::GetPacingRates`, since December 2025, 24e737c); in calls with video and transport-wide feedback
        /// `VideoSendStreamImpl` sets the factor from the start.
        first_pacing_factor: f64 = 0.0, 0.0 => 100.0;
    }
}

/// The entry with Chrome's parameters.
pub(super) const CHROME: &str = "gcc-chrome";
/// Chrome's settings beside the defaults: parameter, number in its unit, and source. All other defaults are those of libwebrtc without field
/// trials, which Chromium 156 has too (`docs/fidelity.md` compares its estimates).
const CHROME_DEFAULTS: [(&str, f64, &str); 5] = [
    (
        "congestion_window",
        350.0,
        "Time allowed for queues beyond the least round-trip time in the congestion window, above which frames are dropped before the encoder; 0 for \
         no window. libwebrtc's default (`WebRTC-CongestionWindow`: QueueSize:350,MinBitrate:30000,DropFrame:true, in `rate_control_settings.cc`).",
    ),
    (
        "report_rtt",
        1.0,
        "Whether the rate is controlled by the round-trip time of each receiver report, rather than the mean of 32 by per-packet feedback; calls of libwebrtc are \
         by reports (`OnRoundTripTimeUpdate`, `packet_feedback_only` in `goog_cc_network_control.cc`).",
    ),
    (
        "departure_tick",
        1.0,
        "Unit of departure times, which are rounded down to it; 0 takes them as they are. Sockets of libwebrtc report whole milliseconds \
         (`SentPacketInfo::send_time_ms`), so that a burst within one is a group of its own, and is divided where the next one begins.",
    ),
    (
        "probe_in_alr",
        0.0,
        "Whether to probe periodically in the application-limited region; libwebrtc does for screens alone (`VideoSendStreamImpl`, \
         `RateControlSettings::UseAlrProbing`).",
    ),
    (
        "overhead",
        58.0,
        "Bytes of headers below RTP in each packet that the estimate counts: 48 of UDP and IPv6 (`transport_overhead_bytes_per_packet` in \
         `rtp_transport_controller_send.cc`) and 10 of SRTP's tag; 38 over IPv4. The target then covers them, and 20 bytes of RTP header and extensions.",
    ),
];
impl Config {
    /// The parameters with Chrome's defaults.
    pub(super) fn chrome_params() -> Vec<ParamInfo> {
        let mut params = Self::params();
        for param in &mut params {
            if let Some((_, default, doc)) = CHROME_DEFAULTS.iter().find(|(name, ..)| *name == param.name) {
                (param.default, param.doc) = (*default, doc);
            }
        }
        params
    }
    /// The configuration of one of the entries, with these parameters replaced. Errors: as [`Self::set_all`].
    pub(super) fn of(entry: &str, params: &[(String, f64)]) -> Result<Self, SetupError> {
        let mut config = Self::default();
        if entry == CHROME {
            for (name, default, _) in CHROME_DEFAULTS {
                config.set_checked(name, default);
            }
        }
        config.set_all(entry, params)?;
        Ok(config)
    }
    pub(super) fn detector(&self) -> DetectorConfig {
        DetectorConfig {
            gain: self.trendline_gain,
            k_up: self.threshold_up,
            k_down: self.threshold_down,
            initial_threshold: self.threshold,
            overuse_time: self.overuse_time,
        }
    }
    pub(super) fn aimd(&self) -> AimdConfig {
        AimdConfig {
            beta: self.beta,
            offset: self.decrease_offset.as_bps_f64(),
            increase: self.increase,
            hold_in_alr: self.alr_hold,
        }
    }
    pub(super) fn loss(&self) -> LossConfig {
        LossConfig { low: self.loss_low, high: self.loss_high, silence_factor: self.silence_factor }
    }
    pub(super) fn alr(&self) -> AlrConfig {
        AlrConfig { usage: self.alr_usage, start_level: self.alr_start, stop_level: self.alr_stop }
    }
    pub(super) fn probe(&self) -> ProbeConfig {
        ProbeConfig {
            initial: self.probe_initial,
            first_scale: self.probe_first,
            second_scale: self.probe_second,
            further_scale: self.probe_further,
            further_threshold: self.probe_threshold,
            in_alr: self.probe_in_alr,
            alr_interval: self.probe_alr_interval,
            alr_scale: self.probe_alr,
            rapid_recovery: self.probe_recovery,
            min_packets: self.probe_packets,
            min_duration: self.probe_duration,
        }
    }
}
