//! Arguments of `weir judge rfc`.

use super::FormArgs;
use clap::builder::PossibleValuesParser;
use weir_judge::rfc::SUITES;

pub(super) const EXAMPLES: &str = "\
Examples:
  weir judge rfc                       gcc, nada, scream and scream2, in a few seconds
  weir judge rfc gcc rrtcc
  weir judge rfc --suite rfc8869       cellular and Wi-Fi links, in some minutes
  weir judge rfc gcc --json | jq '.cases[] | select(.passed | not) | .case'";

#[derive(clap::Args, Debug)]
pub(crate) struct RfcArgs {
    /// Controllers by name (see `weir show controllers`); gcc, nada, scream and scream2 if none is given
    #[arg(value_name = "CONTROLLER")]
    pub(crate) controllers: Vec<String>,
    /// The test cases: rfc8867, or rfc8869 for wireless links
    #[arg(long, default_value = "rfc8867", value_name = "RFC", value_parser = PossibleValuesParser::new(SUITES.map(|s| s.name)))]
    pub(crate) suite: String,
    #[command(flatten)]
    pub(crate) form: FormArgs,
}
