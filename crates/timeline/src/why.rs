//! Episodes of a call, and their causes.

use crate::Call;
use schemars::JsonSchema;
use serde::Serialize;

/// Kind of an episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EpisodeKind {
    /// The rate fell by a fifth or more for a second and more.
    Fall,
    /// A picture stood still.
    Freeze,
    /// The rate stayed low from the start.
    SlowStart,
}

/// A cause, with its confidence and its evidence.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize)]
pub struct Cause {
    /// Its name on every face, such as `capacity-fell`.
    pub name: &'static str,
    /// 0 to 1.
    pub confidence: f64,
    /// Numbers that speak for it.
    pub evidence: Vec<String>,
}

/// An episode.
#[derive(Clone, PartialEq, Debug, JsonSchema, Serialize)]
pub struct Episode {
    /// Begin, Unix time in ms.
    pub from_ms: i64,
    /// End, Unix time in ms.
    pub to_ms: i64,
    /// Its kind.
    pub kind: EpisodeKind,
    /// Causes, the likeliest first.
    pub causes: Vec<Cause>,
}

/// Finds the episodes of a call and ranks their causes.
pub fn explain(call: &Call) -> Vec<Episode> {
    let _ = call;
    Vec::new()
}
