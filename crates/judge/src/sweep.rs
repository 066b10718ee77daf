//! Sweeps: every combination of a grid, each made once and kept in a Parquet dataset that a later sweep goes on with.
//!
//! A run is found again by its content address ([`SweepRun::key`]): whoever asks for it, by a file of the command line or from
//! Python, finds what the other has made. `docs/python.md` has the dataset's layout.

pub(crate) mod address;
mod dataset;
pub(crate) mod folder;
mod grid;
pub(crate) mod rows;
pub(crate) mod table;
pub(crate) mod work;

pub use dataset::{Dataset, FORMAT, SweepResult};
pub use grid::{Given, Grid, SweepRun};
pub use work::{CHUNK, chunks, make, make_all};
