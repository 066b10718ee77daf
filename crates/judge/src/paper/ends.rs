//! Orders and claims at the ends of open conditions: those that are lost as run, and kept at an end; and the whole paper's scores at
//! each end.

use super::claims::{self, ClaimSpec, Elsewhere};
use super::{Cell, Claim, Condition, EndScore, LostOrder, Paper, Verdict, is_near};
use weir_lab::results::RunResult;
use weir_report::published::orders;

/// The orders between algorithms that the cells do not have. Where the order is kept at an end of a condition, with both
/// numbers at this end, or the one that does not depend on the condition as run, the first such end is named.
pub(super) fn lost_orders(paper: &Paper, cells: &[Cell], runs: &[RunResult]) -> Vec<LostOrder> {
    let lost = orders::pairs(cells).into_iter().filter(|p| !p.kept);
    let named = |pair: orders::Pair| {
        let both = pair.cells.map(|i| &cells[i]);
        let at = |condition: &Condition, end: usize| {
            let numbers = pair.cells.map(|i| (condition.measured_at(end, paper, i, runs), cells[i].measured));
            if numbers.iter().all(|(there, _)| there.is_none()) {
                return false;
            }
            match numbers.map(|(there, here)| there.or(here)) {
                [Some(a), Some(b)] => orders::is_kept(both, [a, b]),
                _ => false,
            }
        };
        orders::lost(both, first_end(paper, at))
    };
    lost.filter_map(named).collect()
}

/// A claim's result; if it does not hold, with the first end at which it does.
pub(super) fn claim(paper: &Paper, spec: &ClaimSpec, runs: &[RunResult]) -> Claim {
    let mut claim = claims::check(&paper.name, spec, runs, Elsewhere::default());
    if claim.holds == Some(false) {
        claim.holds_at = first_end(paper, |condition, end| claim_at(paper, spec, condition, end, runs) == Some(true));
    }
    claim
}

/// Whether a claim holds at an end; `None` if the end ran none of its scenarios.
fn claim_at(paper: &Paper, spec: &ClaimSpec, condition: &Condition, end: usize, runs: &[RunResult]) -> Option<bool> {
    let suffix = condition.suffix(end);
    let variant = match &condition.ends[end].variants[..] {
        [only] => Some(only.as_str()),
        _ => None,
    };
    let ran =
        |scenario: &str| runs.iter().any(|r| r.scenario.rsplit('/').next() == Some(&format!("{scenario}{suffix}")));
    if suffix.is_empty() || !spec.checks.iter().any(|c| ran(&c.scenario)) {
        return None;
    }
    claims::check(&paper.name, spec, runs, Elsewhere { suffix: &suffix, variant }).holds
}

/// The scores of the whole paper at each end that has runs: its numbers as that end measures them, the others as run.
pub(super) fn scores(paper: &Paper, cells: &[Cell], claims: &[Claim], runs: &[RunResult]) -> Vec<EndScore> {
    let mut scores = Vec::new();
    for condition in &paper.explained {
        for (end, e) in condition.ends.iter().enumerate() {
            let there: Vec<Option<f64>> =
                (0..cells.len()).map(|i| condition.measured_at(end, paper, i, runs)).collect();
            if there.iter().all(Option::is_none) {
                continue;
            }
            let at_end: Vec<Cell> = (cells.iter().zip(&there))
                .map(|(c, there)| {
                    let measured = there.or(c.measured);
                    let near = measured.map(|m| is_near(&c.metric, &c.unit, c.published, m));
                    let verdict = near.map(|near| if near { Verdict::Near } else { Verdict::Far });
                    Cell { measured, verdict, ..c.clone() }
                })
                .collect();
            let near = |c: &Cell| c.verdict == Some(Verdict::Near);
            let covered = |cells: &[Cell]| cells.iter().zip(&there).filter(|(c, t)| t.is_some() && near(c)).count();
            let held = |(spec, as_run): (&ClaimSpec, &Claim)| {
                claim_at(paper, spec, condition, end, runs).or(as_run.holds) == Some(true)
            };
            scores.push(EndScore {
                id: condition.id.clone(),
                end: e.name.clone(),
                as_run: e.is_as_run(),
                covered: there.iter().flatten().count(),
                covered_near_as_run: covered(cells),
                covered_near: covered(&at_end),
                near: at_end.iter().filter(|c| near(c)).count(),
                orders_kept: orders::pairs(&at_end).iter().filter(|p| p.kept).count(),
                claims_kept: paper.claims.iter().zip(claims).filter(|both| held(*both)).count(),
            });
        }
    }
    scores
}

/// The first end of a condition that satisfies a predicate: the condition's short name, and the end in words.
fn first_end(paper: &Paper, holds: impl Fn(&Condition, usize) -> bool) -> Option<[String; 2]> {
    let ends = paper.explained.iter().flat_map(|c| [(c, 0), (c, 1)]);
    ends.filter(|(c, end)| holds(c, *end)).map(|(c, end)| [c.id.clone(), c.ends[end].name.clone()]).next()
}
