//! Many recorded calls: planning, making and keeping their rows, as the command line does it.

use crate::sweep::read;
use crate::{base_registry, json, value_error};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use weir_judge::calls::{self, CallResult, CallTask, CallsDataset, CallsPlan, CallsSummary, Question, find};

/// The calls that a folder lacks, in chunks, how many it has, and the plan, for [`calls_summary`]: makes the folder one of calls. The
/// question, the chunks and the plan are JSON.
#[pyfunction]
pub(crate) fn calls_plan(
    py: Python<'_>,
    paths: Vec<PathBuf>,
    question: &str,
    folder: PathBuf,
    each_file: bool,
    repeat_failures: bool,
) -> PyResult<(Vec<String>, usize, String)> {
    let question: Question = read(question)?;
    py.detach(|| {
        let found = find(&paths, each_file).map_err(|e| value_error(&e))?;
        let dataset = CallsDataset::open(&folder).map_err(PyValueError::new_err)?;
        let mut failed = BTreeSet::new();
        if !repeat_failures {
            failed.extend(dataset.failures().map_err(PyOSError::new_err)?.into_keys());
        }
        let kept = dataset.keys().map_err(PyOSError::new_err)?;
        let (registry, stop) = (base_registry(), AtomicBool::new(false));
        let plan = calls::plan(&found, &question, &kept, &failed, &registry, &stop, |_| {});
        let mut plan = plan.map_err(|e| value_error(&e))?.unwrap_or_default();
        if repeat_failures {
            dataset.forget_failures().map_err(PyOSError::new_err)?;
        }
        let tasks = std::mem::take(&mut plan.tasks);
        let before = plan.calls - tasks.len();
        let chunks = calls::chunks(tasks).iter().map(json).collect::<PyResult<_>>()?;
        Ok((chunks, before, json(&plan)?))
    })
}

/// Makes the rows of a chunk: JSON.
#[pyfunction]
pub(crate) fn calls_make(py: Python<'_>, chunk: &str) -> PyResult<String> {
    let tasks: Vec<CallTask> = read(chunk)?;
    py.detach(|| json(&calls::make(&tasks, &base_registry(), &AtomicBool::new(false))))
}

/// Keeps the rows of a chunk in a folder, and returns of how many calls they are.
#[pyfunction]
pub(crate) fn calls_keep(py: Python<'_>, folder: PathBuf, results: &str) -> PyResult<usize> {
    let results: Vec<CallResult> = read(results)?;
    py.detach(|| {
        let dataset = CallsDataset::open(&folder).map_err(PyValueError::new_err)?;
        dataset.keep(&results).map_err(PyOSError::new_err)?;
        Ok(results.len())
    })
}

/// A plan's calls in a few numbers: JSON.
#[pyfunction]
pub(crate) fn calls_summary(py: Python<'_>, folder: PathBuf, question: &str, plan: &str) -> PyResult<String> {
    let (question, plan): (Question, CallsPlan) = (read(question)?, read(plan)?);
    py.detach(|| {
        let dataset = CallsDataset::open(&folder).map_err(PyValueError::new_err)?;
        let summary = CallsSummary::of(&dataset, &plan, &question.controllers, question.controller.as_deref());
        json(&summary.map_err(PyOSError::new_err)?)
    })
}
