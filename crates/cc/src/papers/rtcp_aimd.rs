//! Additive increase and multiplicative decrease by the loss in RTCP reports: the scheme that S. Jero, 2013,
//! section 2.2.2, calls WHZ+00 (Wu, Hou, Zhu and others, 2000).

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, ReportPlan, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

crate::tunables! {
    /// Configuration; all values are from section 2.2.2.
    pub struct Config {
        /// Loss above which the rate falls.
        loss_threshold: f64 = 0.05, 0.0 => 1.0;
        /// Factor applied to the rate then.
        decrease: f64 = 0.95, 0.01 => 1.0;
        /// Added to the rate with every other report.
        increase: DataRate = 0.5, 0.0 => 100_000.0;
    }
}

/// The sender half; there is no receiver half. Its least and highest rates are the application's limits.
#[derive(Clone, Debug)]
pub struct RtcpAimd {
    config: Config,
    limits: Limits,
    rate: DataRate,
}

impl RtcpAimd {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("rtcp-aimd")?;
        Ok(Self { config, limits: start.limits, rate: start.limits.clamp(start.rate) })
    }
}

impl Algorithm for RtcpAimd {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            reports: Some(ReportPlan::every(TimeDelta::from_secs(5))),
            params: Config::params(),
            ..Spec::new(
                "rtcp-aimd",
                "RTCP loss: 5 % down above 5 %, else 0.5 kbit/s up",
                "Wu et al., 2000, by S. Jero, 2013, section 2.2.2",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for RtcpAimd {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        let Cue::ReportBlock(block) = cue else { return };
        let rate = if block.fraction_lost > self.config.loss_threshold {
            self.rate * Gain::new(self.config.decrease).unwrap_or(Gain::ONE)
        } else {
            self.rate + self.config.increase
        };
        self.rate = self.limits.clamp(rate);
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.rate = limits.clamp(self.rate);
    }
    fn target(&self) -> Target {
        Target::paced(self.rate, Target::UNPACED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::ReportBlock;
    use crate::testing::{Kbps, REPORT};

    #[test]
    fn a_twentieth_down_and_half_a_kilobit_up() {
        let mut c: RtcpAimd = Kbps { floor: 100, start: 2_000, ceiling: 951 }.sender(&[]);
        let mut after = |fraction_lost| {
            c.on_cue(&Cue::ReportBlock(ReportBlock { fraction_lost, ..REPORT }));
            c.target().media_rate.as_bps()
        };
        assert_eq!([0.0, 0.051, 0.05, 0.0].map(&mut after), [951_000, 903_450, 903_950, 904_450]);
        assert_eq!((0..200).map(|_| after(0.5)).last(), Some(100_000));
    }
}
