//! Loss from RTCP reports against two thresholds, after Busse, Deffner and Schulzrinne, "Dynamic QoS control of
//! multimedia applications based on RTP", 1996, as described by S. Jero, 2013, section 2.2.2.
//!
//! The original is for many receivers: down when a tenth of them is congested, up when four fifths are unloaded. Here
//! there is one.

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, ReportPlan, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

crate::tunables! {
    /// Configuration. The thesis gives the thresholds; weight and steps were chosen here.
    pub struct Config {
        /// Weight of a report in the smoothed loss.
        loss_weight: f64 = 0.3, 0.01 => 1.0;
        /// Smoothed loss from which the receiver is loaded and the rate is held (section 2.2.2: 5 %).
        loaded: f64 = 0.05, 0.0 => 1.0;
        /// Smoothed loss from which it is congested and the rate falls (section 2.2.2: 10 %).
        congested: f64 = 0.1, 0.0 => 1.0;
        /// Factor applied to the rate then.
        decrease: f64 = 0.875, 0.01 => 1.0;
        /// Added to the rate with each report of an unloaded receiver.
        increase: DataRate = 50.0, 0.0 => 100_000.0;
    }
}

/// The sender half; there is no receiver half.
#[derive(Clone, Debug)]
pub struct RtcpThresholds {
    config: Config,
    limits: Limits,
    rate: DataRate,
    loss: Option<f64>,
}

impl RtcpThresholds {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("rtcp-thresholds")?;
        Ok(Self { config, limits: start.limits, rate: start.limits.clamp(start.rate), loss: None })
    }
}

impl Algorithm for RtcpThresholds {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(ReportPlan::every(TimeDelta::from_secs(5))),
            params: Config::params(),
            ..Spec::new(
                "rtcp-thresholds",
                "RTCP loss against two thresholds: down, hold, up",
                "Busse, Deffner and Schulzrinne, 1996, by S. Jero, 2013, section 2.2.2",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for RtcpThresholds {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        let Cue::ReportBlock(block) = cue else { return };
        let c = &self.config;
        let loss = self.loss.map_or(block.fraction_lost, |l| l + c.loss_weight * (block.fraction_lost - l));
        self.loss = Some(loss);
        if loss >= c.congested {
            self.rate = self.rate * Gain::new(c.decrease).unwrap_or(Gain::ONE);
        } else if loss < c.loaded {
            self.rate += c.increase;
        }
        self.rate = self.limits.clamp(self.rate);
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.rate = limits.clamp(self.rate);
    }
    fn target(&self) -> Target {
        Target::paced(self.rate, Target::UNPACED)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("smoothed_loss", self.loss.unwrap_or(f64::NAN));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::ReportBlock;
    use crate::testing::{Kbps, REPORT};

    #[test]
    fn falls_above_ten_percent_holds_above_five_and_rises_below() {
        let mut c: RtcpThresholds = Kbps { floor: 100, start: 1_000, ceiling: 1_100 }.sender(&[]);
        let mut after = |fraction_lost| {
            c.on_cue(&Cue::ReportBlock(ReportBlock { fraction_lost, ..REPORT }));
            (c.target().media_rate.as_kbps_f64(), c.loss.expect("a report"))
        };
        assert_eq!(after(0.0).0, 1_050.0);
        assert_eq!(after(0.0).0, 1_100.0);
        assert_eq!(after(0.0).0, 1_100.0);
        // 0.3 of 20 % makes 6 %: loaded. Then 10.2 %: congested.
        let (rate, loss) = after(0.2);
        assert!(rate == 1_100.0 && (loss - 0.06).abs() < 1e-9, "{rate} {loss}");
        let (rate, loss) = after(0.2);
        assert!(rate == 962.5 && (loss - 0.102).abs() < 1e-9, "{rate} {loss}");
        // 7.1 %, then 4.998 %.
        assert_eq!(after(0.0).0, 962.5);
        assert_eq!(after(0.0).0, 1_012.5);
        assert_eq!((0..60).map(|_| after(1.0).0).last(), Some(100.0));
    }
}
