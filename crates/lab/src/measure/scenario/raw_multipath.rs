//! A flow's paths as a file writes them.

use super::spanned::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A flow over several paths.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Multipath")]
pub(super) struct RawMultipath {
    /// The paths, two to eight, each a list of links in the order in which packets cross them. Each has a controller of
    /// its own, with the flow's settings.
    pub(super) paths: Vec<At<Vec<At<String>>>>,
    /// What chooses the path of each packet: "best-path", "round-robin", "earliest", "redundant", "fec-aware",
    /// "frame-aligned" or "thesis"; "earliest" if absent.
    pub(super) scheduler: Option<At<String>>,
}
