//! Arguments of `weir judge fits`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Each link is crossed by the recorded controller, and fitted from that recording alone; then the predicted controllers run over the fitted
link, over links drawn within its bounds, and over the true one. docs/whatif.md has the method.

Examples:
  weir judge fits
  weir judge fits --links 100 --seed 2 --recorded nada --controllers gcc,sluice
  weir judge fits --json | jq '.links[] | {kind, capacity_error}'";

#[derive(clap::Args, Debug)]
pub(crate) struct FitsArgs {
    /// The controller whose run is recorded
    #[arg(long, value_name = "NAME", default_value = "gcc")]
    pub(crate) recorded: String,
    /// Controllers that are predicted
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "nada,scream,sluice")]
    pub(crate) controllers: Vec<String>,
    /// Number of generated links
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub(crate) links: u64,
    /// Seed of the links
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub(crate) seed: u64,
    /// Links drawn within the bounds of each fit
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(0..=1000))]
    pub(crate) draws: u64,
    /// Fit statistics once a second, made from the packets of both ends, in the place of packets
    #[arg(long)]
    pub(crate) statistics: bool,
    /// Links at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Judge nothing, and write the links as scenarios into this folder, for `weir run` and `weir live testbed`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) save: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) form: super::FormArgs,
}
