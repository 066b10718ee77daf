//! Time series as one list of numbers and a table of what is where in it.

use serde::Serialize;
use weir_lab::series::Series;

/// A column: `len` numbers from `from`, NaN where there is no value.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Column {
    /// `run`, `flow` or `link`.
    pub kind: &'static str,
    /// The flow's or link's name; empty for the run's own.
    pub owner: String,
    /// Name of the column.
    pub name: String,
    /// First number.
    pub from: usize,
    /// How many.
    pub len: usize,
}

pub(crate) fn columns(series: &Series) -> (Vec<Column>, Vec<f64>) {
    let (mut table, mut numbers) = (Vec::new(), Vec::new());
    let mut add = |kind, owner: &str, name: &str, values: &[f64]| {
        let (owner, name) = (owner.to_owned(), name.to_owned());
        table.push(Column { kind, owner, name, from: numbers.len(), len: values.len() });
        numbers.extend_from_slice(values);
    };
    add("run", "", "time_s", &series.time_s);
    for f in &series.flows {
        f.columns().into_iter().for_each(|(name, values)| add("flow", &f.name, name, values));
    }
    for l in &series.links {
        l.columns().into_iter().for_each(|(name, values)| add("link", &l.name, name, values));
    }
    (table, numbers)
}
