//! A flow's paths as a file writes them.

use super::spanned::At;
use schemars::JsonSchema;
use serde::Deserialize;

/// A flow over several paths.
#[derive(Deserialize, JsonSchema, Debug)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Multipath")]
pub(super) struct RawMultipath {
    /// The paths, at most eight, each a list of links in the order in which packets cross them. Each has a controller of
    /// its own, with the flow's settings. One path is plain RTP, as with `path`.
    pub(super) paths: Vec<At<Vec<At<String>>>>,
    /// What chooses the path of each packet: "best-path", "round-robin", "earliest", "redundant", "fec-aware",
    /// "frame-aligned" or "thesis"; "earliest" if absent.
    pub(super) scheduler: Option<At<String>>,
    /// Which paths share one flow's rate (RFC 8699): "none", "always", those "detected" behind one bottleneck (RFC 8382), or
    /// those whose delays are "correlated"; "none" if absent.
    pub(super) coupling: Option<At<String>>,
    /// Plays frames by the skew of the paths (V. Singh's dissertation, section 6.1.1), instead of at `playout_deadline`, which
    /// bounds the delay; false if absent.
    #[serde(default)]
    pub(super) skew_playout: bool,
}
