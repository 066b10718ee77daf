//! Arguments of `weir search calls`.

use super::super::fit::assignment;
use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use weir_units::DataRate;

pub(super) const EXAMPLES: &str = "\
It is weir fit, and with --controllers weir whatif, of many calls. Files become calls by where they are:
  a folder is one call, of all its recordings, and so is each folder below it
  a file that is named is a call of its own; with --each-file so is each one in folders
In folders, hidden files, links to folders and files that are no recordings are passed over.

Each call is fitted once, and each controller run over it once, and kept in --out as Parquet: fits, one row a call; controllers,
one row a call and controller; failures. What the folder has is not made again, under whatever name: a command that was stopped
goes on, and more calls or controllers are added. Damaged recordings fail and the others go on. At the end come sums by
controller and by cause (docs/whatif.md has them, and the layout). --set as of weir whatif. Ctrl-C writes what has finished.

Examples:
  weir search calls recordings --out results
  weir search calls recordings --controllers gcc,nada,sluice --controller gcc --out results --jobs 2
  weir search calls logs --each-file --controllers sluice --ceiling 2.5Mbps
  weir search calls recordings --controllers gcc --set repair=nack --json | jq .summary.controllers
  weir search calls recordings --dry-run           how many calls there are, and how many the folder lacks
  python -c \"import pyarrow.dataset as d; print(d.dataset('weir-calls/fits').to_table())\"";

#[derive(clap::Args, Debug)]
pub(crate) struct CallsArgs {
    /// Folders of recordings, and files
    #[arg(required = true, value_name = "FOLDER|FILE", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,
    /// Take each file in the folders for a call of its own
    #[arg(long)]
    pub(crate) each_file: bool,
    /// Take what can be read of damaged recordings
    #[arg(long)]
    pub(crate) take_damaged: bool,
    /// Controllers to run over the links of each call; fits alone if absent
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) controllers: Vec<String>,
    /// The controller that was recorded: it is run over the same links, to see how many calls the fits explain
    #[arg(long, value_name = "NAME")]
    pub(crate) controller: Option<String>,
    /// Greatest rate that the application sends, such as 2.5Mbps; found in each call if absent
    #[arg(long, value_name = "RATE", value_parser = crate::values::bit_rate)]
    pub(crate) ceiling: Option<DataRate>,
    /// Change the calls, such as ceiling=3Mbps or repair=nack; several times for several keys
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    pub(crate) set: Vec<(String, String)>,
    /// Links drawn for each call within the bounds of its fit, 1 to 1000
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub(crate) draws: u64,
    /// Folder of the results: new, empty or that of such a command
    #[arg(long, value_name = "DIR", default_value = "weir-calls", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Calls at a time; the results do not depend on it [default: one for each core]
    #[arg(long, short, value_name = "N", alias = "threads")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// Make calls again that failed before
    #[arg(long)]
    pub(crate) retry_failures: bool,
    /// Say what would be made, and make nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
