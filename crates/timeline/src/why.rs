//! Episodes of a call, and their causes.
//!
//! An episode is a fall of the sent rate by a fifth or more for a second and more, a picture that stood still, or a slow
//! start: one with lasting loss, or one that comes to half of the usual rate after 6 s. Each rule (`why/rules/`,
//! `why/statistics/rules.rs`) looks at the numbers around it and gives a cause with its evidence and a confidence, or
//! nothing; the causes are ranked by confidence, and `not-known` is an answer. Rules know three levels of evidence: packets at both
//! ends, one log with feedback, and statistics once a second. A call is looked at on the best that it has.

mod bins;
mod curves;
mod drift;
mod episodes;
mod evidence;
mod frames;
mod layers;
mod one_end;
mod own;
mod passage;
mod policing;
mod rules;
mod statistics;
mod waiting;

pub use curves::{Column, Curves, curves};
pub use own::{QUANTITIES, RuleError, Rules};
pub use passage::{Answer, Fate, Passage, Passages, passages};
pub use statistics::{Second, Seconds, seconds};

use crate::{Call, Recording};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Kind of an episode.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cause {
    /// Its name on every face, such as `capacity-fell`.
    pub name: Cow<'static, str>,
    /// 0 to 1.
    pub confidence: f64,
    /// Numbers that speak for it.
    pub evidence: Vec<String>,
}

/// An episode.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Episode {
    /// Begin, Unix time in ms.
    pub from_ms: i64,
    /// End, Unix time in ms.
    pub to_ms: i64,
    /// Its kind.
    pub kind: EpisodeKind,
    /// Freezes in it, where it is one of pictures and the times of single pictures are known: freezes that are near are one episode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub freezes: Option<u32>,
    /// Time that the picture stood still in it, in ms, where the same is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frozen_ms: Option<i64>,
    /// Causes, the likeliest first.
    pub causes: Vec<Cause>,
}

/// Level of the evidence that a call is looked at on.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// No rate over time is in it: nothing can be found.
    None,
    /// One end's packets, without feedback on them: episodes, and few causes.
    OneEnd,
    /// Statistics, about once a second.
    Statistics,
    /// One end's packets, with feedback on them.
    Log,
    /// Packets at both ends.
    Packets,
}

/// Findings in a call, and the evidence that they rest on.
#[derive(Clone, PartialEq, Debug)]
pub struct Explanation {
    /// The evidence.
    pub level: Level,
    /// Episodes in order of time.
    pub episodes: Vec<Episode>,
    /// Evidence that is missing for causes, and how to get it.
    pub missing: Option<String>,
}

/// Finds the episodes of a call and ranks their causes.
pub fn explain(call: &Call) -> Explanation {
    let mut found = on_the_best_level(call);
    // The last of the intervals that rates are counted in goes on behind the end.
    if let Some(end) = call.recordings.iter().filter_map(Recording::span).map(|span| span.1.as_millis()).max() {
        found.episodes.iter_mut().for_each(|e| e.to_ms = e.to_ms.min(end).max(e.from_ms));
    }
    found
}

fn on_the_best_level(call: &Call) -> Explanation {
    let Some(passages) = passage::passages(call) else { return without_fates(call) };
    let level = if passages.captured { Level::Packets } else { Level::Log };
    let bins = bins::bins(&passages);
    let signals = rules::Signals::of(call, passages.zero);
    let spans = episodes::find(&bins, &frames::frames(call, &passages));
    let episodes = episodes::explained(spans, passages.zero, |span| {
        let mut evidence = evidence::Evidence::around(&passages, &bins, span);
        (evidence.estimate, evidence.told) = (signals.estimate(span), signals.told);
        rules::causes(&evidence, &signals, span)
    });
    Explanation { level, episodes, missing: None }
}

/// The same of a call whose packets' fates are not known.
fn without_fates(call: &Call) -> Explanation {
    let mut found = statistics::explain(call);
    if found.level == Level::None {
        found = one_end::explain(call).unwrap_or(found);
    }
    found.missing = one_end::missing(call, found.level);
    found
}

/// Causes in order of confidence; `not-known` where there is none.
fn ranked(mut causes: Vec<Cause>) -> Vec<Cause> {
    causes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    if causes.is_empty() {
        let evidence = vec!["no rule recognises the numbers around it".into()];
        causes.push(Cause { name: "not-known".into(), confidence: 0.0, evidence });
    }
    causes
}

#[cfg(test)]
mod tests;
