//! Arguments of the commands that make many runs: `weir compare` and `weir reproduce`.

use clap::ValueHint;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;

#[derive(clap::Args, Debug)]
pub(crate) struct CompareArgs {
    /// Controllers to compare; those named by each scenario if absent
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
    /// Keep finished runs in this folder, and make only those that it lacks: a command that was stopped goes on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

/// Options common to all commands that do work.
#[derive(clap::Args, Debug)]
pub(crate) struct WorkArgs {
    /// Runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ReproduceArgs {
    /// A paper's name (see `weir list papers`), or a folder with a reproduce.toml
    #[arg(value_name = "PAPER|FOLDER")]
    pub(crate) paper: String,
    /// Only this table
    #[arg(long, value_name = "N")]
    pub(crate) table: Option<String>,
    /// Print one JSON object instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs of each scenario, each with the next seed; the paper's own number if absent, or 5
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroU32>,
    /// Seed of the first run; the scenario's own if absent
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Folder for the report; none is written if absent
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) out: Option<PathBuf>,
    /// What the paper's figures are written as, into that folder
    #[arg(long, value_name = "FORMATS", value_enum, value_delimiter = ',', default_value = "svg")]
    pub(crate) figures: Vec<FigureFormat>,
    /// Keep finished runs in this folder, and make only those that it lacks: a command that was stopped goes on
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) resume: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) work: WorkArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FigureFormat {
    /// For pages: follows the reader's light or dark setting
    Svg,
    /// For papers: dark on white
    Pdf,
}
