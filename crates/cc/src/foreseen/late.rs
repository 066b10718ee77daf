//! Late scheduling: what a hole ahead will not carry is sent before it, while the link has capacity to spare.

use super::outlook::Outlook;
use super::{Config, SOURCE, stream};
use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, TimeDelta, Timestamp};

/// Time between two looks at what has been sent ahead.
const LOOK: TimeDelta = TimeDelta::from_millis(100);

/// Sends stored content at the stream's rate; with a hole in sight as fast as the forecast allows, until as much is sent ahead as the
/// longest hole lasts; and in a hole at its rate. The source reads ahead and keeps its quality while it is ahead
/// (`weir_media::ReadAhead`); without lead it follows the rate, which is a switch.
///
/// What is ahead follows from the rates asked for, which the source is taken to follow.
#[derive(Clone, Debug)]
pub struct LateScheduling {
    config: Config,
    limits: Limits,
    stream: DataRate,
    outlook: Outlook,
    now: Timestamp,
    /// Playing time that has been sent ahead, in seconds.
    ahead: f64,
}

impl LateScheduling {
    /// A sender at the start rate. Errors: see [`Config::check`].
    pub fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        let stream = stream(&config, start)?;
        Ok(Self { config, limits: start.limits, stream, outlook: Outlook::default(), now: start.now, ahead: 0.0 })
    }

    /// Takes the time since the last event into account.
    fn pass(&mut self, now: Timestamp) {
        let time = now.saturating_since(self.now).as_secs_f64();
        let ratio = self.rate().as_bps_f64() / self.stream.as_bps_f64().max(1.0);
        let most = self.config.most_ahead.as_secs_f64();
        self.ahead = (self.ahead + (ratio - 1.0) * time).clamp(0.0, most);
        self.now = self.now.max(now);
    }

    fn rate(&self) -> DataRate {
        let share = self.config.share;
        let needed = DataRate::from_bps_f64(self.stream.as_bps_f64() / share);
        let here = self.outlook.at(self.now).map(|s| DataRate::from_bps_f64(s.low.as_bps_f64() * share));
        let longest = self.outlook.holes(needed, self.now).map(|hole| hole.end - hole.begin.max(self.now)).max();
        let wanted = longest.unwrap_or(TimeDelta::ZERO).min(self.config.most_ahead).as_secs_f64();
        let rate = match here {
            None => self.stream,
            Some(here) if here < self.stream || self.ahead < wanted => here,
            Some(_) => self.stream,
        };
        self.limits.clamp(rate)
    }
}

impl Algorithm for LateScheduling {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            adapts: false,
            params: Config::params(),
            ..Spec::new("late-scheduling", "Stored content is sent ahead of the longest hole foretold", SOURCE)
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

impl Controller for LateScheduling {
    fn on_packet_sent(&mut self, _: &SentPacket) {}
    fn on_cue(&mut self, cue: &Cue<'_>) {
        self.pass(cue.now());
        if let Cue::CapacityForecast(forecast) = cue {
            self.outlook.set(forecast);
        }
    }
    fn on_limits(&mut self, limits: Limits, now: Timestamp) {
        self.pass(now);
        self.limits = limits;
    }
    fn on_timeout(&mut self, now: Timestamp) {
        self.pass(now);
    }
    fn target(&self) -> Target {
        Target::paced_by(self.rate(), self.config.pacing())
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.outlook.at(self.now).map(|_| (self.now + LOOK, TimeoutReason::RateUpdate))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("ahead_ms", 1e3 * self.ahead);
    }
}
