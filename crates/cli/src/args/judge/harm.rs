//! Arguments of `weir judge harm`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge harm                               controllers in general use over 60 links
  weir judge harm --controllers sluice --links 500
  weir judge harm --write links && weir compare --scenario links/link-7.toml";

#[derive(clap::Args, Debug)]
pub(crate) struct HarmArgs {
    /// Controllers by name (see `weir show controllers`)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "sluice,gcc,nada,scream,scream2,tfrc,bbr-rtc"
    )]
    pub(crate) controllers: Vec<String>,
    /// Number of generated links
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub(crate) links: u64,
    /// Seed of the links
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Write the links as scenario files into a folder, and run nothing
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) write: Option<PathBuf>,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: super::FormArgs,
}
