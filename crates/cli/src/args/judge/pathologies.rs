//! Arguments of `weir judge pathologies`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Each case is a scenario of scenarios/pathologies/ with limits: a mute, clocks that drift or are set, a longer path, packets twice or
out of order, key frames on a slow link, layers at boundaries. Most limits are beside the same controller's run without the disturbance,
the variant `none`. Some controllers have limits of their own, each with its reason on the page. A limit that is not kept makes the
exit code 1. One run again, with the reasons of its rates: weir run pathologies/CASE --variant V --controller C --explain.

Examples:
  weir judge pathologies                            every controller for general use: about a minute on two cores
  weir judge pathologies --cases mute,clock-step --controllers sluice,gcc
  weir judge pathologies --controllers fbra --json -q | jq '.cases[].limits[].verdicts[] | select(.kept | not)'";

#[derive(clap::Args, Debug)]
pub(crate) struct PathologiesArgs {
    /// Controllers by name (see `weir show controllers`); if absent all those for general use that adapt
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// Cases by name, such as mute,longer-path; all if absent
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub(crate) cases: Vec<String>,
    /// Folder for the page
    #[arg(long, value_name = "DIR", default_value = "weir-report", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: super::FormArgs,
}
