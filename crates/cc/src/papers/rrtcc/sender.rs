//! The half at the media sender (section 4).

use super::config::Config;
use super::receiver::RrtccReceiver;
use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, ReportBlock, SentPacket};
use crate::parts::feedback_timeout::FeedbackTimeout;
use crate::parts::mean_size::MeanSize;
use crate::parts::rtt;
use crate::spec::{Algorithm, Pair, ReportPlan, Setup, Spec, Start};
use crate::tcp::throughput::{Equation, TcpFlow};
use crate::tunable::SetupError;
use weir_units::{DataRate, DataSize, Gain, TimeDelta, Timestamp};

/// Added before the multiplication of an increase (section 4: 1 kbit/s).
const RAISE: f64 = 1_000.0;
/// Receiver reports: one per second, with the TMMBR message (libwebrtc's interval for video).
const REPORTS: ReportPlan = ReportPlan {
    min_round_trips: 0.0,
    min_interval: TimeDelta::from_secs(1),
    max_interval: TimeDelta::from_secs(1),
    extended: false,
    early: false,
};

/// The sender: the lower of the receiver's estimate and its own. The latter follows loss, but does not fall below TCP's
/// rate.
#[derive(Clone, Debug)]
pub struct Rrtcc {
    config: Config,
    pacing: Gain,
    limits: Limits,
    /// As in bit/s, between the limits.
    own: f64,
    /// A as last reported by the receiver.
    requested: Option<DataRate>,
    /// Mean packet in bytes.
    size: MeanSize,
    rtt: Option<TimeDelta>,
    loss: f64,
    tfrc: Option<DataRate>,
    silence: FeedbackTimeout,
    /// Factor on [`RAISE`]: the share of a group of coupled flows.
    share: f64,
}

impl Rrtcc {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("rrtcc")?;
        Ok(Self {
            config,
            pacing: Gain::new(config.pacing_factor).unwrap_or(Gain::ONE),
            limits: start.limits,
            own: start.limits.clamp(start.rate).as_bps_f64(),
            requested: None,
            size: MeanSize::default(),
            rtt: None,
            loss: f64::NAN,
            tfrc: None,
            silence: FeedbackTimeout::new(config.feedback_timeout),
            share: 1.0,
        })
    }

    fn rate(&self) -> DataRate {
        self.limits.clamp(DataRate::from_bps_f64(self.own))
    }

    /// As is at most A, so that it need not first fall to A when packets are lost.
    fn clip(&mut self) {
        let ceiling = self.requested.map_or(self.limits.ceiling, |t| t.min(self.limits.ceiling));
        self.own = self.own.min(ceiling.as_bps_f64()).max(self.limits.floor.as_bps_f64());
    }

    fn on_block(&mut self, block: &ReportBlock) {
        self.rtt = block.rtt.map(rtt::bounded).or(self.rtt);
        if block.expected > 0 {
            self.follow(block.loss());
        }
    }

    fn follow(&mut self, loss: f64) {
        self.loss = loss;
        let segment = match self.config.tfrc_packet {
            0 => self.size.get(),
            bytes => DataSize::from_bytes(bytes.into()),
        };
        self.tfrc = self.rtt.and_then(|rtt| TcpFlow::new(segment, rtt).throughput(Equation::Full, loss));
        if loss < self.config.low_loss {
            self.own = self.config.loss_increase * (self.own + RAISE * self.share);
        } else if loss > self.config.high_loss {
            // By the draft's letter the TFRC rate is a lower bound at all times, so that with little or no loss it
            // would raise the estimate to the receiver's at once. Here only a report of high loss uses it, as in libwebrtc,
            // which does not compare it with the present estimate (`tfrc_raises`).
            let bound = self.tfrc.filter(|_| self.config.tfrc_bound).map_or(0.0, DataRate::as_bps_f64);
            let reduced = bound.max(self.own * (1.0 - 0.5 * loss));
            self.own = if self.config.tfrc_raises { reduced } else { self.own.min(reduced) };
        }
        self.clip();
    }
}

impl Algorithm for Rrtcc {
    type Receiver = RrtccReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(REPORTS),
            params: Config::params(),
            ..Spec::new(
                "rrtcc",
                "Receiver-side real-time congestion control: Kalman filter over frames, fixed threshold, TMMBR",
                "draft-alvestrand-rtcweb-congestion-03",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, RrtccReceiver>, SetupError> {
        let (config, start) = (Config::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, RrtccReceiver::new(config, &start)?))
    }
}

impl Controller for Rrtcc {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        self.size.on_packet(packet);
        self.silence.on_packet(packet.now);
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::ReceiverEstimate(estimate) => {
                self.requested = Some(estimate.rate);
                self.clip();
            }
            Cue::ReportBlock(block) => {
                self.on_block(block);
                self.silence.on_feedback();
            }
            _ => {}
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.clip();
    }
    fn coupled_rate(&self) -> Option<DataRate> {
        Some(self.rate())
    }
    /// The receiver's last estimate does not bound a rate that other flows have given up; its next one does.
    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        self.share = coupled.increase;
        if let Some(rate) = coupled.rate {
            self.own = self.limits.clamp(rate).as_bps_f64();
            self.requested = self.requested.map(|r| r.max(rate));
        }
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.silence.expire(now) {
            self.follow(1.0);
        }
    }
    fn target(&self) -> Target {
        let rate = self.rate();
        Target::paced_by(rate, self.pacing)
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.silence.poll()
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("as_bps", self.own);
        out("a_hat_bps", self.requested.map_or(f64::NAN, DataRate::as_bps_f64));
        out("tfrc_bps", self.tfrc.map_or(f64::NAN, DataRate::as_bps_f64));
        out("loss", self.loss);
        out("rtt_ms", self.rtt.map_or(f64::NAN, TimeDelta::as_millis_f64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::EstimateKind;
    use crate::testing::{self, Kbps, REPORT, estimate};

    fn sender() -> Rrtcc {
        Kbps { floor: 32, start: 1_000, ceiling: 3_000 }.sender(&[])
    }
    fn send(s: &mut Rrtcc, ms: i64) {
        s.on_packet_sent(&SentPacket::media(Timestamp::from_millis(ms), 0, DataSize::from_bytes(1_000)));
    }
    fn report(s: &mut Rrtcc, fraction_lost: f64, rtt_ms: i64) -> f64 {
        s.on_cue(&Cue::ReportBlock(ReportBlock {
            now: Timestamp::from_secs(1),
            fraction_lost,
            rtt: Some(TimeDelta::from_millis(rtt_ms)),
            ..REPORT
        }));
        s.target().media_rate.as_kbps_f64()
    }
    fn tmmbr(s: &mut Rrtcc, kbps: u64) -> f64 {
        s.on_cue(&estimate(kbps, EstimateKind::Tmmbr));
        testing::kbps(s)
    }
    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-2
    }

    #[test]
    fn follows_loss_as_section_4() {
        let mut s = sender();
        assert!(near(report(&mut s, 0.019, 500), 1.05 * 1_001.0));
        let held = report(&mut s, 0.02, 500);
        assert!(near(held, 1_051.05) && near(report(&mut s, 0.1, 500), held));
        assert!(near(report(&mut s, 0.2, 500), 0.9 * held));
        assert!(near(report(&mut s, 1.0, 500), 0.45 * held));
        (0..60).for_each(|_| assert!(report(&mut s, 1.0, 500) >= 32.0));
        assert_eq!(s.target().media_rate, DataRate::from_kbps(32));
    }

    #[test]
    fn tfrc_stops_the_decrease_and_never_raises() {
        let mut s = sender();
        send(&mut s, 0);
        // 8 * 1000 / (0.01 * sqrt(2 * 0.2 / 3) + 0.04 * 3 * sqrt(0.6 / 8) * 0.2 * 2.28): 428 kbit/s.
        let denominator =
            0.01 * libm::sqrt(0.4 / 3.0) + 0.04 * 3.0 * libm::sqrt(3.0 * 0.2 / 8.0) * 0.2 * (1.0 + 32.0 * 0.04);
        let tfrc = 8.0 / denominator;
        assert!((400.0..460.0).contains(&tfrc), "{tfrc}");
        (0..20).for_each(|_| {
            report(&mut s, 0.2, 10);
        });
        assert!(near(s.target().media_rate.as_kbps_f64(), tfrc));
        assert!(near(report(&mut s, 0.11, 10), tfrc), "its rate at 11 % loss lies above, and does not count");
        assert!(near(report(&mut s, 0.2, 100), 0.9 * tfrc));
    }

    #[test]
    fn tfrc_may_raise_as_in_libwebrtc() {
        let mut s: Rrtcc = Kbps { floor: 32, start: 100, ceiling: 3_000 }.sender(&[
            ("tfrc_packet", 1_000.0),
            ("tfrc_raises", 1.0),
            ("loss_increase", 1.08),
        ]);
        s.on_packet_sent(&SentPacket::media(Timestamp::ZERO, 0, DataSize::from_bytes(200)));
        assert!(near(report(&mut s, 0.1, 2), 100.0), "up to 10 % the rate is kept");
        // 8 * 1000 / (0.002 * sqrt(2 * 0.36 / 3) + 0.008 * 3 * sqrt(3 * 0.36 / 8) * 0.36 * (1 + 32 * 0.36^2)): 463 kbit/s.
        let denominator =
            0.002 * libm::sqrt(0.72 / 3.0) + 0.008 * 3.0 * libm::sqrt(1.08 / 8.0) * 0.36 * (1.0 + 32.0 * 0.1296);
        let raised = report(&mut s, 0.36, 2);
        assert!(near(raised, 8.0 / denominator) && (450.0..480.0).contains(&raised), "{raised}");
        assert!(near(report(&mut s, 0.0, 2), 1.08 * (raised + 1.0)));
        // Not above the receiver's estimate.
        assert_eq!(tmmbr(&mut s, 300), 300.0);
        assert_eq!(report(&mut s, 0.36, 2), 300.0);
    }

    #[test]
    fn never_lies_above_the_receivers_estimate() {
        let mut s = sender();
        assert_eq!(tmmbr(&mut s, 400), 400.0);
        // Not at once when that rises again.
        assert_eq!(tmmbr(&mut s, 800), 400.0);
        assert!(near(report(&mut s, 0.0, 100), 1.05 * 401.0));
        assert_eq!(tmmbr(&mut s, 0), 32.0);
        assert!(report(&mut s, f64::NAN, i64::MAX).is_finite());
    }

    #[test]
    fn missing_reports_count_as_loss_of_everything() {
        let mut s = sender();
        assert_eq!(s.poll_timeout(), None);
        send(&mut s, 1_000);
        send(&mut s, 2_000);
        assert_eq!(s.poll_timeout(), Some((Timestamp::from_secs(6), TimeoutReason::FeedbackMissing)));
        s.on_timeout(Timestamp::from_secs(5));
        assert_eq!(s.target().media_rate, DataRate::from_kbps(1_000));
        s.on_timeout(Timestamp::from_secs(6));
        assert_eq!(s.target().media_rate, DataRate::from_kbps(500));
        assert_eq!(s.poll_timeout().map(|t| t.0), Some(Timestamp::from_secs(11)));
        report(&mut s, 0.05, 100);
        assert_eq!(s.poll_timeout(), None);
    }
}
