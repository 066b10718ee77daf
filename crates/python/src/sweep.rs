//! Sweeps: planning, making and keeping runs, as the command line does it.

use crate::{base_registry, json, value_error};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use weir_judge::sweep::{self, Dataset, Grid, SweepResult, SweepRun};

pub(crate) fn read<T: serde::de::DeserializeOwned>(text: &str) -> PyResult<T> {
    serde_json::from_str(text).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// The runs of a grid (JSON) that a folder lacks, in chunks, and how many it has: makes the folder a sweep's. All JSON.
#[pyfunction]
pub(crate) fn sweep_plan(
    py: Python<'_>,
    grid: &str,
    folder: PathBuf,
    repeat_failures: bool,
) -> PyResult<(Vec<String>, usize)> {
    py.detach(|| {
        let runs = Grid::from_json(grid).and_then(|g| g.runs(&base_registry())).map_err(|e| value_error(&e))?;
        let dataset = Dataset::open(&folder).map_err(PyValueError::new_err)?;
        let have = dataset.keys(repeat_failures).map_err(PyOSError::new_err)?;
        let all = runs.len();
        let left: Vec<SweepRun> = runs.into_iter().filter(|run| !have.contains(&run.key)).collect();
        let kept = all - left.len();
        Ok((sweep::chunks(left).iter().map(json).collect::<PyResult<_>>()?, kept))
    })
}

/// Makes the runs of a chunk: their results as JSON.
#[pyfunction]
pub(crate) fn sweep_make(py: Python<'_>, chunk: &str) -> PyResult<String> {
    let runs: Vec<SweepRun> = read(chunk)?;
    py.detach(|| json(&sweep::make(&runs, &base_registry(), &AtomicBool::new(false))))
}

/// Keeps the results of a chunk in a folder.
#[pyfunction]
pub(crate) fn sweep_keep(py: Python<'_>, folder: PathBuf, results: &str) -> PyResult<usize> {
    let results: Vec<SweepResult> = read(results)?;
    py.detach(|| {
        let dataset = Dataset::open(&folder).map_err(PyValueError::new_err)?;
        dataset.keep(&results).map_err(PyOSError::new_err)?;
        Ok(results.len())
    })
}
