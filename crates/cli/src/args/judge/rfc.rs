//! Arguments of `weir judge rfc`.

use super::FormArgs;
use clap::builder::PossibleValuesParser;
use std::num::{NonZeroU32, NonZeroUsize};
use weir_judge::rfc::SUITES;
use weir_judge::rfc9743;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge rfc                       gcc, nada, scream and scream2, in a few seconds
  weir judge rfc gcc rrtcc
  weir judge rfc sluice --runs 8       the phases that fail, with how many of eight seeds
  weir judge rfc --suite rfc8869       cellular and Wi-Fi links, in some minutes
  weir judge rfc --suite rfc9743       every question that a run can answer, in some minutes
  weir judge rfc sluice --suite rfc9743 --sections 5.1,7.6
  weir judge rfc gcc --json | jq '.cases[] | select(.passed | not) | .case'";

#[derive(clap::Args, Debug)]
pub(crate) struct RfcArgs {
    /// Controllers by name (see `weir show controllers`); gcc, nada, scream and scream2 if none is given, and sluice, gcc and scream2
    /// under rfc9743
    #[arg(value_name = "CONTROLLER")]
    pub(crate) controllers: Vec<String>,
    /// The test cases: rfc8867, or rfc8869 for wireless links; or the criteria of rfc9743 for new algorithms, with a bound for each
    #[arg(long, default_value = "rfc8867", value_name = "RFC", value_parser = PossibleValuesParser::new(suites()))]
    pub(crate) suite: String,
    /// Of rfc9743, the sections asked for, such as 5.1,7.6; all if absent
    #[arg(long, value_name = "A,B,C", value_delimiter = ',')]
    pub(crate) sections: Vec<String>,
    /// Runs of each case, with seeds from 1 on [default: 3 of rfc9743; else one, with the scenario's seed]
    #[arg(long, value_name = "N")]
    pub(crate) runs: Option<NonZeroU32>,
    /// Of rfc9743, runs at a time; the results do not depend on it [default: one for each core]
    #[arg(long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}

/// Names of the suites.
fn suites() -> impl Iterator<Item = &'static str> {
    SUITES.iter().map(|s| s.name).chain([rfc9743::NAME])
}
