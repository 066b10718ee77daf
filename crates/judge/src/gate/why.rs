//! Reasons of budgets that fail: the worst seed once more, with its packets, and a plot of it.

use super::plan::{Other, Plan};
use super::report::Report;
use super::sprt::Verdict;
use std::io;
use std::path::{Path, PathBuf};
use weir_lab::results::RunResult;
use weir_lab::run::{RunError, RunOptions, run};
use weir_report::explain::{explain, mbps};
use weir_report::figures::{Format, Quantity, over_time, write};
use weir_report::recorded::{self, RecordedFlow};
use weir_timeline::why::{self, Episode, EpisodeKind};

/// Most runs that are explained, one for each controller, scenario and seed.
const MOST_EXPLAINED: usize = 12;
/// Most plots.
const MOST_PLOTS: usize = 3;
/// Length of the spans in which a rate is explained where packets show no episode, in s.
const STEP: f64 = 5.0;

impl Plan<'_> {
    /// Adds a sentence to budgets that fail: the longest episode of the worst seed with its likeliest cause. With `beside`, plots
    /// of up to three are written next to that file; their paths are returned. A stop leaves the rest without a sentence.
    ///
    /// # Errors
    /// A plot cannot be written.
    pub fn explain(
        &self,
        report: &mut Report,
        options: &RunOptions<'_>,
        beside: Option<&Path>,
    ) -> io::Result<Vec<PathBuf>> {
        let mut known: Vec<(usize, u64, Option<String>, Option<String>)> = Vec::new();
        let mut written = Vec::new();
        for (asked, check) in self.asked.iter().zip(&mut report.checks) {
            let Some(seed) = check.worst_seed.filter(|_| check.verdict == Verdict::Fails && check.broken.is_none())
            else {
                continue;
            };
            if let Some((_, _, why, plot)) = known.iter().find(|k| (k.0, k.1) == (asked.place, seed)) {
                (check.why, check.plot) = (why.clone(), plot.clone());
                continue;
            }
            if known.len() >= MOST_EXPLAINED {
                continue;
            }
            let place = &self.places[asked.place];
            let options = RunOptions { series: true, ..*options };
            let (result, flows) = match recorded::run(&place.scenario, seed, &options) {
                Ok(made) => made,
                Err(RunError::Stopped { .. }) => break,
                // It ran before, and a process that fails only now has given its numbers.
                Err(_) => continue,
            };
            check.why = sentence(&result, &flows).map(|words| format!("seed {seed}: {words}"));
            if let Some(file) = beside.filter(|_| written.len() < MOST_PLOTS) {
                let path = plot_path(file, written.len() + 1);
                let other = match asked.other {
                    Other::Place(other) => run(&self.places[other].scenario, seed, &options).ok(),
                    _ => None,
                };
                let runs: Vec<&RunResult> = std::iter::once(&result).chain(&other).collect();
                let mut plots = over_time(Quantity::Rate, &runs);
                plots.extend(over_time(Quantity::Delay, &runs));
                write(&path, &format!("{}, seed {seed}", check.title()), &plots, Format::Svg)?;
                check.plot = path.file_name().map(|name| name.to_string_lossy().into_owned());
                written.push(path);
            }
            known.push((asked.place, seed, check.why.clone(), check.plot.clone()));
        }
        Ok(written)
    }
}

/// Beside `gate.md`: `gate-plot-1.svg`.
fn plot_path(file: &Path, number: usize) -> PathBuf {
    let stem = file.file_stem().map_or_else(|| "gate".into(), |s| s.to_string_lossy().into_owned());
    file.with_file_name(format!("{stem}-plot-{number}.svg"))
}

/// The longest episode of the flows whose cause is known; else the longest time in which a target hardly moved, or the longest
/// episode.
fn sentence(result: &RunResult, flows: &[RecordedFlow]) -> Option<String> {
    let found: Vec<(&str, Vec<Episode>)> =
        flows.iter().map(|f| (f.name.as_str(), why::explain(&f.call).episodes)).collect();
    let longest = |is: fn(&Episode) -> bool| {
        let all = found.iter().flat_map(|(flow, episodes)| episodes.iter().map(move |e| (*flow, e)));
        // The first of equally long ones.
        let all = all.filter(|(_, e)| is(e));
        let longest = all.reduce(|a, b| if b.1.to_ms - b.1.from_ms > a.1.to_ms - a.1.from_ms { b } else { a });
        longest.map(|(flow, episode)| in_words(flow, episode))
    };
    longest(is_known).or_else(|| of_target(result)).or_else(|| longest(|_| true))
}

fn is_known(episode: &Episode) -> bool {
    episode.causes.first().is_some_and(|c| c.confidence > 0.0)
}

fn in_words(flow: &str, episode: &Episode) -> String {
    let what = match episode.kind {
        EpisodeKind::Fall => "the rate was low",
        EpisodeKind::Freeze => "the picture froze",
        EpisodeKind::SlowStart => "the start was slow",
    };
    let [from, to] = [episode.from_ms, episode.to_ms].map(|ms| ms as f64 / 1e3);
    let cause = match episode.causes.first() {
        Some(c) if is_known(episode) => {
            format!("most likely {} ({:.0} %): {}", c.name, c.confidence * 100.0, c.evidence.join("; "))
        }
        _ => "and no rule knows the cause".into(),
    };
    format!("{flow}, {from:.1} to {to:.1} s: {what}, {cause}")
}

fn of_target(result: &RunResult) -> Option<String> {
    let flows = explain(result.series.as_ref()?, STEP, &|_| None);
    let spans = flows.iter().flat_map(|f| f.spans.iter().map(move |s| (&f.flow, s)));
    let (flow, span) = spans.reduce(|a, b| if b.1.to_s - b.1.from_s > a.1.to_s - a.1.from_s { b } else { a })?;
    let (from, to, rate) = (span.from_s, span.to_s, mbps(span.to_bps));
    Some(format!("{flow}, {from:.1} to {to:.1} s: the target came to {rate} Mbit/s, {}", span.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_timeline::why::Cause;

    #[test]
    fn an_episode_is_one_sentence() {
        let cause = Cause { name: "capacity-fell".into(), confidence: 0.85, evidence: vec!["2 to 1 Mbit/s".into()] };
        let mut episode = Episode {
            from_ms: 12_000,
            to_ms: 20_500,
            kind: EpisodeKind::Fall,
            freezes: None,
            frozen_ms: None,
            causes: vec![cause],
        };
        let said = in_words("video", &episode);
        assert_eq!(said, "video, 12.0 to 20.5 s: the rate was low, most likely capacity-fell (85 %): 2 to 1 Mbit/s");
        episode.causes.clear();
        assert!(in_words("video", &episode).ends_with("and no rule knows the cause"));
        assert_eq!(plot_path(Path::new("out/gate.md"), 2), Path::new("out/gate-plot-2.svg"));
    }
}
