//! Findings in a call, as every face prints them.

use crate::lint::{Finding, lint};
use crate::replay::{Replay, ReplayError, replay};
use crate::why::{Episode, Explanation, Level, explain};
use crate::{Call, Source};
use serde::Serialize;

/// A recorded call: its files, its episodes, and what else was asked for. The object of `weir open --json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Report {
    /// The files, in the order given.
    pub sources: Vec<Source>,
    /// Evidence that episodes and causes are found on.
    pub level: Level,
    /// Evidence that is missing for causes, and how to get it; none where packets and their fates, or statistics, are known.
    pub missing: Option<String>,
    /// Falls of the rate, freezes and slow starts, in order of time.
    pub episodes: Vec<Episode>,
    /// Rules of RTP and RTCP that the files break; with `--lint`.
    pub findings: Vec<Finding>,
    /// Targets of controllers on the recorded feedback; with `--controllers`.
    pub replays: Vec<Replay>,
}

impl Report {
    /// The files of a call beside what was found in it.
    pub fn new(call: &Call, found: Explanation) -> Self {
        Self {
            sources: call.recordings.iter().map(Source::from).collect(),
            level: found.level,
            missing: found.missing,
            episodes: found.episodes,
            findings: Vec::new(),
            replays: Vec::new(),
        }
    }

    /// Files, episodes with causes, broken rules, and targets of these controllers.
    ///
    /// # Errors
    /// A controller is unknown, or the call does not have what it needs.
    pub fn of(call: &Call, controllers: &[String]) -> Result<Self, ReplayError> {
        let mut report = Self::new(call, explain(call));
        report.findings = call.recordings.iter().flat_map(lint).collect();
        report.replays = controllers.iter().map(|name| replay(call, name)).collect::<Result<_, _>>()?;
        Ok(report)
    }
}
