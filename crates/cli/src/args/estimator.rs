//! Arguments of `weir estimator`.

use clap::Subcommand;

pub(super) const EXAMPLES: &str = "\
An estimator of your own, in any language, is a program that reads events as lines of JSON, or in a binary form, and answers with
rates; docs/estimators.md has the messages, examples/estimators a start in Python, C, JavaScript and Go.

Examples:
  weir estimator check 'python3 examples/estimators/aimd.py'
  weir estimator check --time './aimd --all'
  weir compare --controllers 'exec:python3 examples/estimators/aimd.py,gcc' --scenario quick
  weir judge rows --controllers 'exec:python3 examples/estimators/aimd.py'";

#[derive(Subcommand, Debug)]
pub(crate) enum EstimatorCommand {
    /// Run a command through two like calls, and say in words what is wrong with it
    Check(EstimatorCheckArgs),
    /// Answer on standard input and output with one of Weir's controllers, to try a program that speaks the other side
    Serve(EstimatorServeArgs),
}

#[derive(clap::Args, Debug)]
pub(crate) struct EstimatorCheckArgs {
    /// The program and its arguments, quoted as in a shell; no shell is involved
    pub(crate) command: String,
    /// Measure the time of an event over nine calls, in place of two
    #[arg(long)]
    pub(crate) time: bool,
    /// Print one JSON object in place of text
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(clap::Args, Debug)]
pub(crate) struct EstimatorServeArgs {
    /// A controller's name (see `weir show controllers`)
    #[arg(value_name = "CONTROLLER")]
    pub(crate) controller: String,
    /// Speak the binary form after the first answer, in place of JSON
    #[arg(long)]
    pub(crate) binary: bool,
}
