//! Episodes of a call and their causes, as text.

use crate::tables::fold;
use std::fmt::Write as _;
use weir_timeline::why::{Episode, EpisodeKind, Level};

/// An episode's kind in words.
pub(crate) fn kind(episode: &Episode) -> String {
    match (episode.kind, episode.freezes, episode.frozen_ms) {
        (EpisodeKind::Fall, ..) => "the rate fell".into(),
        (EpisodeKind::SlowStart, ..) => "the start was slow".into(),
        (EpisodeKind::Freeze, Some(n), Some(ms)) if n > 1 => {
            format!("the picture froze {n} times, {:.1} s in all", ms as f64 / 1e3)
        }
        (EpisodeKind::Freeze, ..) => "the picture froze".into(),
    }
}

/// A line an episode and one a cause, after the evidence that they rest on and what is `missing`. `start` is the zero of the printed
/// times, in ms.
pub(crate) fn text(level: Level, missing: Option<&str>, episodes: &[Episode], start: i64) -> String {
    let missing = missing.map_or_else(String::new, |m| fold(&format!("{m}.")) + "\n");
    let evidence = match level {
        Level::None => return format!("No rate over time is in it: episodes and causes are not known.\n{missing}"),
        Level::OneEnd => "one end's packets, without feedback on them",
        Level::Statistics => "statistics, which hide what happens within a second",
        Level::Log => "one end's packets and the feedback on them",
        Level::Packets => "packets at both ends",
    };
    let mut out = format!("Evidence: {evidence}.\n{missing}");
    if episodes.is_empty() {
        out.push_str("No fall of the rate, no freeze and no slow start.\n");
    }
    for episode in episodes {
        // A part of a millisecond before the start is no time below zero.
        let second = |ms: i64| format!("{:.1}", ((ms - start) as f64 / 100.0).round() / 10.0 + 0.0);
        let kind = kind(episode);
        let _ = writeln!(out, "{} to {} s: {kind}", second(episode.from_ms), second(episode.to_ms));
        for cause in &episode.causes {
            let evidence = cause.evidence.join("; ");
            out.push_str(&fold(&format!("  {} ({:.0} %): {evidence}", cause.name, cause.confidence * 100.0)));
            out.push('\n');
        }
    }
    out
}
