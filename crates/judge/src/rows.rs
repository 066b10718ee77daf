//! The scoreboard: every controller over the same rows, each with goals.
//!
//! A row is a scenario and the numbers that are read from its runs ([`rows`]), or a recorded capacity ([`read_traces`]). "Reached"
//! and "back" mean that goodput over a window (0.2 to 1 s) is that high, and over the next 2 s 90 % of it. A value is the mean
//! over runs with different seeds, and "never" where at least half of them say so.

mod agreement;
mod board;
mod bounds;
mod daily;
mod fluid;
mod groups;
mod harder;
mod list;
mod measures;
mod page;
mod reading;
mod results;
mod row;
mod score;
mod text;
mod trace_row;
mod traces;

pub(crate) use board::variants;
pub(crate) use reading::jain;
pub(crate) use score::mean_of;

pub use agreement::{Agreement, agreements};
pub use board::{LIVE, Maker, Order, scenario, write_rows};
pub use fluid::Fluid;
pub use page::{Page, write};
pub use reading::Reading;
pub use results::{Board, ControllerScore, FluidScores, Furthest, MetricScores, RowKind, RowScores, Tally};
pub use row::{Metric, Row, Source};
pub use score::{Better, shown};
pub use traces::{Trace, Traces, read_traces};

/// All rows, in their order.
pub fn rows() -> Vec<Row> {
    let mut rows = list::rows();
    rows.extend(harder::rows());
    rows.extend(daily::rows());
    rows
}
