//! Arguments of `weir judge cues`.

use std::num::NonZeroUsize;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge cues                               ten generated and ten recorded rides
  weir judge cues --generated 50 --recorded 0
  weir judge cues --markdown > cues.md";

#[derive(clap::Args, Debug)]
pub(crate) struct CuesArgs {
    /// Number of generated rides
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=1_000))]
    pub(crate) generated: u64,
    /// Number of recorded rides, of ten
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(0..=10))]
    pub(crate) recorded: u64,
    /// Runs of each ride and variant, with seeds from 1 on
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub(crate) runs: u64,
    /// Seed of the generated rides
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: super::FormArgs,
}
