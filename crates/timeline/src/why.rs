//! Episodes of a call, and their causes.
//!
//! An episode is a fall of the sent rate by a fifth or more for a second and more, or a start with lasting loss. Each rule
//! (`why/rules/`) looks at the numbers around it and gives a cause with its evidence and a confidence, or nothing; the
//! causes are ranked by confidence, and `not-known` is an answer. Rules know three levels of evidence: packets at both
//! ends, one log with feedback, and statistics once a second. A call is looked at on the best that it has.

mod bins;
mod episodes;
mod evidence;
mod passage;
mod rules;
mod statistics;

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
    let Some(passages) = passage::passages(call) else { return statistics::explain(call) };
    let bins = bins::bins(&passages);
    let signals = rules::Signals::of(call, passages.zero);
    let spans = episodes::find(&bins);
    let episode = |span: &episodes::Span| {
        let evidence = evidence::Evidence::around(&passages, &bins, span);
        let ms = |at: f64| (passages.zero + at * 1000.0) as i64;
        Episode {
            from_ms: ms(span.from),
            to_ms: ms(span.to),
            kind: span.kind,
            causes: ranked(rules::causes(&evidence, &signals, span)),
        }
    };
    spans.iter().map(episode).collect()
}

/// Causes in order of confidence; `not-known` where there is none.
fn ranked(mut causes: Vec<Cause>) -> Vec<Cause> {
    causes.sort_by(|a, b| b.confidence.total_cmp(&a.confidence));
    if causes.is_empty() {
        let evidence = vec!["no rule recognises the numbers around it".into()];
        causes.push(Cause { name: "not-known", confidence: 0.0, evidence });
    }
    causes
}

#[cfg(test)]
mod tests;
