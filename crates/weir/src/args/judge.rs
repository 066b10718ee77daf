//! Arguments of the commands that judge controllers: `weir twin` and `weir scorecard`.

use clap::builder::PossibleValuesParser;
use weir_lab::judge::rfc::SUITES;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum TwinCommand {
    /// List the recordings, and the programs that made them
    List,
    /// Repeat recordings in the simulator and print how near the controllers come
    Run(TwinRunArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct TwinRunArgs {
    /// Twins by name (see `weir twin list`); all if none is given
    #[arg(value_name = "TWIN")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ScorecardArgs {
    /// Controllers by name (see `weir list controllers`); gcc, nada, scream and scream2 if none is given
    #[arg(value_name = "CONTROLLER")]
    pub(crate) controllers: Vec<String>,
    /// The test cases: rfc8867, or rfc8869 for wireless links
    #[arg(long, default_value = "rfc8867", value_name = "RFC", value_parser = PossibleValuesParser::new(SUITES.map(|s| s.name)))]
    pub(crate) suite: String,
    #[command(flatten)]
    pub(crate) form: FormArgs,
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
