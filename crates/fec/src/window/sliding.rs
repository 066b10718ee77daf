//! Repair packets of sliding windows in a repair window.

use super::RepairWindow;
use super::equations::{self, Context, Equations, NewEquation};
use super::sources::Knowledge;
use crate::{Combination, Coverage, Repair};

impl RepairWindow {
    /// The equations, and what they use of the rest.
    pub(super) fn system(&mut self) -> (&mut Equations, Context<'_>) {
        let Self { equations, sources, repair_pool: pool, limits, counts, .. } = self;
        (equations, Context { sources, pool, limit: limits.repair_bytes, verify: limits.verify, counts })
    }

    /// Takes a repair packet of a sliding window with missing packets, all others of which are available.
    pub(super) fn on_combination(&mut self, repair: &Repair<'_>, combination: Combination, missing: Coverage) {
        let Repair { coverage, symbol, .. } = *repair;
        let (equations, mut context) = self.system();
        equations.advance(coverage.last().unwrap_or_default(), &mut context);
        if missing.first().is_some_and(|first| first < equations.low()) {
            self.counts.late += 1;
            self.give_up(missing);
            return;
        }
        let new = NewEquation { at: self.now, coverage, missing, combination, symbol };
        let Some(len) = self.equations.len_of(&new, &self.sources) else {
            self.counts.inconsistent += 1;
            return;
        };
        if self.limits.repairs == 0 {
            self.counts.rejected += 1;
            return;
        }
        while self.waiting() >= self.limits.repairs {
            self.drop_oldest();
        }
        let buffer = loop {
            if let Some(buffer) = equations::room(len, &mut self.repair_pool, self.limits.repair_bytes) {
                break buffer;
            }
            if self.waiting() == 0 {
                self.counts.rejected += 1;
                return;
            }
            self.drop_oldest();
        };
        let (equations, mut context) = self.system();
        equations.add(&new, buffer, &mut context);
    }

    /// Takes the packets that the equations determine; returns whether there were any.
    pub(super) fn take_solved(&mut self) -> bool {
        let mut progress = false;
        while let Some(equation) = self.equations.take_solved() {
            let (sequence, symbol) = equation.solution();
            if self.sources.knowledge(sequence) == Knowledge::Unseen {
                self.counts.used += 1;
                progress |= self.keep_recovered(sequence, symbol);
            } else {
                // It arrived, but was not kept.
                self.counts.unused += 1;
            }
            let (equations, mut context) = self.system();
            equations.recycle(equation, &mut context);
        }
        progress
    }
}
