//! Arguments of `weir search sweep`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
A grid, in TOML:
  scenarios = [\"quick\", \"my-link.toml\"]    names, files, or texts of scenarios
  controllers = [\"gcc\", \"nada\"]            the scenario's first one if absent
  seeds = 20                               1 to 20, or a list; 1 if absent
  variants = \"5%\"                          all of each scenario if absent
  [set]                                    places in the scenarios, each with values
  links.bottleneck.delay = [\"20 ms\", \"60 ms\"]

Each combination is run once and kept in --out: one row a flow, as Parquet. What the folder has is not run again, in
whatever grid it was: a sweep that was stopped goes on, a wider grid adds to it, and weir.sweep of Python shares the folder
(docs/python.md has its layout). Runs that failed are kept beside the results. Ctrl-C writes what has finished.

Examples:
  weir search sweep grid.toml
  weir search sweep grid.toml --out results --jobs 2
  weir search sweep grid.toml --dry-run           how many runs there are, and how many the folder lacks
  python -c \"import pyarrow.dataset as d; print(d.dataset('weir-sweep/runs', partitioning='hive').to_table())\"";

#[derive(clap::Args, Debug)]
pub(crate) struct SweepArgs {
    /// The grid: a TOML file
    #[arg(value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub(crate) grid: PathBuf,
    /// Folder of the results: new, empty or that of a sweep
    #[arg(long, value_name = "DIR", default_value = "weir-sweep", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N", alias = "threads")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Make runs again that failed before
    #[arg(long)]
    pub(crate) retry_failures: bool,
    /// Say what would be run, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
