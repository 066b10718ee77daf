//! Shared by the algorithms that estimate the path's rate at the receiver: their signals and states, the average rate
//! at decreases, and the timing of reports.

mod convergence;
mod growth;
mod report_timer;
mod shortest;
mod signal;

pub(crate) use convergence::Convergence;
pub(crate) use growth::Growth;
pub(crate) use report_timer::ReportTimer;
pub(crate) use shortest::ShortestInterval;
pub(crate) use signal::{OveruseSignal, RateState};

use weir_units::TimeDelta;

/// Round-trip time assumed before it is measured (libwebrtc: 200 ms).
pub(crate) const DEFAULT_RTT: TimeDelta = TimeDelta::from_millis(200);
