//! The command line's grammar and its help.

mod bench;
mod compare;
#[cfg(feature = "coverage")]
pub(crate) mod coverage;
#[cfg(feature = "dist")]
mod dist;
mod estimator;
mod fit;
mod gate;
mod judge;
mod layers;
#[cfg(target_os = "linux")]
pub(crate) mod live;
mod media;
mod open;
mod overlay;
mod run;
mod search;
mod show;

pub(crate) use bench::{BenchArgs, Ns3};
pub(crate) use compare::{CompareArgs, WorkArgs};
#[cfg(feature = "dist")]
pub(crate) use dist::{CompletionsArgs, ManualArgs};
pub(crate) use estimator::{EstimatorCheckArgs, EstimatorCommand, EstimatorServeArgs};
pub(crate) use fit::{FitArgs, FittedArgs, WhatIfArgs};
pub(crate) use gate::GateArgs;
pub(crate) use judge::{
    AtEnd, CausesArgs, ContradictionsArgs, CuesArgs, FigureFormat, FitsArgs, HarmArgs, JudgeCommand, PaperArgs,
    PathologiesArgs, RfcArgs, RowsArgs, StabilityArgs, StabilityGrid, TwinsArgs,
};
pub(crate) use layers::{LayersArgs, Learning};
pub(crate) use media::{ClipArgs, Luma, MediaCommand, QualityArgs};
pub(crate) use open::OpenArgs;
pub(crate) use overlay::{Division, OverlayArgs};
pub(crate) use run::{At, CaptureArgs, ExplainArgs, OneArgs, RunArgs};
#[cfg(feature = "tune")]
pub(crate) use search::TuneArgs;
pub(crate) use search::{CallsArgs, SearchCommand, SweepArgs};
#[cfg(target_os = "linux")]
pub(crate) use show::ListArgs;
pub(crate) use show::ShowCommand;

use clap::{Parser, Subcommand};

const EXAMPLES: &str = "\
Beside the eight verbs there are services of their own:
  open      open a recorded call of another program, and say why its rate fell
  fit       the link of a recorded call, as a scenario
  whatif    what other controllers would have done in a recorded call
  estimator check an estimator of your own: a program in any language, as exec:COMMAND
  gate      judge controllers by budgets in a build: passes, fails or undecided
  overlay   simulate a stream to many nodes over distribution trees
  layers    simulate layers over multicast groups to many receivers
  coverage  run the service of a network coverage map
  completions, manual   what the shell completes, and man pages

Examples:
  weir                                  compare GCC, NADA, SCReAM and Sluice as the paper rmcat-comparison does
  weir --controllers gcc,nada --scenario 5.4-competing-flows --runs 10
  weir run quick --controller gcc --json
  weir run my-link.toml --series out    a scenario of your own; time series as Parquet and CSV
  weir run responsiveness --explain     why the rate moved, in words
  weir judge paper rmcat-comparison     every published number beside the measured one
  weir live call loopback               a call in real time
  weir show scenarios                   what can be run
  weir show scenario quick > mine.toml  a scenario to start from

Exit codes: 0 all went well; 1 a run or a write failed; 2 the command line or a file that it names is wrong, or the command
is not in this build; 3 a recording is damaged; 130 interrupted by Ctrl-C or SIGTERM (files that are there are whole).
Environment: NO_COLOR turns colours off; COLUMNS sets the width of tables.";

/// The text of `weir --version`; `weir -V` has the version alone.
const VERSION: &str = concat!(
    env!("CARGO_PKG_VERSION"),
    "\ncommit: ",
    env!("WEIR_COMMIT"),
    "\ntarget: ",
    env!("WEIR_TARGET"),
    "\nfeatures: ",
    env!("WEIR_FEATURES")
);

#[cfg(target_os = "linux")]
#[derive(clap::Args, Debug)]
pub(crate) struct OutputArgs {
    /// Print one JSON object at the end
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Compare congestion controllers for live audio and video.
///
/// Runs scenarios (a network, and flows over it) in a deterministic simulator: the same scenario and seed give the same
/// numbers on every machine. Without a command it is `weir compare`. `weir help COMMAND` has examples of each.
#[derive(Parser, Debug)]
#[command(name = "weir", version, long_version = VERSION, after_help = EXAMPLES, args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) compare: CompareArgs,
}

#[derive(Subcommand, Debug)]
pub(crate) enum Command {
    /// Run one scenario once; also its packets as pcapng, and why its rate moved
    #[command(after_help = run::EXAMPLES)]
    Run(RunArgs),
    /// Run scenarios under several controllers, print a table and write a report
    #[command(after_help = compare::EXAMPLES)]
    Compare(CompareArgs),
    /// Judge controllers: by RFCs' test cases, rows of goals, recordings, a paper's numbers, stability or harm to others
    #[command(after_help = judge::EXAMPLES)]
    Judge {
        #[command(subcommand)]
        command: JudgeCommand,
    },
    /// Make many runs: every combination of a grid, a search for parameters, or over the links of many recorded calls
    #[command(after_help = search::EXAMPLES)]
    Search {
        #[command(subcommand)]
        command: SearchCommand,
    },
    /// Work in real time: calls, browsers, an emulated link, scenarios on sockets, DCCP
    #[cfg(target_os = "linux")]
    #[command(after_help = live::EXAMPLES)]
    Live {
        #[command(subcommand)]
        command: Box<live::LiveCommand>,
    },
    /// Draw clips of video, and measure the quality of received ones
    #[command(after_help = media::EXAMPLES)]
    Media {
        #[command(subcommand)]
        command: MediaCommand,
    },
    /// Show what there is: controllers, scenarios, disciplines, schemas and the like
    #[command(after_help = show::EXAMPLES)]
    Show {
        #[command(subcommand)]
        command: ShowCommand,
    },
    /// Measure Weir's speed on this machine, and that of ns-3 if it is installed
    #[command(after_help = bench::EXAMPLES)]
    Bench(BenchArgs),
    /// Open recordings of a call: event logs, webrtc-internals dumps, getStats, captures; say why the rate fell
    #[command(hide = true, after_help = open::EXAMPLES)]
    Open(OpenArgs),
    /// Fit the link of a recorded call: capacity, delay, queue and losses with bounds, as a scenario
    #[command(hide = true, after_help = fit::FIT)]
    Fit(FitArgs),
    /// Say what other controllers would have done in a recorded call
    #[command(name = "whatif", hide = true, after_help = fit::WHATIF)]
    WhatIf(WhatIfArgs),
    /// Check a bandwidth estimator in a program of your own, which is a controller everywhere as exec:COMMAND
    #[command(hide = true, after_help = estimator::EXAMPLES)]
    Estimator {
        #[command(subcommand)]
        command: EstimatorCommand,
    },
    /// Judge controllers by the budgets of a file, for a build: each passes, fails or stays undecided
    #[command(hide = true, after_help = gate::EXAMPLES)]
    Gate(GateArgs),
    /// Simulate an overlay: a stream to many nodes over distribution trees, and nodes that leave
    #[command(hide = true, after_help = overlay::EXAMPLES)]
    Overlay(OverlayArgs),
    /// Simulate layers over multicast groups: receivers that join and leave by their losses
    #[command(hide = true, after_help = layers::EXAMPLES)]
    Layers(LayersArgs),
    /// Print what a shell completes: options, commands and values
    #[cfg(feature = "dist")]
    #[command(hide = true, after_help = dist::COMPLETIONS)]
    Completions(CompletionsArgs),
    /// Write a man page of each command
    #[cfg(feature = "dist")]
    #[command(hide = true, after_help = dist::MANUAL)]
    Manual(ManualArgs),
    /// Run the service of a network coverage map, and what belongs to it
    #[cfg(feature = "coverage")]
    #[command(hide = true, after_help = coverage::EXAMPLES)]
    Coverage {
        #[command(subcommand)]
        command: coverage::CoverageCommand,
    },
}
