//! Arguments of `weir search`.

mod calls;
mod sweep;
#[cfg(feature = "tune")]
mod tune;

pub(crate) use calls::CallsArgs;
pub(crate) use sweep::SweepArgs;
#[cfg(feature = "tune")]
pub(crate) use tune::TuneArgs;

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir search sweep grid.toml --out results
  weir search calls recordings --controllers gcc,sluice --out results
  weir search tune sluice --parameters growth,drain_time --evaluations 100";

#[derive(Subcommand, Debug)]
pub(crate) enum SearchCommand {
    /// Run every combination of a grid once, and keep the results as Parquet
    #[command(after_help = sweep::EXAMPLES)]
    Sweep(SweepArgs),
    /// Fit the links of many recorded calls, run controllers over them, and keep the results as Parquet
    #[command(after_help = calls::EXAMPLES)]
    Calls(CallsArgs),
    /// Search for a controller's parameters over traces, recorded or generated, and rows of goals
    #[cfg(feature = "tune")]
    #[command(after_help = tune::EXAMPLES)]
    Tune(TuneArgs),
}
