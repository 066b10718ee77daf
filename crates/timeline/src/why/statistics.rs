//! Episodes and causes from statistics once a second.
//!
//! One second hides a queue's shape and the order of losses: what it cannot tell apart gets the likelier name with little
//! confidence. Both ends' statistics show more than one's.

mod evidence;
mod layers;
mod rules;
mod seconds;

use super::episodes::{self, Span};
use super::rules::{CONSEQUENCE, HEARD, Signals};
use super::{Episode, EpisodeKind, Explanation, Level};
use crate::{Call, Recording};
use evidence::Evidence;
use seconds::growth;
pub use seconds::{Second, Seconds};

/// Seconds that a rate before is the median of, over which one is the mean, and in which one is found first.
const BEFORE: usize = 8;
const SMOOTH: usize = 2;
const START: usize = 4;
/// Share of what a recording receives, below which what it sends is not looked at.
const LIGHT: f64 = 0.1;

/// The recordings whose statistics are those of the heavier sender, and of its receiver.
fn ends(call: &Call) -> (Option<&Recording>, Option<&Recording>) {
    let bytes = |r: &Recording, kind, name| r.series_of(kind, name).map(growth).sum::<f64>();
    let sends = |r: &Recording| bytes(r, "outbound-rtp", "bytesSent");
    let receives = |r: &Recording| bytes(r, "inbound-rtp", "bytesReceived");
    let heaviest = |of: &dyn Fn(&Recording) -> f64, but: Option<usize>| {
        let all = call.recordings.iter().enumerate().filter(|(i, r)| Some(*i) != but && of(r) > 0.0);
        all.max_by(|a, b| of(a.1).total_cmp(&of(b.1))).map(|(i, _)| i)
    };
    let sender = heaviest(&sends, None);
    let receiver = heaviest(&receives, sender).or_else(|| {
        let alone = sender.filter(|i| sends(&call.recordings[*i]) < LIGHT * receives(&call.recordings[*i]));
        if sender.is_none() { heaviest(&receives, None) } else { alone }
    });
    let sender = sender.filter(|i| Some(*i) != receiver);
    let at = |i: Option<usize>| i.and_then(|i| call.recordings.get(i));
    (at(sender), at(receiver))
}

/// A call's seconds, and whether they are a sender's; else a receiver's. `None`: no recording has statistics of streams.
pub fn seconds(call: &Call) -> Option<(Seconds, bool)> {
    let (sender, receiver) = ends(call);
    Some((Seconds::of(sender, receiver)?, sender.is_some()))
}

/// The episodes of a call of which only statistics are known.
pub(super) fn explain(call: &Call) -> Explanation {
    let (sender, receiver) = ends(call);
    let found = direction(call, sender, receiver, true);
    // The same end sees the pictures of the other direction.
    let pictures = if receiver.is_none() { direction(call, None, sender, false) } else { None };
    let level = if found.is_some() || pictures.is_some() { Level::Statistics } else { Level::None };
    let mut episodes: Vec<Episode> = [found, pictures].into_iter().flatten().flatten().collect();
    episodes.sort_by_key(|e| e.from_ms);
    Explanation { level, episodes, missing: None }
}

fn direction(
    call: &Call,
    sender: Option<&Recording>,
    receiver: Option<&Recording>,
    falls: bool,
) -> Option<Vec<Episode>> {
    let seconds = Seconds::of(sender, receiver)?;
    let signals = Signals::of(call, seconds.zero);
    let rates: Vec<f64> = seconds.rows.iter().map(|r| r.kbps).collect();
    let mut spans = Vec::new();
    if falls {
        let first = seconds.rows.get(..10).unwrap_or(&seconds.rows);
        let known = first.iter().filter(|r| r.lost.is_some()).map(|r| r.sent.max(r.arrived.unwrap_or(0.0))).sum();
        let lost = first.iter().filter_map(|r| r.lost).sum();
        spans.extend(episodes::slow_start(&rates, 1.0, known, lost));
        spans.extend(episodes::falls(&rates, 1.0, SMOOTH, BEFORE, START));
    }
    let stood = seconds.rows.iter().enumerate().filter(|(_, r)| r.freezes.is_some_and(|n| n >= 0.5));
    let stood = stood.map(|(i, r)| (i as f64 + 1.0 - r.frozen_s.clamp(0.2, 1.0 + i as f64), i as f64 + 1.0));
    spans.extend(episodes::freezes(stood, &rates, 1.0, false).into_iter().map(|span| {
        let (from, to) = (span.from as usize, (span.to.ceil() as usize).min(seconds.rows.len()));
        let rows = seconds.rows.get(from..to).unwrap_or_default();
        let count = rows.iter().filter_map(|r| r.freezes).sum::<f64>();
        let sum = rows.iter().map(|r| r.frozen_s).sum::<f64>();
        Span { frozen: (sum > 0.0).then_some((count.round() as u32, sum)), ..span }
    }));
    Some(episodes::explained(spans, seconds.zero, |span: &Span| {
        let mut evidence = Evidence::around(&seconds, span);
        evidence.layer = layers::stopped(sender, seconds.zero, span);
        let mut causes = if span.kind == EpisodeKind::Freeze { vec![] } else { signals.causes(span, false) };
        causes.extend(rules::causes(&evidence, span));
        // As from packets.
        let silent = causes.iter().any(|c| c.name == "feedback-lost" && c.confidence > CONSEQUENCE);
        let there = evidence.dark_heard_s >= HEARD && causes.iter().any(|c| c.name == "outage");
        let is_consequence = silent || there;
        causes
            .iter_mut()
            .filter(|c| is_consequence && c.name == "route-change")
            .for_each(|c| c.confidence = CONSEQUENCE);
        causes
    }))
}
