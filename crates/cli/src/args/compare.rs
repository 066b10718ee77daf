//! Arguments of `weir compare`, and those common to commands that make many runs.

use clap::ValueHint;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Ctrl-C or SIGTERM shows what has finished, over as many runs of one controller as of another, and says what is missing.
Durations: without arguments some 5 s on one core; a run of 300 s of one call takes 20 to 100 ms, with a real encoder up to
a minute. Progress says how long the rest takes. Up to 1000000 runs; of more than 10000 the statistics alone are kept.
Parameters may follow a controller's name, and count for every flow under it: gcc:beta=0.9. Scenario files set them too:
controllers.sluice.params = { queue_target = \"20 ms\" }. A file that names no controllers to compare gets gcc, nada and scream.

Examples:
  weir compare
  weir compare --scenario responsiveness --scenario my-link.toml --runs 10 --out results
  weir compare --scenario quick --controllers gcc,gcc:beta=0.7:loss_v2=1
  weir compare --controllers gcc,nada --json --quiet | jq '.aggregates[].metrics'";

#[derive(clap::Args, Debug)]
pub(crate) struct CompareArgs {
    /// Controllers to compare, parameters may follow: gcc:beta=0.9; those named by each scenario if absent, and sluice where no
    /// scenario is named
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) controllers: Option<Vec<String>>,
    /// A scenario by name or file, any number of times; those of the paper rmcat-comparison if absent
    #[arg(long, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) scenario: Vec<String>,
    /// Runs of each scenario, each with the next seed
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) runs: NonZeroU32,
    /// Seed of the first run; the scenario's own if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Folder for the report
    #[arg(long, value_name = "DIR", default_value = "weir-report", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Keep finished runs in this folder, and make only those that it lacks: a command that was stopped goes on.
    /// Runs of exec: programs are made each time
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Options common to all commands that do work.
#[derive(clap::Args, Debug)]
pub(crate) struct WorkArgs {
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, alias = "threads", value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
