//! A controller of your own, compared with the built-in ones.
//!
//! ```text
//! cargo run --release -p weir --example custom_controller -- --controllers delay-steps,gcc,nada --scenario quick
//! cargo run --release -p weir --example custom_controller -- run responsiveness --controller delay-steps
//! ```
//!
//! The controller is a toy: it increases its rate slightly while packets arrive without queueing, and reduces it when
//! the one-way delay has risen by more than a bound. It shows all parts: parameters, a constructor, cues in, a target
//! out, an entry in the registry. Every `weir` command then accepts it, and so do scenario files.

use std::process::ExitCode;
use weir_cc::cue::{Cue, PacketResult, SentPacket};
use weir_cc::tunable::SetupError;
use weir_cc::units::{DataRate, Gain, TimeDelta, Timestamp};
use weir_cc::{
    Algorithm, Controller, FeedbackFormat, FeedbackPlan, Limits, NoReceiver, Pair, Registry, Setup, Spec, Start, Target,
};

const NAME: &str = "delay-steps";

weir_cc::tunables! {
    /// Parameters; a scenario sets them under `[controllers.delay-steps]`.
    pub struct Config {
        /// Queueing delay at which the rate is reduced.
        bound: TimeDelta = 30.0, 1.0 => 1_000.0;
        /// Rate added with every feedback message while there is no queue.
        step: DataRate = 20.0, 1.0 => 1_000.0;
        /// Share of the rate kept on congestion.
        keep: f64 = 0.85, 0.1 => 0.99;
    }
}

pub(crate) struct DelaySteps {
    config: Config,
    limits: Limits,
    rate: DataRate,
    /// Minimum one-way delay, as the difference of two clocks: only changes are meaningful.
    base: Option<TimeDelta>,
    /// No further reduction before this time, so that a reduction can take effect.
    hold_until: Timestamp,
}

impl DelaySteps {
    fn new(config: Config, start: &Start) -> Result<Self, SetupError> {
        config.check(NAME)?;
        let rate = start.limits.clamp(start.rate);
        Ok(Self { config, limits: start.limits, rate, base: None, hold_until: start.now })
    }
}

impl Controller for DelaySteps {
    fn on_packet_sent(&mut self, _: &SentPacket) {}

    fn on_cue(&mut self, cue: &Cue<'_>) {
        // Cues that this controller does not use are ignored.
        let Cue::TransportFeedback(feedback) = cue else { return };
        let one_way = |p: &PacketResult| Some(TimeDelta::from_nanos(p.arrival?.as_nanos() - p.departure.as_nanos()));
        let Some(delay) = feedback.packets.iter().filter_map(one_way).min() else { return };
        let base = *self.base.insert(self.base.map_or(delay, |b| b.min(delay)));
        let now = feedback.now;
        if delay - base > self.config.bound {
            if now >= self.hold_until {
                self.rate = self.rate * Gain::new(self.config.keep).unwrap_or(Gain::ONE);
                self.hold_until = now + TimeDelta::from_millis(500);
            }
        } else {
            self.rate += self.config.step;
        }
        self.rate = self.limits.clamp(self.rate);
    }

    fn on_limits(&mut self, limits: Limits, _: Timestamp) {
        self.limits = limits;
        self.rate = limits.clamp(self.rate);
    }

    fn target(&self) -> Target {
        Target::paced(self.rate, self.rate * Gain::new(1.5).unwrap_or(Gain::ONE))
    }

    fn metrics(&self, out: &mut dyn FnMut(&'static str, f64)) {
        out("base_ms", self.base.map_or(f64::NAN, TimeDelta::as_millis_f64));
    }
}

impl Algorithm for DelaySteps {
    type Receiver = NoReceiver;
    fn specs() -> Vec<Spec> {
        let every = TimeDelta::from_millis(100);
        vec![Spec {
            feedback: Some(FeedbackPlan {
                format: FeedbackFormat::TransportWide,
                min_interval: every,
                max_interval: every,
                bandwidth_share: 0.05,
            }),
            params: Config::params(),
            ..Spec::new(NAME, "an example: steps up, and down when the delay rises", "none: a toy")
        }]
    }
    fn make(name: &str, setup: &Setup) -> Result<Pair<Self, NoReceiver>, SetupError> {
        Ok(Pair::alone(Self::new(Config::from_params(name, &setup.params)?, &setup.start())?))
    }
}

fn main() -> ExitCode {
    let mut registry = Registry::builtin();
    registry.add::<DelaySteps>();
    weir::main(registry)
}
