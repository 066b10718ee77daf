//! Time series as one list of numbers and a table of what is where in it.

use serde::Serialize;
use weir_lab::series::Series;

/// A column: `len` numbers from `from`, NaN where there is no value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Column {
    /// `run`, `flow` or `link`; of recorded calls `call` or `replay`.
    pub kind: &'static str,
    /// The name of the flow, the link or the replayed controller; empty for the run's or the call's own.
    pub owner: String,
    /// Name of the column.
    pub name: String,
    /// First number.
    pub from: usize,
    /// How many.
    pub len: usize,
}

/// Columns as they are collected.
#[derive(Default)]
pub(crate) struct Columns {
    pub(crate) table: Vec<Column>,
    pub(crate) numbers: Vec<f64>,
}

impl Columns {
    pub(crate) fn add(&mut self, kind: &'static str, owner: &str, name: &str, values: &[f64]) {
        let (owner, name) = (owner.to_owned(), name.to_owned());
        self.table.push(Column { kind, owner, name, from: self.numbers.len(), len: values.len() });
        self.numbers.extend_from_slice(values);
    }
}

pub(crate) fn columns(series: &Series) -> Columns {
    let mut all = Columns::default();
    all.add("run", "", "time_s", &series.time_s);
    for f in &series.flows {
        f.columns().into_iter().for_each(|(name, values)| all.add("flow", &f.name, name, values));
    }
    for l in &series.links {
        l.columns().into_iter().for_each(|(name, values)| all.add("link", &l.name, name, values));
    }
    all
}
