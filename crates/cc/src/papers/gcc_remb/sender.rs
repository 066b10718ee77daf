//! The loss-based half, at the media sender (section 6).

use super::config::Config;
use super::receiver::GccRembReceiver;
use crate::controller::{Controller, Coupled, Limits, Target, TimeoutReason};
use crate::cue::{Cue, ReportBlock, SentPacket};
use crate::parts::rtt;
use crate::spec::{Algorithm, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

/// Factor applied to the rate every [`TIMEOUT_INTERVAL`] while reports are missing (libwebrtc: 0.8, 1 s).
const TIMEOUT_FACTOR: f64 = 0.8;
const TIMEOUT_INTERVAL: TimeDelta = TimeDelta::from_secs(1);

/// The sender: the lower of the receiver's estimate and its own loss-based one.
#[derive(Clone, Debug)]
pub struct GccRemb {
    config: Config,
    pacing: Gain,
    limits: Limits,
    /// As_hat in bit/s, between the limits.
    by_loss: f64,
    /// A_hat as last reported by the receiver.
    by_delay: Option<DataRate>,
    /// Packets expected and lost in the reports not yet used.
    expected: f64,
    lost: f64,
    loss: f64,
    rtt: TimeDelta,
    lowered: Option<Timestamp>,
    silent_since: Option<Timestamp>,
    lower_at: Option<Timestamp>,
}

impl GccRemb {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("gcc-remb")?;
        Ok(Self {
            config,
            pacing: Gain::new(config.pacing_factor).unwrap_or(Gain::ONE),
            limits: start.limits,
            by_loss: start.limits.clamp(start.rate).as_bps_f64(),
            by_delay: None,
            expected: 0.0,
            lost: 0.0,
            loss: f64::NAN,
            rtt: TimeDelta::ZERO,
            lowered: None,
            silent_since: None,
            lower_at: None,
        })
    }

    fn rate(&self) -> DataRate {
        let by_loss = DataRate::from_bps_f64(self.by_loss);
        self.limits.clamp(self.by_delay.map_or(by_loss, |d| d.min(by_loss)))
    }

    fn clip(&mut self) {
        self.by_loss = self.limits.clamp_bps(self.by_loss);
    }

    fn on_block(&mut self, block: &ReportBlock) {
        if let Some(rtt) = block.rtt {
            self.rtt = rtt::bounded(rtt);
        }
        let expected = block.expected as f64;
        self.expected += expected;
        self.lost += block.loss() * expected;
        if self.expected < f64::from(self.config.loss_packets) {
            return;
        }
        let loss = self.lost / self.expected;
        self.loss = loss;
        (self.expected, self.lost) = (0.0, 0.0);
        if loss < self.config.low_loss {
            self.by_loss *= self.config.loss_increase;
        } else if loss > self.config.high_loss {
            let pause = self.config.loss_decrease_interval;
            let pause = if pause > TimeDelta::ZERO { pause + self.rtt } else { pause };
            if self.lowered.is_none_or(|t| block.now - t >= pause) {
                // Starts from the rate in use: from an estimate far above it, reductions would have no effect for long.
                self.by_loss = self.rate().as_bps_f64() * (1.0 - 0.5 * loss);
                self.lowered = Some(block.now);
            }
        }
        self.clip();
    }

    fn heard(&mut self) {
        (self.silent_since, self.lower_at) = (None, None);
    }
}

impl Algorithm for GccRemb {
    type Receiver = GccRembReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            params: Config::params(),
            ..Spec::new(
                "gcc-remb",
                "Google congestion control, Kalman filter at the receiver, reported by REMB",
                "draft-ietf-rmcat-gcc-02",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, GccRembReceiver>, SetupError> {
        let (config, start) = (Config::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, GccRembReceiver::new(config, &start)?))
    }
}

impl Controller for GccRemb {
    fn on_packet_sent(&mut self, packet: &SentPacket) {
        if self.silent_since.is_none() && self.config.feedback_timeout > TimeDelta::ZERO {
            self.silent_since = Some(packet.now);
            self.lower_at = Some(packet.now + self.config.feedback_timeout);
        }
    }
    fn on_cue(&mut self, cue: &Cue<'_>) {
        match cue {
            Cue::ReceiverEstimate(estimate) => {
                self.by_delay = Some(estimate.rate);
                self.heard();
            }
            Cue::ReportBlock(block) => {
                self.on_block(block);
                self.heard();
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
    /// All its increases grow with the rate. The receiver's last estimate does not bound a rate that other flows have given up;
    /// its next one does.
    fn on_coupled(&mut self, coupled: &Coupled, _: Timestamp) {
        if let Some(rate) = coupled.rate {
            self.by_loss = self.limits.clamp(rate).as_bps_f64();
            self.by_delay = self.by_delay.map(|d| d.max(rate));
        }
    }
    fn on_timeout(&mut self, now: Timestamp) {
        if self.lower_at.is_some_and(|t| t <= now) {
            self.by_loss = self.rate().as_bps_f64() * TIMEOUT_FACTOR;
            self.clip();
            self.lower_at = Some(now + TIMEOUT_INTERVAL);
        }
    }
    fn target(&self) -> Target {
        let rate = self.rate();
        Target::paced_by(rate, self.pacing)
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.lower_at?, TimeoutReason::FeedbackMissing))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("as_hat_bps", self.by_loss);
        out("a_hat_bps", self.by_delay.map_or(f64::NAN, DataRate::as_bps_f64));
        out("loss", self.loss);
        out("rtt_ms", self.rtt.as_millis_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::EstimateKind;
    use crate::testing::{self, Kbps, REPORT, estimate};
    use weir_units::DataSize;

    fn sender() -> GccRemb {
        Kbps { floor: 50, start: 1_000, ceiling: 3_000 }.sender(&[])
    }
    fn report(s: &mut GccRemb, ms: i64, fraction_lost: f64, expected: u64) -> f64 {
        s.on_cue(&Cue::ReportBlock(ReportBlock {
            now: Timestamp::from_millis(ms),
            fraction_lost,
            expected,
            rtt: Some(TimeDelta::from_millis(100)),
            ..REPORT
        }));
        s.target().media_rate.as_kbps_f64()
    }
    fn remb(s: &mut GccRemb, kbps: u64) -> f64 {
        s.on_cue(&estimate(kbps, EstimateKind::Remb));
        testing::kbps(s)
    }

    #[test]
    fn follows_loss_as_section_6() {
        let mut s = sender();
        assert_eq!(report(&mut s, 0, 0.019, 100), 1_050.0);
        assert_eq!(report(&mut s, 1_000, 0.02, 100), 1_050.0);
        assert_eq!(report(&mut s, 2_000, 0.1, 100), 1_050.0);
        // 1 - 0.5 * 0.2; then no decrease for 300 ms and a round trip.
        assert_eq!(report(&mut s, 3_000, 0.2, 100), 945.0);
        assert_eq!(report(&mut s, 3_399, 0.2, 100), 945.0);
        assert_eq!(report(&mut s, 3_400, 0.2, 100), 850.5);
        assert_eq!(report(&mut s, 4_000, 1.0, 100), 425.25);
        (5..60).for_each(|k| assert!(report(&mut s, 1_000 * k, 1.0, 100) >= 50.0));
        assert_eq!(s.target().media_rate, DataRate::from_kbps(50));
    }

    #[test]
    fn small_reports_count_together() {
        let mut s = sender();
        assert_eq!(report(&mut s, 0, 1.0, 3), 1_000.0);
        assert_eq!(report(&mut s, 1_000, 0.0, 16), 1_000.0);
        // 3 of 20.
        assert_eq!(report(&mut s, 2_000, 0.0, 1), 925.0);
    }

    #[test]
    fn never_exceeds_the_receivers_estimate() {
        let mut s = sender();
        assert_eq!(remb(&mut s, 400), 400.0);
        assert_eq!(report(&mut s, 0, 0.0, 100), 400.0);
        assert_eq!(report(&mut s, 1_000, 0.5, 100), 300.0);
        assert_eq!(remb(&mut s, 9_000), 300.0);
        assert_eq!(remb(&mut s, 0), 50.0);
        assert!(report(&mut s, 2_000, f64::NAN, u64::MAX).is_finite());
    }

    #[test]
    fn slows_down_where_reports_stay_away() {
        let mut s = sender();
        assert_eq!(s.poll_timeout(), None);
        s.on_packet_sent(&SentPacket::media(Timestamp::from_secs(1), 0, DataSize::from_bytes(1_000)));
        assert_eq!(s.poll_timeout(), Some((Timestamp::from_secs(16), TimeoutReason::FeedbackMissing)));
        s.on_timeout(Timestamp::from_secs(15));
        assert_eq!(s.target().media_rate, DataRate::from_kbps(1_000));
        s.on_timeout(Timestamp::from_secs(16));
        s.on_timeout(Timestamp::from_secs(17));
        assert_eq!(s.target().media_rate, DataRate::from_kbps(640));
        assert_eq!(s.poll_timeout().map(|t| t.0), Some(Timestamp::from_secs(18)));
        remb(&mut s, 2_000);
        assert_eq!(s.poll_timeout(), None);
    }
}
