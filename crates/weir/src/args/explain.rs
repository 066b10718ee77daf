//! Arguments of `weir explain`.

use super::OneArgs;
use clap::ValueHint;
use std::path::PathBuf;

pub(crate) const EXAMPLES: &str = "\
Each line: until when, the target before and after, and why, from the controller's internals by name, or from delay, loss and
the source's rate where they are not known. Spans with one reason and a steady rate are joined. In the place of a scenario,
row:e is row e of the scoreboard, and a folder is one that weir run --series wrote. --plot draws the rate with the
reasons as coloured bands.

Examples:
  weir explain row:e --controller sluice --from 39 --to 45
  weir explain responsiveness --controller gcc --seed 3 --plot why.svg
  weir run quick --controller nada --series out && weir explain out
  weir explain row:d2 --json | jq '.flows[].spans[] | select(.reason == \"competition\")'";

#[derive(clap::Args, Debug)]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    pub(crate) one: OneArgs,
    /// Only this flow
    #[arg(long, value_name = "NAME")]
    pub(crate) flow: Option<String>,
    /// Seconds in a span
    #[arg(long, value_name = "S", default_value = "1", value_parser = seconds)]
    pub(crate) step: f64,
    /// Only from this time on, in s
    #[arg(long, value_name = "S")]
    pub(crate) from: Option<f64>,
    /// Only up to this time, in s
    #[arg(long, value_name = "S")]
    pub(crate) to: Option<f64>,
    /// Draw the rates, with the reasons as coloured bands, as SVG
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) plot: Option<PathBuf>,
    /// Print one JSON object instead of text
    #[arg(long)]
    pub(crate) json: bool,
}

fn seconds(text: &str) -> Result<f64, String> {
    let value = text.parse::<f64>().ok().filter(|s| (0.01..=3_600.0).contains(s));
    value.ok_or_else(|| "expected seconds, 0.01 to 3600".into())
}
