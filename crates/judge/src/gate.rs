//! A gate for a build: budgets of controllers over scenarios, each passed, failed or undecided, without flapping.
//!
//! A file ([`GateFile`]) names controllers, suites of scenarios, and budgets as text. Each budget is a test on hit or miss of each
//! seed ([`Sprt`]), with the error that the file accepts divided by the number of budgets. Seeds are paired: controllers that are
//! compared meet the same draws. Runs go in rounds that depend on results alone, so that the same file, controllers and seed give the
//! same [`Report`] byte by byte, unless time or a stop ends them.

mod applied;
mod baseline;
mod budget;
mod file;
mod metrics;
mod output;
mod plan;
mod report;
mod sarif;
mod sprt;
mod why;
mod work;

pub use baseline::{Baseline, MAX_BASELINE};
pub use budget::BASELINE;
pub use file::{GateFile, MAX_FILE};
pub use plan::Plan;
pub use report::{Check, Ended, Report, digits};
pub use sprt::{KEPT, NOT_KEPT, Sprt, Tally, Verdict};
pub use work::{Answer, Work};

#[cfg(test)]
mod tests;
