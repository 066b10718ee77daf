//! Additive increase and multiplicative decrease by the loss that RTCP reports: the scheme that S. Jero, 2013, section 2.2.2, calls
//! WHZ+00 (Wu, Hou, Zhu and others, 2000).

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket};
use crate::registry::{BuiltIn, Pair, ReportPlan, Setup, Spec, Transport};
use crate::tunable::SetupError;
use std::sync::Arc;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

crate::tunables! {
    /// Configuration; all of it from section 2.2.2.
    pub struct Config {
        /// Loss above which the rate falls.
        loss_threshold: f64 = 0.05, 0.0 => 1.0;
        /// What is left of the rate then.
        decrease: f64 = 0.95, 0.01 => 1.0;
        /// What is added with each other report.
        increase: DataRate = 0.5, 0.0 => 100_000.0;
    }
}

/// The sender half; there is no other. Its least and highest rates are the application's limits.
#[derive(Clone, Debug)]
pub struct RtcpAimd {
    config: Config,
    limits: Limits,
    rate: DataRate,
}

impl RtcpAimd {
    /// A controller at the setup's start rate. Errors: see [`Config::set_all`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        let mut config = Config::default();
        config.set_all("rtcp-aimd", &setup.params)?;
        Ok(Self { config, limits: setup.limits, rate: setup.limits.clamp(setup.start_rate) })
    }
}

impl BuiltIn for RtcpAimd {
    fn specs() -> Vec<Spec> {
        vec![Spec {
            name: "rtcp-aimd".into(),
            summary: "RTCP loss: 5 % down above 5 %, else 0.5 kbit/s up".into(),
            source: "Wu et al., 2000, by S. Jero, 2013, section 2.2.2".into(),
            feedback: None,
            reports: Some(ReportPlan::every(TimeDelta::from_secs(5))),
            transport: Transport::Udp,
            params: Config::params(),
            make: Arc::new(|setup| Ok(Pair { sender: Self::new(setup)?.into(), receiver: None })),
        }]
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

    #[test]
    fn a_twentieth_down_and_half_a_kilobit_up() {
        let limits = Limits { floor: DataRate::from_kbps(100), ceiling: DataRate::from_kbps(951) };
        let start_rate = DataRate::from_kbps(2_000);
        let setup = Setup { limits, start_rate, now: Timestamp::ZERO, seed: 1, params: vec![] };
        let mut c = RtcpAimd::new(&setup).expect("valid");
        let mut after = |fraction_lost| {
            c.on_cue(&Cue::ReportBlock(ReportBlock {
                now: Timestamp::ZERO,
                fraction_lost,
                cumulative_lost: 0,
                highest_sequence: 0,
                expected: 100,
                jitter: TimeDelta::ZERO,
                rtt: None,
            }));
            c.target().media_rate.as_bps()
        };
        assert_eq!([0.0, 0.051, 0.05, 0.0].map(&mut after), [951_000, 903_450, 903_950, 904_450]);
        assert_eq!((0..200).map(|_| after(0.5)).last(), Some(100_000));
    }
}
