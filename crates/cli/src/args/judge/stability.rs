//! Arguments of `weir judge stability`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge stability                          sluice, over the whole grid
  weir judge stability --controller gcc --grid coarse --out maps";

#[derive(clap::Args, Debug)]
pub(crate) struct StabilityArgs {
    /// The controller; parameters may follow: gcc:loss_v2=1:beta=0.9
    #[arg(long, value_name = "NAME", default_value = "sluice")]
    pub(crate) controller: String,
    /// Number of cells
    #[arg(long, value_name = "GRID", value_enum, default_value = "whole")]
    pub(crate) grid: StabilityGrid,
    /// Folder for the map
    #[arg(long, value_name = "DIR", default_value = "weir-report", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum StabilityGrid {
    /// Every cell
    Whole,
    /// Few cells
    Coarse,
}
