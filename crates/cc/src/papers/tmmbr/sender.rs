//! The half at the media sender, which follows.

use super::config::Config;
use super::receiver::TmmbrReceiver;
use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket};
use crate::spec::{Algorithm, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, Timestamp};

/// The sender: the receiver's last request, within the limits.
#[derive(Clone, Debug)]
pub struct Tmmbr {
    pacing: Gain,
    limits: Limits,
    rate: DataRate,
}

impl Tmmbr {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("tmmbr")?;
        let pacing = Gain::new(config.pacing_factor).unwrap_or(Gain::ONE);
        Ok(Self { pacing, limits: start.limits, rate: start.rate })
    }
}

impl Algorithm for Tmmbr {
    type Receiver = TmmbrReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            params: Config::params(),
            ..Spec::new(
                "tmmbr",
                "Receiver-driven: mean time between frames, reported by TMMBR and followed blindly",
                "Singh's dissertation (Aalto, 2015), section 4.1.2",
            )
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, TmmbrReceiver>, SetupError> {
        let (config, start) = (Config::from_params(name, &setup.params)?, setup.start());
        Ok(Pair::both(Self::new(config, &start)?, TmmbrReceiver::new(config, &start)?))
    }
}

impl Controller for Tmmbr {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        if let Cue::ReceiverEstimate(estimate) = cue
            && !estimate.is_withdrawn()
        {
            self.rate = estimate.rate;
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn target(&self) -> Target {
        let rate = self.limits.clamp(self.rate);
        Target::paced_by(rate, self.pacing)
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("reported_bps", self.rate.as_bps_f64());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cue::EstimateKind;
    use crate::testing::{Kbps, estimate};

    #[test]
    fn follows_between_the_limits() {
        let mut s: Tmmbr = Kbps { floor: 32, start: 8, ceiling: 3_000 }.sender(&[]);
        assert_eq!(s.target().media_rate, DataRate::from_kbps(32));
        for (requested, kbps) in [(500, 500), (9_000, 3_000), (0, 32)] {
            s.on_cue(&estimate(requested, EstimateKind::Tmmbr));
            assert_eq!(s.target().media_rate, DataRate::from_kbps(kbps));
        }
    }
}
