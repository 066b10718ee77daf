//! Arguments of `weir judge paper`.

use crate::args::WorkArgs;
use clap::ValueHint;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const EXAMPLES: &str = "\
Each number is near, explained or far. Near: within 1.5 dB; percentages up to 0.5 within 0.1 points; times of whole seconds within 20 %
or 0.5 s; anything else within 20 %. Explained: not near, but the paper leaves a condition open, and of its two ends, which are run
too, one is near or both enclose the published value. Goals: near 70 %, near or explained 95 %, orders 90 %.

Durations on two cores: rmcat-comparison some seconds, the others minutes (fbra's and dccp-video's have real encoders). Where
a paper made more runs than the default, --runs makes as many; --runs 1 is a first look. Progress says how long the rest takes.

Examples:
  weir judge paper rmcat-comparison
  weir judge paper fbra --runs 1 --out fbra
  weir judge paper fbra --runs 30 --resume fbra-runs    may be stopped; the same command goes on
  weir judge paper rmcat-comparison --table 2 --json --runs 20
  weir judge paper rmcat-comparison --out paper --figures svg,pdf
  weir judge paper --all                every paper's score in one table, by the few runs that its folder sets for it
  weir judge paper --all fbra dp-fec    the scores of these
  weir judge paper fbra --ends          the whole paper's scores at each end of its open conditions
  weir judge paper fbra --at objects=2  every run at an end, here the second; no other ends are run beside
  weir judge paper papers/my-paper      a folder with a reproduce.toml";

#[derive(clap::Args, Debug)]
pub(crate) struct PaperArgs {
    /// A paper's name (see `weir show papers`), or a folder with a reproduce.toml
    #[arg(value_name = "PAPER|FOLDER", required_unless_present = "all")]
    pub(crate) papers: Vec<String>,
    /// Every paper that ships with Weir, or each that is named: its score beside the goals, one line each
    #[arg(long, conflicts_with_all = ["table", "out", "figures"])]
    pub(crate) all: bool,
    /// Only this table
    #[arg(long, value_name = "N")]
    pub(crate) table: Option<String>,
    /// Print only the scores of the whole paper at each end of the conditions that it leaves open
    #[arg(long, conflicts_with = "json")]
    pub(crate) ends: bool,
    /// Run every scenario that these conditions may decide at the named end, and none of the other ends; several by commas
    #[arg(long, value_name = "CONDITION=1|2", value_delimiter = ',', conflicts_with = "ends")]
    pub(crate) at: Vec<AtEnd>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a section of docs/papers.md instead: the score, every number, and the claims; with --all every section
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// Runs of each scenario, each with the next seed; if absent the paper's own number, or 5, and with --all those of its score
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroU32>,
    /// Seed of the first run; the scenario's own if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Folder for the report; none is written if absent
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// Format of the paper's figures in that folder
    #[arg(long, value_name = "FORMATS", value_enum, value_delimiter = ',', default_value = "svg")]
    pub(crate) figures: Vec<FigureFormat>,
    /// Keep finished runs in this folder, and make only those that it lacks: a command that was stopped goes on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// An open condition by its short name, and one of its ends, 1 or 2.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AtEnd {
    pub(crate) id: String,
    /// Position of the end, from 0.
    pub(crate) end: usize,
}

impl FromStr for AtEnd {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((id, "1")) => Ok(Self { id: id.into(), end: 0 }),
            Some((id, "2")) => Ok(Self { id: id.into(), end: 1 }),
            _ => Err("expected the short name of an open condition and its end, 1 or 2, as in `objects=2`".into()),
        }
    }
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FigureFormat {
    /// For pages: follows the reader's light or dark setting
    Svg,
    /// For papers: dark on white
    Pdf,
}
