//! Recorded calls of other programs.

use crate::controller::Failed;
use crate::interrupt::Interrupt;
use crate::json;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use weir_timeline::why::{Curves, curves};
use weir_timeline::{Call, ReadError, Report, TABLES, Values, read};

/// The rows of a call's files, and its numbers over time.
#[pyclass(frozen)]
pub(crate) struct Recorded {
    call: Call,
    curves: Option<Curves>,
    time_s: Vec<f64>,
}

/// A file that ends with an error once its reader shall stop.
struct Heeding<'a> {
    file: File,
    stop: &'a AtomicBool,
}

impl Read for Heeding<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(io::Error::other("stopped"));
        }
        self.file.read(buffer)
    }
}

/// Opens recordings of one call. Gives the JSON of `weir open --lint --json` without its schema's name, and the rows.
#[pyfunction]
#[pyo3(signature = (files, *, controllers=Vec::new()))]
pub(crate) fn open(py: Python<'_>, files: Vec<PathBuf>, controllers: Vec<String>) -> PyResult<(String, Recorded)> {
    if files.is_empty() {
        return Err(PyValueError::new_err("files: none: expected at least one recording"));
    }
    let interrupt = Interrupt::new(None, Failed::default());
    let made = interrupt.heeded(py, || {
        let recordings = files.iter().map(|path| one(path, interrupt.stop())).collect::<Result<_, _>>()?;
        let call = Call::new(recordings);
        let report = Report::of(&call, &controllers).map_err(|e| PyValueError::new_err(format!("controllers: {e}")))?;
        let curves = curves(&call);
        Ok::<_, PyErr>((report, call, curves))
    })?;
    interrupt.raise()?;
    let (report, call, curves) = made?;
    let rows = curves.as_ref().and_then(|c| c.columns.first()).map_or(0, |c| c.values.len());
    let interval_s = curves.as_ref().map_or(0.0, |c| c.interval_s);
    let time_s = (1..=rows).map(|row| row as f64 * interval_s).collect();
    Ok((json(&report)?, Recorded { call, curves, time_s }))
}

fn one(path: &Path, stop: &AtomicBool) -> PyResult<weir_timeline::Recording> {
    let name = path.display().to_string();
    let unreadable = |why: String| PyOSError::new_err(format!("{name}: {why}"));
    let file = weir_files::open(path).map_err(|e| unreadable(e.to_string()))?;
    read(&name, Heeding { file, stop }).map_err(|e| match e {
        ReadError::Io(e) => unreadable(e.to_string()),
        e => PyValueError::new_err(format!("{name}: {e}\nhelp: docs/open.md lists the formats")),
    })
}

fn bytes<'py, T: Copy, const N: usize>(
    py: Python<'py>,
    values: &[T],
    of: impl Fn(T) -> [u8; N],
) -> PyResult<Bound<'py, PyBytes>> {
    PyBytes::new_with(py, values.len() * N, |bytes| {
        bytes.chunks_exact_mut(N).zip(values).for_each(|(to, v)| to.copy_from_slice(&of(*v)));
        Ok(())
    })
}

/// A column of a table: name, numbers as 64-bit floating point or places as 32-bit integers in the machine's order, and the
/// texts that places stand for.
type Column<'py> = (&'static str, Bound<'py, PyBytes>, Option<Vec<String>>);

#[pymethods]
impl Recorded {
    /// Length of a row of the series in s.
    #[getter]
    fn interval_s(&self) -> f64 {
        self.curves.as_ref().map_or(0.0, |c| c.interval_s)
    }
    /// Begin of the first row of the series: Unix time in ms where the files know it.
    #[getter]
    fn start_ms(&self) -> Option<i64> {
        self.curves.as_ref().map(|c| c.start_ms)
    }
    fn __len__(&self) -> usize {
        self.time_s.len()
    }
    /// (kind, name, column) of each column of the series.
    fn columns(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let of_call = self.curves.iter().flat_map(|c| &c.columns).map(|c| ("call", "", c.name));
        std::iter::once(("call", "", "time_s")).chain(of_call).collect()
    }
    /// A column of the series, as `Series.column` gives it.
    fn column<'py>(
        &self,
        py: Python<'py>,
        _kind: &str,
        _name: &str,
        column: &str,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let values = match column {
            "time_s" => Some(&self.time_s[..]),
            _ => self.curves.as_ref().and_then(|c| c.column(column)),
        };
        values.map(|v| bytes(py, v, f64::to_ne_bytes)).transpose()
    }
    /// Names of all tables.
    #[staticmethod]
    fn tables() -> Vec<&'static str> {
        TABLES.to_vec()
    }
    /// A table of one of the files; `None` without such a file or table.
    fn table<'py>(&self, py: Python<'py>, file: usize, name: &str) -> PyResult<Option<Vec<Column<'py>>>> {
        let Some(table) = self.call.recordings.get(file).and_then(|r| r.table(name)) else { return Ok(None) };
        let column = |(name, values)| match values {
            Values::Numbers(v) => Ok((name, bytes(py, &v, f64::to_ne_bytes)?, None)),
            Values::Texts { places, names } => Ok((name, bytes(py, &places, u32::to_ne_bytes)?, Some(names))),
        };
        table.columns.into_iter().map(column).collect::<PyResult<_>>().map(Some)
    }
}
