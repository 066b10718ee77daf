//! Arguments of `weir judge`.

mod causes;
mod contradictions;
mod cues;
mod fits;
mod harm;
mod paper;
mod pathologies;
mod rfc;
mod rows;
mod stability;
mod twins;

pub(crate) use causes::CausesArgs;
pub(crate) use contradictions::ContradictionsArgs;
pub(crate) use cues::CuesArgs;
pub(crate) use fits::FitsArgs;
pub(crate) use harm::HarmArgs;
pub(crate) use paper::{AtEnd, FigureFormat, PaperArgs};
pub(crate) use pathologies::PathologiesArgs;
pub(crate) use rfc::RfcArgs;
pub(crate) use rows::RowsArgs;
pub(crate) use stability::{StabilityArgs, StabilityGrid};
pub(crate) use twins::TwinsArgs;

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge rfc gcc nada               test cases of RFC 8867, each criterion written down
  weir judge rows --controllers sluice,gcc
  weir judge twins                      beside recordings of the authors' own programs
  weir judge paper rmcat-comparison     every published number beside the measured one
  weir judge stability --grid coarse
  weir judge harm                       losses that a controller makes itself
  weir judge pathologies                mutes, clocks, copies, key frames: ordinary calls that fail";

#[derive(Subcommand, Debug)]
pub(crate) enum JudgeCommand {
    /// Judge controllers by the test cases of RFC 8867 or RFC 8869, each criterion written down
    #[command(after_help = rfc::EXAMPLES)]
    Rfc(RfcArgs),
    /// Run controllers over rows of hard situations, and over recorded capacity: goals, met or not, the worst case first
    #[command(after_help = rows::EXAMPLES)]
    Rows(RowsArgs),
    /// Compare controllers with recordings of the authors' own programs
    #[command(after_help = twins::EXAMPLES)]
    Twins(TwinsArgs),
    /// Run a paper's experiments and compare its numbers with the measured ones
    #[command(after_help = paper::EXAMPLES)]
    Paper(PaperArgs),
    /// Map where a controller is stable: one flow on fixed links, by round-trip time, rate and feedback interval
    #[command(after_help = stability::EXAMPLES)]
    Stability(StabilityArgs),
    /// Fit links that are known from recordings of a controller, and predict others on them
    #[command(after_help = fits::EXAMPLES)]
    Fits(FitsArgs),
    /// Put known causes into calls, and compare what the rules of `open --why` say
    #[command(after_help = causes::EXAMPLES)]
    Causes(CausesArgs),
    /// Run controllers over generated links: losses of more than a twentieth that half of the rate would not have had
    #[command(after_help = harm::EXAMPLES)]
    Harm(HarmArgs),
    /// Look for numbers of a result that contradict each other: over rows, shipped scenarios and generated links
    #[command(after_help = contradictions::EXAMPLES)]
    Contradictions(ContradictionsArgs),
    /// Run every controller for general use over ordinary calls in which some have failed: mutes, clocks, longer paths, layers
    #[command(after_help = pathologies::EXAMPLES)]
    Pathologies(PathologiesArgs),
    /// Leave out each cue and mechanism of one call in turn, over generated and recorded rides: which earn their place
    #[command(after_help = cues::EXAMPLES)]
    Cues(CuesArgs),
}

/// The form of the scores.
#[derive(clap::Args, Debug)]
pub(crate) struct FormArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the table in Markdown
    #[arg(long, conflicts_with = "json")]
    pub(crate) markdown: bool,
    /// No progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
