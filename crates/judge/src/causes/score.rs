//! Answers beside the causes that were put into calls.

use super::kinds::Kind;
use super::made::MadeCall;
use super::{LENGTH, ONSET};
use serde::Serialize;
use std::collections::BTreeMap;
use weir_timeline::why::{Episode, EpisodeKind, Level};
use weir_timeline::{Direction, Recording};

/// An answer of this confidence is sure.
const SURE: f64 = 0.5;
/// Time before the cause's begin, and behind it, in which an episode is of it, in s.
const BEFORE: f64 = 1.0;
const BEHIND: f64 = 12.0;
/// Share of the rate before that is left in 3 s of an effect.
const FALLEN: f64 = 0.8;
const FALLEN_S: usize = 3;
/// Seconds before, of which the rate is the mean.
const PAST_S: usize = 6;
/// Causes that statistics of one second cannot tell apart.
const ALIKE: [&[&str]; 5] = [
    &["capacity-fell", "cross-traffic", "deep-queue", "capacity-varies"],
    &["random-loss", "burst-loss", "policer"],
    &["jitter", "stalls"],
    &["feedback-lost", "feedback-late"],
    &["sender-limited", "other-end-asked", "source-paused"],
];

/// Judgement of an answer.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "CauseVerdict"))]
pub enum Verdict {
    /// The first answer is right.
    Right,
    /// The first answer is another one, and sure.
    Wrong,
    /// The first answer is another one, or none, with little confidence.
    Unsure,
    /// There is an effect and no episode.
    Silent,
    /// The cause had no effect, and nothing is said.
    NoEffect,
    /// A healthy call of which nothing is said.
    Quiet,
    /// A sure answer in a healthy call, or before the cause.
    Alarm,
}

/// A call on one level of evidence.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CauseScore {
    /// Its number.
    pub call: u64,
    /// The cause.
    pub cause: Kind,
    /// How much of it.
    pub magnitude: String,
    /// The controller.
    pub controller: String,
    /// Whether it is of the half on which bounds of rules are chosen.
    pub chosen_on: bool,
    /// Evidence.
    pub level: Level,
    /// The first answer; `-` without one.
    pub said: String,
    /// Its confidence.
    pub confidence: f64,
    /// Its evidence.
    pub evidence: Vec<String>,
    /// Judgement.
    pub verdict: Verdict,
}

/// Whether what is sent falls behind the cause's begin.
fn has_effect(sender: &Recording) -> bool {
    let mut rates = vec![0.0; LENGTH as usize];
    for p in sender.packets.iter().filter(|p| p.direction == Direction::Sent) {
        if let Some(rate) = rates.get_mut((p.at.as_nanos() as f64 * 1e-9) as usize) {
            *rate += f64::from(p.size);
        }
    }
    let begin = ONSET as usize;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / of.len().max(1) as f64;
    let before = mean(&rates[begin - PAST_S..begin]);
    rates[begin..begin + BEHIND as usize].windows(FALLEN_S).any(|w| mean(w) < FALLEN * before)
}

/// The judgement of a call's episodes.
pub(super) fn score(call: &MadeCall, sender: &Recording, level: Level, episodes: &[Episode]) -> CauseScore {
    let kind = call.kind;
    let mut right = kind.answers().to_vec();
    if level == Level::Statistics {
        for group in ALIKE.iter().filter(|g| kind.answers().iter().any(|a| g.contains(a))) {
            right.extend(*group);
        }
    }
    let s = |ms: i64| ms as f64 * 1e-3;
    let sure = |e: &&Episode| e.causes.first().is_some_and(|c| c.name != "not-known" && c.confidence >= SURE);
    let alarm = episodes.iter().filter(sure).find(|e| kind == Kind::Healthy || s(e.to_ms) < ONSET - BEFORE);
    let alarm = alarm.filter(|_| !kind.from_start());
    let near = |e: &&Episode| {
        (kind.from_start() && kind != Kind::Healthy) || (s(e.to_ms) >= ONSET - BEFORE && s(e.from_ms) <= ONSET + BEHIND)
    };
    let of = alarm.or_else(|| episodes.iter().find(near));
    let first = of.and_then(|e| e.causes.first()).filter(|_| kind != Kind::Healthy || alarm.is_some());
    let said = first.map_or("-", |c| c.name.as_ref());
    // From the start there is no rate before: then a slow start or a fall shows the effect.
    let effect = if kind.from_start() {
        episodes.iter().any(|e| e.kind != EpisodeKind::Freeze)
    } else {
        kind != Kind::Healthy && has_effect(sender)
    };
    let verdict = match first {
        _ if alarm.is_some() => Verdict::Alarm,
        _ if kind == Kind::Healthy => Verdict::Quiet,
        Some(c) if right.contains(&c.name.as_ref()) => Verdict::Right,
        Some(c) if c.name != "not-known" && c.confidence >= SURE => Verdict::Wrong,
        _ if !effect => Verdict::NoEffect,
        Some(_) => Verdict::Unsure,
        None => Verdict::Silent,
    };
    CauseScore {
        call: call.number,
        cause: kind,
        magnitude: call.text.clone(),
        controller: call.controller.clone(),
        chosen_on: call.chosen_on,
        level,
        said: said.into(),
        confidence: first.map_or(0.0, |c| c.confidence),
        evidence: first.map_or(vec![], |c| c.evidence.clone()),
        verdict,
    }
}

/// Counts of a level over one half of the calls, or all.
#[derive(Clone, PartialEq, Debug, Default, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "CauseSummary"))]
pub struct Summary {
    /// Calls whose cause had an effect, or got an answer.
    pub judged: usize,
    /// Share of them whose first answer is right.
    pub right: f64,
    /// Calls, healthy ones and those without an effect included.
    pub calls: usize,
    /// Share of all calls with a sure answer that is wrong, or where there is no cause.
    pub wrong: f64,
    /// Healthy calls, and how many have a sure answer.
    pub healthy: usize,
    /// See `healthy`.
    pub alarmed: usize,
}

impl Summary {
    /// Counts of these scores on one level.
    pub fn of<'a>(scores: impl IntoIterator<Item = &'a CauseScore>, level: Level) -> Self {
        let of: Vec<&CauseScore> = scores.into_iter().filter(|s| s.level == level).collect();
        let count = |f: &dyn Fn(&CauseScore) -> bool| of.iter().filter(|s| f(s)).count();
        let is = |verdicts: &'static [Verdict]| move |s: &CauseScore| verdicts.contains(&s.verdict);
        use Verdict::{Alarm, NoEffect, Quiet, Right, Wrong};
        let healthy = |s: &CauseScore| s.cause == Kind::Healthy;
        let judged = count(&|s| !is(&[NoEffect, Quiet])(s) && !healthy(s));
        let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
        Self {
            judged,
            right: share(count(&is(&[Right])), judged),
            calls: of.len(),
            wrong: share(count(&is(&[Wrong, Alarm])), of.len()),
            healthy: count(&healthy),
            alarmed: count(&|s| healthy(s) && s.verdict == Alarm),
        }
    }
}

/// A row of the table of confusion: answers, with how often they are given.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Confusion {
    /// The cause.
    pub cause: Kind,
    /// Evidence.
    pub level: Level,
    /// Answers by their names, those without an effect left out.
    pub said: BTreeMap<String, usize>,
    /// Calls with this cause that had no effect.
    pub no_effect: usize,
}

/// The table of confusion on one level.
pub fn confusion<'a>(scores: impl IntoIterator<Item = &'a CauseScore>, level: Level) -> Vec<Confusion> {
    let of: Vec<&CauseScore> = scores.into_iter().filter(|s| s.level == level).collect();
    let row = |cause: Kind| {
        let mut row = Confusion { cause, level, said: BTreeMap::new(), no_effect: 0 };
        for score in of.iter().filter(|s| s.cause == cause) {
            match score.verdict {
                Verdict::NoEffect => row.no_effect += 1,
                _ => *row.said.entry(score.said.clone()).or_default() += 1,
            }
        }
        row
    };
    Kind::ALL.into_iter().map(row).filter(|r| r.no_effect > 0 || !r.said.is_empty()).collect()
}
