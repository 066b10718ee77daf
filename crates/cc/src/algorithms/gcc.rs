//! Google Congestion Control at the sender, from transport-wide feedback.
//!
//! A delay-based estimate (groups, trendline, overuse detector, additive and multiplicative rate control) below a limit
//! set by loss, with probing for capacity. It follows draft-ietf-rmcat-gcc-02 and, where the draft is silent or
//! outdated, libwebrtc's `goog_cc` as of 2025. One file per stage:
//!
//! feedback → `acked` (acknowledged rate, by `robust` or a filter) and `probe_rate` (probe results);
//! feedback → `inter_arrival` → `trendline` → `detector` → `aimd` (with `link_capacity`) → `loss` → target;
//! sent packets → `alr` → `probe` → clusters; sent packets and feedback → `silence` → target → `window` → encoder.
//!
//! Loss is counted from transport-wide feedback, as libwebrtc does without other sources; receiver reports are not
//! used. A receiver's limit (REMB or TMMBR) caps the target.
//!
//! libwebrtc runs its rate controllers every 25 ms. Here they run with each feedback message, when their inputs change;
//! timers exist only for probes and for missing feedback.

mod acked;
mod aimd;
mod alr;
mod config;
mod detector;
mod inter_arrival;
mod link_capacity;
mod loss;
mod loss_v2;
mod mean_rtt;
mod observations;
mod probe;
mod probe_rate;
mod robust;
mod silence;
mod trendline;
mod window;

#[cfg(test)]
mod tests;

use crate::controller::{Controller, Coupled, Limits, ProbeCluster, Target, TimeoutReason};
use crate::cue::{Cue, PacketResult, QueueState, ReportBlock, SentPacket, TransportFeedback};
use crate::spec::{Algorithm, FeedbackPlan, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use config::CHROME;
pub use config::Config;
use detector::Usage;
use loss_v2::{LossState, LossV2, Sums};
use weir_units::{DataRate, DataSize, Gain, RemoteTimestamp, TimeDelta, Timestamp};

/// A longer pause in feedback restarts the delay filter (libwebrtc, as of 2025: `kStreamTimeOut`).
const STREAM_TIMEOUT: TimeDelta = TimeDelta::from_secs(2);
/// A probe result lowers the estimate at most to this share of the acknowledged rate (libwebrtc, as of 2025:
/// `kProbeDropThroughputFraction`).
const PROBE_DROP: f64 = 0.85;
/// RTP header with the extension for transport-wide numbers, in bytes (RFC 3550, RFC 8285).
const RTP_HEADER: DataSize = DataSize::from_bytes(20);

/// Sender-side GCC.
#[derive(Clone, Debug)]
pub struct Gcc {
    grouping: inter_arrival::InterArrival,
    trendline: trendline::Trendline,
    detector: detector::Detector,
    acked: acked::Acknowledged,
    aimd: aimd::Aimd,
    loss: loss::LossRule,
    alr: alr::AlrDetector,
    probes: probe::ProbeController,
    probe_rate: probe_rate::ProbeRate,
    silence: silence::Silence,
    window: window::CongestionWindow,
    /// Share of the rate that the congestion window leaves to the encoder.
    share: f64,
    /// The rate by delay and loss, within the limits.
    rate: DataRate,
    floor: DataRate,
    rtt: mean_rtt::MeanRtt,
    /// Whether the rate is controlled by the round-trip times of reports.
    has_report_rtt: bool,
    /// Unit of departure times.
    departure_tick: TimeDelta,
    pacing: Gain,
    /// The same once there is feedback.
    settled_pacing: Gain,
    /// Bytes below RTP that count in each packet.
    overhead: DataSize,
    /// The current target, cached since it is read most often, and whether it was written since the last frame.
    target: Target,
    has_news: bool,
    last_feedback: Option<Timestamp>,
    was_in_alr: bool,
    /// When the application-limited region ended; later packets may see a changed rate.
    alr_ended: Option<Timestamp>,
    last_probe: Option<DataRate>,
    /// Arrival order of a feedback message's packets if it differs from the send order; reused to save allocations.
    order: Vec<u32>,
}

impl Gcc {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("gcc")?;
        let (limits, now) = (start.limits, start.now);
        let start = limits.clamp(start.rate.max(loss::MIN_RATE));
        let settled_pacing = Gain::new(config.pacing_factor).unwrap_or(Gain::ONE);
        let has_first = config.first_pacing_factor > 0.0;
        let pacing = Gain::new(config.first_pacing_factor).filter(|_| has_first).unwrap_or(settled_pacing);
        let v2 = config.loss_v2.then(|| Box::new(LossV2::new(limits, config.overhead)));
        Ok(Self {
            grouping: inter_arrival::InterArrival::new(config.group_length),
            trendline: trendline::Trendline::new(config.trendline_window, config.trendline_smoothing),
            detector: detector::Detector::new(config.detector()),
            acked: acked::Acknowledged::new(&config),
            aimd: aimd::Aimd::new(config.aimd(), start, limits.floor.max(loss::MIN_RATE)),
            loss: loss::LossRule::new(config.loss(), start, limits, v2),
            alr: alr::AlrDetector::new(config.alr(), start),
            probes: probe::ProbeController::new(config.probe(), start, limits.ceiling, now),
            probe_rate: probe_rate::ProbeRate::new(),
            silence: silence::Silence::new(config.silence_limit, config.silence_interval, now),
            window: window::CongestionWindow::new(config.congestion_window),
            share: 1.0,
            rate: start,
            floor: limits.floor,
            rtt: mean_rtt::MeanRtt::new(),
            has_report_rtt: config.report_rtt,
            departure_tick: config.departure_tick,
            pacing,
            settled_pacing,
            overhead: config.overhead,
            target: Target { overhead: covered(config.overhead), ..Target::paced(start, start * pacing) },
            has_news: true,
            last_feedback: None,
            was_in_alr: false,
            alr_ended: None,
            last_probe: None,
            order: Vec::new(),
        })
    }

    fn on_feedback(&mut self, f: &TransportFeedback<'_>) {
        let now = f.now;
        if let Some(rtt) = f.rtt {
            self.rtt.add(rtt);
            if !self.has_report_rtt {
                self.aimd.set_rtt(self.rtt.mean());
            }
            self.silence.on_feedback(rtt, now);
        }
        if f.packets.is_empty() {
            return;
        }
        self.pacing = self.settled_pacing;
        let in_alr = self.alr.since();
        if self.was_in_alr && in_alr.is_none() {
            self.alr_ended = Some(now);
            self.probes.on_alr_ended(now);
        }
        self.was_in_alr = in_alr.is_some();

        let seen = self.take_packets(f);
        self.acked.update();
        self.loss.on_packets(seen.lost, seen.expected, seen.regained, now);
        if seen.received {
            self.update_delay_based(seen.probe, in_alr.is_some(), now);
        }
        self.loss.observe(f.packets, seen.sums(), self.acked.rate(), in_alr.is_some());
        self.update_target(now);
        if seen.recovered {
            self.probes.on_recovered(now);
        }
        self.probes.process(now);
        if let Some(oldest) = f.packets.iter().find(|p| p.arrival.is_some()) {
            self.window.on_feedback(now - oldest.departure, f.bytes_in_flight, self.rate.as_bps_f64());
            self.push_back();
        }
    }

    /// Passes each packet, in the order of arrival, to the per-packet stages.
    fn take_packets(&mut self, f: &TransportFeedback<'_>) -> Seen {
        let mut seen = Seen::default();
        let (mut last, mut sorted) = (RemoteTimestamp::from_nanos(i64::MIN), true);
        for p in f.packets {
            let expected = u64::from(!p.was_lost);
            seen.expected += expected;
            seen.size += expected * p.size.as_bytes();
            match p.arrival {
                Some(arrival) => {
                    seen.regained += u64::from(p.was_lost);
                    seen.received = true;
                    sorted &= arrival >= last;
                    last = arrival;
                }
                None => {
                    seen.lost += expected;
                    seen.lost_size += expected * p.size.as_bytes();
                }
            }
        }
        if seen.received && self.last_feedback.is_none_or(|t| f.now - t > STREAM_TIMEOUT) {
            self.grouping.reset();
            self.trendline.reset();
            self.detector.reset();
        }
        if seen.received {
            self.last_feedback = Some(f.now);
        }
        if sorted {
            for p in f.packets {
                self.take_packet(p, f.now, &mut seen);
            }
        } else {
            let mut order = std::mem::take(&mut self.order);
            order.clear();
            order.extend(0..u32::try_from(f.packets.len()).unwrap_or(u32::MAX));
            // The index breaks ties, so that packets that arrived together stay in send order.
            order.sort_unstable_by_key(|&i| (f.packets[i as usize].arrival, i));
            for &i in &order {
                self.take_packet(&f.packets[i as usize], f.now, &mut seen);
            }
            self.order = order;
        }
        seen
    }

    fn take_packet(&mut self, p: &PacketResult, now: Timestamp, seen: &mut Seen) {
        let Some(arrival) = p.arrival else { return };
        let departure = if self.departure_tick == TimeDelta::ZERO {
            p.departure
        } else {
            on_tick(p.departure, self.departure_tick)
        };
        if self.alr_ended.is_some_and(|t| departure > t) {
            self.acked.expect_change();
            self.alr_ended = None;
        }
        let size = p.size + self.overhead;
        self.acked.on_packet(departure, arrival, size);
        if p.probe != 0
            && let Some(rate) = self.probe_rate.on_packet(&PacketResult { departure, ..*p }, size, arrival)
        {
            seen.probe = Some(rate);
        }
        if let Some(deltas) = self.grouping.on_packet(departure, arrival, now) {
            let before = self.detector.usage();
            self.trendline.update(deltas, arrival);
            let (slope, count) = (self.trendline.slope(), self.trendline.count());
            self.detector.update(slope, count, deltas.departure, arrival);
            seen.recovered |= before == Usage::Under && self.detector.usage() == Usage::Normal;
        }
    }

    fn update_delay_based(&mut self, probe: Option<DataRate>, in_alr: bool, now: Timestamp) {
        let acked = self.acked.rate();
        let usage = self.detector.usage();
        if usage == Usage::Over {
            if acked.is_none() {
                self.aimd.halve(now);
            } else if self.aimd.may_reduce(acked, now) {
                self.aimd.update(usage, acked, in_alr, now);
            } else {
                return;
            }
        } else if let Some(rate) = probe {
            let bound = acked.map_or(DataRate::ZERO, |a| DataRate::from_bps_f64(PROBE_DROP * a.as_bps_f64()));
            let rate = rate.max(bound.min(self.aimd.rate()));
            self.last_probe = Some(rate);
            self.aimd.set_rate(rate, now);
            self.loss.jump(self.aimd.rate());
        } else {
            self.aimd.update(usage, acked, in_alr, now);
        }
        self.loss.set_delay_limit(self.aimd.rate());
    }

    /// Combines the limits by delay, loss and missing feedback, and passes the target to the stages that depend on it.
    fn update_target(&mut self, now: Timestamp) {
        if self.silence.step(now) {
            self.loss.back_off(now);
        } else if !self.silence.is_over() {
            self.loss.update(self.rtt.last(), now);
        }
        let free = self.detector.usage() == Usage::Normal
            && self.loss.state() == LossState::DelayBased
            && !self.silence.is_over();
        self.set_target();
        self.probes.set_alr(self.alr.since());
        self.probes.on_estimate(self.rate, free, now);
    }

    #[inline]
    fn check_silence(&mut self, now: Timestamp) {
        if self.silence.step(now) {
            self.loss.back_off(now);
            self.set_target();
            self.probes.on_estimate(self.rate, false, now);
        }
    }

    fn set_target(&mut self) {
        let rate = self.loss.rate();
        self.rate = rate;
        self.alr.set_target(rate);
        self.share = self.window.share(rate.as_bps_f64(), self.floor.as_bps_f64());
        self.write_target();
    }

    /// Applies the congestion window's share, which may have changed.
    #[inline]
    fn push_back(&mut self) {
        let share = self.window.share(self.rate.as_bps_f64(), self.floor.as_bps_f64());
        if share != self.share {
            self.share = share;
            self.write_target();
        }
    }

    fn write_target(&mut self) {
        let rate = self.rate;
        let media = if self.share < 1.0 { DataRate::from_bps_f64(self.share * rate.as_bps_f64()) } else { rate };
        let media = media.max(self.floor).min(rate);
        self.target = Target { overhead: self.target.overhead, ..Target::paced(media, rate * self.pacing) };
        self.has_news = true;
        if self.loss.state() == LossState::Increasing {
            // Reached by version 2 only, which probes whether the higher rate arrives.
            self.target.padding_rate = media;
        }
    }
}

/// The last tick before or at this time.
#[cold]
fn on_tick(at: Timestamp, tick: TimeDelta) -> Timestamp {
    at - TimeDelta::from_nanos((at - Timestamp::ZERO).as_nanos().rem_euclid(tick.as_nanos().max(1)))
}

/// Headers that the target covers if the estimate counts `below` bytes a packet below RTP.
fn covered(below: DataSize) -> DataSize {
    if below.is_zero() { DataSize::ZERO } else { below + RTP_HEADER }
}

/// The content of one feedback message.
#[derive(Default)]
struct Seen {
    lost: u64,
    expected: u64,
    regained: u64,
    /// Bytes of the packets expected, and of those lost.
    size: u64,
    lost_size: u64,
    received: bool,
    probe: Option<DataRate>,
    recovered: bool,
}

impl Seen {
    /// The packets reported for the first time, and those lost of them; `None` if others were reported lost earlier.
    fn sums(&self) -> Option<Sums> {
        let sums = Sums { packets: self.expected, size: self.size, lost: self.lost, lost_size: self.lost_size };
        (self.regained == 0).then_some(sums)
    }
}

impl Algorithm for Gcc {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let plain = Spec {
            feedback: Some(FeedbackPlan::LIBWEBRTC),
            params: Config::params(),
            ..Spec::new(
                "gcc",
                "Google congestion control at the sender, from transport-wide feedback",
                "draft-ietf-rmcat-gcc-02; libwebrtc's goog_cc, as of 2025",
            )
        };
        let chrome = Spec {
            name: CHROME.into(),
            summary: "The same as Chrome runs it: a congestion window holds the encoder back, and headers are those of IPv6 and SRTP".into(),
            source: "libwebrtc's branch 7871 of June 2026 with its default field trials; Chromium 156".into(),
            params: Config::chrome_params(),
            ..plain.clone()
        };
        vec![plain, chrome]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::of(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Gcc {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.alr.on_sent(packet.size + self.overhead, packet.now);
        // Before the first feedback a source that sends little is not probed (libwebrtc, since 2026).
        self.probes.set_alr(self.alr.since().filter(|_| self.last_feedback.is_some()));
        self.silence.on_sent(packet.now);
        self.check_silence(packet.now);
        self.window.on_flight(packet.bytes_in_flight);
        self.push_back();
    }

    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::TransportFeedback(f) => self.on_feedback(f),
            Cue::ReportBlock(ReportBlock { rtt: Some(rtt), .. }) if self.has_report_rtt => self.aimd.set_rtt(*rtt),
            Cue::ReceiverEstimate(e) => {
                self.loss.set_receiver_limit(e.rate);
                self.update_target(e.now);
            }
            _ => {}
        }
    }

    #[inline]
    fn on_queue(&mut self, _: &QueueState) -> bool {
        std::mem::take(&mut self.has_news) || self.probes.is_pending()
    }

    fn left_out_frames(&self) -> u32 {
        self.window.left_out(self.rate.as_bps_f64(), self.floor.as_bps_f64())
    }

    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.floor = limits.floor;
        self.aimd.set_floor(limits.floor.max(loss::MIN_RATE));
        self.loss.set_limits(limits);
        self.set_target();
        self.probes.set_ceiling(limits.ceiling, now);
    }

    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.rate)
    }

    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        self.aimd.couple(coupled.rate, coupled.increase);
        if coupled.rate.is_some() {
            self.loss.couple(self.aimd.rate());
            self.set_target();
        }
    }

    fn on_timeout(&mut self, now: Timestamp) {
        self.check_silence(now);
        self.probes.process(now);
    }

    fn target(&self) -> Target {
        self.target
    }

    #[inline]
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        let probe = self.probes.next().map(|t| (t, TimeoutReason::Probe));
        let silence =
            self.silence.next().filter(|_| !self.loss.at_floor()).map(|t| (t, TimeoutReason::FeedbackMissing));
        match (probe, silence) {
            (Some(p), Some(s)) => Some(if s.0 < p.0 { s } else { p }),
            (p, s) => p.or(s),
        }
    }

    fn poll_probe(&mut self, _: Timestamp) -> Option<ProbeCluster> {
        let cluster = self.probes.take()?;
        self.probe_rate.expect(cluster);
        Some(cluster)
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        let bps = |r: Option<DataRate>| r.map_or(f64::NAN, DataRate::as_bps_f64);
        out("trendline_slope", self.trendline.slope());
        out("trend_ms", self.detector.trend());
        out("threshold_ms", self.detector.threshold());
        // 1 overuse, 0 normal, -1 underuse.
        out(
            "usage",
            match self.detector.usage() {
                Usage::Over => 1.0,
                Usage::Normal => 0.0,
                Usage::Under => -1.0,
            },
        );
        out("acked_bps", bps(self.acked.rate()));
        out("delay_based_bps", self.aimd.rate().as_bps_f64());
        // The limit by loss moves with the target and so equals it.
        out("loss_based_bps", self.loss.rate().as_bps_f64());
        out("link_capacity_bps", self.aimd.capacity().unwrap_or(f64::NAN));
        out("probe_bps", bps(self.last_probe));
        out("loss_share", self.loss.share());
        out("rtt_ms", if self.rtt.is_empty() { f64::NAN } else { self.rtt.last().as_millis_f64() });
        out("in_alr", f64::from(u8::from(self.alr.since().is_some())));
    }
}
