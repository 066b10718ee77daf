//! Orders and claims at the ends of open conditions: those that are lost as run, and kept at an end.

use super::claims::{self, ClaimSpec, Elsewhere};
use super::{Cell, Claim, LostOrder, Paper};
use weir_lab::results::RunResult;
use weir_report::published::orders;

/// The orders between algorithms that the cells do not have. Where the order is kept at an end of a condition, with both
/// numbers at this end, or the one that does not depend on the condition as run, the first such end is named.
pub(super) fn lost_orders(paper: &Paper, cells: &[Cell], runs: &[RunResult]) -> Vec<LostOrder> {
    let lost = orders::pairs(cells).into_iter().filter(|p| !p.kept);
    let named = |pair: orders::Pair| {
        let both = pair.cells.map(|i| &cells[i]);
        let at = |condition: &super::Condition, end: usize| {
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
        claim.holds_at = first_end(paper, |condition, end| {
            let suffix = condition.suffix(end);
            let variant = match &condition.ends[end].variants[..] {
                [only] => Some(only.as_str()),
                _ => None,
            };
            let ran = |scenario: &str| {
                runs.iter().any(|r| r.scenario.rsplit('/').next() == Some(&format!("{scenario}{suffix}")))
            };
            let concerns = !suffix.is_empty() && spec.checks.iter().any(|c| ran(&c.scenario));
            let there = Elsewhere { suffix: &suffix, variant };
            concerns && claims::check(&paper.name, spec, runs, there).holds == Some(true)
        });
    }
    claim
}

/// The first end of a condition that satisfies a predicate: the condition's short name, and the end in words.
fn first_end(paper: &Paper, holds: impl Fn(&super::Condition, usize) -> bool) -> Option<[String; 2]> {
    let ends = paper.explained.iter().flat_map(|c| [(c, 0), (c, 1)]);
    ends.filter(|(c, end)| holds(c, *end)).map(|(c, end)| [c.id.clone(), c.ends[end].name.clone()]).next()
}
