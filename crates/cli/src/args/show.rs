//! Arguments of `weir show`.

use clap::{Subcommand, ValueHint};

pub(super) const EXAMPLES: &str = "\
Examples:
  weir show scenarios
  weir show scenarios --json | jq -r '.scenarios[].name'
  weir show controllers --all           those of single papers too
  weir show controllers --params        every parameter with its unit, range and default
  weir show scenario responsiveness > mine.toml
  weir show scenario mine.toml --check
  weir show schema run                  what --json of weir run prints";

#[derive(Subcommand, Debug)]
pub(crate) enum ShowCommand {
    /// Controllers, by the name that --controller takes
    Controllers(ControllersArgs),
    /// Built-in scenarios, their variants and the controllers that they compare
    Scenarios(ListArgs),
    /// Papers whose numbers `weir judge paper` compares with measured ones
    Papers(ListArgs),
    /// Codecs, and how to build in those that this build lacks
    Codecs(ListArgs),
    /// Queue disciplines of links
    Disciplines(ParamsArgs),
    /// Schedulers of packets over several paths
    Schedulers(ListArgs),
    /// Recordings of the authors' own programs, which `weir judge twins` repeats
    Twins,
    /// Congestion controls of DCCP by number, with their sources and parameters
    #[cfg(target_os = "linux")]
    Ccids(ListArgs),
    /// A scenario's file, or whether files are in order
    Scenario(ShownScenarioArgs),
    /// The JSON schema of what a command prints with --json, or of scenario files
    #[command(after_help = "\
Examples:
  weir show schema run > run.schema.json
  weir show schema judge rfc | jq '.properties | keys'
  weir show schema scenario             of scenario files, for editors
  weir show schema rules                of rules for weir open --rules
  weir show schema --markdown           every field of every command, as a page")]
    Schema(SchemaArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct ListArgs {
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ParamsArgs {
    /// Their parameters as well
    #[arg(long)]
    pub(crate) params: bool,
    /// Print one JSON object instead of a table, parameters included
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ControllersArgs {
    /// Those that exist for the results of one paper as well; JSON has them in any case
    #[arg(long)]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) list: ParamsArgs,
}

#[derive(clap::Args, Debug)]
pub(crate) struct ShownScenarioArgs {
    /// Built-in scenarios by name, or files
    #[arg(required = true, value_name = "NAME|FILE", value_hint = ValueHint::FilePath)]
    pub(crate) names: Vec<String>,
    /// Check the files, every variant under every controller, and print a line each
    #[arg(long)]
    pub(crate) check: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct SchemaArgs {
    /// The command, such as `run` or `judge rfc`; or `scenario`, for scenario files, or `rules`, for weir open --rules
    #[arg(value_name = "COMMAND", required_unless_present = "markdown")]
    pub(crate) command: Vec<String>,
    /// Print tables of all commands' fields, as a page in Markdown
    #[arg(long, conflicts_with = "command")]
    pub(crate) markdown: bool,
}
