//! Arguments of `weir search tune`.

use clap::ValueHint;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
The search (CMA-ES) begins at the controller's defaults, or at those given, and changes all parameters at once, by factors. A
candidate is judged by its worst traces: the mean on-time share of the worst tenth of them. With --rows, what goals of the
scoreboard are near is added, and what one loses against the start is subtracted. --generated adds capacities from --seed;
--validation names traces that the search does not see: start and best run over them once, at the end. On-time share: what
arrives within 100 ms of extra delay, over what a sender gets that knows the capacity.

Every evaluation is kept, in tune.json; Ctrl-C ends the search and keeps what it has. The same seed gives the same search.

Examples:
  weir search tune sluice --parameters growth,drain_time,stall_share --evaluations 100
  weir search tune gcc --traces recordings/train --validation recordings/other
  weir search tune nada:qeps_ms=5 --rows e,h,j --generated 40 --runs 3
  weir run responsiveness --controller sluice:growth=1.8     try what it found";

#[derive(clap::Args, Debug)]
pub(crate) struct TuneArgs {
    /// The controller; parameters may follow: gcc:loss_v2=1:beta=0.9
    #[arg(value_name = "CONTROLLER")]
    pub(crate) controller: String,
    /// The parameters searched; all continuous ones if absent (weir show controllers --json has them)
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) parameters: Vec<String>,
    /// A folder of capacity traces for the search, or FOLDER=FORMAT where files do not show theirs (seconds-mbps)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) traces: Vec<String>,
    /// A folder of traces that only start and best run over, at the end
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) validation: Vec<String>,
    /// Capacities made from --seed, beside the traces [default: 20 without --traces and --rows]
    #[arg(long, value_name = "N")]
    pub(crate) generated: Option<u16>,
    /// Rows of the scoreboard, by name or letter, such as e,h10
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Candidates to evaluate, the start included
    #[arg(long, value_name = "N", default_value = "200")]
    pub(crate) evaluations: NonZeroUsize,
    /// Runs of each trace and row under each candidate, with seeds from 1 on
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) runs: NonZeroU32,
    /// Seed of the search and of the generated capacities
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) seed: u64,
    /// Folder for tune.json
    #[arg(long, value_name = "DIR", default_value = "weir-tune", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", alias = "threads")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
