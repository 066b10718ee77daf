//! Arguments of `weir judge contradictions`.

use std::num::NonZeroUsize;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge contradictions                     all controllers of calls: rows, shipped scenarios, 48 generated links
  weir judge contradictions --controllers sluice --links 200 --json";

#[derive(clap::Args, Debug)]
pub(crate) struct ContradictionsArgs {
    /// Controllers by name (see `weir show controllers`); all those of calls if absent
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// Number of generated links, each under each controller
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u64).range(0..=100_000))]
    pub(crate) links: u64,
    /// Seed of the links
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: super::FormArgs,
}
