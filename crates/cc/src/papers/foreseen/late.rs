//! Late scheduling: what a hole ahead will not carry is sent before it, while the link has capacity to spare.

use super::outlook::{Hole, Outlook};
use super::{Config, SOURCE, stream};
use crate::controller::{Controller, Limits, Target, TimeoutReason};
use crate::cue::{Cue, SentPacket};
use crate::spec::{Algorithm, NoReceiver, Pair, Setup, Spec, Start};
use crate::tunable::SetupError;
use weir_units::{DataRate, Gain, TimeDelta, Timestamp};

/// Time between two looks at what has been sent ahead.
const LOOK: TimeDelta = TimeDelta::from_millis(100);
/// Lead beyond the longest hole, in seconds: what the source needs to keep its quality, and a key frame to be paced (guess: 1 s).
const RESERVE: f64 = 1.0;

/// Sends stored content at the stream's rate; with a hole in sight as fast as the forecast allows, until as much is sent ahead as the
/// longest hole lasts. In a hole it sends what the lead does not cover until the hole's end, at most at the hole's rate. The source
/// reads ahead and keeps its quality while it is ahead (`weir_media::ReadAhead`); without lead it follows the rate, which is a switch.
///
/// Content ahead of its time is paced at the rate itself: it need not leave at once, and bursts would fill the link's queue.
///
/// The lead is calculated from the rates asked for, which the source is taken to follow.
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
        let left = |hole: Hole| (hole.end - hole.begin.max(self.now)).as_secs_f64();
        let rate = match here {
            None => self.stream,
            Some(here) if here < self.stream => {
                let left = self.outlook.holes(needed, self.now).next().map_or(0.0, left);
                let covered = ((self.ahead - RESERVE) / left.max(LOOK.as_secs_f64())).clamp(0.0, 1.0);
                here.min(DataRate::from_bps_f64(self.stream.as_bps_f64() * (1.0 - covered)))
            }
            Some(here) => {
                let longest = self.outlook.holes(needed, self.now).map(left).fold(0.0, f64::max);
                let wanted = if longest > 0.0 { longest + RESERVE } else { 0.0 };
                if self.ahead < wanted.min(self.config.most_ahead.as_secs_f64()) { here } else { self.stream }
            }
        };
        self.limits.clamp(rate)
    }
}

impl Algorithm for LateScheduling {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        vec![Spec {
            adapts: false,
            foresees: true,
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
        let factor = if self.ahead < RESERVE { self.config.pacing_factor } else { 1.0 / self.config.share };
        Target::paced_by(self.rate(), Gain::new(factor).unwrap_or(Gain::ONE))
    }
    fn poll_timeout(&self) -> Option<(Timestamp, TimeoutReason)> {
        self.outlook.at(self.now).map(|_| (self.now + LOOK, TimeoutReason::RateUpdate))
    }
    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("ahead_ms", 1e3 * self.ahead);
    }
}
