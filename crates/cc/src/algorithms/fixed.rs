//! A constant rate without any reaction: the baseline of comparisons, and the smallest implementation of the interface.

use crate::controller::{Controller, Limits, Target};
use crate::cue::{Cue, QueueState, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, Timestamp};

crate::tunables! {
    /// Configuration of the constant rate.
    pub struct Config {
        /// Pacing rate as a multiple of the media rate, so that a frame has been sent before the next one.
        pacing_factor: f64 = 2.5, 1.0 => 100.0;
    }
}

/// Holds the start rate within the limits.
#[derive(Clone, Debug)]
pub struct Fixed {
    wanted: DataRate,
    limits: Limits,
    pacing: Gain,
}

impl Fixed {
    /// A controller at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check("fixed")?;
        let pacing = Gain::new(config.pacing_factor).unwrap_or(Gain::ONE);
        Ok(Self { wanted: start.rate, limits: start.limits, pacing })
    }
}

impl Algorithm for Fixed {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            adapts: false,
            params: Config::params(),
            ..Spec::new("fixed", "constant rate, no reaction to the path", "none: the baseline")
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Fixed {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, _: &Cue<'_>) {}
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn on_queue(&mut self, _: &QueueState) -> bool {
        false
    }
    fn target(&self) -> Target {
        let rate = self.limits.clamp(self.wanted);
        Target::paced(rate, rate * self.pacing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Kbps;

    #[test]
    fn holds_its_rate_inside_the_limits() {
        let kbps = DataRate::from_kbps;
        let mut c: Fixed = Kbps { floor: 100, start: 800, ceiling: 500 }.sender(&[]);
        assert_eq!(c.target().media_rate, kbps(500));
        c.on_limits(Limits { floor: kbps(100), ceiling: kbps(900) }, Timestamp::ZERO);
        assert_eq!(c.target().media_rate, kbps(800));
    }

    #[test]
    fn refuses_unknown_and_wild_parameters() {
        let kbps = Kbps { floor: 100, start: 300, ceiling: 500 };
        let err = |p: &str, v| Fixed::make("fixed", &kbps.setup(&[(p, v)])).err().map(|e| e.to_string());
        assert!(err("pace", 2.0).expect("unknown").contains("it has pacing_factor"));
        assert!(err("pacing_factor", 0.1).expect("range").contains("between 1 and 100"));
        assert!(err("pacing_factor", f64::NAN).is_some());
        let typed = |pacing_factor| Fixed::new(Config { pacing_factor }, &kbps.start()).err().map(|e| e.to_string());
        assert_eq!(typed(2.0), None);
        assert_eq!(typed(0.1), err("pacing_factor", 0.1));
        assert!(typed(f64::NAN).is_some());
    }
}
