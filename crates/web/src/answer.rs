//! Requests and answers.

pub use crate::columns::Column;
pub use crate::failure::Failure;
pub use crate::recorded::{MAX_FILES, MAX_FILES_BYTES};

use crate::columns::{Columns, columns};
use crate::recorded::{Found, Opened, replayed};
use serde::Deserialize;
use std::sync::atomic::AtomicBool;
use weir_cc::Registry;
use weir_lab::catalogue;
use weir_lab::run::{RunOptions, run};
use weir_lab::scenario::{InputError, ScenarioFile, schema};

/// A page's request.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(tag = "ask", rename_all = "lowercase", deny_unknown_fields)]
pub enum Request {
    /// The controllers.
    Controllers,
    /// The scenarios that ship with Weir.
    Scenarios,
    /// The JSON schema of scenario files.
    Schema,
    /// Describes a text: title, variants, the controllers that it compares, its capacities. Nothing is run.
    Outline(Given),
    /// One run.
    Run(Run),
    /// Opens a recorded call, whose files come beside the request.
    Open(Files),
    /// The controllers that the feedback of a recorded call is enough for.
    Replayed,
    /// Targets of controllers on the feedback of the call that is open.
    Replay(Replay),
    /// Packets of the call that is open.
    Packets(Span),
}

/// Names of the files of a call, in their order.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Files {
    /// As they are shown.
    pub names: Vec<String>,
}

/// Controllers by name.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    /// Such as `gcc`.
    pub controllers: Vec<String>,
}

/// A time of a call, in s since the first one in any of its files.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Span {
    /// Begin.
    pub from_s: f64,
    /// End, which is not in it.
    pub to_s: f64,
}

/// A scenario's text, and the shipped scenario that it was, beside which the files are that it names.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Given {
    /// Its name, such as `rmcat-comparison/responsiveness`, or its last part.
    pub name: String,
    /// TOML. Without it, the shipped scenario's.
    pub text: Option<String>,
}

/// A run's request.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// As [`Given::name`].
    pub name: String,
    /// As [`Given::text`].
    pub text: Option<String>,
    /// The file's first if there is none.
    pub variant: Option<String>,
    /// The file's first if there is none.
    pub controller: Option<String>,
    /// The scenario's if there is none.
    pub seed: Option<u64>,
    /// Whether to answer with time series as well.
    #[serde(default)]
    pub series: bool,
    /// Whether to answer with a digest of the result and its series, which is slow.
    #[serde(default)]
    pub digest: bool,
}

/// An answer: a text, and for runs with series and for recorded calls their columns, and with a digest that.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Answer {
    /// JSON.
    pub text: String,
    /// Where each column is in `numbers`.
    pub columns: Vec<Column>,
    /// All columns, one after the other.
    pub numbers: Vec<f64>,
    /// SHA-256 of the result and the exact bits of its series.
    pub digest: Option<String>,
}

impl From<String> for Answer {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<Found> for Answer {
    fn from((text, columns): Found) -> Self {
        Self { text, columns: columns.table, numbers: columns.numbers, digest: None }
    }
}

/// Answers requests, and has the recorded call that was opened last.
#[derive(Debug, Default)]
pub struct Lab {
    opened: Option<Opened>,
}

impl Lab {
    /// Answers a request as JSON, with the files that came beside it. Errors: the request is none, what it names cannot be run,
    /// or a file is no recording; the call that was open is then closed.
    pub fn answer(&mut self, request: &str, files: Vec<Vec<u8>>) -> Result<Answer, Failure> {
        let request = serde_json::from_str(request).map_err(|e| Failure::request(e.to_string()))?;
        let registry = Registry::builtin();
        match request {
            Request::Controllers => json(&catalogue::controllers(&registry)),
            Request::Scenarios => json(&catalogue::scenarios(&registry)?),
            Request::Schema => Ok(schema().into()),
            Request::Outline(given) => outline(&given, &registry),
            Request::Run(request) => one_run(&request, &registry),
            Request::Open(given) => {
                // Two calls at a time may be more than there is memory for.
                self.opened = None;
                let (opened, found) = Opened::read(&given.names, files)?;
                self.opened = Some(opened);
                Ok(found.into())
            }
            Request::Replayed => json(&replayed(&registry)),
            Request::Replay(given) => Ok(self.opened()?.replay(&given.controllers)?.into()),
            Request::Packets(span) => Ok(self.opened()?.packets(span.from_s, span.to_s)?.into()),
        }
    }

    fn opened(&self) -> Result<&Opened, Failure> {
        self.opened.as_ref().ok_or_else(|| Failure::request("no recorded call is open"))
    }
}

/// Answers a request that needs no file, as [`Lab::answer`].
pub fn answer(request: &str) -> Result<Answer, Failure> {
    Lab::default().answer(request, Vec::new())
}

fn json(value: &impl serde::Serialize) -> Result<Answer, Failure> {
    Ok(serde_json::to_string(value).map_err(|e| Failure::request(e.to_string()))?.into())
}

fn open(name: &str, text: Option<&str>, registry: &Registry) -> Result<ScenarioFile, InputError> {
    match text {
        Some(text) => ScenarioFile::edited(name, text, registry),
        None => ScenarioFile::builtin(name, registry),
    }
}

fn outline(given: &Given, registry: &Registry) -> Result<Answer, Failure> {
    let file = open(&given.name, given.text.as_deref(), registry)?;
    let scenario = file.one(None, None, registry)?;
    json(&serde_json::json!({
        "name": file.name(), "title": file.title(), "doc": file.doc(), "controllers": file.controllers(),
        "variants": file.variants().into_iter().flatten().collect::<Vec<_>>(),
        "duration_s": scenario.duration.as_secs_f64(), "seed": scenario.seed,
        "bottleneck": scenario.links.get(scenario.bottleneck).map(|l| &l.name),
        "text": file.text(),
        "capacities": crate::places::capacities(file.text()),
    }))
}

fn one_run(request: &Run, registry: &Registry) -> Result<Answer, Failure> {
    let file = open(&request.name, request.text.as_deref(), registry)?;
    let scenario = file.one(request.variant.as_deref(), request.controller.as_deref(), registry)?;
    // Nobody can raise it: a page ends a run by ending its worker.
    let stop = AtomicBool::new(false);
    let series = request.series || request.digest;
    let options = RunOptions { registry, series, stop: &stop, progress: &|_| {} };
    let result = run(&scenario, request.seed.unwrap_or(scenario.seed), &options)?;
    let Columns { table: columns, numbers } =
        result.series.as_ref().filter(|_| request.series).map(columns).unwrap_or_default();
    let digest = request.digest.then(|| result.digest());
    Ok(Answer { columns, numbers, digest, ..json(&result)? })
}

#[cfg(test)]
mod tests;
