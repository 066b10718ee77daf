//! Arguments of `weir judge causes`.

use std::num::NonZeroUsize;

pub(super) const EXAMPLES: &str = "\
A cause is put into a simulated call 20 s after its start. The rules of `weir open --why` see the call as captures of both ends, as the
sender's log, and as statistics once a second. Every second call is of the half on which bounds of rules are chosen.

Examples:
  weir judge causes
  weir judge causes --controllers gcc --calls 2 --cause jitter,stalls
  weir judge causes --json | jq '.calls[] | select(.verdict == \"wrong\")'";

#[derive(clap::Args, Debug)]
pub(crate) struct CausesArgs {
    /// Controllers of the calls
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "gcc,sluice,nada")]
    pub(crate) controllers: Vec<String>,
    /// Calls of each cause, magnitude and controller
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) calls: u64,
    /// Seed of the calls
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,
    /// Only these causes, such as "delay-step" [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cause: Vec<String>,
    /// Calls at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: super::FormArgs,
}
