//! Arguments of `weir gate`.

use clap::ValueHint;
use std::num::NonZeroUsize;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
A gate's file names controllers, scenarios and budgets such as `loss <= 0.02` or
`utilisation no worse than gcc by 10 %`. Each budget passes, fails or stays undecided,
by a test over seeds whose wrong verdicts are as rare as the file asks for. The same
file and seed give the same verdicts, unless the file's time (60 s) ends the runs.
docs/gate.md has a whole file, and the steps for GitHub and GitLab.

Exit codes: 0 no budget fails (a warning says if some are undecided; 1 with --strict);
1 a budget fails; 2 the file is wrong. With --bisect: 0 the commit is found; 1 commits
before it could not be judged, or GOOD and BAD are not what they should be.

Examples:
  weir gate
  weir gate examples/weir-gate.toml --allow-exec
  weir gate --seed 100                           the same with other seeds
  weir gate --save-baseline baseline.json        on the branch to compare with
  weir gate --baseline baseline.json --junit gate.xml --sarif gate.sarif --markdown gate.md
  weir gate --bisect v1.2 main make --allow-exec     the commit that a budget fails from
  weir gate --json -q | jq '.checks[] | select(.verdict != \"passes\") | {scenario, budget, why}'";

#[derive(clap::Args, Debug)]
pub(crate) struct GateArgs {
    /// The gate's file
    #[arg(value_name = "FILE", default_value = "weir-gate.toml", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,
    /// Let the programs start that the file names as exec:COMMAND
    #[arg(long)]
    pub(crate) allow_exec: bool,
    /// First seed, in place of the file's: whether a verdict was luck
    #[arg(long, value_name = "S")]
    pub(crate) seed: Option<u64>,
    /// Exit with 1 if a budget stays undecided
    #[arg(long)]
    pub(crate) strict: bool,
    /// Values of an earlier run, for budgets that say `baseline`; its worst controllers and scenarios are run first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) baseline: Option<PathBuf>,
    /// Write the values of this run, for --baseline of a later one
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) save_baseline: Option<PathBuf>,
    /// Write the verdicts as JUnit's XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) junit: Option<PathBuf>,
    /// Write the verdicts in Markdown, with up to three plots of what fails as SVG files beside it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) markdown: Option<PathBuf>,
    /// Write what does not pass in SARIF 2.1.0, which hosts of repositories show beside the gate's file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) sarif: Option<PathBuf>,
    /// Print workflow commands of GitHub too, which mark the budgets in the file
    #[arg(long, conflicts_with = "json")]
    pub(crate) annotations: bool,
    /// Find the commit of this git repository from which on a budget fails: CMD builds the estimator in each that is tried, with words
    /// quoted as in a shell
    #[arg(
        long,
        num_args = 3,
        value_names = ["GOOD", "BAD", "CMD"],
        allow_hyphen_values = true,
        conflicts_with_all = ["json", "annotations", "junit", "markdown", "sarif", "save_baseline"]
    )]
    pub(crate) bisect: Option<Vec<String>>,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Runs at a time; verdicts do not depend on it, unless time ends the runs [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    /// No progress bar and no remarks on standard error
    #[arg(long, short)]
    pub(crate) quiet: bool,
}
