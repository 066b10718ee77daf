//! A flow's paths as a file writes them.

use crate::quantity::{Rate, Size};
use crate::spanned::At;
use serde::Deserialize;

/// A flow over several paths.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { paths = [[\"wlan\"], [\"lte\"]] }")]
#[cfg_attr(feature = "schema", schemars(rename = "Multipath"))]
pub(crate) struct RawMultipath {
    /// The paths, at most eight, each a list of links in the order in which packets cross them. Each has a controller of
    /// its own, with the flow's settings. One path is plain RTP, as with `path`.
    pub(crate) paths: Vec<At<Vec<At<String>>>>,
    /// Scheduler that chooses the path of each packet: "best-path", "round-robin", "earliest", "redundant", "fec-aware",
    /// "frame-aligned" or "thesis"; "earliest" if absent.
    pub(crate) scheduler: Option<At<String>>,
    /// Paths that share one flow's rate (RFC 8699): "none", "always", those "detected" behind one bottleneck (RFC 8382), or
    /// those whose delays are "correlated"; "none" if absent.
    pub(crate) coupling: Option<At<String>>,
    /// Parts in which coupled paths share their rate (P of RFC 8699), in the order of `paths`, above 0; 1 for those left out.
    #[serde(default)]
    pub(crate) priorities: Vec<At<f64>>,
    /// Plays frames by the skew of the paths (V. Singh's dissertation, section 6.1.1), instead of at `playout_deadline`, which
    /// bounds the delay; false if absent.
    #[serde(default)]
    pub(crate) skew_playout: bool,
    /// Preference of the application for each path, in the order of `paths`; { class = "normal" } if absent.
    #[serde(default)]
    pub(crate) policies: Vec<At<RawPathPolicy>>,
    /// Media rate that suffices: paths of a worse class carry media only while those of better ones have less. If absent,
    /// all but backups carry media together.
    pub(crate) sufficient_rate: Option<At<Rate>>,
}

/// Preference of the application for a path.
#[derive(Deserialize, Clone, Debug)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, expecting = "a table such as { class = \"backup\" }")]
#[cfg_attr(feature = "schema", schemars(rename = "PathPolicy"))]
pub(crate) struct RawPathPolicy {
    /// When it carries media: "preferred", "normal", "metered" or "backup"; "normal" if absent.
    pub(crate) class: Option<At<String>>,
    /// Part of its controller's rate that media may take, from 0.01 to 1; 1 if absent.
    pub(crate) share: Option<At<f64>>,
    /// RTP bytes after which it counts as a backup; no limit if absent.
    pub(crate) budget: Option<At<Size>>,
}
