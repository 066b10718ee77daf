//! Arguments of `weir judge rows`.

use clap::ValueHint;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Rows a to n are scenarios with goals: a changing link, loss, late comers, TCP beside, falls and rises, starts, limited sources,
jitter, Wi-Fi, deep and short queues, marks; o to y: long round trips, hand-overs, reordering, lost feedback, audio alone, an upload beside,
changing paths, other controllers beside, outages, a policer; aa to an, with goals from causal bounds: a shared screen, policers and short
queues in company, a fair queue, clocks, copies, late feedback, twenty calls, a video player beside, grants, frames from capture on, a
cell with stalls. The rows of traces need recordings of capacity, which do not ship with Weir:
--traces names a folder of them (mahimahi, Norwegian HSDPA, Belgian 4G, Irish 5G, or a table of time and rate); each is
a row, and each of its folders a group. The page has the worst case first and can be sorted; in the terminal an unmet goal
has an x. Eleven controllers and three runs take some minutes on two cores; --write DIR writes the scenarios, for weir run.

Examples:
  weir judge rows --controllers sluice,gcc,nada
  weir judge rows --rows e,h --runs 10 --controllers sluice,gcc:loss_v2=1
  weir judge rows --traces recordings --rows traces --jobs 2
  weir judge rows --json -q | jq '.tallies[] | {controller, met, worst}'
  weir judge rows --live --controllers sluice --rows e,f,h --jobs 3
  weir judge rows --write rows && weir run rows/e/scenario.toml --controller sluice";

#[derive(clap::Args, Debug)]
pub(crate) struct RowsArgs {
    /// Controllers, the first of which orders the tables; parameters may follow: gcc:loss_v2=1:beta=0.9
    #[arg(
        long,
        value_name = "A,B,C",
        value_delimiter = ',',
        default_value = "sluice,gcc,nada,scream,fbra,tfrc,gcc+fec,gcc:loss_v2=1,nada-receiver,gcc-remb,cnadu"
    )]
    pub(crate) controllers: Vec<String>,
    /// Rows by name or letter, such as e,h10,traces; all if absent
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) rows: Vec<String>,
    /// Runs of each row under each controller, with seeds from 1 on [default: 3; with --live 1, beside 16 simulated]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroU32>,
    /// Beside each simulated controller the same on the testbed, as NAME@live: sockets, kernel TCP and clocks, in real time.
    /// Two minutes a row; --jobs says how many at a time
    #[arg(long)]
    pub(crate) live: bool,
    /// A folder of capacity traces, or FOLDER=FORMAT where files do not show theirs (seconds-mbps)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) traces: Vec<String>,
    /// Folder for the page
    #[arg(long, value_name = "DIR", default_value = "weir-report", value_hint = ValueHint::DirPath)]
    pub(crate) out: PathBuf,
    /// Write the rows' scenario files into this folder, and make no runs
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) write: Option<PathBuf>,
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
