//! The grammar of `weir call`.

use crate::output::Failure;
use clap::Subcommand;
use weir_cc::{Limits, Registry, tunable::SetupError};
use weir_lab::scenario::InputError;
use weir_live::call::{CallConfig, FrameModel};
use weir_live::srtp::Suite;
use weir_units::{DataRate, TimeDelta};

pub(crate) const EXAMPLES: &str = "\
Examples:
  weir call loopback --duration 10
  weir call loopback --controller scream --ecn --json";

#[derive(Subcommand, Debug)]
pub(crate) enum CallCommand {
    /// Both ends in this process, over the loopback device
    Loopback(LoopbackArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct LoopbackArgs {
    #[command(flatten)]
    pub(crate) media: MediaArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct OutputArgs {
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct MediaArgs {
    /// The controller (see `weir list controllers`)
    #[arg(long, value_name = "NAME", default_value = "gcc")]
    pub(crate) controller: String,
    /// Frames a second
    #[arg(long, value_name = "N", default_value = "30")]
    pub(crate) rate: f64,
    /// Ends the call after this many seconds; Ctrl-C ends it if absent
    #[arg(long, value_name = "SECONDS")]
    pub(crate) duration: Option<f64>,
    /// Media rate at the beginning, kbit/s
    #[arg(long, value_name = "KBPS", default_value = "500")]
    pub(crate) start_rate: u64,
    /// Least media rate, kbit/s
    #[arg(long, value_name = "KBPS", default_value = "50")]
    pub(crate) min_rate: u64,
    /// Most media rate, kbit/s
    #[arg(long, value_name = "KBPS", default_value = "5000")]
    pub(crate) max_rate: u64,
    /// Mark packets as able to carry congestion marks (ECN, ECT(0))
    #[arg(long)]
    pub(crate) ecn: bool,
    /// Send in the clear, without SRTP
    #[arg(long)]
    pub(crate) no_srtp: bool,
    /// IPv6 instead of IPv4
    #[arg(long)]
    pub(crate) v6: bool,
}

impl MediaArgs {
    pub(crate) fn config(&self, registry: &Registry) -> Result<CallConfig, Failure> {
        let wrong = |option: &str, what: String| Err(InputError::whole(option, what).into());
        if registry.get(&self.controller).is_none() {
            let unknown = SetupError::UnknownController { name: self.controller.clone() };
            return wrong("--controller", unknown.to_string());
        }
        if !(1.0..=240.0).contains(&self.rate) {
            return wrong("--rate", format!("{} frames a second: expected 1 to 240", self.rate));
        }
        if self.min_rate == 0 || self.min_rate > self.max_rate || self.max_rate > 10_000_000 {
            let (min, max) = (self.min_rate, self.max_rate);
            let what = format!("{min} to {max} kbit/s: expected 1 to 10000000, the least below the most");
            return wrong("--min-rate, --max-rate", what);
        }
        if let Some(s) = self.duration.filter(|s| !(0.0..=1e6).contains(s)) {
            return wrong("--duration", format!("{s}: expected seconds, 0 to 1000000"));
        }
        Ok(CallConfig {
            controller: self.controller.clone(),
            limits: Limits { floor: DataRate::from_kbps(self.min_rate), ceiling: DataRate::from_kbps(self.max_rate) },
            start_rate: DataRate::from_kbps(self.start_rate),
            model: FrameModel::Perfect,
            frame_rate: self.rate,
            ecn: self.ecn,
            srtp: (!self.no_srtp).then(Suite::default),
            v6: self.v6,
            ..CallConfig::default()
        })
    }

    pub(crate) fn duration(&self) -> Option<TimeDelta> {
        self.duration.map(TimeDelta::from_secs_f64)
    }
}
