//! The half at the media sender, which follows.

use super::config::Config;
use super::receiver::TmmbrReceiver;
use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket};
use crate::registry::{BuiltIn, Pair, Setup, Spec, Transport};
use crate::tunable::SetupError;
use std::sync::Arc;
use weir_units::{DataRate, Gain, Timestamp};

/// The sender: what the receiver told last, between the limits.
#[derive(Clone, Debug)]
pub struct Tmmbr {
    pacing: Gain,
    limits: Limits,
    rate: DataRate,
}

impl Tmmbr {
    /// A sender at the setup's start rate. Errors: see [`Config::set_all`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        let mut config = Config::default();
        config.set_all("tmmbr", &setup.params)?;
        let pacing = Gain::new(config.pacing_factor).unwrap_or(Gain::ONE);
        Ok(Self { pacing, limits: setup.limits, rate: setup.start_rate })
    }
}

impl BuiltIn for Tmmbr {
    fn specs() -> Vec<Spec> {
        vec![Spec {
            name: "tmmbr".into(),
            summary: "Receiver-driven: mean time between frames, told by TMMBR and followed blindly".into(),
            source: "Singh's dissertation (Aalto, 2015), section 4.1.2".into(),
            feedback: None,
            reports: None,
            transport: Transport::Udp,
            params: Config::params(),
            make: Arc::new(|setup| {
                Ok(Pair { sender: Self::new(setup)?.into(), receiver: Some(TmmbrReceiver::new(setup)?.into()) })
            }),
        }]
    }
}

impl Controller for Tmmbr {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReceiverEstimate(estimate) = cue {
            self.rate = estimate.rate;
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn target(&self) -> Target {
        let rate = self.limits.clamp(self.rate);
        Target::paced(rate, (rate * self.pacing).max(rate))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("told_bps", self.rate.as_bps_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::{EstimateKind, ReceiverEstimate};

    #[test]
    fn follows_between_the_limits() {
        let limits = Limits { floor: DataRate::from_kbps(32), ceiling: DataRate::from_kbps(3_000) };
        let setup = Setup { limits, start_rate: DataRate::from_kbps(8), now: Timestamp::ZERO, seed: 1, params: vec![] };
        let mut s = Tmmbr::new(&setup).expect("valid");
        assert_eq!(s.target().media_rate, DataRate::from_kbps(32));
        for (told, kbps) in [(500, 500), (9_000, 3_000), (0, 32)] {
            let (now, rate) = (Timestamp::ZERO, DataRate::from_kbps(told));
            s.on_cue(&Cue::ReceiverEstimate(ReceiverEstimate { now, rate, kind: EstimateKind::Tmmbr }));
            assert_eq!(s.target().media_rate, DataRate::from_kbps(kbps));
        }
    }
}
