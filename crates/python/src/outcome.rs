//! Time series of a run.

use pyo3::prelude::*;
use pyo3::types::PyBytes;
use weir_lab::series;

/// Columns of a run by name: those of the run (`time_s`, `jain`), of each flow and of each link.
#[pyclass(frozen)]
pub(crate) struct Series {
    inner: series::Series,
}

impl Series {
    pub(crate) fn new(inner: series::Series) -> Self {
        Self { inner }
    }

    /// (kind, name of the flow or link, column, values).
    fn all(&self) -> Vec<(&'static str, &str, &str, &[f64])> {
        let s = &self.inner;
        let mut all = vec![("run", "", "time_s", &s.time_s[..]), ("run", "", "jain", &s.jain[..])];
        for f in &s.flows {
            all.extend(f.columns().into_iter().map(|(column, values)| ("flow", &f.name[..], column, values)));
        }
        for l in &s.links {
            all.extend(l.columns().into_iter().map(|(column, values)| ("link", &l.name[..], column, values)));
        }
        all
    }
}

#[pymethods]
impl Series {
    /// Length of a row in s.
    #[getter]
    fn interval_s(&self) -> f64 {
        self.inner.interval_s
    }
    fn __len__(&self) -> usize {
        self.inner.time_s.len()
    }
    /// (kind, name, column) of each column.
    fn columns(&self) -> Vec<(&'static str, &str, &str)> {
        self.all().into_iter().map(|(kind, name, column, _)| (kind, name, column)).collect()
    }
    /// A column's values as 64-bit floating point numbers in the machine's order, NaN where there is none; `None` without
    /// such a column.
    fn column<'py>(
        &self,
        py: Python<'py>,
        kind: &str,
        name: &str,
        column: &str,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let all = self.all();
        let Some((.., values)) = all.iter().find(|c| (c.0, c.1, c.2) == (kind, name, column)) else { return Ok(None) };
        PyBytes::new_with(py, values.len() * 8, |bytes| {
            for (to, v) in bytes.chunks_exact_mut(8).zip(*values) {
                to.copy_from_slice(&v.to_ne_bytes());
            }
            Ok(())
        })
        .map(Some)
    }
}
