//! An end that knows its capacity and adapts to it without error.

use super::outlook::Outlook;
use super::{Config, SOURCE, stream};
use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// The lesser of the stream's rate and the median of the forecast, which is to be that of the link itself.
#[derive(Clone, Debug)]
pub struct Omniscient {
    config: Config,
    limits: Limits,
    stream: DataRate,
    outlook: Outlook,
    now: Timestamp,
}

impl Omniscient {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        let stream = stream(&config, start)?;
        Ok(Self { config, limits: start.limits, stream, outlook: Outlook::default(), now: start.now })
    }
}

impl Algorithm for Omniscient {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            adapts: false,
            foresees: true,
            params: Config::params(),
            ..Spec::new("omniscient", "A stream's rate or the capacity foretold, the lesser; nothing else", SOURCE)
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for Omniscient {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.now = self.now.max(cue.now());
        if let Cue::CapacityForecast(forecast) = cue {
            self.outlook.set(forecast);
        }
    }
    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.now = self.now.max(now);
    }
    fn target(&self) -> Target {
        let known = self.outlook.at(self.now).map(|s| s.median.as_bps_f64() * self.config.share);
        let rate = known.map_or(self.stream, |bps| DataRate::from_bps_f64(bps).min(self.stream));
        Target::paced_by(self.limits.clamp(rate), self.config.pacing())
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        Some((self.outlook.next_change(self.now, TimeDelta::ZERO)?, TimeoutReason::RateUpdate))
    }
}
