//! Fits and predictions of many recorded calls, each made once and kept in a Parquet dataset that a later command goes on with.
//!
//! Files are grouped into calls by where they are ([`find`]). A row is found again by its content address: the files' contents, the
//! options that it depends on, and the version. `docs/whatif.md` has the dataset's layout.

mod dataset;
mod find;
mod make;
mod plan;
mod row;
mod summary;

pub use dataset::{CallsDataset, FORMAT};
pub use find::{FoundCall, FoundCalls, MOST_FILES, find};
pub use make::{make, make_all};
pub use plan::{CHUNK, CallController, CallTask, CallsPlan, Question, chunks, plan};
pub use row::{CallFailure, CallResult, CallRow};
pub use summary::{CallsSummary, CauseCount, ControllerCount, Explained, Medians, Verdicts};
