//! Arguments of `weir judge twins`.

use super::FormArgs;

pub(super) const EXAMPLES: &str = "\
A twin is a recording of a program, such as libwebrtc's goog_cc, on a plain link, and the scenario that repeats it.
Several flows are judged by the mean of ten starts; where the program's own ten starts are stored too (twins/PROGRAM/NAME.starts.csv,
by tools/references), mean beside mean.

Examples:
  weir show twins
  weir judge twins                     all of them, in about half a minute
  weir judge twins gcc/three scream2/single
  weir judge twins --json | jq '.scores[] | select(.near | not) | .twin'";

#[derive(clap::Args, Debug)]
pub(crate) struct TwinsArgs {
    /// Twins by name (see `weir show twins`); all if none is given
    #[arg(value_name = "TWIN")]
    pub(crate) names: Vec<String>,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}
