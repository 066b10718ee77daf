//! A constant rate: no reaction at all, the floor of every comparison and the proof of the interface.

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, SentPacket};
use crate::registry::{BuiltIn, Pair, Setup, Spec, Transport};
use crate::tunable::SetupError;
use std::sync::Arc;
use weir_units::{DataRate, Gain, Timestamp};

crate::tunables! {
    /// Configuration of the constant rate.
    pub struct Config {
        /// Pacing rate as a multiple of the media rate, so that a frame leaves before the next one comes.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}

/// Holds the start rate whatever happens, inside the limits.
#[derive(Clone, Debug)]
pub struct Fixed {
    wanted: DataRate,
    limits: Limits,
    pacing: Gain,
}

impl Fixed {
    /// A controller at the setup's start rate. Errors: see [`Config::set_all`].
    pub fn new(setup: &Setup) -> Result<Self, SetupError> {
        let mut config = Config::default();
        config.set_all("fixed", &setup.params)?;
        let pacing = Gain::new(config.pacing_factor).unwrap_or(Gain::ONE);
        Ok(Self { wanted: setup.start_rate, limits: setup.limits, pacing })
    }
}

impl BuiltIn for Fixed {
    fn specs() -> Vec<Spec> {
        vec![Spec {
            name: "fixed".into(),
            summary: "constant rate, no reaction to the path".into(),
            source: "none: the baseline".into(),
            feedback: None,
            reports: None,
            transport: Transport::Udp,
            params: Config::params(),
            make: Arc::new(|setup| Ok(Pair { sender: Self::new(setup)?.into(), receiver: None })),
        }]
    }
}

impl Controller for Fixed {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, _: &Cue<'_>) {}
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn target(&self) -> Target {
        let rate = self.limits.clamp(self.wanted);
        Target::paced(rate, rate * self.pacing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Registry;

    #[test]
    fn holds_its_rate_inside_the_limits() {
        let kbps = DataRate::from_kbps;
        let limits = Limits { floor: kbps(100), ceiling: kbps(500) };
        let setup = Setup { limits, start_rate: kbps(800), now: Timestamp::ZERO, seed: 1, params: vec![] };
        let mut c = Registry::builtin().make("fixed", &setup).expect("built in").sender;
        assert_eq!(c.target().media_rate, kbps(500));
        c.on_limits(Limits { floor: kbps(100), ceiling: kbps(900) }, Timestamp::ZERO);
        assert_eq!(c.target().media_rate, kbps(800));
    }

    #[test]
    fn refuses_unknown_and_wild_parameters() {
        let kbps = DataRate::from_kbps;
        let limits = Limits { floor: kbps(100), ceiling: kbps(500) };
        let setup = |params| Setup { limits, start_rate: kbps(300), now: Timestamp::ZERO, seed: 1, params };
        let err = |p: &str, v| Fixed::new(&setup(vec![(p.into(), v)])).err().map(|e| e.to_string());
        assert!(err("pace", 2.0).expect("unknown").contains("it has pacing_factor"));
        assert!(err("pacing_factor", 0.1).expect("range").contains("between 1 and 100"));
        assert!(err("pacing_factor", f64::NAN).is_some());
    }
}
