//! A campaign: candidates evaluated one after the other, all of them kept.

use super::super::rows::{Board, Order, Row, Trace};
use super::judgement::{Judgement, Start};
use super::space::{Parameter, Space};
use serde::Serialize;
use std::path::Path;
use weir_lab::run::RunOptions;
use weir_lab::scenario::InputError;
use weir_report::atomic_write::write_atomically;

/// A candidate and how good it is.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Evaluation {
    /// The parameters' values, in their order.
    pub values: Vec<f64>,
    /// How good it is.
    pub judgement: Judgement,
}

/// Start and best on traces that the search has not seen.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Validation {
    /// Traces.
    pub traces: usize,
    /// The start.
    pub start: Judgement,
    /// The best candidate of the search.
    pub best: Judgement,
}

/// Results of a campaign.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The start, as the scoreboard names it.
    pub start: String,
    /// The best candidate, likewise: the first evaluation if none was better.
    pub best: String,
    /// The parameters searched.
    pub parameters: Vec<Parameter>,
    /// Traces of the search.
    pub traces: usize,
    /// Rows of the search.
    pub rows: Vec<String>,
    /// Runs of each.
    pub runs: u32,
    /// All candidates, in the order of the search; the first is the start.
    pub evaluations: Vec<Evaluation>,
    /// The number of the best of these.
    pub best_at: usize,
    /// Start and best on other traces; absent if there are none or the search was stopped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<Validation>,
    /// Whether the search ended before its last evaluation.
    pub stopped: bool,
}

impl Report {
    /// Writes it as JSON; the folder is made. The file is whole or not there.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(self)?;
        write_atomically(path, |out| writeln!(out, "{text}"))
    }
}

/// A search in progress.
#[derive(Debug)]
pub struct Campaign<'a> {
    space: &'a Space,
    traces: &'a [Trace],
    rows: &'a [Row],
    runs: u32,
    threads: usize,
    start: Option<Start>,
    evaluations: Vec<Evaluation>,
}

impl<'a> Campaign<'a> {
    /// A campaign without evaluations, over traces and rows, with so many runs of each.
    pub fn new(space: &'a Space, traces: &'a [Trace], rows: &'a [Row], runs: u32, threads: usize) -> Self {
        Self { space, traces, rows, runs, threads, start: None, evaluations: Vec::new() }
    }

    /// Evaluates a point of the space, and keeps what it finds. The first one is the start that others are compared with:
    /// give zeros. `None` if the stop flag ended it. Errors: a controller that cannot be made; a run that failed.
    pub fn evaluate(&mut self, point: &[f64], options: &RunOptions<'_>) -> Result<Option<f64>, InputError> {
        let values = self.space.values(point);
        let Some(board) = self.board(&[self.space.named(&values)], self.traces, self.rows, options)? else {
            return Ok(None);
        };
        let (judgement, goals) = Judgement::of(&board, 0, self.start.as_ref());
        self.start.get_or_insert(goals);
        let score = judgement.score;
        self.evaluations.push(Evaluation { values, judgement });
        Ok(Some(score))
    }

    fn board(
        &self,
        controllers: &[String],
        traces: &[Trace],
        rows: &[Row],
        options: &RunOptions<'_>,
    ) -> Result<Option<Board>, InputError> {
        let order = Order { rows, traces, controllers, runs: self.runs, live: None };
        let board = order.measure(self.threads, options, &|_| {})?;
        match board.failed.first() {
            Some(failed) => Err(InputError::whole("a run of the search", failed.clone())),
            None => Ok((board.undone == 0).then_some(board)),
        }
    }

    /// The evaluations so far.
    pub fn evaluations(&self) -> &[Evaluation] {
        &self.evaluations
    }

    /// The number of the best evaluation, the first of equals; 0 without any.
    pub fn best_at(&self) -> usize {
        let score = |i: usize| self.evaluations[i].judgement.score;
        (1..self.evaluations.len()).fold(0, |best, i| if score(i) > score(best) { i } else { best })
    }

    /// Ends the search: start and best run once more, on traces that it has not seen. `stopped`: without that.
    pub fn finish(self, validation: &[Trace], stopped: bool, options: &RunOptions<'_>) -> Result<Report, InputError> {
        let name = |at: usize| self.evaluations.get(at).map(|e| self.space.named(&e.values));
        let best_at = self.best_at();
        let (start, best) = (name(0).unwrap_or_default(), name(best_at).unwrap_or_default());
        let mut ended_early = stopped;
        let mut seen = None;
        if !validation.is_empty() && !stopped && !self.evaluations.is_empty() {
            // One entry if nothing was better than the start.
            let both = if best_at == 0 { vec![start.clone()] } else { vec![start.clone(), best.clone()] };
            match self.board(&both, validation, &[], options)? {
                Some(board) => {
                    let of = |at: usize| Judgement::of(&board, at, None).0;
                    seen = Some(Validation { traces: validation.len(), start: of(0), best: of(both.len() - 1) });
                }
                None => ended_early = true,
            }
        }
        Ok(Report {
            start,
            best,
            parameters: self.space.parameters().to_vec(),
            traces: self.traces.len(),
            rows: self.rows.iter().map(|r| r.key.clone()).collect(),
            runs: self.runs,
            evaluations: self.evaluations,
            best_at,
            validation: seen,
            stopped: ended_early,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::generated::generated;
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use weir_cc::Registry;

    #[test]
    fn the_best_of_the_evaluations_is_found_and_validated() {
        let registry = Registry::builtin();
        let stop = AtomicBool::new(false);
        let options = RunOptions { registry: &registry, series: true, stop: &stop, progress: &|_| {} };
        let space = Space::new("sluice", &["growth_share".to_owned()], &registry).expect("known");
        let (training, others) = (generated(1, 1), generated(1, 2));
        let mut campaign = Campaign::new(&space, &training, &[], 1, 1);
        let start = campaign.evaluate(&[0.0], &options).expect("runs").expect("not stopped");
        // Growth to a tenth of what the link shows, or less.
        let low = campaign.evaluate(&[-10.0], &options).expect("runs").expect("not stopped");
        assert!(start > low, "{start} {low}");
        assert_eq!(campaign.best_at(), 0);
        let report = campaign.finish(&others, false, &options).expect("runs");
        assert_eq!((report.best.as_str(), report.stopped), ("sluice:growth_share=1.05", false));
        let validation = report.validation.expect("made");
        assert_eq!((validation.traces, &validation.start), (1, &validation.best));
        assert!(validation.best.worst_tenth.is_some_and(|w| w > 0.5), "{validation:?}");
        stop.store(true, Ordering::Relaxed);
        let mut stopped = Campaign::new(&space, &training, &[], 1, 1);
        assert_eq!(stopped.evaluate(&[0.0], &options).expect("no run"), None);
        let report = stopped.finish(&others, true, &options).expect("no run");
        assert!(report.stopped && report.best.is_empty() && report.validation.is_none());
    }
}
